"""What is compiled: flags before the log before the model's config, and a question that names the flag for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oortriage.errors import OortriageError, UsageError
from oortriage.replay.options import Options
from oortriage.replay.selection import Selection, select
from oortriage.triage.diagnosis import Diagnosis
from tests.replay._stub import VLLM_FILE, Stub, crash

REFERENCE = "reference.attention"
GEMMA = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "head_dim": 256, "global_head_dim": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
    "num_hidden_layers": 12, "sliding_window": 1024, "sliding_window_pattern": 6, "dtype": "bfloat16",
    "attn_logit_softcapping": 50.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_compiler(stubbed: Callable[..., Stub]) -> None:
    stubbed()


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A folder that is vLLM's, as far as finding it goes."""
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "_version.py").write_text("__version__ = version = '0.17.1'\n")
    return tmp_path


def chosen(log: Diagnosis | None = None, **options: Any) -> Selection:
    return select(Options(**options), log)


def refused(log: Diagnosis | None = None, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        chosen(log, **options)
    return str(caught.value)


def t4(**facts: Any) -> Diagnosis:
    return crash(
        gpu="Tesla T4", compute_capability="7.5", kernel="kernel_unified_attention_2d", kernel_file=VLLM_FILE, **facts
    )


class TestKernel:
    def test_nothing_said(self) -> None:
        assert refused(gpu="T4").startswith("which kernel? Give a log, or --kernel: ")

    def test_a_log_names_it(self, vllm: Path) -> None:
        one = chosen(t4(), source=vllm)
        assert one.kernel == "vllm.unified_attention"
        assert one.source is not None
        assert (one.source.kind, one.source.version) == ("folder", "0.17.1")
        assert one.notes == ()

    def test_the_flag_counts_before_the_log(self) -> None:
        one = chosen(t4(dtype="float32", head_size="256"), kernel=REFERENCE)
        assert (one.recipe.name, one.shape["head_size"], one.source) == (REFERENCE, 256, None)

    def test_another_resource_has_no_kernel(self) -> None:
        said = refused(crash(resource="device_memory"), gpu="T4")
        assert said == (
            "crash.log: the verdict is device_memory, not a block's shared memory: there is no kernel to compile "
            "(--kernel NAME chooses one all the same)"
        )
        assert chosen(crash(resource="device_memory"), gpu="T4", kernel=REFERENCE).kernel == REFERENCE

    def test_an_unknown_kernel(self) -> None:
        assert refused(crash(kernel="my_kernel", gpu="T4")).startswith(
            "no recipe for kernel 'my_kernel'; choose one with --kernel: "
        )
        assert refused(crash(gpu="T4")).startswith("no recipe for the kernel (the log does not name it); choose")

    def test_a_common_name_in_a_foreign_file_is_not_guessed(self) -> None:
        """Five libraries have a ``_fwd_kernel``; this log's is in a sixth."""
        said = refused(crash(kernel="_fwd_kernel", kernel_file="turbot5/ops/flash_attention_v2_bias.py", gpu="T4"))
        assert said.startswith("no recipe for kernel '_fwd_kernel' of turbot5/ops/flash_attention_v2_bias.py; choose")
        assert "vllm.prefix_prefill" in said
        assert "vllm.unified_attention" not in said

    def test_a_rare_name_in_another_file_is_taken_and_said(self, vllm: Path) -> None:
        one = chosen(crash(kernel="kernel_unified_attention_2d", kernel_file="fork/attn.py", gpu="T4"), source=vllm)
        assert one.kernel == "vllm.unified_attention"
        assert one.notes == (
            "the log's kernel is in fork/attn.py; vllm.unified_attention compiles that of triton_unified_attention.py",
        )

    def test_of_two_libraries_the_one_whose_release_is_stated(self, vllm: Path) -> None:
        log = crash(kernel="fused_moe_kernel", gpu="H100", limit=0)
        assert chosen(log, source=vllm, versions={"vllm": "0.17.1"}).kernel == "vllm.fused_moe"
        one = chosen(crash(kernel="fused_moe_kernel", gpu="H100", vllm_version="0.11.0", limit=0), source=vllm)
        assert one.kernel == "vllm.fused_moe"
        assert one.notes == ("fused_moe_kernel may also be sglang.fused_moe; vllm.fused_moe was taken",)


class TestCard:
    @pytest.mark.parametrize(
        ("facts", "gpu", "target", "name"),
        [
            ({"gpu": "Tesla T4"}, "", "sm_75", "Tesla T4"),
            ({"compute_capability": "8.6"}, "", "sm_86", "sm_86"),
            ({"compute_capability": "sm_120", "gpu": "unheard of"}, "", "sm_120", "unheard of"),
            ({"gpu": "AMD_Instinct_MI300X"}, "", "gfx942", "AMD_Instinct_MI300X"),
            ({"gpu": "Tesla T4"}, "RTX 5090", "sm_120", "RTX 5090"),
            ({}, "sm_90", "sm_90", "sm_90"),
        ],
    )
    def test_who_says_it(self, facts: dict[str, Any], gpu: str, target: str, name: str) -> None:
        card = chosen(crash(limit=0, **facts), kernel=REFERENCE, gpu=gpu).card
        assert (card.target.name, card.name) == (target, name)

    def test_nobody(self) -> None:
        assert refused(crash(limit=101376), kernel=REFERENCE) == (
            "which GPU? Say --gpu T4, --gpu sm_86 or --gpu gfx942; a limit of 101,376 bytes is that of sm_86, sm_89, "
            "sm_120, sm_121"
        )
        assert refused(kernel=REFERENCE) == "which GPU? Say --gpu T4, --gpu sm_86 or --gpu gfx942"
        assert "near names" in refused(kernel=REFERENCE, gpu="RTX 9999 Super")


class TestLimit:
    def test_the_table(self) -> None:
        one = chosen(kernel=REFERENCE, gpu="T4")
        assert (one.card.limit_bytes, one.limit_from) == (65536, "table")

    def test_the_log_wins_over_the_table_and_it_is_said(self) -> None:
        one = chosen(crash(gpu="Tesla T4", limit=49152), kernel=REFERENCE)
        assert (one.card.limit_bytes, one.limit_from) == (49152, "log")
        assert one.notes == ("the log prints a limit of 49,152 bytes, the table has 65,536 for 7.5; the log's is used",)

    @pytest.mark.parametrize("facts", [{}, {"gpu": "Tesla T4"}], ids=["unknown card", "same card"])
    def test_naming_the_card_again_does_not_change_that(self, facts: dict[str, Any]) -> None:
        one = chosen(crash(limit=49152, **facts), kernel=REFERENCE, gpu="T4")
        assert (one.card.limit_bytes, one.limit_from) == (49152, "log")

    def test_another_card_has_its_own(self) -> None:
        one = chosen(crash(gpu="Tesla T4"), kernel=REFERENCE, gpu="A10")
        assert (one.card.limit_bytes, one.limit_from) == (101376, "table")
        assert one.notes == (
            "the log is of Tesla T4; --gpu A10 is compiled for, with its limit of 101,376 bytes instead of 65,536",
        )

    def test_the_flag(self) -> None:
        one = chosen(crash(gpu="Tesla T4"), kernel=REFERENCE, limit_bytes=100)
        assert (one.card.limit_bytes, one.limit_from) == (100, "--limit")
        assert one.notes == ("the log prints a limit of 65,536 bytes; --limit 100 is used",)


class TestShape:
    def test_flags_then_log_then_defaults(self) -> None:
        one = chosen(
            crash(gpu="T4", dtype="half", head_size="256"),
            kernel=REFERENCE,
            settings={"head_size": 64, "q_per_kv": "4"},
        )
        assert one.shape == {
            "dtype": "float16", "head_size": 64, "window": 0, "tile": 32, "q_per_kv": 4, "block_size": 16,
        }  # fmt: skip
        assert one.origin == {"head_size": "--head-size", "q_per_kv": "--set", "dtype": "log line 7"}
        assert one.relaxable == ("dtype",)
        assert one.notes == ("log line 7 says head_size = 256; 64 is used, as --head-size says",)
        assert [note.partition(" (")[0] for note in one.assumptions] == [
            "assumed: window = 0", "assumed: tile = 32", "assumed: block_size = 16",
        ]  # fmt: skip

    def test_spellings_of_one_type_are_no_contradiction(self) -> None:
        one = chosen(crash(gpu="T4", dtype="torch.bfloat16"), kernel=REFERENCE, settings={"dtype": "bf16"})
        assert (one.shape["dtype"], one.notes) == ("bfloat16", ())

    @pytest.mark.parametrize(
        "facts", [{"dtype": "auto"}, {"dtype": "fp7"}, {"head_size": "wide"}, {"head_size": "1e999"}]
    )
    def test_what_a_log_says_that_is_no_value_is_passed_over(self, facts: dict[str, Any]) -> None:
        one = chosen(crash(gpu="T4", **facts), kernel=REFERENCE)
        assert one.origin == {}
        assert (one.shape["dtype"], one.shape["head_size"]) == ("float16", 128)

    def test_a_config_fills_the_rest(self, tmp_path: Path, vllm: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(GEMMA))
        one = chosen(t4(dtype="float32"), source=vllm, config=tmp_path / "config.json")
        assert (one.shape["head_size"], one.shape["softcap"], one.shape["dtype"]) == (512, 50.0, "float32")
        assert one.origin["head_size"] == "config.json"
        assert one.notes == ("config.json says dtype = bfloat16; float32 is used, as log line 7 says",)

    @pytest.mark.parametrize(("window", "head"), [(1024, 256), ("1024", 256), (0, 512), ("0", 512)])
    def test_the_window_chooses_the_layer(self, tmp_path: Path, window: Any, head: int) -> None:
        (tmp_path / "config.json").write_text(json.dumps(GEMMA))
        one = chosen(kernel=REFERENCE, gpu="T4", config=tmp_path, settings={"window": window})
        assert (one.shape["head_size"], one.shape["window"]) == (head, int(window))

    def test_a_latent_model_gives_both_widths(self, tmp_path: Path, vllm: Path) -> None:
        config = {"num_attention_heads": 16, "kv_lora_rank": 256, "qk_rope_head_dim": 32, "num_hidden_layers": 2}
        (tmp_path / "config.json").write_text(json.dumps(config))
        one = chosen(kernel="vllm.decode_attention", gpu="T4", config=tmp_path, source=vllm)
        assert (one.shape["head_size"], one.shape["v_head_size"], one.shape["mla"]) == (288, 256, True)

    def test_a_parameter_that_the_recipe_lacks(self) -> None:
        assert refused(kernel=REFERENCE, gpu="T4", settings={"phase": "decode"}) == (
            "reference.attention has no parameter phase; it has dtype, head_size, window, tile, q_per_kv, block_size"
        )

    def test_a_config_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(OortriageError, match="cannot be read"):
            chosen(kernel=REFERENCE, gpu="T4", config=tmp_path / "none.json")


class TestConstants:
    def test_short_names_become_the_kernels(self, vllm: Path) -> None:
        one = chosen(t4(), source=vllm, overrides={"tile": 16, "num_warps": 2})
        assert one.overrides == {"TILE_SIZE": 16, "num_warps": 2}

    def test_one_constant_under_two_names(self) -> None:
        assert refused(kernel=REFERENCE, gpu="T4", overrides={"TILE_SIZE": 16, "tile": 32}) == (
            "--set tile: TILE_SIZE is given twice"
        )

    @pytest.mark.parametrize("value", ["abc", 0, -1, 2.5, True])
    def test_launch_options_are_whole_numbers(self, value: Any) -> None:
        said = refused(kernel=REFERENCE, gpu="T4", overrides={"num_warps": value})
        assert said == f"--set num_warps: {value} is no whole number above 0"


class TestRelease:
    def test_a_log_without_it_asks_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("oortriage.kernels.source.find.installed_spec", lambda _: None)
        with pytest.raises(OortriageError, match=r"which vllm\? Name the release \(--vllm X\.Y\.Z\) or its folder"):
            chosen(t4())

    def test_the_flag_counts_before_the_log(self, vllm: Path) -> None:
        assert chosen(t4(vllm_version="0.16.0"), source=vllm).source.version == "0.16.0"  # type: ignore[union-attr]
        one = chosen(t4(vllm_version="0.16.0"), source=vllm, versions={"vllm": "0.18.0"})
        assert one.source is not None
        assert one.source.version == "0.18.0"

    def test_another_triton_than_the_logs_is_said(self) -> None:
        one = chosen(crash(gpu="T4", triton_version="3.2.0"), kernel=REFERENCE)
        assert one.notes == ("the log is of Triton 3.2.0, compiled with 3.6.0; `--triton 3.2.0` compiles with its own",)
        assert chosen(crash(gpu="T4", triton_version="3.6.1"), kernel=REFERENCE).notes == ()
        assert "Triton 3.4.0" in chosen(crash(gpu="T4", torch_version="2.8.0+cu128"), kernel=REFERENCE).notes[0]


class TestFigure:
    def test_the_log_prints_it(self) -> None:
        one = chosen(crash(gpu="T4"), kernel=REFERENCE)
        assert (one.required_bytes, one.required_from) == (81920, "log")

    def test_the_flag_asks_for_another(self) -> None:
        one = chosen(crash(gpu="T4"), kernel=REFERENCE, required_bytes=5)
        assert (one.required_bytes, one.required_from) == (5, "--required")
        assert one.notes == ("the log prints 81,920 bytes; --required 5 is looked for",)

    def test_nobody(self) -> None:
        one = chosen(kernel=REFERENCE, gpu="T4")
        assert (one.required_bytes, one.required_from) == (0, "")


def test_a_kernel_of_the_users_own_takes_arguments_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("")
    one = chosen(kernel=f"{tmp_path}/k.py:f", gpu="MI300X", settings={"a": "*fp16", "N": "64"})
    assert (one.shape, one.assumptions, one.source_name) == ({"a": "*fp16", "N": "64"}, (), "its own file")
    assert one.card.target.name == "gfx942"
