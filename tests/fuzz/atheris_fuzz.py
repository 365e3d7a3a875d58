"""Coverage-guided fuzzing of all that reads a log: intake, tracebacks, rules and the verdict.

Needs ``pip install atheris`` (Linux, CPython) beside oortriage's own requirements. For a minute::

    python tests/fuzz/atheris_fuzz.py -max_total_time=60

Further arguments are libFuzzer's, such as a folder to keep the corpus in. Without one, the run
starts from the logs of ``fixtures/`` in a folder that is thrown away. A crash leaves its input in
``crash-*``; give that file as the argument to see it again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["oortriage"]):
    from oortriage.api import Analyzer
    from oortriage.intake import window

#: Longer inputs are slow and seldom reach new code.
LONGEST = 8192

#: Sizes that make a log of a few hundred bytes a large one, of which only stretches are kept.
window.CHUNK, window.EDGE, window.BEFORE, window.AFTER, window.FACT_MARGIN = 512, 128, 300, 300, 40

analyzer = Analyzer()


def check(data: bytes) -> None:
    """Analyze one input, as a small log and as a large one, and check what is cited."""
    last = data.count(b"\n") + 1
    for whole in (1 << 21, 256):
        diagnosis = analyzer.text(data, whole=whole)
        if not 0.0 <= diagnosis.confidence <= 1.0:
            raise AssertionError(f"confidence {diagnosis.confidence}")
        if any("UTF-16" in note for note in diagnosis.notes):
            continue  # its line breaks are other bytes
        for quote in diagnosis.evidence:
            if not 1 <= quote.line <= last or quote.column < 1:
                raise AssertionError(f"line {quote.line}:{quote.column} of {last}")
            raw = data.split(b"\n")[quote.line - 1].removeprefix(b"\xef\xbb\xbf")
            if whole > len(data) and quote.text not in raw.decode("utf-8", "replace"):
                raise AssertionError(f"line {quote.line} does not say {quote.text!r}")


def seeds(folder: Path) -> None:
    """Fill a folder with the fixtures' logs, cut to size."""
    for number, path in enumerate(sorted((ROOT / "fixtures").rglob("log.*"))):
        (folder / f"{number:04}").write_bytes(path.read_bytes()[:LONGEST])


def words(path: Path) -> None:
    """Write the rules' anchors as a dictionary for the fuzzer."""
    anchors = sorted({anchor for rule in analyzer.matcher.rules for anchor in rule.anchors})
    entries = ["".join(f"\\x{byte:02x}" for byte in anchor.encode()) for anchor in anchors]
    path.write_text("".join(f'"{entry}"\n' for entry in entries), encoding="ascii")


def main() -> int:
    """Run libFuzzer with the arguments given, in a child, for libFuzzer ends its process itself."""
    arguments = sys.argv[1:]
    if any(one.startswith("-dict=") for one in arguments):
        atheris.Setup(sys.argv, check)
        atheris.Fuzz()
    with tempfile.TemporaryDirectory() as scratch:
        dictionary, corpus = Path(scratch) / "anchors.dict", Path(scratch) / "corpus"
        words(dictionary)
        if all(one.startswith("-") for one in arguments):
            corpus.mkdir()
            seeds(corpus)
            arguments.append(str(corpus))
        options = [f"-dict={dictionary}", f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=2048"]
        command = [sys.executable, __file__, *options, *arguments]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
