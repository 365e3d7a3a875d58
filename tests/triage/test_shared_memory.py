"""On-chip memory of one block: bills, causes, levers in order, and what is said not to help."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.api import Analyzer
from oortriage.triage.diagnosis import Diagnosis
from tests.triage.reading import changes, documented_causes

CAUSES = documented_causes()["shared_memory"]
SITE = "/usr/lib/python3.12/site-packages/"
UNIFIED = (f"{SITE}vllm/v1/attention/ops/triton_unified_attention.py", "unified_attention")
MOE = (f"{SITE}vllm/model_executor/layers/fused_moe/fused_moe.py", "invoke_fused_moe_kernel")
FLEX = "--attention-backend FLEX_ATTENTION"
FLEX_BY_ENVIRONMENT = "VLLM_ATTENTION_BACKEND=FLEX_ATTENTION"
SMALL_BLOCK = "--block-size 16"


def log(
    required: int | str = 81920,
    limit: int | str = 65536,
    *,
    gpu: str = "Tesla T4",
    head: int = 256,
    dtype: str = "float32",
    cast: bool = True,
    version: str = "0.17.1",
    frame: tuple[str, str] = UNIFIED,
    kernel: str = "kernel_unified_attention_2d",
) -> str:
    """Print a failure of a Triton kernel; the defaults are vllm#36802."""
    lines = []
    if gpu:
        lines.append(f"GPU 0: {gpu} (UUID: GPU-5d0c1c8e-77aa-4d1b-9b0e-0d4f6a3e9a11)")
    if version:
        lines.append(f"INFO 03-11 09:14:02 [utils.py:302] vLLM API server version {version}")
    if cast:
        lines.append(f"INFO 03-11 09:14:12 [model.py:1886] Upcasting torch.bfloat16 to torch.{dtype}.")
    if dtype:
        lines.append(
            "INFO 03-11 09:14:29 [core.py:101] Initializing a V1 LLM engine with config: "
            f"model='org/m', dtype=torch.{dtype}, max_seq_len=4096, tensor_parallel_size=1"
        )
    if head:
        lines.append(f"head_size={head}")
    file, function = frame
    lines += [
        "Traceback (most recent call last):",
        f'  File "{file}", line 1014, in {function}',
        f"    {kernel}[",
        f'  File "{SITE}triton/compiler/compiler.py", line 456, in _init_handles',
        '    raise_(OutOfResources(self.metadata.shared, max_shared, "shared memory"))',
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
            f"{required}, Hardware limit: {limit}. Reducing block sizes or `num_stages` may help."
        ),
    ]
    return "\n".join(lines) + "\n"


def terms_of(diagnosis: Diagnosis) -> list[tuple[str, str, int]]:
    assert diagnosis.bill
    return [(term.name, term.expression, term.bytes) for term in diagnosis.bill.terms]


# ------------------------------------------------------------------------------------ the bill


def test_the_bill_of_36802_is_itemised(analyzer: Analyzer) -> None:
    """81,920 = 16x256x4 + 256x32x4 + 32x256x4."""
    diagnosis = analyzer.text(log())
    assert terms_of(diagnosis) == [
        ("Q", "Q 16x256x4", 16384),
        ("K", "K 256x32x4", 32768),
        ("V", "V 32x256x4", 32768),
    ]
    assert diagnosis.bill
    assert diagnosis.bill.total_bytes == 81920
    assert diagnosis.bill.basis == "arithmetic"
    assert "not the compiler's own allocation" in diagnosis.bill.note
    # Tile 16 with two copies of K and V gives the same sum, but a T4 has no pipeline copies.
    assert diagnosis.bill.alternatives == 0


def test_half_the_tile_is_prescribed_with_its_exact_figure(analyzer: Analyzer) -> None:
    """49,152 = 16x256x4 + 256x16x4 + 16x256x4, compiled and measured; 16,384 below the limit."""
    assert 16 * 256 * 4 + 256 * 16 * 4 + 16 * 256 * 4 == 49152
    (tile,) = [one for one in analyzer.text(log()).prescriptions if "K/V tile" in one.change]
    assert tile.change.startswith("K/V tile 32 -> 16")
    assert "from 81,920 to 49,152 bytes" in tile.effect
    assert "16,384 under the limit" in tile.effect


