"""Issue texts: a person's words told from pasted logs."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.markdown import is_markdown, prose


def rows(text: str) -> list[str]:
    return dedent(text).strip("\n").split("\n")


ISSUE = rows("""
    ### Describe the bug

    Serving dies with `out of resource: shared memory` on a T4.

    ```text
    INFO 11-29 20:16:45 [utils.py:278] starting
    nothing to see
    triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304
    ```

    I have tried a smaller batch.
""")


def said(bodies: list[str]) -> list[str]:
    """The lines taken for prose, blank ones left out."""
    return [body for body, mark in zip(bodies, prose(bodies), strict=True) if mark and body.strip()]


def test_an_issue_with_a_fence_is_markdown() -> None:
    assert is_markdown(ISSUE)


@pytest.mark.parametrize(
    "text",
    [
        "## Steps\n\nrun it\n\n## Result\n\nit dies",
        "- [x] I searched\n- [ ] I read the docs\n\nIt dies.",
        "<details>\n<summary>log</summary>\nlines\n</details>",
        "**Environment**\n\n**Log**\n\nIt dies.",
        "~~~\nlog\n~~~",
        "> ```\n> log\n> ```",
    ],
)
def test_signs_of_structure_make_markdown(text: str) -> None:
    assert is_markdown(text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# one comment in a shell log\npython train.py",
        "INFO 11-29 20:16:45 [utils.py:278] start\nRuntimeError: x",
        "#!/bin/bash\n#SBATCH --gres=gpu:1\npython train.py\nKilled",
        "### one heading printed by a trainer",
        "a `quoted` word and **bold** words",
        "+-----+\n| GPU |\n+-----+",
    ],
)
def test_a_log_is_no_markdown(text: str) -> None:
    assert not is_markdown(text.split("\n"))


def test_a_long_log_with_a_few_headings_is_no_markdown() -> None:
    bodies = ["# epoch 1", "# epoch 2"] + [f"step {n}" for n in range(5000)]
    assert not is_markdown(bodies)


def test_words_outside_of_fences_are_prose() -> None:
    assert said(ISSUE) == [
        "### Describe the bug",
        "Serving dies with `out of resource: shared memory` on a T4.",
        "I have tried a smaller batch.",
    ]


def test_fences_themselves_are_no_prose() -> None:
    assert prose(["```", "x", "```"]) == [False, False, False]


def test_a_longer_fence_holds_a_shorter_one() -> None:
    bodies = ["````", "```", "inside", "```", "still inside", "````", "outside"]
    assert prose(bodies) == [False] * 6 + [True]


def test_a_fence_of_the_other_kind_does_not_close() -> None:
    bodies = ["```", "~~~", "inside", "```", "outside"]
    assert prose(bodies) == [False, False, False, False, True]


def test_a_fence_with_a_language_does_not_close() -> None:
    """After an opening fence, "```python" is text: a closing fence has nothing behind it."""
    bodies = ["```", "```python", "inside", "```", "outside"]
    assert prose(bodies)[2:] == [False, False, True]


def test_a_fence_never_closed_runs_to_the_end() -> None:
    assert prose(["words", "```", "a", "b"]) == [True, False, False, False]


def test_a_quoted_fence_is_a_fence() -> None:
    assert prose(["> ```", "log", "> ```", "words"]) == [False, False, False, True]


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in f',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory",
        "INFO 11-29 20:16:45 [utils.py:278] start",
        "(EngineCore_DP0 pid=270) ERROR 10-02 03:04:05 [core.py:718] x",
        "(VllmWorker rank=7 pid=331) ERROR 03-13 09:00:43 [x.py:375] x",
        "[2025-05-04 01:05:33 TP5] x",
        "2025-05-04 01:05:33 x",
        "[rank0]: x",
        "[INFO] x",
        "ptxas error   : Entry function 'f' uses too much shared data",
        "    an indented block of code",
        "out of resource: shared memory, Required: 98304, Hardware limit: 65536.",
    ],
)
def test_a_pasted_line_outside_of_a_fence_is_no_prose(line: str) -> None:
    assert prose(["## Log", "", line, ""])[2] is False


@pytest.mark.parametrize(
    "line",
    [
        "I get an OutOfMemoryError when I start it.",
        "The error says out of resource: shared memory, which I do not understand.",
        "Since 2025 this fails.",
        "It logs INFO lines only.",
        "- a list item about CUDA out of memory",
        "| a | table |",
        "Errors: many",
    ],
)
def test_a_persons_sentence_is_prose(line: str) -> None:
    assert prose(["## Log", "", line, ""])[2] is True


@given(st.lists(st.text("`~> abc#", max_size=8), max_size=30))
def test_every_line_gets_one_mark(bodies: list[str]) -> None:
    assert len(prose(bodies)) == len(bodies)
    assert is_markdown(bodies) in (True, False)


@given(st.lists(st.text("abc d", max_size=10), max_size=20))
def test_nothing_between_two_fences_is_prose(inner: list[str]) -> None:
    assert not any(prose(["```", *inner, "```"]))
