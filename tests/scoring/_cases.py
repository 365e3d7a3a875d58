"""Labelled cases for tests, and verdicts on them, without any log being read."""

from __future__ import annotations

from typing import Any

from oortriage.scoring.case import Expected, LabelledCase
from oortriage.scoring.score import Score, Verdict, judge
from oortriage.triage.diagnosis import Diagnosis, Evidence, StatedFact

LABEL = """\
title = "A gizmo"
log = "run.log"
origin = "public"
source = "https://example.com/1"
note = "figures invented"

[expect]
resource = "device_memory"
causes = ["capacity"]
root_line = 2
numbers = { requested_bytes = 300 }
"""


def said(**fields: Any) -> Diagnosis:
    """Make the diagnosis that fits the label above, but for some fields."""
    base: dict[str, Any] = {
        "schema_version": 1,
        "file": "run.log",
        "code": "ZZ900",
        "title": "title",
        "resource": "device_memory",
        "cause": "capacity",
        "phase": "load",
        "status": "fatal",
        "confidence": 0.97,
        "fingerprint": "v1-0123456789ab",
        "summary": "summary",
        "evidence": [Evidence("run.log", 2, 1, "gizmo overflow", "root")],
        "numbers": {"requested_bytes": 300},
        "facts": {"dtype": StatedFact("torch.float16", "run.log", 1, 0.9, "FA101")},
    }
    return Diagnosis(**{**base, **fields})


def labelled(folder: str = "cases/group/one", **expect: Any) -> LabelledCase:
    base: dict[str, Any] = {"resource": "device_memory"}
    return LabelledCase("title", "run.log", "public", Expected(**{**base, **expect}), folder=folder)


def verdict(want: str, got: str, confidence: float = 0.97, folder: str = "cases/group/one") -> Verdict:
    """Judge a verdict of one resource on a case of another."""
    case = labelled(folder, resource=want, causes=[f"{want}-cause"])
    return judge(case, said(resource=got, cause=f"{got}-cause", confidence=confidence))


def score(*pairs: tuple[str, str]) -> Score:
    return Score([verdict(want, got) for want, got in pairs])
