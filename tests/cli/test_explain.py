"""``oortriage explain``: what a rule knows."""

from __future__ import annotations

from tests.cli.conftest import Run, complained


def test_a_rule_is_explained_whatever_the_case_of_its_code(run: Run) -> None:
    done = run("explain", "sm101")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# SM101: ")
    assert "\nWhat helps:\n" in done.stdout
    assert "\nWhat does not help:\n" in done.stdout


def test_an_unknown_code_is_one_line_and_two(run: Run) -> None:
    assert "'ZZ999'" in complained(run("explain", "ZZ999"))
