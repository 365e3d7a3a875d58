"""Verdicts against labels: precision and recall, false alarms, and whether confidence means anything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec

from oortriage.api import Analyzer
from oortriage.scoring.case import LabelledCase, load_cases
from oortriage.triage.diagnosis import Diagnosis

#: What the scores must reach.
RESOURCE_ACCURACY = 0.98


class Verdict(msgspec.Struct, frozen=True):
    """One case, what the tool said of it, and what was wrong with that."""

    case: LabelledCase
    diagnosis: Diagnosis
    problems: list[str]

    @property
    def resource_right(self) -> bool:
        """Whether the resource is the labelled one."""
        return self.diagnosis.resource == self.case.expect.resource

    @property
    def cause_right(self) -> bool | None:
        """Whether the cause is an accepted one; None when the case does not judge it."""
        accepted = self.case.expect.causes
        return (self.diagnosis.cause in accepted) if accepted else None


class Rate(msgspec.Struct, frozen=True):
    """Hits of one label: ``right`` of ``said`` were right, ``right`` of ``labelled`` were found."""

    label: str
    labelled: int
    said: int
    right: int

    @property
    def precision(self) -> float | None:
        """Share of the verdicts of this label that are right; None without a verdict."""
        return self.right / self.said if self.said else None

    @property
    def recall(self) -> float | None:
        """Share of the labelled cases that got the label; None without a case."""
        return self.right / self.labelled if self.labelled else None


class Score(msgspec.Struct, frozen=True):
    """All verdicts of a folder of cases, with the rates made from them."""

    verdicts: list[Verdict]

    @property
    def accuracy(self) -> float:
        """Share of cases with the labelled resource."""
        return sum(one.resource_right for one in self.verdicts) / len(self.verdicts)

    @property
    def cause_accuracy(self) -> float:
        """Share of the judged causes that are accepted ones."""
        judged = [one.cause_right for one in self.verdicts if one.cause_right is not None]
        return sum(judged) / len(judged) if judged else 1.0

    @property
    def false_shared_memory(self) -> list[Verdict]:
        """Verdicts of shared memory on cases of anything else."""
        return [one for one in self.verdicts if one.diagnosis.resource == "shared_memory" and not one.resource_right]

    @property
    def false_alarms(self) -> list[Verdict]:
        """Failures found in clean and recovered logs."""
        return [one for one in self.verdicts if one.case.expect.resource == "none" and one.diagnosis.exit_code == 1]

    @property
    def passed(self) -> bool:
        """Whether the scores reach what the project promises."""
        return self.accuracy >= RESOURCE_ACCURACY and not self.false_shared_memory and not self.false_alarms

    def by_resource(self) -> list[Rate]:
        """Rates per resource."""
        return _rates([(one.case.expect.resource, one.diagnosis.resource) for one in self.verdicts])

    def by_cause(self) -> list[Rate]:
        """Rates per cause, over the cases whose cause is judged; an accepted cause counts as the label."""
        pairs = []
        for one in self.verdicts:
            accepted = one.case.expect.causes
            if accepted:
                said = one.diagnosis.cause
                pairs.append((said if said in accepted else accepted[0], said))
        return _rates(pairs)

    def reliability(self) -> list[tuple[float, float, int, int]]:
        """Bins of confidence: lower bound, upper bound, verdicts, right ones."""
        bounds = (0.0, 0.5, 0.7, 0.8, 0.9, 1.01)
        rows = []
        for low, high in itertools.pairwise(bounds):
            inside = [one for one in self.verdicts if low <= one.diagnosis.confidence < high]
            rows.append((low, min(high, 1.0), len(inside), sum(one.resource_right for one in inside)))
        return rows


def _rates(pairs: Sequence[tuple[str, str]]) -> list[Rate]:
    labels = sorted({label for pair in pairs for label in pair})
    return [
        Rate(
            label,
            sum(want == label for want, _ in pairs),
            sum(said == label for _, said in pairs),
            sum(want == said == label for want, said in pairs),
        )
        for label in labels
    ]


def score_folder(folder: Path) -> Score:
    """Analyze every case below a folder and hold the verdicts against the labels."""
    return score_cases(load_cases(folder))


def score_cases(cases: Sequence[LabelledCase]) -> Score:
    """Analyze cases with the built-in rules."""
    analyzer = Analyzer()
    return Score([judge(case, analyzer.file(case.path, name=case.log)) for case in cases])


def judge(case: LabelledCase, diagnosis: Diagnosis) -> Verdict:
    """Hold one verdict against its label."""
    expect = case.expect
    problems = []
    if diagnosis.resource != expect.resource:
        problems.append(f"resource {diagnosis.resource}, should be {expect.resource}")
    if expect.causes and diagnosis.cause not in expect.causes:
        problems.append(f"cause {diagnosis.cause or '-'}, should be {' or '.join(expect.causes)}")
    if diagnosis.status != expect.status and expect.resource != "undetermined":
        problems.append(f"status {diagnosis.status}, should be {expect.status}")
    if expect.phases and diagnosis.phase not in expect.phases:
        problems.append(f"phase {diagnosis.phase}, should be {' or '.join(expect.phases)}")
    if expect.root_line and expect.resource not in ("none", "undetermined"):
        got = diagnosis.evidence[0].line if diagnosis.evidence else 0
        if got != expect.root_line:
            problems.append(f"root line {got}, should be {expect.root_line}")
    for name, value in expect.numbers.items():
        got_number = diagnosis.numbers.get(name)
        if got_number is None or abs(got_number - value) > 1e-6 * max(1, abs(value)):
            problems.append(f"{name} {got_number}, should be {value}")
    for name, fact in expect.facts.items():
        stated = diagnosis.facts.get(name)
        have = str(stated.value).removeprefix("torch.") if stated else None
        if have is None or have != str(fact).removeprefix("torch."):
            problems.append(f"fact {name} {have}, should be {fact}")
    return Verdict(case, diagnosis, problems)