def test_no_tile_of_16_is_claimed_where_the_kernel_is_known_to_run_32(analyzer: Analyzer) -> None:
    """FP32, head 512 on sm_75 asks for 98,304 with tile 32: only one of K and V is there at a time.

    98,304 = 16x512x4 + 512x32x4. As a bill of Q, K and V the sum needs a tile of 16, which is the
    remedy (65,536, which just fits) and not what failed. The model holds up to head size 256.
    """
    assert 16 * 512 * 4 + 512 * 32 * 4 == 98304
    diagnosis = analyzer.text(log(98304, head=512))
    assert diagnosis.bill is None or diagnosis.bill.settings["TILE"] == 32


def test_fp16_of_head_512_is_billed_at_the_tile_it_runs(analyzer: Analyzer) -> None:
    """vllm#57712, FP16 on sm_75: (2 x 16 x 512 + 2 x 512 x 32) x 2 = 98,304."""
    diagnosis = analyzer.text(log(98304, head=512, dtype="float16", cast=False))
    assert diagnosis.bill
    assert diagnosis.bill.settings["TILE"] == 32
    assert sum(term.bytes for term in diagnosis.bill.terms) == 98304


@pytest.mark.parametrize(
    ("required", "limit", "gpu"),
    [
        (84480, 49152, "NVIDIA GeForce RTX 4090"),  # FP32 head 256 on sm_89: 82.5 KiB
        (116992, 101376, "NVIDIA GeForce RTX 5090"),  # vllm PR 33846
    ],
)
def test_a_figure_with_scratch_space_has_no_bill(required: int, limit: int, gpu: str, analyzer: Analyzer) -> None:
    assert analyzer.text(log(required, limit, gpu=gpu)).bill is None


def test_no_bill_is_made_up_where_the_log_names_neither_type_nor_head(analyzer: Analyzer) -> None:
    assert analyzer.text(log(head=0, dtype="", cast=False)).bill is None


def test_a_matrix_product_gets_no_attention_bill(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(frame=MOE, kernel="fused_moe_kernel"))
    assert diagnosis.bill is None


def test_a_head_size_is_padded_in_the_bill(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(head=192))
    assert diagnosis.bill
    assert diagnosis.bill.settings["head_size"] == 256
    assert "head size 192, padded to 256" in diagnosis.bill.note


@settings(deadline=None, max_examples=80)
@given(
    rows=st.sampled_from((16, 32, 64, 128)),
    head=st.sampled_from((64, 128, 256)),
    tile=st.sampled_from((16, 32, 64, 128)),
    element=st.sampled_from((("float32", 4), ("bfloat16", 2), ("float16", 2))),
    stages=st.integers(1, 4),
    over=st.integers(1, 50000),
)
def test_any_attention_tile_is_billed_to_the_byte_and_a_smaller_one_fits(
    rows: int,
    head: int,
    tile: int,
    element: tuple[str, int],
    stages: int,
    over: int,
    analyzer: Analyzer,
) -> None:
    dtype, width = element
    required = rows * head * width + 2 * stages * head * tile * width
    limit = max(1024, required - over)
    if limit >= required:
        return
    diagnosis = analyzer.text(log(required, limit, gpu="", head=head, dtype=dtype, cast=False))
    assert diagnosis.bill
    assert sum(term.bytes for term in diagnosis.bill.terms) == required
    for term in diagnosis.bill.terms:
        product = 1
        for factor in term.expression.split()[1].split("x"):
            product *= int(factor)
        assert product == term.bytes
    used = diagnosis.bill.settings
    for one in diagnosis.prescriptions:
        found = re.search(r"K/V tile (\d+) -> (\d+)", one.change)
        if not found:
            continue
        old, new = int(found.group(1)), int(found.group(2))
        total = (used["BLOCK_M"] + 2 * used["stages"] * new) * head * width
        assert (old, new >= 16) == (used["TILE"], True)
        assert f"from {required:,} to {total:,} bytes" in one.effect
        assert total <= limit
        doubled = (used["BLOCK_M"] + 4 * used["stages"] * new) * head * width
        assert doubled > limit, "a larger tile would have done"


