"""Bytes of weights a rank: against what vLLM printed for public models, and from headers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.model import Model, read_model
from oortriage.budget.quantized import weight_format
from oortriage.budget.weights import stages, weight_bytes
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB
from tests.budget.test_checkpoint import write
from tests.budget.test_parameters import COUNTS, config

OSS = {
    **COUNTS["openai/gpt-oss-20b"][0],
    "max_position_embeddings": 131072,
    "quantization_config": {"quant_method": "mxfp4"},
}
QWEN7 = {**COUNTS["Qwen/Qwen2.5-7B"][0], "max_position_embeddings": 32768}
TINY = config("llama", 64, 128, 4, 4, 2, 1000, max_position_embeddings=100)


def positions(name: str, length: int) -> dict:
    return {**COUNTS[name][0], "max_position_embeddings": length}


#: "Model loading took" or "Actual usage is ... for weight", GiB, as vLLM printed it, and the error allowed.
PRINTED = [
    # vllm pull request 17122: Llama-3.1-8B on an L40S
    (positions("meta-llama/Meta-Llama-3-8B", 131072), {}, 14.9889, 1e-4),
    # vllm pull request 10511: Llama-3-8B on an H100, on one card and on two
    (positions("meta-llama/Meta-Llama-3-8B", 8192), {}, 14.96, 1e-3),
    (positions("meta-llama/Meta-Llama-3-8B", 8192), {"tp": 2}, 7.48, 1e-3),
    (positions("meta-llama/Llama-3.2-1B", 131072), {}, 2.32, 3e-3),
    (positions("Qwen/Qwen3-8B", 40960), {}, 15.27, 1e-3),
    (positions("Qwen/Qwen2.5-0.5B", 32768), {}, 0.93, 1e-2),
    # Qwen2.5-1.5B on a T4, vLLM 0.7.3
    (config("qwen2", 1536, 8960, 28, 12, 2, 151936, max_position_embeddings=32768, tie_word_embeddings=True), {}, 2.8875, 3e-3),
    # vllm issue 15815: Qwen2.5-32B on two L40S
    (config("qwen2", 5120, 27648, 64, 40, 8, 152064, max_position_embeddings=32768), {"tp": 2}, 30.7098, 1e-2),
    # vllm issue 13882: Qwen2.5-7B AWQ on an RTX 4060; the same in bitsandbytes
    ({**QWEN7, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, {}, 5.20, 5e-3),
    ({**QWEN7, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, {}, 5.43, 1e-2),
    # gpt-oss-20b on an A100, vLLM 0.19; vllm issue 23278: gpt-oss-120b on an H100, 0.10
    (OSS, {}, 13.72, 1e-2),
    ({**OSS, "num_hidden_layers": 36, "num_local_experts": 128}, {}, 65.9651, 1e-2),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "how", "printed", "error"), PRINTED)
def test_against_what_vllm_printed(shape: dict, how: dict, printed: float, error: float) -> None:
    found = weight_bytes(read_model(shape), dtype="auto", **how)
    assert found.value / GIB == pytest.approx(printed, rel=error)
    assert found.unit == "bytes"
    if found.provenance == "estimated":
        assert found.low is not None
        assert found.high is not None
        assert found.low <= printed * GIB * 1.001
        assert printed * GIB * 0.999 <= found.high


def test_gpt_oss_with_kernels_that_pad_less_lies_in_the_range() -> None:
    # vllm issue 33155: 64.38 GiB with 0.14.1
    found = weight_bytes(read_model({**OSS, "num_hidden_layers": 36, "num_local_experts": 128}), dtype="auto")
    assert (found.low or 0) <= 64.38 * GIB <= (found.high or 0)


def layer(index: int, hidden: int = 64, inner: int = 128, kv: int = 32) -> dict[str, tuple[str, list[int], int]]:
    shapes = {
        "self_attn.q_proj": [64, hidden], "self_attn.k_proj": [kv, hidden], "self_attn.v_proj": [kv, hidden],
        "self_attn.o_proj": [hidden, 64], "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden],
        "mlp.down_proj": [hidden, inner], "input_layernorm": [hidden], "post_attention_layernorm": [hidden],
    }  # fmt: skip
    return {
        f"model.layers.{index}.{name}.weight": ("BF16", shape, 2 * shape[0] * (shape[1] if len(shape) > 1 else 1))
        for name, shape in shapes.items()
    }


def tiny(folder: Path, **more: tuple[str, list[int], int]) -> Path:
    tensors = {"model.embed_tokens.weight": ("BF16", [1000, 64], 128000), "model.norm.weight": ("BF16", [64], 128)}
    for index in range(4):
        tensors |= layer(index)
    tensors |= {"lm_head.weight": ("BF16", [1000, 64], 128000)} | more
    return write(folder / "model.safetensors", tensors)


@pytest.mark.parametrize("ranks", [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (1, 4)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_headers_and_shape_agree_on_every_rank(tmp_path: Path, ranks: tuple[int, int], dtype: str) -> None:
    model, path = read_model(TINY), tiny(tmp_path)
    given_by = {"dtype": dtype, "tp": ranks[0], "pp": ranks[1]}
    from_headers = weight_bytes(model, source=path, **given_by)
    assert from_headers.value == weight_bytes(model, **given_by).value
    assert from_headers.provenance == "derived"


def test_what_vllm_does_not_load_is_not_counted(tmp_path: Path) -> None:
    model = read_model(TINY)
    (tmp_path / "more").mkdir()
    drafter = {"model.layers.4.mlp.up_proj.weight": ("BF16", [100, 100], 20000), "mtp.fc.weight": ("BF16", [9, 9], 162)}
    plain = weight_bytes(model, dtype="auto", source=tiny(tmp_path))
    more = weight_bytes(model, dtype="auto", source=tiny(tmp_path / "more", **drafter))
    assert more.value == plain.value
    tied = read_model({**TINY, "tie_word_embeddings": True})
    head = 1024 * 64 * 2  # padded to a multiple of 64 rows
    assert plain.value - weight_bytes(tied, dtype="auto", source=tiny(tmp_path)).value == head


def test_kv_heads_are_not_divided_below_one() -> None:
    model = read_model(TINY)  # 2 KV heads
    four, eight = (weight_bytes(model, dtype="auto", tp=tp).value for tp in (4, 8))
    assert four > eight > four / 2


def test_an_index_without_its_files_is_an_estimate(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"metadata": {"total_size": 1000000}, "weight_map": {"a": "gone.safetensors"}}'
    )
    found = weight_bytes(read_model(TINY), dtype="auto", source=tmp_path)
    assert found.provenance == "estimated"
    assert found.value == pytest.approx(1_000_000, rel=0.01)


def test_mla_keeps_a_matrix_twice_only_where_it_was_packed() -> None:
    model = read_model(COUNTS["deepseek-ai/DeepSeek-V2-Lite"][0])
    plain = weight_bytes(model, dtype="auto")
    assert (plain.value, plain.provenance) == (15706484224 * 2, "derived")
    packed = weight_bytes(model, dtype="auto", quantization="fp8")
    absorbed = 512 * 16 * 256 * 2 * 27
    assert packed.value - absorbed == pytest.approx(15706484224 + 2 * 102400 * 2048, rel=0.01)
    assert packed.provenance == "estimated"


@pytest.mark.parametrize(
    ("quantization", "size"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 1.0),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / 16384),
        ("fp8", 1.0),
        ("bitsandbytes", 0.5625),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5625),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}}}}, 0.5 + 2 / 128),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}}, 1.0),
    ],
)  # fmt: skip
def test_bytes_an_element_of_the_formats(quantization: dict | str, size: float) -> None:
    found = weight_format(quantization)
    assert found is not None
    assert found.bytes_per_element == pytest.approx(size)


def test_layers_a_config_leaves_alone_stay_as_they_are() -> None:
    fp8 = {"quant_method": "fp8"}
    model = read_model(TINY)
    all_of_it = weight_bytes(model, dtype="auto", quantization=fp8).value
    spared = weight_bytes(
        model, dtype="auto", quantization={**fp8, "ignored_layers": ["model.layers.0.mlp.up_proj"]}
    ).value
    assert spared - all_of_it == 64 * 128
    patterns = weight_bytes(model, dtype="auto", quantization={**fp8, "ignore": [r"re:.*up_proj$", "lm_head"]}).value
    assert patterns - all_of_it == 4 * 64 * 128


def test_patterns_with_stars_and_expressions() -> None:
    found = weight_format({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.*.self_attn", "re:.*gate$"]})
    assert found is not None
    assert found.keeps("model.layers.7.self_attn.q_proj")
    assert not found.keeps("model.layers.7.self_attention.q_proj")
    assert found.keeps("model.layers.7.mlp.gate")
    assert not found.keeps("model.layers.7.mlp.gate_proj")


def test_a_hostile_config_does_not_hang() -> None:
    ignore = ["re:(a+)+$", "re:(", "re:(.*.*)*x$", *(f"x{index}" for index in range(50_000))]
    shape = {
        **config("llama", 64, 128, 1000, 4, 2, 1000),
        "quantization_config": {"quant_method": "fp8", "ignore": ignore},
    }
    begin = time.monotonic()
    assert weight_bytes(read_model(shape), dtype="auto").value > 0
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "quantization",
    ["nosuch", {"quant_method": "hqq"}, {"quant_method": "compressed-tensors", "config_groups": {"a": 3}}],
)
def test_a_format_that_is_not_known_asks_for_the_checkpoint(quantization: dict | str) -> None:
    with pytest.raises(UsageError, match="name the checkpoint"):
        weight_bytes(read_model(TINY), dtype="auto", quantization=quantization)


@pytest.mark.parametrize("asked", [{"tp": 0}, {"pp": 5}, {"pp": -1}, {"dtype": "int9"}])
def test_nonsense_is_refused(asked: dict) -> None:
    with pytest.raises(UsageError):
        weight_bytes(read_model(TINY), **{"dtype": "auto", **asked})


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_hold_every_layer_once(layers: int, pp: int) -> None:
    if pp <= layers:
        found = stages(layers, pp)
        assert [index for stage in found for index in stage] == list(range(layers))
        assert max(map(len, found)) - min(map(len, found)) <= 1


@given(st.sampled_from(list(COUNTS)), st.sampled_from([1, 2, 4, 8]), st.integers(1, 4))
def test_more_ranks_never_hold_more(name: str, tp: int, pp: int) -> None:
    model: Model = read_model(COUNTS[name][0])
    whole: Figure = weight_bytes(model, dtype="auto")
    part = weight_bytes(model, dtype="auto", tp=tp, pp=pp)
    assert whole.value / (tp * pp) * 0.999 <= part.value <= whole.value
