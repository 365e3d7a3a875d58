"""``oortriage budget``: vLLM's memory decision for a model, before the engine is started."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, ReplayFormat, Sink, style_for


class EngineName(str, Enum):
    """vLLM's engines."""

    v0 = "V0"
    v1 = "V1"


class UsageName(str, Enum):
    """How vLLM is started: it schedules more at once for Python's class than for the server."""

    server = "server"
    llm = "llm"


_SIZE = "5GiB or 5G (2**30 each, as vLLM reads K, M, G), 5g (10**9: k, m, g), or bytes."


def budget(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL_CONFIG]", help="The model's config.json, or its folder.")
    ] = None,
    vllm: Annotated[str, typer.Option("--vllm", help="The vLLM release: 0.17.1.")] = "",
    from_log: Annotated[
        str, typer.Option("--from-log", help="Take every figure that this vLLM log holds; - is standard input.")
    ] = "",
    want_len: Annotated[
        int | None, typer.Option("--want-len", help="Solve for requests of so many tokens: exact flags.")
    ] = None,
    want_concurrency: Annotated[
        float | None, typer.Option("--want-concurrency", help="Solve for so many of them at once.")
    ] = None,
    what_if: Annotated[
        str, typer.Option("--what-if", help="A table: util=0.85,0.9 len=8192,16384 block=16,32 kv=auto,fp8.")
    ] = "",
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the bar chart of the memory to this file.")] = None,
    kv_memory: Annotated[
        str, typer.Option("--kv-memory", help=f"What one rank has for the KV cache, as a log prints it: {_SIZE}")
    ] = "",
    gpu: Annotated[
        str, typer.Option("--gpu", help="The card: L4, 'A100 80GB'. What is left for the KV cache is then worked out.")
    ] = "",
    gpu_memory: Annotated[
        str, typer.Option("--gpu-memory", help=f"The card's memory, instead of the table's: {_SIZE}")
    ] = "",
    utilization: Annotated[
        float | None, typer.Option("--gpu-memory-utilization", help="A share; the release's default when left out.")
    ] = None,
    free: Annotated[str, typer.Option("--free-memory", help="What is free on the card at start.")] = "",
    others: Annotated[str, typer.Option("--other-memory", help="What other processes hold on the card.")] = "",
    weights: Annotated[str, typer.Option("--weights", help="As a log prints it, instead of an estimate.")] = "",
    activation: Annotated[str, typer.Option("--activation", help="The profile run's peak, likewise.")] = "",
    non_torch: Annotated[str, typer.Option("--non-torch", help="Memory outside torch, likewise.")] = "",
    graphs: Annotated[str, typer.Option("--graphs", help="CUDA graphs, likewise.")] = "",
    eager: Annotated[bool, typer.Option("--enforce-eager", help="No CUDA graphs.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Safetensors or GGUF: a file, an index or a folder; only headers are read."),
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="The model's type; auto is the config's.")] = "auto",
    kv_cache_dtype: Annotated[str, typer.Option("--kv-cache-dtype", help="The type of the KV cache.")] = "auto",
    block_size: Annotated[
        int | None, typer.Option("--block-size", help="Tokens a block; the release's choice when left out.")
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option("--max-model-len", help="Tokens of the longest request; the config's when left out.")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option("--max-num-batched-tokens", help="Tokens a step.")
    ] = None,
    max_num_seqs: Annotated[int | None, typer.Option("--max-num-seqs", help="Sequences a step.")] = None,
    tp: Annotated[int, typer.Option("--tp", "--tensor-parallel-size", help="Tensor parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option("--pp", "--pipeline-parallel-size", help="Pipeline stages.")] = 1,
    dcp: Annotated[int, typer.Option("--decode-context-parallel-size", help="Ranks that share a context.")] = 1,
    pcp: Annotated[int, typer.Option("--prefill-context-parallel-size", help="The same, for prefill.")] = 1,
    num_gpu_blocks_override: Annotated[
        int | None, typer.Option("--num-gpu-blocks-override", help="Blocks instead of what the memory gives.")
    ] = None,
    no_hybrid: Annotated[
        bool,
        typer.Option("--disable-hybrid-kv-cache-manager", help="Charge layers with a window like full ones."),
    ] = False,
    engine: Annotated[
        EngineName | None, typer.Option("--engine", help="The engine, where a release has two.", case_sensitive=False)
    ] = None,
    attention_backend: Annotated[
        str, typer.Option("--attention-backend", help="It decides the block size of models with MLA.")
    ] = "",
    started_as: Annotated[UsageName, typer.Option("--started-as", help="vllm serve, or the LLM class.")] = (
        UsageName.server
    ),
    format: Annotated[ReplayFormat, typer.Option("--format", "-f", help="Output format.")] = ReplayFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
) -> None:
    """Work out what vLLM's KV cache holds, by the rules of the release: blocks, tokens, concurrency, and if it starts.

    Ends with 0 when the engine starts and serves a request of full length, 1 when it does not, 3 when that cannot be
    told, 2 on a usage error or an unreadable config.

    With --from-log the log's own figures and settings are taken, and MODEL_CONFIG is optional. With --want-len or
    --want-concurrency it ends with 0 when that works as it is, 1 when something must change.

    Examples: `oortriage budget config.json --gpu L4 --vllm 0.17.1 --tp 2`, or from the bytes that a log prints:
    `oortriage budget config.json --vllm 0.17.1 --kv-memory 5GiB --max-model-len 8192`.
    """
    from oortriage.cli import budget_log
    from oortriage.errors import UsageError
    from oortriage.report.budget_plan import plan_report, plan_svg

    wish = budget_log.wish_of(want_len, want_concurrency)
    axes = budget_log.parse_axes(what_if) if what_if else None
    if from_log:
        from oortriage.report.budget_log import log_report

        found = budget_log.report_of(from_log, model, vllm, wish, axes)
        if svg:
            budget_log.write_svg(budget_log.log_svg(found), svg)
        Sink(output).put(log_report(found, format.value, style_for(color, output)))
        raise typer.Exit(found.exit_code)
    if model is None or not vllm:
        raise UsageError("which model and release? oortriage budget config.json --vllm 0.17.1, or --from-log LOG")
    from oortriage.budget.model import read_model
    from oortriage.budget.plan import Settings, prepare
    from oortriage.cli.budget_card import Told, find_card, given, on_card
    from oortriage.kernels.model_config import load_config

    shape = read_model(load_config(model), str(model))
    card = find_card(gpu, gpu_memory)
    settings = Settings(
        version=vllm,
        dtype=dtype,
        kv_dtype=kv_cache_dtype,
        block_size=block_size,
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        tp=tp,
        pp=pp,
        dcp=dcp,
        pcp=pcp,
        hybrid=not no_hybrid,
        engine=engine.value if engine else None,
        attention_backend=attention_backend,
        blocks_override=num_gpu_blocks_override,
        usage=started_as.value,
        card=card.name if card else "",
        total_bytes=card.total.value if card else None,
        capability=card.capability if card else "",
    )
    planned = prepare(shape, settings)
    if card:
        told = Told(
            utilization=utilization,
            kv_memory=kv_memory,
            free=free,
            others=others,
            weights=weights,
            activation=activation,
            non_torch=non_torch,
            graphs=graphs,
            eager=eager,
            checkpoint=checkpoint,
        )
        result = on_card(planned, card, told, model)
    else:
        result = given(planned, kv_memory, model)
    solutions, rows = budget_log.wishes(planned, result, wish, axes)
    if svg:
        budget_log.write_svg(plan_svg(result), svg)
    Sink(output).put(plan_report(result, solutions, rows, format.value, style_for(color, output)))
    wished = 0 if any(one.kind == "fits" for one in solutions) else 1
    raise typer.Exit(wished if solutions else result.exit_code)