# --------------------------------------------------------------------------------- the causes


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        # the type is FP32 only because the card lacks bfloat16, and half of it would fit
        ({"cast": True, "head": 256}, "dtype_width"),
        # twice the limit or more: the width alone does not explain it
        ({"cast": True, "head": 256, "required": 180224}, "tile_too_large"),
        ({"cast": False, "head": 256}, "head_dim"),
        ({"cast": False, "head": 512, "required": 98304}, "head_dim"),
        ({"cast": False, "head": 128}, "tile_too_large"),
        ({"cast": False, "head": 0}, "tile_too_large"),
        ({"cast": False, "head": 0, "dtype": "bfloat16"}, "tile_too_large"),
    ],
)
def test_the_cause_is_told_by_type_and_head_size(case, cause: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(**case))
    assert diagnosis.cause == cause
    assert cause in CAUSES


def test_a_compile_time_cap_is_one(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(
        "ptxas error   : Entry function '_Z6kernelPf' uses too much shared data (0xc400 bytes, 0xc000 max)\n"
    )
    assert (diagnosis.resource, diagnosis.cause) == ("shared_memory", "compile_time_cap")
    assert diagnosis.numbers["required_bytes"] == 0xC400
    assert diagnosis.numbers["limit_bytes"] == 0xC000
    assert "1,024 bytes over" in diagnosis.summary


PAIRED = (
    "RuntimeError: vLLM cannot currently support max_model_len=32768 with block_size=16 on GPU "
    "with compute capability (8, 9) (required shared memory 133180.0 > available shared memory "
    "101376)."
)


def test_a_buffer_for_the_whole_context_is_shortened_to_what_fits(analyzer: Analyzer) -> None:
    """vLLM before 0.3 asks for (length padded to blocks of 16, plus 512) x 4 bytes."""
    diagnosis = analyzer.text(PAIRED)
    assert (diagnosis.resource, diagnosis.cause) == ("shared_memory", "context_buffer")
    length = int(changes(diagnosis)[0].removeprefix("--max-model-len "))
    assert (length + 15 + 512) * 4 <= 101376 < (length + 16 + 15 + 512) * 4


def test_the_length_is_not_said_to_be_useless_where_it_is_the_remedy(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(PAIRED)
    assert changes(diagnosis)[0].startswith("--max-model-len")
    assert not any("--max-model-len" in one.advice for one in diagnosis.will_not_help)


@settings(deadline=None, max_examples=60)
@given(required=st.integers(1, 1 << 20), limit=st.integers(1, 1 << 20), grouped=st.booleans())
def test_any_pair_of_figures_gives_a_documented_cause(
    required: int, limit: int, grouped: bool, analyzer: Analyzer
) -> None:
    """Required may equal the limit or lie below it: static memory counts as well."""
    form = "{:,}" if grouped else "{}"
    diagnosis = analyzer.text(log(form.format(required), form.format(limit)))
    assert diagnosis.resource == "shared_memory"
    assert diagnosis.cause in CAUSES
    assert diagnosis.numbers["required_bytes"] == required
    assert diagnosis.numbers["limit_bytes"] == limit
    if required > limit:
        plural = "" if required - limit == 1 else "s"
        assert f"{required - limit:,} byte{plural} over" in diagnosis.summary
    else:
        assert "over" not in diagnosis.summary


# ---------------------------------------------------------------------- remedies by release


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.9.2", {SMALL_BLOCK}),
        ("0.10.2", {SMALL_BLOCK}),
        ("0.11.0", set()),
        ("0.11.2", {FLEX_BY_ENVIRONMENT}),
        ("0.12.0", {FLEX_BY_ENVIRONMENT}),
        ("0.13.0", {FLEX, FLEX_BY_ENVIRONMENT}),
        ("0.14.1", {FLEX, FLEX_BY_ENVIRONMENT}),
        ("0.15.1", {FLEX}),
        ("0.17.1", {FLEX}),
        ("0.33.0", {FLEX}),
    ],
)
def test_a_remedy_is_offered_only_to_releases_that_have_it(
    version: str, expected: set[str], analyzer: Analyzer
) -> None:
    """``--attention-backend`` exists from 0.13.0, the variable for Flex in 0.11.2 to 0.14.1, and up
    to 0.10.2 the tile is the KV block."""
    offered = set(changes(analyzer.text(log(version=version))))
    assert offered & {FLEX, FLEX_BY_ENVIRONMENT, SMALL_BLOCK} == expected


