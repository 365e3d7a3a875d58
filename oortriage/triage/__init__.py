"""Events and facts to a diagnosis: root cause, cause, phase, confidence, prescriptions."""
