"""Tracebacks: frames, source code and exceptions told apart, chains followed, damage survived."""

from __future__ import annotations

import sys
import traceback
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.line import Kind, Line, Piece
from oortriage.intake.traceback import Frame, Raised, parse

QUOTED = (Kind.CODE, Kind.FRAME, Kind.TRACEBACK)


def lines(text: str) -> list[Line]:
    return [Line(body, [Piece(number, 0, body)], [(0, 0)]) for number, body in enumerate(text.split("\n"), start=1)]


def read(text: str) -> tuple[list[Raised], list[Line]]:
    found = lines(dedent(text).strip("\n"))
    return parse(found), found


def kinds(found: list[Line]) -> list[str]:
    return [line.kind.value for line in found]


PLAIN = """
    before
    Traceback (most recent call last):
      File "/opt/app/main.py", line 12, in <module>
        main()
      File "/opt/app/model.py", line 88, in forward
        y = kernel[grid](x, BLOCK=64)
            ^^^^^^^^^^^^^^^^^^^^^^^^^
    triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304
    after
"""


def test_a_plain_traceback_is_read() -> None:
    raised, found = read(PLAIN)
    assert raised == [
        Raised(
            "triton.runtime.errors.OutOfResources",
            "out of resource: shared memory, Required: 98304",
            (
                Frame("/opt/app/main.py", 12, "<module>", "main()"),
                Frame("/opt/app/model.py", 88, "forward", "y = kernel[grid](x, BLOCK=64)"),
            ),
            1,
            7,
        )
    ]
    assert kinds(found) == [
        "message",
        "traceback",
        "frame",
        "code",
        "frame",
        "code",
        "code",
        "exception",
        "message",
    ]


def test_an_exception_without_message_is_read() -> None:
    raised, _ = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        KeyboardInterrupt
    """)
    assert [(one.type, one.message) for one in raised] == [("KeyboardInterrupt", "")]


@pytest.mark.parametrize(
    "name",
    [
        "RuntimeError",
        "torch.OutOfMemoryError",
        "torch.cuda.OutOfMemoryError",
        "torch.AcceleratorError",
        "triton.compiler.OutOfResources",
        "triton.runtime.autotuner.OutOfResources",
        "triton.runtime.errors.PTXASError",
        "torch._inductor.exc.InductorError",
        "torch._dynamo.exc.BackendCompilerFailed",
        "jaxlib.xla_extension.XlaRuntimeError",
        "vllm.v1.engine.exceptions.EngineDeadError",
        "ray.exceptions.RayTaskError",
        "ray.exceptions.OutOfMemoryError",
        "tvm.error.InternalError",
        "torch.multiprocessing.spawn.ProcessRaisedException",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
        "subprocess.CalledProcessError",
        "subprocess.TimeoutExpired",
        "StopIteration",
        "SystemExit",
        "AssertionError",
        "queue.Empty",
        "concurrent.futures.process.BrokenProcessPool",
        "Exception",
        "pynvml.NVMLError_NotSupported",
        "torch._C._LinAlgError",
        "numba.cuda.cudadrv.driver.CudaAPIError",
    ],
)
def test_the_exceptions_of_the_field_end_a_traceback(name: str) -> None:
    raised, found = read(f"""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        {name}: the message
    """)
    assert [(one.type, one.message) for one in raised] == [(name, "the message")]
    assert found[-1].kind is Kind.EXCEPTION


def test_the_ray_form_of_a_task_error_ends_a_traceback() -> None:
    raised, _ = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.run() (pid=1)
    """)
    assert [one.type.split("(")[0] for one in raised] == ["ray.exceptions.RayTaskError"]


# --- chains

CHAINED = """
    Traceback (most recent call last):
      File "jit.py", line 21, in run
        return cache[key]
    KeyError: ('2-.-0', 128)

    During handling of the above exception, another exception occurred:

    Traceback (most recent call last):
      File "compiler.py", line 568, in _init_handles
        raise OutOfResources(self.shared, max_shared, "shared memory")
    triton.compiler.OutOfResources: out of resource: shared memory

    The above exception was the direct cause of the following exception:

    Traceback (most recent call last):
      File "serve.py", line 3, in <module>
        serve()
    RuntimeError: worker failed
"""


def test_a_chain_names_how_each_exception_hangs_on_the_one_before() -> None:
    raised, _ = read(CHAINED)
    assert [(one.type, one.chain) for one in raised] == [
        ("KeyError", ""),
        ("triton.compiler.OutOfResources", "during"),
        ("RuntimeError", "cause"),
    ]