def test_without_a_version_nothing_is_offered_that_newer_releases_ignore(
    analyzer: Analyzer,
) -> None:
    offered = set(changes(analyzer.text(log(version=""))))
    assert offered & {FLEX, FLEX_BY_ENVIRONMENT, SMALL_BLOCK} == {FLEX}


def test_flex_attention_is_offered_with_its_own_limit_at_head_512(analyzer: Analyzer) -> None:
    """vllm PR 39018: Flex overflows as well from head size 512 on."""
    narrow = next(one for one in analyzer.text(log()).prescriptions if one.change == FLEX)
    wide = analyzer.text(log(98304, head=512))
    assert "512" not in narrow.effect
    assert "512" in next(one for one in wide.prescriptions if one.change == FLEX).effect


def test_half_precision_is_not_prescribed(analyzer: Analyzer) -> None:
    """Gemma 2 and 3 refuse float16, which is why they run in FP32 on a T4 at all."""
    for change in changes(analyzer.text(log())):
        assert "--dtype" not in change


def test_other_kernels_get_no_remedies_of_vllm_s_attention(analyzer: Analyzer) -> None:
    offered = set(changes(analyzer.text(log(frame=MOE, kernel="fused_moe_kernel"))))
    assert not offered & {FLEX, FLEX_BY_ENVIRONMENT, SMALL_BLOCK}


def test_a_small_overshoot_asks_for_the_smallest_step(analyzer: Analyzer) -> None:
    """lmdeploy on an A6000 and others: within 1 KiB one stage or one tile less is enough."""
    text = log(102400, 101376, gpu="NVIDIA RTX A6000", frame=MOE, kernel="fused_moe_kernel")
    diagnosis = analyzer.text(text)
    assert any("1,024 bytes are missing" in one.effect for one in diagnosis.prescriptions)


def test_an_overshoot_of_more_than_twice_asks_for_more_than_a_stage(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(210000, 101376, gpu="NVIDIA RTX A6000", frame=MOE, kernel="fused_moe_kernel"))
    assert "2.07 times the limit" in diagnosis.summary
    assert any("one pipeline stage less will not do" in one.effect for one in diagnosis.prescriptions)


# ----------------------------------------------------------------------- what will not help


