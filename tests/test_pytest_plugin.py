"""The pytest plugin, in runs of its own: off by default, a section where something ran out, never in the way."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from xml.etree import ElementTree as ET

import pytest

import oortriage.api

MESSAGE = (
    "out of resource: shared memory, Required: 81920, Hardware limit: 65536. "
    "Reducing block sizes or `num_stages` may help."
)
FAILING = f"""
    class OutOfResources(Exception):
        pass

    def test_kernel():
        raise OutOfResources({MESSAGE!r})
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest; an environment that was installed before the plugin has no entry point for it."""
    known = any(one.name == "oortriage" for one in entry_points(group="pytest11"))
    own = [] if known else ["-p", "oortriage.pytest_plugin"]
    return pytester.runpytest_inprocess(*own, "-p", "no:cacheprovider", *arguments)


def sections(result: pytest.RunResult) -> int:
    return sum(line.strip("- ") == "oortriage" for line in result.outlines)


def test_it_is_off_unless_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert sections(result) == 0


def test_a_failure_gets_the_verdict(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = run(pytester, "--oortriage")
    result.assert_outcomes(failed=1)
    assert sections(result) == 1
    result.stdout.fnmatch_lines(["*- oortriage -*", "*81,920 bytes*", "*SM101*"])


def test_a_setting_turns_it_on(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\noortriage = true\n")
    pytester.makepyfile(FAILING)
    assert sections(run(pytester)) == 1


def test_captured_output_is_read(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess, sys
        def test_server():
            print("starting")
            sys.stderr.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
                "capacity of 14.58 GiB of which 1.00 GiB is free. Process 1 has 13.58 GiB memory in use.\\n")
            assert 1 == 2
        """
    )
    result = run(pytester, "--oortriage")
    assert sections(result) == 1
    result.stdout.fnmatch_lines(["*- oortriage -*", "*2.00 GiB*"])


@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_other_phases_are_read(pytester: pytest.Pytester, phase: str) -> None:
    raising = f"raise RuntimeError({MESSAGE!r})"
    before, after = (raising, "") if phase == "setup" else ("", raising)
    pytester.makepyfile(
        f"""
        import pytest
        @pytest.fixture
        def server():
            {before}
            yield
            {after}
        def test_it(server):
            pass
        """
    )
    assert sections(run(pytester, "--oortriage")) == 1


def test_other_failures_and_tests_that_pass_look_as_always(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import pytest
        MESSAGE = {MESSAGE!r}
        def test_equal():
            assert 1 == 2
        def test_quotes():
            text = {MESSAGE!r}
            raise ValueError("no such file")
        def test_passes():
            print(MESSAGE)
        def test_skips():
            pytest.skip(MESSAGE)
        @pytest.mark.xfail
        def test_expected():
            raise RuntimeError(MESSAGE)
        """
    )
    result = run(pytester, "--oortriage")
    result.assert_outcomes(failed=2, passed=1, skipped=1, xfailed=1)
    assert sections(result) == 0


def test_an_exception_that_cannot_be_printed_breaks_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no")
        def test_odd():
            print("\\x1b[31m\\x00\\udc80 half")
            raise Odd
        """
    )
    run(pytester, "--oortriage").assert_outcomes(failed=1)


def test_its_own_failure_is_told_and_breaks_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise MemoryError

    monkeypatch.setattr(oortriage.api, "default_analyzer", broken)
    pytester.makepyfile(FAILING)
    result = run(pytester, "--oortriage")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- oortriage -*", "no verdict: MemoryError"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_log_text_cannot_act_on_the_terminal(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"def test_it():\n    raise RuntimeError('\\x1b[2J' + {MESSAGE!r} + '\\x1b]0;owned\\x07')\n")
    result = run(pytester, "--oortriage", "--color=no")
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if line.strip("- ") == "oortriage")
    end = next(number for number, line in enumerate(lines) if "short test summary" in line)  # pytest's own again
    assert "\\x1b[2J" in "\n".join(lines[start:end])
    assert "\x1b" not in "\n".join(lines[start:end])


def test_junit_s_xml_has_the_properties(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    run(pytester, "--oortriage", "--junitxml=out.xml")
    found = {one.get("name"): one.get("value") for one in ET.parse(pytester.path / "out.xml").iter("property")}
    assert found["oortriage_resource"] == "shared_memory"
    assert found["oortriage_code"] == "SM101"
    assert found["oortriage_fingerprint"].startswith("v1-")


def test_it_works_in_workers(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(FAILING)
    known = any(one.name == "oortriage" for one in entry_points(group="pytest11"))
    own = [] if known else ["-p", "oortriage.pytest_plugin"]
    result = pytester.runpytest_subprocess(*own, "--oortriage", "-n", "1")
    result.assert_outcomes(failed=1)
    assert sections(result) == 1


def test_it_imports_nothing_of_the_house() -> None:
    """pytest loads it in every run of every user, wanted or not."""
    code = (
        "import sys, pytest; before = set(sys.modules); import oortriage.pytest_plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['oortriage', 'oortriage.pytest_plugin', 'oortriage.version']"