def test_a_chain_is_broken_by_other_lines() -> None:
    raised, _ = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        KeyError: 1

        During handling of the above exception, another exception occurred:

        INFO the server starts again
        Traceback (most recent call last):
          File "b.py", line 1, in f
            g()
        ValueError: 2
    """)
    assert [one.chain for one in raised] == ["", ""]


def test_the_sentence_between_two_exceptions_is_no_message() -> None:
    _, found = read(CHAINED)
    between = [line for line in found if "exception" in line.body and ":" in line.body]
    assert {line.kind for line in between if line.body.startswith(("During", "The above"))} == {Kind.TRACEBACK}


def test_two_tracebacks_one_after_the_other_are_two() -> None:
    raised, _ = read(PLAIN + PLAIN)
    assert len(raised) == 2
    assert raised[0].last < raised[1].first


# --- source code is never a message

TRIGGERS = [
    'raise OutOfResources(self.metadata.shared, max_shared, "shared memory")',
    'raise RuntimeError(f"No valid triton configs. {type(exc).__name__}: {exc}")',
    'raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")',
    'raise ValueError("No available memory for the cache blocks.")',
    'logger.error("CUDA out of memory occurred when warming up sampler")',
    'TORCH_CHECK(false, "CUDA out of memory.")',
    '"out of resource: shared memory, Required: 98304, Hardware limit: 65536")',
]


@pytest.mark.parametrize("code", TRIGGERS)
def test_the_source_line_of_a_frame_is_code(code: str) -> None:
    _, found = read(f"""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            {code}
        RuntimeError: x
    """)
    assert found[2].kind is Kind.CODE


@pytest.mark.parametrize("code", TRIGGERS)
def test_the_source_line_of_a_frame_that_lost_its_indentation_is_code(code: str) -> None:
    _, found = read(f"""
        Traceback (most recent call last):
        File "a.py", line 1, in f
        {code}
        RuntimeError: x
    """)
    assert kinds(found) == ["traceback", "frame", "code", "exception"]


@pytest.mark.parametrize("code", TRIGGERS[:-1])
def test_a_statement_that_stands_alone_is_code(code: str) -> None:
    _, found = read(f"something\n    {code}\nsomething else")
    assert found[1].kind is Kind.CODE


def test_code_of_several_lines_with_marks_is_code() -> None:
    """Python 3.13 prints a whole statement, with carets under it."""
    raised, found = read("""
        Traceback (most recent call last):
          File "a.py", line 543, in __init__
            super().__init__(
            ~~~~~~~~~~~~~~~~^
                vllm_config, executor_class, log_stats, "CUDA out of memory. Tried"
                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            )
            ^
        ValueError: x
    """)
    assert kinds(found)[2:-1] == ["code"] * 6
    assert raised[0].frames == (Frame("a.py", 543, "__init__", "super().__init__("),)


def test_repeated_frames_are_counted_as_code() -> None:
    raised, found = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            f()
          File "a.py", line 1, in f
            f()
          [Previous line repeated 995 more times]
        RecursionError: maximum recursion depth exceeded
    """)
    assert found[5].kind is Kind.CODE
    assert raised[0].type == "RecursionError"


@pytest.mark.parametrize("file", ["<string>", "<frozen importlib._bootstrap>", "<stdin>"])
def test_frames_without_source_are_read(file: str) -> None:
    raised, _ = read(f"""
        Traceback (most recent call last):
          File "{file}", line 63, in _kernel
          File "b.py", line 2, in g
            h()
        RuntimeError: x
    """)
    assert raised[0].frames == (Frame(file, 63, "_kernel"), Frame("b.py", 2, "g", "h()"))


def test_windows_paths_are_read() -> None:
    raised, _ = read("""
        Traceback (most recent call last):
          File "C:\\Comfy UI\\env\\runner.py", line 212, in warmup
            self._run_dummy(batch)
        RuntimeError: x
    """)
    assert raised[0].frames[0].file == "C:\\Comfy UI\\env\\runner.py"


# --- damage