@pytest.mark.parametrize(
    "text",
    [
        log(),
        log(required=66560, gpu="AMD Instinct MI300X", head=0, dtype="", cast=False, version=""),
        "RuntimeError: Shared memory usage exceeds device limit, and global memory fallback is not implemented yet.\n",
    ],
    ids=["vllm#36802", "vllm#12498", "no figures"],
)
def test_settings_of_the_card_s_memory_are_warned_of(text: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(text)
    warned = " ".join(one.advice for one in diagnosis.will_not_help)
    for setting in ("--gpu-memory-utilization", "--mem-fraction-static", "--enforce-eager"):
        assert setting in warned
    assert all(one.why for one in diagnosis.will_not_help)
    for change in changes(diagnosis):
        assert "gpu-memory-utilization" not in change
        assert "mem-fraction-static" not in change


@pytest.mark.parametrize(
    ("gpu", "limit", "useless"),
    [
        ("Tesla T4", 65536, True),
        ("Tesla V100-SXM2-16GB", 98304, True),
        ("NVIDIA GeForce RTX 3090", 101376, False),
        ("AMD Instinct MI300X", 65536, False),
        ("", 65536, False),
    ],
)
def test_pipeline_stages_are_useless_before_sm_80(gpu: str, limit: int, useless: bool, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(limit * 5 // 4, limit, gpu=gpu))
    own_hint = [one for one in diagnosis.will_not_help if "message's own hint" in one.advice]
    assert bool(own_hint) is useless


@pytest.mark.parametrize("required", [65538, 66560, 70000, 81920, 140000])
def test_stages_are_not_prescribed_where_they_are_said_to_be_useless(required: int, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(required, head=0, dtype="", cast=False))
    assert any("num_stages" in one.advice for one in diagnosis.will_not_help)
    for one in diagnosis.prescriptions:
        assert "stage" not in one.change, one.change


# ------------------------------------------------------------------------ card, limit, kernel


def test_a_limit_that_contradicts_the_card_is_said_and_the_log_is_believed(
    analyzer: Analyzer,
) -> None:
    diagnosis = analyzer.text(log(116992, 101376, gpu="Tesla T4"))
    (note,) = [one for one in diagnosis.notes if "table" in one]
    assert "101,376" in note
    assert "65,536" in note
    assert diagnosis.numbers["limit_bytes"] == 101376


@pytest.mark.parametrize(
    ("gpu", "limit"),
    [("Tesla T4", 65536), ("Tesla T4", 49152), ("NVIDIA H100 80GB HBM3", 232448)],
)
def test_the_opt_in_and_the_static_limit_of_a_card_are_no_contradiction(
    gpu: str, limit: int, analyzer: Analyzer
) -> None:
    diagnosis = analyzer.text(log(limit + 8192, limit, gpu=gpu))
    assert not any("table" in one for one in diagnosis.notes)


def test_without_a_card_its_candidates_are_listed(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(116992, 101376, gpu=""))
    (missing,) = [one for one in diagnosis.missing if "card's name" in one]
    assert {"8.6", "8.9", "12.0", "12.1"} <= set(re.findall(r"\d+\.\d", missing))


def test_a_capability_printed_as_a_pair_names_the_card_well_enough(analyzer: Analyzer) -> None:
    assert not any("card's name" in one for one in analyzer.text(PAIRED).missing)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            (
                "RuntimeError: Shared memory usage exceeds device limit, and global memory fallback is "
                "not implemented yet."
            ),
            "Required: N",
        ),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920,",
            "hardware limit",
        ),
    ],
)
def test_figures_that_are_not_there_are_asked_for(text: str, missing: str, analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(text)
    assert diagnosis.resource == "shared_memory"
    assert any(missing in one for one in diagnosis.missing)


def test_the_kernel_is_named_by_its_launch(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(log(frame=MOE, kernel="fused_moe_kernel"))
    assert "`fused_moe_kernel`" in diagnosis.summary


def test_the_kernel_is_named_by_the_message_that_has_its_name(analyzer: Analyzer) -> None:
    """Inductor's static launcher prints the kernel where the resource used to stand."""
    diagnosis = analyzer.text(
        "torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfMemoryError: "
        "out of resource: triton_per_fused_add_0 Required: 114688 Hardware limit:101376 Reducing "
        "block sizes or `num_stages` may help.\n"
    )
    assert diagnosis.resource == "shared_memory"
    assert "`triton_per_fused_add_0`" in diagnosis.summary


def test_other_resources_are_ruled_out(analyzer: Analyzer) -> None:
    kv = "INFO 03-11 09:15:44 [gpu_worker.py:424] Available KV cache memory: 6.62 GiB\n"
    diagnosis = analyzer.text(kv + log())
    ruled_out = {one.resource: one for one in diagnosis.ruled_out}
    assert set(ruled_out) == {"device_memory", "host_shm", "kv_cache"}
    assert ruled_out["kv_cache"].line == 1
    assert "6.62 GiB" in ruled_out["kv_cache"].reason


def test_a_kv_cache_without_room_is_not_ruled_out(analyzer: Analyzer) -> None:
    kv = "INFO 03-11 09:15:44 [gpu_worker.py:424] Available KV cache memory: -0.30 GiB\n"
    diagnosis = analyzer.text(kv + log())
    assert "kv_cache" not in {one.resource for one in diagnosis.ruled_out}
