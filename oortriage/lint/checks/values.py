"""LT3xx: values that a release, a card or a model does not take."""

from __future__ import annotations

import json
from collections.abc import Iterator

from oortriage.lint.checks._interface import Case, Check, Hit, read_number
from oortriage.lint.invocation import Option

_TABLE = "the option's own choices, type and bounds in that release's engine/arg_utils.py and config files"
#: Which part of the range (0, 1] each release says in its own words; all refuse more than 1.
_UTILISATION = "vLLM 0.6.3 config.py:627; 0.17.1 config/cache.py, Field(gt=0, le=1)"
#: Options whose choices plug-ins add to while vLLM is imported, and since when (0.6.2 has load_general_plugins).
_PLUGGED = ("--quantization",)
_PLUG_INS = "0.6.2"
_HALF = {"bfloat16": (8, 0), "bf16": (8, 0)}


def _options(case: Case) -> Iterator[Option]:
    """Yield the options whose value is known."""
    for option in case.invocation.options if case.invocation else ():
        if (
            option.flag
            and option.value is not None
            and not option.open
            and not option.dotted
            and option.how != "absent"
        ):
            yield option


def _choice(case: Case) -> Iterator[Hit]:
    for option in _options(case):
        flag, value = option.flag, option.value or ""
        if not flag or not flag.choices or value in flag.choices or value in ("None", ""):
            continue
        if flag.kind == "choice":
            since, until = case.tables.value_span(option.name, value)
            told = _told(case, since, until)
            text = f"vLLM {case.release.text} takes {_listed(flag.choices)}{told}"
            plugged = option.name in _PLUGGED and not since and case.at(_PLUG_INS)
            text += "; only a plug-in can have added it" if plugged else ""
            yield Hit(
                f"{option.name} {value}", text, option.line, since, until, severity="warning" if plugged else None
            )
        elif flag.kind == "text" and option.name == "--kv-cache-dtype":
            text = f"is none of the built-in values ({_listed(flag.choices)}); only a plug-in can have added it"
            yield Hit(f"{option.name} {value}", text, option.line, severity="warning")


def _told(case: Case, since: str, until: str) -> str:
    """Say which releases take a value, where the shipped table knows."""
    if since and not case.at(since):
        return f"; this value came with {since}"
    if until and not case.at(until=until):
        return f"; this value was taken until {until}"
    return "; other releases take it" if since else ""


def _listed(values: tuple[str, ...]) -> str:
    shown = ", ".join(values[:14])
    return shown + (f" and {len(values) - 14} more" if len(values) > 14 else "")


def _type(case: Case) -> Iterator[Hit]:
    for option in _options(case):
        value, kind = option.value or "", option.flag.kind if option.flag else "unknown"
        if value in ("None", "") and kind != "json":
            continue
        wrong = ""
        if kind == "int" and not _integer(value):
            suffixed = read_number(value) is not None and value[-1:].isalpha()
            wrong = "takes a whole number" + (", and no suffix such as k in this release" if suffixed else "")
        elif kind == "float" and not _float(value):
            wrong = "takes a number"
        elif kind in ("size", "size_or_auto") and value.lower() not in ("auto", "-1") and read_number(value) is None:
            wrong = "takes a whole number, or one with a suffix: k, m, g (decimal), K, M, G (binary)"
        elif kind == "json" and case.invocation and case.invocation.program != "llm":
            wrong = _json(value)
        if wrong:
            yield Hit(f"{option.name} {value}", wrong, option.line)


def _json(value: str) -> str:
    """Say what is wrong with a JSON value; a bare number or word is another form that some options take."""
    if not value.lstrip().startswith(("{", "[")):
        return ""
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return "is no valid JSON: in a shell, put it in single quotes and its names in double ones"
    return ""


