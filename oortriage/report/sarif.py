"""SARIF 2.1.0: one run, a rule for each code that occurs, a result for each log with a failure."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from typing import Any

from oortriage.evidence.loader import all_rules
from oortriage.report._interface import Style
from oortriage.report.sarif_result import BASE, notification, result_of, rule_id
from oortriage.report.sarif_rule import descriptor
from oortriage.triage.diagnosis import Diagnosis
from oortriage.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: Results of one run that GitHub's code scanning takes; a file with more is refused whole.
MOST_RESULTS = 25_000
#: Bytes after gzip that a file may have there (10 MB), less room for the rules and the frame.
MOST_BYTES = 9_000_000

_LEVELS = ("error", "warning", "note")
_SEMANTIC = re.compile(r"\d+\.\d+\.\d+$")


class Format:
    """Hold the diagnoses back until the end, when the worst ones and their rules are known."""

    def __init__(self, style: Style) -> None:
        """Take from the style the folders of the user's rules and the inputs that could not be read."""
        self._style = style
        self._held: list[tuple[Diagnosis, dict[str, Any]]] = []
        self._notifications: list[dict[str, Any]] = []
        self._seen: Counter[tuple[str, str]] = Counter()

    def begin(self) -> str:
        """Nothing is written before all rules are known."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Keep the result of one log; a log in which nothing failed has none."""
        self._notifications += [notification(note, "note", diagnosis.file) for note in diagnosis.notes]
        if diagnosis.resource != "none" or diagnosis.status == "recovered":
            key = (diagnosis.file, diagnosis.fingerprint)
            self._seen[key] += 1
            self._held.append((diagnosis, result_of(diagnosis, self._seen[key])))
        return ""

    def end(self, diagnoses: int) -> str:
        """Write the whole file."""
        kept = self._worst()
        left_out = len(self._held) - len(kept)
        if left_out:
            self._notifications.append(notification(f"{left_out} result(s) were left out: the file would be too large"))
        failed = [notification(problem, "error") for problem in self._style.failed]
        run = {
            "tool": {"driver": self._driver([diagnosis for diagnosis, _ in kept])},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {BASE: {"description": {"text": "The folder in which oortriage ran."}}},
            "invocations": [
                {
                    "executionSuccessful": not failed,
                    "toolExecutionNotifications": [*failed, *self._notifications][:MOST_RESULTS],
                }
            ],
            "results": [result for _, result in kept],
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"

    def _worst(self) -> list[tuple[Diagnosis, dict[str, Any]]]:
        """Return as many results as a file may hold, errors before notes, and else as they came."""
        packer = zlib.compressobj()
        size = 0
        kept: list[tuple[Diagnosis, dict[str, Any]]] = []
        for diagnosis, result in sorted(self._held, key=lambda one: _LEVELS.index(one[1]["level"])):
            size += len(packer.compress(json.dumps(result, indent=2).encode()))
            if size > MOST_BYTES or len(kept) == MOST_RESULTS:
                break
            kept.append((diagnosis, result))
        return kept

    def _driver(self, diagnoses: list[Diagnosis]) -> dict[str, Any]:
        """Describe the tool and the rules that occur."""
        known = {rule.code: rule for rule in all_rules(self._style.rule_folders)} if diagnoses else {}
        first: dict[str, Diagnosis] = {}
        for diagnosis in diagnoses:
            first.setdefault(rule_id(diagnosis), diagnosis)
        driver: dict[str, Any] = {"name": "oortriage", "version": __version__}
        if _SEMANTIC.match(__version__):
            driver["semanticVersion"] = __version__
        driver["rules"] = [descriptor(name, known.get(name), first[name]) for name in sorted(first)]
        return driver
