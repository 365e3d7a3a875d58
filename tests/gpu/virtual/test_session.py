"""Sessions on the virtual GPU: wrappers run, launches are noted, and afterwards all is as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton")

from triton import compiler  # noqa: E402
from triton.runtime import Autotuner, JITFunction, driver  # noqa: E402

from oortriage.gpu.virtual.adapter import gpu_target, without_torch  # noqa: E402
from oortriage.gpu.virtual.driver import Card, VirtualDriver  # noqa: E402
from oortriage.gpu.virtual.session import Session  # noqa: E402
from tests.gpu.virtual import tuned as made  # noqa: E402
from tests.gpu.virtual.compiling import A100, MI300, ROOT, T4  # noqa: E402

CARD = Card(A100, 166_912)
NARROW = Card(A100, 65_536)


def state() -> list[Any]:
    """Return everything that a session replaces."""
    return [
        compiler.compile,
        triton.compile,
        JITFunction.run,
        Autotuner.run,
        Autotuner._bench,
        vars(driver).get("_active", vars(driver).get("active")),
    ]


@pytest.fixture(autouse=True)
def _untouched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    without_torch()
    before = state()
    yield
    assert state() == before
    assert not (tmp_path / "triton").exists()  # nothing is compiled to the end, no made-up time is kept


def run(card: Card, *calls: Any, **overrides: Any) -> Session:
    session = Session(card, overrides)
    with session.run():
        for call in calls:
            call()
    return session


def plain(**constants: Any) -> Any:
    return lambda: made.launch(made.product, **{"BM": 64, "BN": 64, "BK": 64, **constants})


def test_a_launch_is_noted_with_its_constants() -> None:
    (launch,) = run(CARD, plain(num_stages=3)).launches
    assert launch.kernel == "product"
    assert launch.settings == {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 3}
    assert launch.allocation.shared_bytes == 32_768
    assert not launch.tuning


def test_a_launch_too_large_is_noted_and_not_refused() -> None:
    (launch,) = run(NARROW, plain(BM=128, BN=128, num_stages=4)).launches
    assert launch.allocation.shared_bytes > NARROW.limit_bytes


def test_a_warmup_is_no_launch() -> None:
    def warm() -> None:
        made.product.warmup(made.HALF, made.HALF, made.SINGLE, 4096, BM=64, BN=64, BK=64, grid=(1,))

    assert not run(CARD, warm).launches


def test_overrides_by_keyword_and_as_launch_option() -> None:
    session = run(CARD, plain(num_stages=3), BM=128, num_stages=2, num_warps=8)
    (launch,) = session.launches
    assert launch.settings == {"BM": 128, "BN": 64, "BK": 64, "num_warps": 8, "num_stages": 2}
    assert session.taken == {"BM", "num_stages", "num_warps"}


def test_overrides_by_position() -> None:
    def by_position() -> None:
        made.product[(1,)](made.HALF, made.HALF, made.SINGLE, 4096, 64, 64, 64)

    (launch,) = run(CARD, by_position, BN=32).launches
    assert (launch.settings["BM"], launch.settings["BN"]) == (64, 32)


def test_the_grid_is_asked_with_what_is_overridden() -> None:
    seen: dict[str, Any] = {}

    def with_grid() -> None:
        made.product[made.grid_of(seen)](made.HALF, made.HALF, made.SINGLE, 4096, BM=64, BN=64, BK=64)

    run(CARD, with_grid, BM=32)
    assert seen["BM"] == 32


def test_an_override_that_no_kernel_has_is_not_taken() -> None:
    session = run(CARD, plain(), TILE_SIZE=32, BN=32)
    assert session.taken == {"BN"}


def test_an_autotuner_learns_what_does_not_fit() -> None:
    session = run(NARROW, lambda: made.launch(made.tuned([made.LARGE, made.SMALL, made.SMALLEST])))
    trials = [launch for launch in session.launches if launch.tuning]
    assert [launch.settings["BM"] for launch in trials] == [128, 64, 32]
    (chosen,) = [launch for launch in session.launches if not launch.tuning]
    assert chosen.settings["BM"] == 64
    assert trials[0].allocation.shared_bytes > NARROW.limit_bytes >= chosen.allocation.shared_bytes


def test_where_no_configuration_fits_the_first_is_launched_in_earnest() -> None:
    session = run(Card(A100, 1_000), lambda: made.launch(made.tuned([made.LARGE, made.SMALL])))
    assert [(launch.settings["BM"], launch.tuning) for launch in session.launches] == [
        (128, True),
        (64, True),
        (128, False),
    ]


def test_an_autotuner_starts_anew_in_each_session() -> None:
    kernel = made.tuned([made.LARGE, made.SMALL])
    first = run(CARD, lambda: made.launch(kernel))
    second = run(NARROW, lambda: made.launch(kernel))
    assert [launch.settings["BM"] for launch in first.launches if not launch.tuning] == [128]
    assert [launch.settings["BM"] for launch in second.launches if not launch.tuning] == [64]
    assert kernel.cache == {}


def test_within_a_session_an_autotuner_remembers() -> None:
    kernel = made.tuned([made.LARGE, made.SMALL])
    session = run(CARD, lambda: made.launch(kernel), lambda: made.launch(kernel))
    assert [launch.tuning for launch in session.launches] == [True, True, False, False]


def test_nothing_is_measured_kept_on_disk_cleared_or_copied() -> None:
    kernel = made.tuned(
        [made.LARGE, made.SMALL], reset_to_zero=["c"], restore_value=["c"], do_bench=made.never, cache_results=True
    )
    before = dict(vars(kernel))
    assert len(run(CARD, lambda: made.launch(kernel)).launches) == 3
    assert vars(kernel) == before


def test_an_override_holds_for_every_configuration() -> None:
    session = run(CARD, lambda: made.launch(made.tuned([made.LARGE, made.SMALL])), BM=32, num_stages=2)
    assert {launch.settings["BM"] for launch in session.launches} == {32}
    assert {launch.settings["num_stages"] for launch in session.launches} == {2}


def test_heuristics_are_asked() -> None:
    def guess(depth: int) -> Any:
        return lambda: made.guessed[(1,)](made.SINGLE, made.SINGLE, depth, BLOCK=128)

    session = run(CARD, guess(256), guess(300))
    assert [launch.settings["EVEN"] for launch in session.launches] == [True, False]
    assert {launch.kernel for launch in session.launches} == {"guessed"}
    (forced,) = run(CARD, guess(256), EVEN=False).launches
    assert forced.settings["EVEN"] is False


def test_a_cached_kernel_is_noted_in_the_session_that_launches_it() -> None:
    first, second = run(CARD, plain(BN=16)), run(CARD, plain(BN=16), plain(BN=16))
    assert [len(first.launches), len(second.launches)] == [1, 2]
    assert first.launches[0].allocation is second.launches[0].allocation


def test_cards_take_turns() -> None:
    figures = []
    for card, width in ((CARD, 32), (Card(T4, 65_536), 32), (CARD, 128), (Card(T4, 65_536), 128)):
        (launch,) = run(card, plain(BN=width, num_stages=3)).launches
        figures.append(launch.allocation.shared_bytes)
    assert figures == [24_576, 16_384, 49_152, 32_768]


def test_after_an_exception_all_is_as_it_was() -> None:
    kernel = made.tuned([made.LARGE, made.SMALL], pre_hook=made.never)
    before, tuner = state(), dict(vars(kernel))
    session = Session(CARD)
    with pytest.raises(AssertionError), session.run():
        made.launch(kernel)
    assert state() == before
    assert vars(kernel) == tuner
    with pytest.raises(triton.CompilationError), session.run():
        made.refusing[(1,)](made.SINGLE, BLOCK=4)
    assert state() == before
    assert len(run(CARD, plain()).launches) == 1


def test_an_active_driver_is_put_back() -> None:
    own = VirtualDriver(CARD, 7)
    name = "_active" if "_active" in vars(driver) else "active"
    before = vars(driver)[name]
    driver.set_active(own)
    try:
        run(NARROW, plain())
        assert driver.active is own
    finally:
        setattr(driver, name, before)


def test_another_target_than_the_cards_is_refused() -> None:
    with Session(CARD).run() as session, pytest.raises(ValueError, match="the virtual GPU is sm_80"):
        session.compile(None, target=gpu_target(T4))


def test_amd_without_a_card() -> None:
    (launch,) = run(Card(MI300, 65_536), plain(num_stages=2)).launches
    assert launch.allocation.shared_bytes == 16_384


NO_TORCH = """
import sys
sys.modules["torch"] = None
from oortriage.gpu.virtual.adapter import without_torch
from oortriage.gpu.virtual.session import Session
from tests.gpu.virtual.test_session import CARD, MI300, NARROW, Card, made, plain
without_torch()
for card in (CARD, Card(MI300, 65_536)):
    with Session(card).run() as session:
        plain(num_stages=2)()
        made.launch(made.tuned([made.LARGE, made.SMALL]))
    print([(one.settings["BM"], one.tuning) for one in session.launches], flush=True)
import os
os._exit(0)
"""


def test_neither_vendor_needs_torch() -> None:
    done = subprocess.run([sys.executable, "-c", NO_TORCH], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = "[(64, False), (128, True), (64, True), ({}, False)]"
    assert done.stdout.splitlines() == [expected.format(128), expected.format(64)]
