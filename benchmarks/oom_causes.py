"""The cause of public out-of-memory messages, against hand labels: a confusion matrix.

``python benchmarks/oom_causes.py`` reads ``docs/evidence/oom-causes.toml`` and writes ``oom-causes.md`` and
``oom-causes.json`` beside it. It needs nothing but the package.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from oortriage.api import Analyzer

FOLDER = Path(__file__).parent.parent / "docs" / "evidence"
#: What a plain shortage is called by the moment it happened in; the label "capacity" means all of them.
SHORTAGES = {"sampler_warmup", "graph_capture", "weights_do_not_fit"}
#: Cases that a one-sided test gets wrong, by what makes them hard.
HARD = {
    "U >= T, but idle memory is a few percent: no fragmentation": (
        "FastFlow#4",
        "PuLID#13",
        "polygnn#16",
        "sglang/issues/29838",
        "vllm/issues/9290",
    ),
    "half of the reserved memory is idle, and still all of it would not do": ("CADS#4",),
    "almost nothing idle, but a stranded pool": ("vllm/issues/43951",),
}


def main() -> int:
    """Judge every message, write both files, and end with 1 where a wrong one has no reason."""
    table = msgspec.toml.decode((FOLDER / "oom-causes.toml").read_bytes())
    analyzer = Analyzer()
    rows = [row_of(report, analyzer) for report in table["report"]]
    left = table["left_out"]
    (FOLDER / "oom-causes.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    (FOLDER / "oom-causes.md").write_text(_page(rows, left), encoding="utf-8")
    silent = [row for row in rows if not row["right"] and not row["reason"]]
    for row in silent:
        print(f"{row['report']}: labelled {row['label']}, said {row['said']}", file=sys.stderr)
    print(f"{sum(row['right'] for row in rows)} of {len(rows)} causes as labelled")
    return 1 if silent else 0


def row_of(report: dict[str, Any], analyzer: Analyzer) -> dict[str, Any]:
    """Judge one message."""
    diagnosis = analyzer.text(report["message"] + "\n")
    cause = diagnosis.cause if diagnosis.resource == "device_memory" else diagnosis.resource
    said = "capacity" if cause in SHORTAGES and report["label"] == "capacity" else cause
    return {
        "report": report.get("name") or report["url"],
        "url": report.get("url", ""),
        "origin": report["origin"],
        "filled": report.get("filled", ""),
        "hand": report["hand"],
        "sure": report["sure"],
        "label": report["label"],
        "said": said,
        "cause": cause,
        "right": said == report["label"],
        "reason": report.get("reason", ""),
        "walked": _walked(diagnosis.decision),
        "decision": [msgspec.to_builtins(step) for step in diagnosis.decision],
    }


def _page(rows: list[dict[str, Any]], left: list[dict[str, str]]) -> str:
    printed = [row for row in rows if row["origin"] == "report"]
    walked = [row for row in printed if row["walked"]]
    recorded = [row for row in rows if row["origin"] != "report" and not row["filled"]]
    filled = [row for row in rows if row["filled"]]
    gone = Counter(one["reason"] for one in left)
    lines = [
        "# Causes of out-of-memory messages, against hand labels",
        "",
        f"- {_score(printed)} messages of public reports, as printed, get the cause that a person gave them;",
        f"- {_score(walked)} of those that print request, capacity and free memory, so that the order can be walked;",
        f"- {_score(recorded)} worked examples whose figures are all recorded, in the wording of the report's release;",
        f"- {_score(filled)} worked examples in which figures that are not recorded were filled in (`filled` in the data).",
        "",
        "Written by `python benchmarks/oom_causes.py` from `oom-causes.toml`; `oom-causes.json` has every test of every",
        "decision with its numbers.",
        "",
        "How the labels were made: by hand, from each report's text and thread, with a confidence (`sure`). Most are coarser than the program's causes: `cuda_oom` is `capacity` here, unless the",
        "label's second part says that the request was larger than the card or that Windows had spilled into system",
        "memory; a shortage named by its moment (`sampler_warmup`, `graph_capture`, `weights_do_not_fit`) counts as",
        "`capacity`. The thresholds of the decision were chosen on the same reports, so expect less on new logs.",
        "",
        f"Left out, because the message is not kept as printed: {', '.join(f'{n} {why}' for why, n in sorted(gone.items()))}.",
        "",
        *_matrix(rows),
        "",
        "## Cases that one-sided tests get wrong",
        "",
        "| what makes it hard | report | filled in | label | said | the test that decided |",
        "|---|---|---|---|---|---|",
    ]
    for what, names in HARD.items():
        for name in names:
            row = next(one for one in rows if one["report"].endswith(name) or one["url"].endswith(name))
            lines.append(
                f"| {what} | {_name(row)} | {row['filled'] or 'nothing'} | {row['label']} | {row['said']} "
                f"| {_decisive(row['decision'])} |"
            )
    lines += [
        "",
        "## Where the program says something else",
        "",
        "| report | label | said | why |",
        "|---|---|---|---|",
    ]
    for row in rows:
        if not row["right"]:
            lines.append(f"| {_name(row)} | {row['label']} | {row['said']} | {row['reason']} |")
    return "\n".join(lines) + "\n"


def _score(rows: list[dict[str, Any]]) -> str:
    return f"{sum(row['right'] for row in rows)} of {len(rows)}"


def _walked(steps: list[Any]) -> bool:
    """Tell whether the figures were enough: the question of free memory was answered, or one before it held."""
    return any(step.holds is True or (step.test == "was enough free" and step.holds is not None) for step in steps)


def _matrix(rows: list[dict[str, Any]]) -> list[str]:
    counts = Counter((row["label"], row["said"]) for row in rows)
    labels = sorted({row["label"] for row in rows}, key=lambda one: -sum(row["label"] == one for row in rows))
    columns = [*labels, *sorted({row["said"] for row in rows} - set(labels))]
    columns = [one for one in columns if any(counts[label, one] for label in labels)]
    lines = [
        "Rows are labels, columns what the program says.",
        "",
        "| label | n | " + " | ".join(columns) + " |",
        "|---|---:|" + "---:|" * len(columns),
    ]
    for label in labels:
        cells = [f"**{counts[label, one]}**" if label == one else str(counts[label, one] or "") for one in columns]
        lines.append(f"| {label} | {sum(row['label'] == label for row in rows)} | " + " | ".join(cells) + " |")
    return lines


def _name(row: dict[str, Any]) -> str:
    short = row["url"].removeprefix("https://github.com/")
    return f"[{short}]({row['url']})" if short else row["report"]


def _decisive(steps: list[dict[str, Any]]) -> str:
    """Choose the test that these cases turn on: the one that names pools where it holds, else the one on idle memory."""
    pools = [one for one in steps if "private pools" in one["test"] and one["holds"]]
    one = (pools or [one for one in steps if "idle" in one["test"]])[0]
    return f"{one['figures']}: {one['answer']}"


if __name__ == "__main__":
    sys.exit(main())
