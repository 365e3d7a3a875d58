"""A score as a table for people and as JSON for scripts."""

from __future__ import annotations

import json

from oortriage.scoring.score import RESOURCE_ACCURACY, Rate, Score


def _share(value: float | None) -> str:
    return "    -" if value is None else f"{value:5.3f}"


def _rows(rates: list[Rate]) -> list[str]:
    return [f"  {rate.label:24} {rate.labelled:5}  {_share(rate.precision)}  {_share(rate.recall)}" for rate in rates]


def as_text(score: Score, *, show_all: bool = False) -> str:
    """Write the tables; cases with a problem are listed with what is wrong."""
    lines = [
        f"{'BAD' if one.problems else 'ok '} {one.case.name}: {'; '.join(one.problems)}".rstrip(": ")
        for one in score.verdicts
        if one.problems or show_all
    ]
    clean = sum(not one.problems for one in score.verdicts)
    lines += ["", f"cases {len(score.verdicts)}, without any problem {clean}"]
    lines += ["", f"  {'resource':24} cases  prec.  recall", *_rows(score.by_resource())]
    lines += ["", f"  {'cause':24} cases  prec.  recall", *_rows(score.by_cause())]
    lines += ["", "  confidence   cases  right"]
    for low, high, count, right in score.reliability():
        share = f"{right / count:5.3f}" if count else "    -"
        lines.append(f"  {low:.2f} - {high:.2f}  {count:5}  {share}")
    lines += [
        "",
        f"resource accuracy {score.accuracy:.3f} (must be {RESOURCE_ACCURACY})",
        f"cause accuracy {score.cause_accuracy:.3f}",
        f"false shared_memory {len(score.false_shared_memory)} (must be 0)",
        f"false alarms on clean and recovered logs {len(score.false_alarms)} (must be 0)",
    ]
    return "\n".join(lines)


def as_json(score: Score) -> str:
    """Write the same figures as JSON."""

    def rates(rows: list[Rate]) -> list[dict[str, object]]:
        return [
            {
                "label": rate.label,
                "cases": rate.labelled,
                "precision": rate.precision,
                "recall": rate.recall,
            }
            for rate in rows
        ]

    return json.dumps(
        {
            "cases": len(score.verdicts),
            "resource_accuracy": score.accuracy,
            "cause_accuracy": score.cause_accuracy,
            "false_shared_memory": [one.case.name for one in score.false_shared_memory],
            "false_alarms": [one.case.name for one in score.false_alarms],
            "by_resource": rates(score.by_resource()),
            "by_cause": rates(score.by_cause()),
            "reliability": [
                {"low": low, "high": high, "cases": count, "right": right}
                for low, high, count, right in score.reliability()
            ],
            "problems": {one.case.name: one.problems for one in score.verdicts if one.problems},
        },
        indent=2,
    )