def _integer(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _utilisation(case: Case) -> Iterator[Hit]:
    value, option = case.number("--gpu-memory-utilization"), case.option("--gpu-memory-utilization")
    if option is None or value is None or 0 < value <= 1:
        return
    hint = f"; {value:g} % is {value / 100:g}" if 5 <= value <= 100 else ""
    text = f"is a share of the card's memory, more than 0 and at most 1{hint}"
    yield Hit(f"{option.name} {option.value}", text, option.line)


def _bounds(case: Case) -> Iterator[Hit]:
    for option in _options(case):
        if option.name in ("--gpu-memory-utilization", "--max-model-len") or not option.flag:
            continue
        value = read_number(option.value or "")
        for bound in option.flag.bounds if value is not None else ():
            how, _, limit = bound.partition(" ")
            edge = read_number(limit)
            if edge is not None and value is not None and not _holds(value, how, edge):
                words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}[how]
                yield Hit(f"{option.name} {option.value}", f"must be {words} {limit}", option.line)


def _holds(value: float, how: str, edge: float) -> bool:
    return {"gt": value > edge, "ge": value >= edge, "lt": value < edge, "le": value <= edge}[how]


def _positive(case: Case) -> Iterator[Hit]:
    for name in ("--max-num-seqs", "--max-num-batched-tokens", "--tensor-parallel-size", "--pipeline-parallel-size",
                 "--block-size"):  # fmt: skip
        option, value = case.option(name), case.number(name)
        bounded = option is not None and option.flag is not None and option.flag.bounds
        if option and value is not None and value < 1 and not bounded and not (option.flag and option.flag.choices):
            yield Hit(f"{name} {option.value}", "must be at least 1", option.line)


def _length(case: Case) -> Iterator[Hit]:
    option = case.option("--max-model-len")
    if option is None or option.open or option.value is None:
        return
    fits = option.value.strip() in ("-1", "auto")
    value = case.number("--max-model-len")
    if fits and not case.at("0.14.0"):
        text = f"vLLM {case.release.text} takes a number of tokens; to fit the length to the memory came with 0.14.0"
        yield Hit(f"--max-model-len {option.value}", text, option.line, "0.14.0")
    elif not fits and value is not None and value <= 0:
        yield Hit(f"--max-model-len {option.value}", "is a number of tokens, more than 0", option.line)


def _longer(case: Case) -> Iterator[Hit]:
    option, value = case.option("--max-model-len"), case.number("--max-model-len")
    model, allowed = case.model, case.settings.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if not option or value is None or model is None or not model.length or model.scaled or value <= model.length:
        return
    if allowed is None or allowed.value not in ("1", "true", "True"):
        text = (
            f"the model's config has max_position_embeddings {model.length:,}; vLLM refuses more, unless "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1, which may give wrong output"
        )
        yield Hit(f"--max-model-len {option.value}", text, option.line)


def _heads(case: Case) -> Iterator[Hit]:
    option, size = case.option("--tensor-parallel-size"), case.number("--tensor-parallel-size")
    heads = case.model.heads if case.model else 0
    if option and size and size >= 1 and heads and heads % size:
        text = f"does not divide the model's {heads} attention heads; vLLM ends with a ValueError"
        yield Hit(f"--tensor-parallel-size {option.value}", text, option.line)


def _bfloat16(case: Case) -> Iterator[Hit]:
    option = case.option("--dtype")
    if not case.card or not option or option.open:
        return
    needed = _HALF.get(option.value or "")
    if needed and case.card.capability < needed:
        text = f"{case.card.said} has no bfloat16, which needs 8.0; vLLM ends with a ValueError; write --dtype half"
        yield Hit(f"--dtype {option.value}", text, option.line)


