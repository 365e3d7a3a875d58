"""The reference of the doctor's codes, as a page: docs/doctor.md is made from it."""

from __future__ import annotations

from oortriage.doctor.checks import ALL, every_code
from oortriage.doctor.finding import Code

_INTRODUCTION = (
    "`oortriage doctor` reads the machine's own facts and says what is wrong with them. It imports neither torch nor "
    "vllm, changes nothing, and every question to the outside has a time limit. What cannot be looked at is said, "
    "with the reason. It ends with 0 when nothing is wrong, 1 when there is an error or a warning, 2 on a usage "
    "error; notes do not count."
)


def reference() -> str:
    """Write the page: what is looked at, and every code with its meaning, remedy and source."""
    lines = [
        "# What `oortriage doctor` finds",
        "",
        "Generated from `oortriage/doctor/checks/` by `python -m oortriage.doctor.reference`; do not edit.",
        "",
        _INTRODUCTION,
        "",
        "- `--python PATH` looks at the packages of another environment.",
        "- `--dmesg FILE` reads Xids from a saved kernel log, `--topo FILE` the matrix of `nvidia-smi topo -p2p r`.",
        "- `--issue` prints a block for an issue report: named fields only, no user, host, path or command line.",
        "- `--format json` (`--json`) has all facts; `oortriage schema doctor` is its schema.",
        "",
        "## What is looked at",
        "",
        "| check | what |",
        "|---|---|",
        *(f"| `{one.NAME}` | {_cell(one.TITLE)} |" for one in ALL),
        "",
        "## Codes",
        "",
        "| code | severity | finding |",
        "|---|---|---|",
        *(f"| [{code.code}](#{code.code.lower()}) | {code.severity} | {_cell(code.title)} |" for code in every_code()),
    ]
    for code in every_code():
        lines += ["", *_entry(code)]
    return "\n".join(lines) + "\n"


def page_of(code: str) -> str:
    """Write one code as a page that also reads well as plain text; empty for one that is not the doctor's."""
    found = next((one for one in every_code() if one.code == code.strip().upper()), None)
    if found is None:
        return ""
    return (
        f"# {found.code}: {found.title}\n\n{found.severity} of `oortriage doctor`.\n\n{found.meaning}\n\n"
        f"What helps: {found.remedy}\n\nSource: {found.source}\n"
    )


def _entry(code: Code) -> list[str]:
    return [
        f"### {code.code}",
        "",
        f"**{_cell(code.title)}** ({code.severity}). {_cell(code.meaning)}",
        "",
        f"- What helps: {_cell(code.remedy)}",
        f"- Source: {_cell(code.source)}",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
