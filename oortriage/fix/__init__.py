"""The fix: which tile a shape gets, put in place by plugin or patch, verified in layers, undone exactly."""
