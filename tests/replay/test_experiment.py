"""The grid: effects and interactions by examples done by hand, and which change is recommended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.replay.experiment import Experiment, experiment, read_vary
from oortriage.replay.options import Options
from oortriage.replay.selection import select
from tests.replay._stub import Stub

Put = Callable[..., Stub]
FP32 = {"dtype": "float32", "head_size": 256}


def run(factors: dict[str, list[Any]] | None = None, *, limit: int = 0, **more: Any) -> Experiment:
    options = Options(
        kernel="reference.attention", gpu="T4", limit_bytes=limit, settings=more.pop("settings", FP32),
        overrides=more.pop("overrides", {}),
    )  # fmt: skip
    return experiment(select(options), factors or {}, **more)


class TestVary:
    def test_values_are_read_as_what_they_look_like(self) -> None:
        assert read_vary(["a=1,2, 3 ,2", "b=true,False", "c=0.5,x"]) == {
            "a": [1, 2, 3], "b": [True, False], "c": [0.5, "x"],
        }  # fmt: skip

    @pytest.mark.parametrize("text", ["", "a", "=1", "a=", "a=,,", " =1"])
    def test_mistakes(self, text: str) -> None:
        with pytest.raises(UsageError, match="write NAME=16,32,64"):
            read_vary([text])

    def test_a_name_twice(self) -> None:
        with pytest.raises(UsageError, match="--vary a is given twice"):
            read_vary(["a=1", " a =2"])

    @given(st.lists(st.text(), max_size=4))
    def test_any_text_is_factors_or_a_usage_error(self, texts: list[str]) -> None:
        try:
            factors = read_vary(texts)
        except UsageError:
            return
        assert all(factors.values())


class TestEffects:
    def test_the_sentence_of_the_issue(self, stubbed: Put) -> None:
        stubbed()
        found = run({"num_stages": [1, 2, 3], "TILE_SIZE": [16, 32]})
        assert found.effects == {"num_stages": 0, "TILE_SIZE": 32768}
        assert found.interactions == {"num_stages x TILE_SIZE": 0}
        assert found.baseline == {"num_stages": 3, "TILE_SIZE": 32}
        assert (found.baseline_bytes, found.limit_bytes) == (81920, 65536)
        assert found.sentence == (
            "num_stages moves 0 bytes on sm_75; TILE_SIZE moves up to 32,768; "
            "TILE_SIZE 32 -> 16 frees 32,768 bytes: 49,152 of 65,536."
        )
        assert [(one.settings["num_stages"], one.settings["TILE_SIZE"], one.required_bytes, one.fits) for one in found.cells] == [
            (stages, tile, size, fits) for stages in (1, 2, 3) for tile, size, fits in ((16, 49152, True), (32, 81920, False))
        ]  # fmt: skip

    def test_an_interaction_by_hand(self, stubbed: Put) -> None:
        """a x b alone: from 4 x 3 = 12, a moves 3 a step and b 4; together 1 x 1 = 1, not 12 - 9 - 8 = -5: 6 apart."""
        stubbed(lambda one: one["num_warps"] * one["num_stages"])
        found = run({"num_warps": [1, 4], "num_stages": [1, 3]})
        assert found.effects == {"num_warps": 9, "num_stages": 8}
        assert found.interactions == {"num_warps x num_stages": 6}

    def test_what_adds_up_does_not_interact(self, stubbed: Put) -> None:
        stubbed(lambda one: 100 + 7 * one["num_warps"] + 11 * one["num_stages"])
        found = run({"num_warps": [1, 2, 8], "num_stages": [1, 2]})
        assert found.effects == {"num_warps": 49, "num_stages": 22}, "the baseline's three stages count as well"
        assert found.interactions == {"num_warps x num_stages": 0}

    def test_a_single_level_is_held_against_the_baseline(self, stubbed: Put) -> None:
        stubbed()
        assert run({"TILE_SIZE": [16]}).effects == {"TILE_SIZE": 32768}

    def test_the_baseline_alone_tells_no_effect(self, stubbed: Put) -> None:
        stubbed()
        found = run({"TILE_SIZE": [32]})
        assert found.effects == {"TILE_SIZE": None}
        assert "moves" not in found.sentence
        assert found.notes == ["the effect of TILE_SIZE cannot be told: fewer than two of its levels compile"]

    def test_levels_that_do_not_compile_are_cells_without_a_figure(self, stubbed: Put) -> None:
        stubbed(lambda one: "must be a power of 2" if one["TILE_SIZE"] == 17 else one["TILE_SIZE"])
        found = run({"TILE_SIZE": [16, 17, 64]})
        assert [(one.required_bytes, one.fits, one.note) for one in found.cells] == [
            (16, True, ""), (None, None, "must be a power of 2"), (64, True, ""),
        ]  # fmt: skip
        assert found.effects == {"TILE_SIZE": 48}
        assert found.exit_code == 0

    def test_nothing_compiles(self, stubbed: Put) -> None:
        stubbed(lambda _: "no")
        found = run({"TILE_SIZE": [16, 32]})
        assert (found.exit_code, found.baseline_bytes, found.recommendation) == (3, None, None)
        assert found.sentence == "nothing could be compiled."
        assert found.effects == {"TILE_SIZE": None}

    def test_a_parameter_of_the_recipe_is_a_factor_too(self, stubbed: Put) -> None:
        stub = stubbed()
        found = run({"dtype": ["half", "float32"], "head_size": ["64", 256]})
        assert found.factors == {"dtype": ["float16", "float32"], "head_size": [64, 256]}
        assert found.effects == {"dtype": 40960, "head_size": 61440}
        assert all(cell.overrides == {} for cell in stub.asked)

    def test_true_and_one_are_two_levels(self, stubbed: Put) -> None:
        stubbed(lambda one: 8 if one["TILE_SIZE"] is True else 4)
        assert len(run({"TILE_SIZE": [True, 1]}).cells) == 2

    def test_the_kernels_own_grid(self, stubbed: Put) -> None:
        stubbed()
        found = run()
        assert found.factors == {"num_stages": [1, 2, 3], "TILE_SIZE": [16, 32, 64], "num_warps": [1, 2, 4, 8]}
        assert len(found.cells) == 36

    def test_no_point_is_compiled_twice(self, stubbed: Put) -> None:
        stub = stubbed()
        run({"num_stages": [1, 2, 3], "TILE_SIZE": [16, 32]})
        assert len(stub.asked) == len({repr(cell) for cell in stub.asked}) == 1 + 6, "the grid and the kernel as it is"


class TestMistakes:
    @pytest.mark.parametrize(
        ("factors", "words"),
        [
            ({"nope": [1, 2]}, "--vary nope: no kernel launched here has a constant of that name; there are TILE_SIZE"),
            ({"num_warp": [1]}, "did you mean num_warps"),
            ({"TILE_SIZE": [16], "tile": [32]}, "--vary tile: TILE_SIZE is given twice"),
            ({"num_warps": [2, "abc"]}, "--vary num_warps: abc is no whole number above 0"),
            ({"head_size": [64, "abc"]}, "head_size: 'abc' is no whole number"),
            ({"dtype": ["float9"]}, "dtype: 'float9' is no element type"),
            ({"a": list(range(2001))}, "that is a grid of 2,001 cells; 2,000 are the most"),
            ({"a": list(range(10**5)), "b": list(range(10**5))}, "a grid of 10,000,000,000 cells"),
        ],
    )  # fmt: skip
    def test_usage_errors(self, stubbed: Put, factors: dict[str, list[Any]], words: str) -> None:
        stubbed()
        with pytest.raises(UsageError, match=words):
            run(factors)

    def test_a_kernel_without_a_grid_of_its_own_asks(self, stubbed: Put, tmp_path: Any) -> None:
        stubbed()
        (tmp_path / "k.py").write_text("")
        with pytest.raises(UsageError, match="what is to be varied"):
            experiment(select(Options(kernel=f"{tmp_path}/k.py:f", gpu="T4")), {})

    def test_a_constant_that_is_set_and_not_there(self, stubbed: Put) -> None:
        stubbed()
        with pytest.raises(UsageError, match="--set nope"):
            run({"num_warps": [1]}, overrides={"nope": 2})


class TestRecommendation:
    def test_the_baseline_fits_already(self, stubbed: Put) -> None:
        stub = stubbed()
        found = run({"TILE_SIZE": [16, 32]}, settings={"dtype": "float16", "head_size": 128})
        assert found.recommendation is None
        assert found.sentence.endswith("the kernel fits as it is: 20,480 of 65,536 bytes.")
        assert stub.registers_of == []

    def test_nothing_fits(self, stubbed: Put) -> None:
        stubbed()
        found = run({"TILE_SIZE": [16, 32]}, limit=1000)
        assert found.recommendation is None
        assert found.sentence.endswith("nothing in this grid fits in 1,000 bytes.")
        assert found.exit_code == 0

    def test_the_smallest_change_that_fits(self, stubbed: Put) -> None:
        """One setting before two, a half before a quarter."""
        stubbed(lambda one: one["TILE_SIZE"] * one["num_warps"] * 640)
        found = run({"TILE_SIZE": [8, 16, 32], "num_warps": [1, 2, 4]}, limit=45000)
        best = found.recommendation
        assert best is not None
        assert best.settings in ({"TILE_SIZE": 16, "num_warps": 4}, {"TILE_SIZE": 32, "num_warps": 2})
        assert (best.required_bytes, best.freed_bytes, best.margin_bytes, best.spills) == (40960, 40960, 4040, 0)
        assert best.change in ("TILE_SIZE 32 -> 16", "num_warps 4 -> 2")

    def test_one_that_spills_is_not_preferred(self, stubbed: Put) -> None:
        """Half the warps are as small a change as half the tile, and spill."""
        stubbed(
            lambda one: one["TILE_SIZE"] * one["num_warps"] * 640,
            spills=lambda one: 1932 if one["num_warps"] < 4 else 0,
        )
        found = run({"TILE_SIZE": [16, 32], "num_warps": [2, 4]}, limit=45000)
        best = found.recommendation
        assert best is not None
        assert (best.change, best.spills) == ("TILE_SIZE 32 -> 16", 0)
        assert "num_warps 4 -> 2: 40,960 bytes, spills 1,932 bytes a thread" in best.alternatives
        spilling = next(one for one in found.cells if one.settings == {"TILE_SIZE": 32, "num_warps": 2})
        assert spilling.registers is not None
        assert spilling.registers.spill_stores == 1932

    def test_it_looks_further_until_one_spills_nothing(self, stubbed: Put) -> None:
        stub = stubbed(lambda one: one["TILE_SIZE"] * 1000, spills=lambda one: 0 if one["TILE_SIZE"] == 1 else 8)
        found = run({"TILE_SIZE": [1, 2, 4, 8, 16, 32], "num_stages": [3]}, limit=20000)
        best = found.recommendation
        assert best is not None
        assert (best.settings["TILE_SIZE"], best.spills) == (1, 0)
        assert len(stub.registers_of) == 5

    def test_all_spill(self, stubbed: Put) -> None:
        stubbed(spills=lambda one: one["num_warps"] * 10)
        best = run({"TILE_SIZE": [16, 32], "num_warps": [2, 4]}).recommendation
        assert best is not None
        assert best.spills == 20
        assert best.sentence.endswith(", but it spills 20 bytes a thread")

    def test_no_assembler_for_the_target(self, stubbed: Put) -> None:
        stub = stubbed(spills=lambda _: None)
        best = run({"TILE_SIZE": [2, 4, 8, 16, 32]}).recommendation
        assert best is not None
        assert (best.change, best.spills) == ("TILE_SIZE 32 -> 16", None)
        assert len(stub.registers_of) == 4, "the first few show that there is nothing to see"


def test_a_kernel_without_a_value_of_its_own_starts_from_the_first_level(stubbed: Put, tmp_path: Any) -> None:
    (tmp_path / "k.py").write_text("")

    def size(settings_: dict[str, Any]) -> int | str:
        return settings_["BM"] * 10 if "BM" in settings_ else "usage|f needs 'BM'"

    from tests.replay import _stub

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_stub.CONSTANTS, "BM", 0)
        stub = stubbed(
            lambda one: size({**one, **({} if one["BM"] else {"BM": 0})}) if one["BM"] else "usage|f needs 'BM'"
        )
        found = experiment(select(Options(kernel=f"{tmp_path}/k.py:f", gpu="T4")), {"BM": [64, 32]})
    assert (found.baseline, found.baseline_bytes, found.effects) == ({"BM": 64}, 640, {"BM": 320})
    assert stub.asked
    assert found.source == "its own file"


def test_progress_counts_to_the_end(stubbed: Put) -> None:
    stubbed()
    seen: list[tuple[int, int]] = []
    run({"TILE_SIZE": [16, 32]}, progress=lambda done, whole: seen.append((done, whole)))
    assert seen
    assert all(done <= whole for done, whole in seen)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["TILE_SIZE", "num_warps", "num_stages"]), st.lists(st.integers(1, 64), min_size=1, max_size=3), min_size=1),
    st.integers(1, 200_000),
    st.integers(0, 5),
)  # fmt: skip
def test_what_holds_for_every_grid(stubbed: Put, factors: dict[str, list[Any]], limit: int, holes: int) -> None:
    def size(one: dict[str, Any]) -> int | str:
        total = one["TILE_SIZE"] * 1000 + one["num_warps"] * one["num_stages"]
        return "a hole" if holes and total % (holes + 3) == 0 else total

    stubbed(size)
    found = run(factors, limit=limit)
    assert all(one.fits == (one.required_bytes <= limit) for one in found.cells if one.required_bytes is not None)
    best = found.recommendation
    if best:
        assert found.baseline_bytes is not None
        assert found.baseline_bytes > limit >= best.required_bytes
        assert best.freed_bytes == found.baseline_bytes - best.required_bytes
        assert any(one.settings == best.settings for one in found.cells)
    assert all(size_ is None or size_ >= 0 for size_ in found.effects.values())
