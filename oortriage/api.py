"""The Python interface: ``oortriage.analyze(path or text)`` gives a ``Diagnosis``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from oortriage.config import find_config
from oortriage.evidence.loader import all_rules, users_rules
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.rule import Rule
from oortriage.intake.log import Log, build_log
from oortriage.intake.source import Notes, as_utf8, find_logs, read_chunks
from oortriage.intake.split import split
from oortriage.intake.window import WHOLE, Anchors, Gate, keep
from oortriage.triage.diagnose import diagnose
from oortriage.triage.diagnosis import Diagnosis


class Analyzer:
    """Rules, compiled once, for any number of logs."""

    def __init__(self, rule_folders: Sequence[Path] = ()) -> None:
        """Load the rules.

        Args:
            rule_folders: folders of the user's own rules; a rule there replaces a built-in one of
                the same code.

        Raises:
            RuleError: a rule file is not valid.
        """
        rules = all_rules(rule_folders)
        self.matcher = Matcher(rules, guarded=users_rules(rules))
        self._gate = Gate(
            Anchors(
                tuple(anchor for rule in rules if rule.is_event for anchor in rule.anchors),
                tuple(anchor for rule in rules if not rule.is_event for anchor in rule.anchors),
            )
        )

    def file(self, path: str | Path, *, name: str = "", whole: int = WHOLE) -> Diagnosis:
        """Analyze one file, compressed or not; ``-`` is standard input.

        Args:
            path: the file.
            name: how evidence cites it; the path when empty.
            whole: size in bytes up to which a log is read as a whole.

        Raises:
            InputError: the file cannot be read.
        """
        return self.judge(self.read(path, name=name, whole=whole))

    def read(self, path: str | Path, *, name: str = "", whole: int = WHOLE) -> Log:
        """Read one file into lines and streams, as :meth:`file` does, and give no verdict on it.

        Raises:
            InputError: the file cannot be read.
        """
        notes = Notes()
        return self._chunks(name or str(path), read_chunks(path, notes), notes, whole)

    def judge(self, log: Log) -> Diagnosis:
        """Give the verdict on a log that was read."""
        diagnosis = diagnose(log, self.matcher)
        if self.matcher.timed_out:
            slow = ", ".join(sorted(self.matcher.timed_out))
            diagnosis.notes.append(f"the expression of rule {slow} took too long and was not used further")
        return diagnosis

    def text(self, text: str | bytes, *, name: str = "<text>", whole: int = WHOLE) -> Diagnosis:
        """Analyze a log that is in memory already."""
        notes = Notes()
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return self.judge(self._chunks(name, as_utf8(iter([data]), notes), notes, whole))

    def _chunks(self, name: str, chunks: Iterator[bytes], notes: Notes, whole: int) -> Log:
        stretches = keep(chunks, self._gate, whole=whole)
        pieces = (piece for stretch in stretches for piece in split(stretch, self._gate))
        return build_log(name, pieces, complete=len(stretches) <= 1, notes=notes.notes)


@lru_cache(maxsize=1)
def default_analyzer() -> Analyzer:
    """Return the analyzer with the built-in rules, made once a process."""
    return Analyzer()


def analyze(source: str | Path | bytes) -> Diagnosis:
    """Diagnose one log.

    Args:
        source: a path, or the text of a log. A string is taken for a path when it is one line and
            such a file exists; bytes are always text.

    Raises:
        InputError: a path that cannot be read.
    """
    if isinstance(source, Path):
        return default_analyzer().file(source)
    if isinstance(source, str) and "\n" not in source and len(source) < 4096 and _is_file(source):
        return default_analyzer().file(source)
    return default_analyzer().text(source)


def expand(paths: Iterable[str | Path]) -> list[str | Path]:
    """Replace each folder by the logs below it."""
    found: list[str | Path] = []
    for path in paths:
        if str(path) != "-" and Path(path).is_dir():
            found.extend(find_logs(Path(path)))
        else:
            found.append(path)
    return found


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def configured_rules() -> tuple[Rule, ...]:
    """Return the built-in rules and those that the project's settings add."""
    return all_rules(find_config().rule_folders)


def find_rule(code: str) -> Rule | None:
    """Find a rule by its code, in any case."""
    return next((rule for rule in configured_rules() if rule.code == code.upper()), None)
