"""Layers, cards, types and releases as rows; releases from a made list, figures from arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oortriage.errors import OortriageError, UsageError
from oortriage.kernels.model_config import ModelConfig, model_config
from oortriage.kernels.source import SourceError, SourceSpec
from oortriage.replay import fit as module
from oortriage.replay.fit import Fit, fit
from oortriage.replay.options import Options
from tests.replay._stub import Stub, attention_bytes

Put = Callable[..., Stub]
GEMMA = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "head_dim": 256, "num_attention_heads": 8,
    "num_key_value_heads": 4, "num_hidden_layers": 12, "sliding_window": 1024, "sliding_window_pattern": 6,
}  # fmt: skip
MLA = {"num_attention_heads": 16, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 2}


def config_of(whole: dict[str, Any]) -> ModelConfig:
    return model_config(whole, "config.json")


def run(gpus: list[str], dtypes: list[str], whole: dict[str, Any] | None = None, **more: Any) -> Fit:
    kernel = more.pop("kernel", "reference.attention")
    options = Options(kernel=kernel, versions=more.pop("versions", {}), source=more.pop("source", None))
    return fit(options, config_of(whole or GEMMA), gpus, dtypes, **more)


def test_a_row_for_each_card_layer_and_type(stubbed: Put) -> None:
    stubbed()
    found = run(["T4", "A10"], ["float32", "half"])
    assert [(row.gpu, row.layer_kind, row.dtype, row.required_bytes, row.limit_bytes, row.fits) for row in found.rows] == [
        ("T4", "full attention", "float32", 81920, 65536, False),
        ("T4", "full attention", "float16", 40960, 65536, True),
        ("T4", "sliding window 1024", "float32", 49152, 65536, True),
        ("T4", "sliding window 1024", "float16", 24576, 65536, True),
        ("A10", "full attention", "float32", 81920, 101376, True),
        ("A10", "full attention", "float16", 40960, 101376, True),
        ("A10", "sliding window 1024", "float32", 49152, 101376, True),
        ("A10", "sliding window 1024", "float16", 24576, 101376, True),
    ]  # fmt: skip
    assert [(row.layers, row.head_size, row.window) for row in found.rows[:3:2]] == [(2, 256, 0), (10, 256, 1024)]
    assert [row.ledger is not None for row in found.rows] == [True] + [False] * 7
    assert (found.exit_code, found.since, found.model) == (1, [], "Gemma3ForCausalLM")
    assert found.assumptions == [
        "assumed: tile = 32 (keys and values of one step)",
        "assumed: block_size = 16 (tokens a page of the KV cache)",
    ]


def test_exit_codes(stubbed: Put) -> None:
    stubbed()
    assert run(["H100"], ["float32"]).exit_code == 0
    assert run(["T4"], ["float32"]).exit_code == 1
    stubbed(lambda _: "no")
    found = run(["T4"], ["float32"])
    assert found.exit_code == 3
    assert {row.note for row in found.rows} == {"no"}
    assert {row.fits for row in found.rows} == {None}


def test_bfloat16_below_ampere_is_a_note_and_no_failure(stubbed: Put) -> None:
    stubbed()
    found = run(["T4", "A10", "MI300X"], ["bfloat16"])
    assert {row.gpu for row in found.rows if row.note} == {"T4"}
    assert all(row.fits for row in found.rows)


def test_the_phase_that_needs_most_is_told(stubbed: Put, tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    stubbed(lambda one: 1000 if one["phase"] == "decode" else 10)
    found = run(["T4"], ["float32"], kernel="vllm.unified_attention", source=tmp_path)
    assert [(row.phase, row.required_bytes) for row in found.rows] == [("decode", 1000), ("decode", 1000)]


def test_a_phase_that_does_not_compile_leaves_the_other(stubbed: Put, tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    stubbed(lambda one: "no" if one["phase"] == "prefill" else 10)
    found = run(["T4"], ["float32"], kernel="vllm.unified_attention", source=tmp_path)
    assert [(row.phase, row.required_bytes) for row in found.rows] == [("decode", 10), ("decode", 10)]


def test_latent_attention_has_its_own_kernel(stubbed: Put, tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    stub = stubbed(lambda _: 10)
    found = run(["H100"], ["bfloat16"], MLA, kernel="", source=tmp_path)
    assert found.kernel == "vllm.decode_attention"
    assert {(cell.shape["head_size"], cell.shape["v_head_size"], cell.shape["mla"], cell.shape["kv_heads"]) for cell in stub.asked} == {(576, 512, True, 1)}  # fmt: skip
    assert run(["H100"], ["bfloat16"], kernel="", source=tmp_path).kernel == "vllm.unified_attention"


@pytest.mark.parametrize(
    ("gpus", "dtypes", "more", "words"),
    [
        (["RTX 9999 Ti Super"], ["float32"], {}, "unknown GPU"),
        (["T4"], ["float9"], {}, "--dtype float9: no element type"),
        (["T4"], ["auto"], {}, "--dtype auto: no element type"),
        (["T4"], ["float32"], {"kernel": "vllm.fused_moe"}, r"vllm\.fused_moe is no attention"),
        (["T4"], ["float32"], {"kernel": "nothing.known"}, "no kernel 'nothing.known'"),
        (["T4"], ["float32"], {"kernel": "k.py:f"}, "fit needs a kernel with a recipe"),
        (["T4"], ["float32"], {"all_versions": True}, "reference.attention belongs to no library"),
        (["T4"], ["float32"], {"all_versions": True, "kernel": "", "source": Path("x")}, "do not go together"),
    ],
)
def test_usage_errors(stubbed: Put, gpus: list[str], dtypes: list[str], more: dict[str, Any], words: str) -> None:
    stubbed()
    with pytest.raises(UsageError, match=words):
        run(gpus, dtypes, **more)


def test_source_that_cannot_be_read_at_all_ends_the_command(stubbed: Put) -> None:
    stubbed(lambda _: "environment|the wheel is gone")
    with pytest.raises(OortriageError, match="the wheel is gone"):
        run(["T4"], ["float32"])


class TestReleases:
    @pytest.fixture(autouse=True)
    def _index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        releases = ["0.9.2", "0.10.2", "0.11.2", "0.12.0", "0.13.0"]

        def find(library: str, version: str, _folder: Path | None = None) -> SourceSpec:
            if version == "0.11.2":
                raise SourceError("no source of vllm 0.11.2: yanked")
            return SourceSpec(library, version, "wheel", f"http://127.0.0.1/{version}.whl")

        monkeypatch.setattr(module, "released_versions", lambda _library, since: releases if since else [])
        monkeypatch.setattr(module, "find_source", find)
        monkeypatch.setattr("oortriage.replay.selection.find_source", find)

    def run(self, stubbed: Put, tiles: dict[str, int], **more: Any) -> tuple[Fit, Stub]:
        """Compile with the tile of a release; a release that is not named has 16."""
        stub = stubbed(lambda one: attention_bytes({**one, "TILE_SIZE": tiles.get(stub.sources[-1], 16)}))
        found = run(["T4"], ["float32"], {**GEMMA, "sliding_window": None}, kernel="", all_versions=True, **more)
        return found, stub

    def test_every_release_is_compiled_without_one_being_named(self, stubbed: Put) -> None:
        found, stub = self.run(stubbed, {})
        assert stub.sources == ["0.9.2", "0.10.2", "0.12.0", "0.13.0"]
        assert [row.version for row in found.rows] == ["0.9.2", "0.10.2", "0.11.2", "0.12.0", "0.13.0"]
        assert (found.since, found.exit_code) == ([], 0)

    def test_a_release_that_cannot_be_had_is_a_row_without_a_figure(self, stubbed: Put) -> None:
        found, _ = self.run(stubbed, {})
        row = found.rows[2]
        assert (row.required_bytes, row.fits, row.note) == (None, None, "no source of vllm 0.11.2: yanked")

    @pytest.mark.parametrize(
        ("failing", "said"),
        [
            (["0.12.0", "0.13.0"], ["does not fit from 0.12.0 on"]),
            (["0.9.2", "0.10.2"], ["does not fit from 0.9.2 to 0.10.2"]),
            (["0.10.2", "0.12.0", "0.13.0"], ["does not fit from 0.10.2 on"]),
            (["0.12.0"], ["does not fit in 0.12.0"]),
            (["0.9.2", "0.13.0"], ["does not fit in 0.9.2", "does not fit from 0.13.0 on"]),
        ],
    )
    def test_since_when(self, stubbed: Put, failing: list[str], said: list[str]) -> None:
        found, _ = self.run(stubbed, dict.fromkeys(failing, 32))
        assert found.since == [f"T4, full attention, float32: {one}" for one in said]
        assert found.exit_code == 1

    def test_progress_counts_cards_and_releases(self, stubbed: Put) -> None:
        seen: list[tuple[int, int]] = []
        self.run(stubbed, {}, progress=lambda done, whole: seen.append((done, whole)))
        assert seen == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]

    def test_an_index_without_releases(self, stubbed: Put, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "released_versions", lambda *_: [])
        with pytest.raises(UsageError, match="no release of vllm from"):
            self.run(stubbed, {})