def _fp8(case: Case) -> Iterator[Hit]:
    option = case.option("--kv-cache-dtype")
    if not case.card or not option or option.open or not (option.value or "").startswith("fp8"):
        return
    backend = case.option("--attention-backend")
    if backend and (backend.value or "").upper() == "FLASH_ATTN" and case.card.capability < (9, 0):
        text = f"FlashAttention takes an FP8 cache on compute capability 9.0 alone, and this is {case.card.said}"
        yield Hit(f"--kv-cache-dtype {option.value} with --attention-backend FLASH_ATTN", text, option.line)
        return
    if case.card.capability < (8, 9) and case.at("0.8.0"):
        text = (
            f"{case.card.said} has no FP8 arithmetic (8.9 and later have): Triton attention has no kernel for an FP8 "
            "cache here and FlashAttention takes one on 9.0 alone; FlashInfer remains, on 8.0 and later"
        )
        yield Hit(f"--kv-cache-dtype {option.value}", text, option.line)


def _multiple(case: Case) -> Iterator[Hit]:
    option, value = case.option("--block-size"), case.number("--block-size")
    if option and value is not None and value >= 1 and value % 16:
        text = "is no multiple of 16, which FlashAttention and Triton attention need; no choice of the parser says so"
        yield Hit(f"--block-size {option.value}", text, option.line)


CHECKS = (
    Check(
        "LT301",
        "error",
        "A value that is not among the choices",
        "argparse ends with `invalid choice`. Choices differ by release: `--block-size` takes 8, 16 and 32 up to "
        "0.6.3.post1 and again in 0.6.5, 64 and 128 in 0.6.4 and from 0.6.6 on, any whole number from 0.18.0 on. A "
        "value of `--kv-cache-dtype` that 0.33.0 does not know is a warning: a plug-in may have added it.",
        _TABLE,
        _choice,
    ),
    Check(
        "LT302",
        "error",
        "A value of another type",
        "A word where a number must stand, or JSON that is none.",
        _TABLE,
        _type,
    ),
    Check(
        "LT303",
        "error",
        "A memory share outside (0, 1]",
        "`--gpu-memory-utilization` is a share, not per cent.",
        _UTILISATION,
        _utilisation,
    ),
    Check(
        "LT304", "error", "A number outside the option's own bounds", "The config class states them.", _TABLE, _bounds
    ),
    Check(
        "LT305",
        "error",
        "A count below 1",
        "Releases before 0.11 state no bounds, and fail later.",
        "vLLM 0.6.3 config.py, SchedulerConfig and ParallelConfig",
        _positive,
    ),
    Check(
        "LT306",
        "error",
        "A length that is no number of tokens",
        "`-1` and `auto` fit the length to the memory from 0.14.0 on; before, they are refused.",
        "vLLM 0.14.0 engine/arg_utils.py, human_readable_int_or_auto",
        _length,
    ),
    Check(
        "LT307",
        "warning",
        "A length above the model's own",
        "Asked only with --config, and not where the config scales its positions.",
        "vLLM 0.17.1 config/model.py, _get_and_verify_max_len",
        _longer,
    ),
    Check(
        "LT308",
        "error",
        "A tensor parallel size that does not divide the heads",
        "Asked only with --config.",
        "vLLM 0.5.4 config.py:269-276; 0.33.0 config/model.py:1562",
        _heads,
    ),
    Check(
        "LT309",
        "error",
        "bfloat16 on a card without it",
        "Asked only with --gpu.",
        "vLLM 0.6.3.post1 worker/worker.py:474; 0.17.1 platforms/cuda.py:537",
        _bfloat16,
    ),
    Check(
        "LT310",
        "warning",
        "An FP8 cache on a card without FP8",
        "Asked only with --gpu, from 0.8.0 on.",
        "vLLM 0.17.1 v1/attention/backends/fa_utils.py:143-147; 0.33.0 v1/attention/backends/triton_attn.py:521",
        _fp8,
    ),
    Check(
        "LT311",
        "warning",
        "A block size that the usual attention does not take",
        "From 0.18.0 on the parser takes any whole number; the attention backend decides.",
        "vLLM 0.18.0 v1/attention/backends/flash_attn.py and triton_attn.py, get_supported_kernel_block_sizes",
        _multiple,
        "0.18.0",
    ),
)
