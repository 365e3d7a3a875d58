"""Diagnoses made by hand: plain ones, and ones with the same text in every field a log can reach."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Check, Part, PoolUse
from oortriage.budget.solution import Solution
from oortriage.report._interface import Style, open_report, render_all
from oortriage.triage.diagnosis import (
    BillTerm,
    BillView,
    BudgetView,
    Diagnosis,
    Evidence,
    Mask,
    OtherFailure,
    Prescription,
    RuledOut,
    StatedFact,
    WillNotHelp,
)

#: Pieces that mean something to a terminal, to Markdown, to GitHub or to HTML.
PIECES = (
    "\x1b[31m", "\x1b[2J", "\x1b]8;;https://evil.example\x1b\\", "\x1b]0;owned\x07", "\x9b31m", "\x1bPq\x1b\\",
    "\x00", "\x07", "\x08", "\r", "\x0b", "\x0c", "\x7f", "\x85", "\u202e", "\u2066", "\u2069", "\u200b",
    "\u200f", "\u2028", "\ufeff", "\t",
    "`", "``", "```", "````````", "~~~", "|", "||", "\\", "\\|", "*", "**", "_", "__", "#", "# ", "- ", "1. ", "> ",
    "<b>", "<script>alert(1)</script>", "<!-- ", "-->", "<img src=x>", "</details>", "&lt;", "&#60;", "<a@b.example>",
    "[text](https://evil.example)", "![img](https://evil.example/x.png)", "[", "]", "(", ")", "![",
    "<https://evil.example>", "https://evil.example", "@octocat", "@org/team", "#1", "$x$", "[bold red]", "[/]",
    " ", "a", "Z", "0", "9", ".", ":", "é", "显存", "\U0001f600",
)  # fmt: skip

hostile = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


def made(**fields: Any) -> Diagnosis:
    """Make a diagnosis with as little in it as there can be."""
    base: dict[str, Any] = {
        "schema_version": 1,
        "file": "run.log",
        "code": "SM101",
        "title": "title",
        "resource": "shared_memory",
        "cause": "tile_too_large",
        "phase": "unknown",
        "status": "fatal",
        "confidence": 0.9,
        "fingerprint": "v1-0123456789ab",
        "summary": "summary",
    }
    return Diagnosis(**{**base, **fields})


def filled(text: str) -> Diagnosis:
    """Put one text in every field that can hold words of a log, between two plain letters."""
    text = f"a{text}z"
    names = (
        "gpu", "compute_capability", "vllm_version", "sglang_version", "torch_version", "triton_version", "model",
        "attention_backend", "head_size", "tensor_parallel_size", "dtype", "dtype_from",
    )  # fmt: skip
    return made(
        file=text,
        title=text,
        cause=text,
        summary=text,
        evidence=[Evidence(text, 3, 5, text, "root", "SM101", text)],
        numbers={"required_bytes": 81920},
        facts={name: StatedFact(text, text, 2, 0.9, text) for name in names},
        masked_by=[Mask("WR101", text, 7)],
        ruled_out=[RuledOut("kv_cache", text, 9)],
        missing=[text],
        bill=BillView("arithmetic", 96, [BillTerm(text, text, 96)], {}, text),
        budget=budget_of(text),
        prescriptions=[Prescription(text, text, text, "safe", text)],
        will_not_help=[WillNotHelp(text, text)],
        others=[OtherFailure("DM101", "device_memory", 11, "later")],
        occurrences=2,
        streams=[text, "b"],
        notes=[text],
    )


def budget_of(text: str) -> BudgetView:
    """Make a budget with one text in every field that holds words."""
    size = Figure(3.0 * 2**30, "bytes", "estimated", text, 2.9 * 2**30, 3.1 * 2**30)
    return BudgetView(
        version=text,
        engine="V1",
        figures={"weights_bytes": size, "budget_bytes": size, "kv_available_bytes": size},
        parts=[Part("weights", text, size, 0.0), Part("missing", text, size, 2.0**30)],
        checks=[Check(text, "bytes", 5.0, 7.0, 6.0, 8.0, False, text, text, 3)],
        use=PoolUse(0.5, 4, 2, 7, size, size, size, size, size),
        solutions=[Solution("utilization", text, text, "estimated", 0.9), Solution("no_window", "", text, "derived")],
        notes=[text],
    )


def rendered(name: str, *diagnoses: Diagnosis, width: int = 80, color: bool = False) -> str:
    return render_all(open_report(name, Style(width=width, color=color)), diagnoses)