def test_a_traceback_whose_indentation_was_lost_is_read_all_the_same() -> None:
    flat = "\n".join(line.strip() for line in dedent(PLAIN).strip().split("\n"))
    raised, found = read(flat)
    assert [(one.type, one.frames) for one in raised] == [
        (
            "triton.runtime.errors.OutOfResources",
            (
                Frame("/opt/app/main.py", 12, "<module>", "main()"),
                Frame("/opt/app/model.py", 88, "forward", "y = kernel[grid](x, BLOCK=64)"),
            ),
        )
    ] or [(one.type, len(one.frames)) for one in raised] == [("triton.runtime.errors.OutOfResources", 2)]
    assert [line.kind for line in found if line.body.startswith(("main()", "y = "))] == [
        Kind.CODE,
        Kind.CODE,
    ]


def test_a_traceback_whose_head_was_cut_is_read_from_its_first_frame() -> None:
    raised, found = read("""
          File "a.py", line 1, in f
            raise OutOfResources(shared, limit, "shared memory")
        triton.runtime.errors.OutOfResources: out of resource: shared memory
    """)
    assert kinds(found) == ["frame", "code", "exception"]
    assert raised[0].frames[0].function == "f"


def test_a_traceback_whose_end_was_cut_keeps_its_frames_and_has_no_type() -> None:
    raised, found = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            raise OutOfResources(shared, limit, "shared memory")
    """)
    source = 'raise OutOfResources(shared, limit, "shared memory")'
    assert raised == [Raised("", "", (Frame("a.py", 1, "f", source),), 0, 2)]
    assert found[2].kind is Kind.CODE


def test_a_head_without_frames_raises_nothing() -> None:
    raised, found = read("Traceback (most recent call last):\nsome text")
    assert raised == []
    assert kinds(found) == ["traceback", "message"]


def test_a_message_between_two_tracebacks_stays_a_message() -> None:
    _, found = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        CUDA out of memory. Tried to allocate 2.00 GiB.
        Traceback (most recent call last):
          File "b.py", line 1, in f
            g()
        RuntimeError: x
    """)
    assert found[3].kind is Kind.MESSAGE


