"""pytest: a failing test whose text holds a resource failure gets a section with the verdict.

Every pytest run on a machine with oortriage imports this module, so it imports nothing of its own until a test fails
in a run that asked for it with ``--oortriage`` or ``oortriage = true``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oortriage.triage.diagnosis import Diagnosis

#: Characters of a failing test's text that are read: the beginning and the end of more are kept.
_MOST = 4_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting that turn the plugin on."""
    group = parser.getgroup("oortriage")
    group.addoption(
        "--oortriage",
        action="store_true",
        default=False,
        help="For failing tests, say which GPU memory ran out and what to change.",
    )
    parser.addini("oortriage", "For failing tests, say which GPU memory ran out.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Take part in the run only where that was asked for."""
    if config.getoption("--oortriage") or config.getini("oortriage"):
        config.pluginmanager.register(_Triage(), "oortriage-triage")


class _Triage:
    """Reads the failure and the captured output of each failing phase of a test."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            try:
                _add_verdict(item, report, call)
            except Exception as problem:  # noqa: BLE001 (whatever goes wrong here, the test's own report stands)
                report.sections.append(("oortriage", f"no verdict: {type(problem).__name__}"))
        return report


def _add_verdict(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    from oortriage.api import default_analyzer
    from oortriage.report._interface import Style, open_report, render_all

    diagnosis: Diagnosis = default_analyzer().text(_text(report, call), name=report.nodeid)
    if diagnosis.resource in ("none", "undetermined"):
        return
    text = render_all(open_report("text", Style(width=80)), [diagnosis])
    report.sections.append(("oortriage", text.rstrip("\n")))
    properties: list[tuple[str, object]] = [
        (f"oortriage_{name}", getattr(diagnosis, name)) for name in ("resource", "code", "fingerprint")
    ]
    report.user_properties.extend(properties)
    item.user_properties.extend(properties)  # JUnit's XML takes those of the last phase, which copies the test's


def _text(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    """Put together what a log would hold: the captured output, then the traceback as Python prints it.

    pytest's own form shows the source of whole functions, in which a quoted message is no failure.
    """
    import traceback

    parts = [text for title, text in report.sections if title.startswith("Captured ")]
    if call.excinfo is not None:
        error, frame = call.excinfo.value, call.excinfo.tb
        while frame.tb_next and frame.tb_frame.f_globals.get("__name__", "").startswith(("_pytest.", "pluggy.")):
            frame = frame.tb_next  # the way from pytest to the test is of no use
        parts.append("".join(traceback.format_exception(type(error), error, frame)))
    text = "\n".join(parts)
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]}\n{text[-_MOST // 2 :]}"
