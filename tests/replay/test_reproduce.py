"""The verdict on a figure, with the compiler replaced by arithmetic; exit codes, and what is tried in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oortriage.errors import UsageError
from oortriage.replay.options import Options
from oortriage.replay.reproduce import MOST_TRIED, Reproduction, reproduce
from oortriage.replay.selection import select
from oortriage.triage.diagnosis import Diagnosis
from tests.replay._stub import Stub, crash

Put = Callable[..., Stub]


def run(log: Diagnosis | None = None, **options: Any) -> Reproduction:
    return reproduce(select(Options(kernel="reference.attention", gpu="T4", **options), log))


def test_no_printed_figure(stubbed: Put) -> None:
    stub = stubbed()
    found = run(settings={"dtype": "float32", "head_size": 256})
    assert (found.verdict, found.exit_code) == ("computed", 0)
    assert (found.required_bytes, found.limit_bytes, found.fits, found.over_bytes) == (81920, 65536, False, 16384)
    assert (found.printed_bytes, found.printed_from) == (None, "")
    assert len(stub.asked) == 1
    assert found.exact_settings == found.nearest == []


def test_reproduced_with_what_the_log_says(stubbed: Put) -> None:
    stubbed()
    found = run(crash(gpu="T4", dtype="float32", head_size="256"))
    assert (found.verdict, found.exit_code) == ("reproduced", 0)
    assert found.changed == {}
    assert found.exact_settings[0].settings == found.settings
    assert (found.function, found.residual_bytes, found.by_role) == ("attention", 0, {"operand": 81920})


def test_reproduced_with_settings_that_nobody_stated(stubbed: Put) -> None:
    stubbed()
    found = run(crash(gpu="T4", dtype="float32"))
    assert (found.verdict, found.exit_code) == ("reproduced_with_other_settings", 0)
    assert found.changed == {"head_size": 256}
    assert found.required_bytes == 81920
    assert found.notes[0] == "head_size = 256 was tried; the default is 128"
    assert not [one for one in found.assumptions if "head_size" in one], "what was changed is no assumption any more"


def test_the_nearest_settings_come_first(stubbed: Put) -> None:
    """A head of 512 in 16-bit needs as much as one of 256 in 32: one change is nearer than two."""
    stub = stubbed()
    found = run(required_bytes=81920)
    changes = [sum(value != stub.asked[0].shape[name] for name, value in cell.shape.items()) for cell in stub.asked]
    assert changes == sorted(changes)
    assert len(stub.asked) <= MOST_TRIED
    assert found.verdict == "reproduced_with_other_settings"
    assert found.changed == {"head_size": 512}
    two = {"dtype": "float32", "head_size": 256}.items()
    assert any(two <= one.settings.items() for one in found.exact_settings)
    assert found.printed_from == "--required"


def test_at_last_the_log_itself_is_doubted(stubbed: Put) -> None:
    """The log speaks of the head of its sliding layers; a full layer failed."""
    stubbed()
    found = run(crash(required=163840, gpu="T4", dtype="float32", head_size="256"), settings={"window": 0, "tile": 32})
    assert found.verdict == "reproduced_with_other_settings"
    assert found.changed == {"head_size": 512}
    assert found.notes[0] == "head_size = 512 was tried; log line 7 is 256"
    assert "head_size" not in found.origin


def test_flags_are_never_doubted(stubbed: Put) -> None:
    stub = stubbed()
    found = run(crash(gpu="T4"), settings={"dtype": "float16", "head_size": 64, "window": 0, "tile": 16})
    assert (found.verdict, found.exit_code) == ("not_reproduced", 1)
    assert len(stub.asked) == 1
    assert [one.required_bytes for one in found.nearest] == [6144]


def test_not_reproduced_names_the_nearest(stubbed: Put) -> None:
    stubbed()
    found = run(crash(required=81921, gpu="T4", dtype="float32", head_size="256"))
    assert (found.verdict, found.exit_code) == ("not_reproduced", 1)
    assert found.nearest[0].required_bytes == 81920
    assert found.required_bytes == 81920
    distances = [abs(one.required_bytes - 81921) for one in found.nearest]
    assert distances == sorted(distances)


def test_what_does_not_compile(stubbed: Put) -> None:
    stubbed(lambda _: "CompilationError: no")
    found = run(crash(gpu="T4"))
    assert (found.verdict, found.exit_code) == ("failed", 3)
    assert (found.required_bytes, found.fits, found.buffers) == (None, None, [])
    assert found.failure is not None
    assert found.failure.message == "CompilationError: no"


def test_settings_that_do_not_compile_hide_none_that_do(stubbed: Put) -> None:
    stubbed(lambda one: "no" if one["head_size"] == 128 else 81920)
    found = run(crash(gpu="T4", dtype="float32"))
    assert found.verdict == "reproduced_with_other_settings"


@pytest.mark.parametrize("kind", ["environment", "usage"])
def test_mistakes_end_the_command(stubbed: Put, kind: str) -> None:
    stubbed(lambda _: f"{kind}|k.py: not Python")
    with pytest.raises(UsageError, match=r"k\.py: not Python"):
        run()


def test_a_constant_that_no_kernel_has(stubbed: Put) -> None:
    stubbed()
    with pytest.raises(UsageError, match=r"--set num_wraps: no kernel .* did you mean num_warps"):
        run(overrides={"num_wraps": 2})
    with pytest.raises(UsageError, match=r"--set q: no kernel .* there are TILE_SIZE, num_stages, num_warps"):
        run(overrides={"q": 2})
    assert run(overrides={"num_warps": 2}).settings["num_warps"] == 2