def test_a_message_of_several_lines_goes_on_as_messages() -> None:
    _, found = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        RuntimeError: CUDA error: out of memory
        CUDA kernel errors might be asynchronously reported at some other API call.
        For debugging consider passing CUDA_LAUNCH_BLOCKING=1
    """)
    assert kinds(found)[-3:] == ["exception", "message", "message"]


def test_blank_lines_inside_a_traceback_are_skipped() -> None:
    raised, _ = read("""
        Traceback (most recent call last):

          File "a.py", line 1, in f

            g()

        RuntimeError: x
    """)
    assert [one.type for one in raised] == ["RuntimeError"]


def test_an_exception_line_without_a_traceback_is_marked_but_not_raised() -> None:
    raised, found = read("""
        hello
        torch.OutOfMemoryError: CUDA out of memory.
        bye
    """)
    assert raised == []
    assert kinds(found) == ["message", "exception", "message"]


@pytest.mark.parametrize(
    "text",
    [
        "Error: something",
        "error: local memory (1) exceeds limit (65536)",
        "WARNING: x",
        "Note: RuntimeError: x",
        "GPU 0 has an Error",
        "http://example.org/RuntimeError: x",
        "out of resource: shared memory",
    ],
)
def test_ordinary_lines_are_no_exceptions(text: str) -> None:
    _, found = read(text)
    assert found[0].kind is Kind.MESSAGE


# --- other printers of tracebacks


def test_a_notebook_traceback_is_read() -> None:
    raised, found = read("""
        ---------------------------------------------------------------------------
        OutOfResources                            Traceback (most recent call last)
        Cell In[7], line 4
              2 import torch
              3 x = torch.ones(1)
        ----> 4 model.generate(x)

        File ~/env/lib/python3.11/site-packages/triton/compiler.py:568, in CompiledKernel._init_handles(self)
            566     raise_ = 1
            567 if self.shared > max_shared:
        --> 568     raise OutOfResources(self.shared, max_shared, "shared memory")

        OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536.
    """)
    assert len(raised) == 1
    assert raised[0].type == "OutOfResources"
    assert raised[0].message.startswith("out of resource: shared memory, Required: 98304")
    frames = raised[0].frames
    assert (frames[0].line, frames[0].source) == (4, "model.generate(x)")
    assert frames[1].file.endswith("triton/compiler.py")
    assert (frames[1].line, frames[1].function) == (568, "_init_handles")
    assert frames[1].source.startswith("raise OutOfResources")
    code = [line for line in found if "max_shared" in line.body or "torch" in line.body]
    assert {line.kind for line in code} == {Kind.CODE}


def test_a_rich_traceback_gives_no_messages_from_its_source() -> None:
    text = dedent("""
        ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
        │ /opt/app/main.py:12 in <module>                                              │
        │                                                                              │
        │   11 │   if shared > limit:                                                  │
        │ ❱ 12 │   │   raise OutOfResources(shared, limit, "shared memory")            │
        │   13                                                                         │
        ╰──────────────────────────────────────────────────────────────────────────────╯
        OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536
    """).strip("\n")
    from oortriage.intake.log import read_lines

    found = list(read_lines(Piece(n, 0, raw) for n, raw in enumerate(text.split("\n"), 1)))
    raised = parse(found)
    source = 'raise OutOfResources(shared, limit, "shared memory")'
    assert [one.type for one in raised] == ["OutOfResources"]
    assert raised[0].frames == (Frame("/opt/app/main.py", 12, "<module>", source),)
    assert [line.kind for line in found if "OutOfResources(" in line.body] == [Kind.CODE]
    assert found[-1].kind is Kind.EXCEPTION


def test_an_exception_group_is_marked() -> None:
    _, found = read("""
          + Exception Group Traceback (most recent call last):
          |   File "a.py", line 1, in f
          |     raise ExceptionGroup("unhandled errors", [RuntimeError("CUDA out of memory")])
          | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
    """)
    assert kinds(found)[:3] == ["traceback", "frame", "code"]


def test_a_syntax_error_is_read() -> None:
    raised, found = read("""
        Traceback (most recent call last):
          File "a.py", line 1, in <module>
            import b
          File "/opt/b.py", line 3
            raise RuntimeError("CUDA out of memory"
                              ^
        SyntaxError: '(' was never closed
    """)
    assert [(one.type, one.frames[-1].line) for one in raised] == [("SyntaxError", 3)]
    assert kinds(found)[-3:] == ["code", "code", "exception"]


# --- invariants


def raise_nested(depth: int, message: str) -> None:
    if depth:
        raise_nested(depth - 1, message)
    else:
        raise RuntimeError(message)


@given(
    st.integers(0, 2),  # Python folds more equal frames into one line
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=40).map(
        lambda text: "m" + text.strip()
    ),
)
def test_what_python_prints_is_read_back(depth: int, message: str) -> None:
    try:
        raise_nested(depth, message)
    except RuntimeError as problem:
        text = "".join(traceback.format_exception(problem)).rstrip("\n")
        expected = traceback.extract_tb(sys.exc_info()[2])
    found = lines(text)
    raised = parse(found)
    assert len(raised) == 1
    assert (raised[0].type, raised[0].message) == ("RuntimeError", message.strip())
    assert [(one.file, one.line, one.function) for one in raised[0].frames] == [
        (one.filename, one.lineno, one.name) for one in expected
    ]
    assert [one.source for one in raised[0].frames] == [one.line for one in expected]
    assert all(line.kind in (*QUOTED, Kind.EXCEPTION) for line in found)


PARTS = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        'File "a.py", line 1, in f',
        "    raise OutOfResources(1)",
        "    ^^^^",
        "RuntimeError: x",
        "  RuntimeError: x",
        "KeyError",
        "",
        "text",
        "    indented text",
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
        "File ~/x.py:330, in f(a)",
        "----> 4 x",
        "      4 x",
        "Cell In[7], line 4",
        "╭─── Traceback (most recent call last) ───╮",
        "  + Exception Group Traceback (most recent call last):",
        "  | RuntimeError: x",
    ]
)


@given(st.lists(PARTS, max_size=40))
def test_what_was_raised_lies_in_order_within_the_lines(parts: list[str]) -> None:
    found = lines("\n".join(parts))
    raised = parse(found)
    last = -1
    for one in raised:
        assert last < one.first <= one.last < len(found)
        assert (found[one.last].kind is Kind.EXCEPTION) is bool(one.type)
        assert one.type or one.frames
        assert one.chain in ("", "during", "cause")
        last = one.last


@given(st.lists(PARTS, max_size=40))
def test_a_raise_statement_is_never_a_message(parts: list[str]) -> None:
    found = lines("\n".join(parts))
    parse(found)
    assert {line.kind for line in found if line.body.startswith("    raise ")} <= {Kind.CODE}


@given(st.lists(PARTS, max_size=30))
def test_reading_twice_gives_the_same(parts: list[str]) -> None:
    one, other = lines("\n".join(parts)), lines("\n".join(parts))
    assert parse(one) == parse(other)
    assert kinds(one) == kinds(other)
