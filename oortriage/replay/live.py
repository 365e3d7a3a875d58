"""Asks the card that is there: chooses how it is used, runs cells on it, and holds them against the prediction."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache

import msgspec

from oortriage.errors import OortriageError, UsageError
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.replay.cells import Progress
from oortriage.replay.child import run_job
from oortriage.replay.job import Cell, Job, LiveAsk, LiveResult, Mode, Outcome, TimingPlan
from oortriage.replay.selection import Selection

#: Compiling, checking and timing one cell on a card.
CELL_SECONDS = 240.0


class NoCardError(OortriageError):
    """There is no card to run on; the virtual result, which needs none, stands."""


class LocalCard(msgspec.Struct, frozen=True):
    """The card that torch sees."""

    name: str
    capability: tuple[int, int]
    count: int


@lru_cache(maxsize=8)
def local_card(device: int = 0, python: str = sys.executable) -> LocalCard:
    """Ask torch, in a child: asking initialises the driver, and a broken driver may hang or crash.

    Args:
        device: which device.
        python: the interpreter whose torch is asked.

    Raises:
        NoCardError: no torch, no card, or one that does not answer; the message says what is missing.
    """
    code = f"""
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
there = count > {device}
name = torch.cuda.get_device_name({device}) if there else ""
print(json.dumps([name, torch.cuda.get_device_capability({device}) if there else [0, 0], count]))
"""
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter and text)
            [python, "-c", code], capture_output=True, text=True, timeout=180, check=False
        )
    except subprocess.TimeoutExpired as problem:
        raise NoCardError("the GPU did not answer within 180 s") from problem
    except OSError as problem:
        raise NoCardError(f"{python}: cannot be run: {problem}") from problem
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NoCardError(f"a card is used through PyTorch with CUDA: {last}")
    name, capability, count = msgspec.json.decode(done.stdout.strip().splitlines()[-1])
    if not name:
        there = (
            f"there are {count} CUDA devices"
            if count
            else "PyTorch sees no CUDA device (a CPU build, no driver, or none visible)"
        )
        raise NoCardError(f"--live: no device {device}: {there}")
    return LocalCard(name, (capability[0], capability[1]), count)


def choose_mode(wanted: str, card: LocalCard, target: Target) -> Mode:
    """Run natively when the card's capability is the failing one, else let it play that card.

    Raises:
        UsageError: neither is possible.
    """
    own = card.capability[0] * 10 + card.capability[1]
    if target.backend != "cuda":
        raise UsageError(f"--live runs NVIDIA targets; {target.name} is AMD's")
    if wanted == "native":
        return "native"
    if wanted not in ("auto", "emulated", ""):
        raise UsageError(f"--live {wanted}: write native or emulated")
    if wanted != "emulated" and own == int(target.arch):
        return "native"
    if own < int(target.arch):
        raise UsageError(f"{card.name} (sm_{own}) cannot play {target.name}: only an older card can be played")
    return "emulated"


class LiveRun(msgspec.Struct, frozen=True):
    """Cells on a card, and how the card was used: ``card`` is the target and limit that held."""

    mode: Mode
    device: str
    card: Card
    results: list[LiveResult]
    notes: list[str] = []


def run_live(
    chosen: Selection,
    cells: list[Cell],
    wanted: str,
    *,
    device: int = 0,
    check: bool = True,
    time: bool = True,
    plan: TimingPlan | None = None,
    progress: Progress | None = None,
    cell_seconds: float = CELL_SECONDS,
) -> LiveRun:
    """Run cells on the local card.

    Args:
        chosen: kernel, failing card, source.
        cells: shapes and overrides; one that is there again is timed again, and not checked again.
        wanted: ``auto``, ``native`` or ``emulated``.
        device: which device.
        check: hold outputs against float64.
        time: time batches of a serving engine's size.
        plan: which batches, and how often; None for the usual ones.
        progress: called with (done, all).
        cell_seconds: time limit for one cell.

    Raises:
        NoCardError: there is none.
        UsageError: the card cannot do it, or the kernel has no inputs to run with.
    """
    card = local_card(device)
    mode = choose_mode(wanted, card, chosen.card.target)
    used = chosen.card
    notes = []
    if mode == "native" and card.capability[0] * 10 + card.capability[1] != int(used.target.arch):
        used = _as_it_is(card, chosen)
        notes.append(f"run natively on {card.name}: its own target and limit, not those of {chosen.card.name}")
    if mode == "emulated":
        notes.append(
            f"{card.name} plays {chosen.card.name} ({used.target.name}, limit {used.limit_bytes:,} bytes): bytes and "
            "arithmetic are that card's, times are not; only their ratios mean something"
        )
    found: dict[int, LiveResult] = {}

    def done(outcome: Outcome) -> None:
        found[outcome.cell] = outcome.live or _lost(outcome, card, mode)
        if progress:
            progress(len(found), len(cells))

    ask = LiveAsk(mode, device, check, time, plan=plan or TimingPlan())
    job = Job(chosen.kernel, used, tuple(cells), chosen.source, live=ask)
    run_job(job, chosen.env, done, cell_seconds=cell_seconds)
    return LiveRun(mode, card.name, used, [found[index] for index in range(len(cells))], notes)


def _as_it_is(card: LocalCard, chosen: Selection) -> Card:
    from oortriage.gpu.specs import by_capability

    own = by_capability(f"{card.capability[0]}.{card.capability[1]}")
    if own is None:
        raise UsageError(f"capability {card.capability[0]}.{card.capability[1]} of {card.name} is not in the table")
    arch = card.capability[0] * 10 + card.capability[1]
    return msgspec.structs.replace(
        chosen.card, target=Target("cuda", arch, 32), limit_bytes=own.shared_per_block, name=card.name
    )


def _lost(outcome: Outcome, card: LocalCard, mode: Mode) -> LiveResult:
    """Make a result of a child that died or hung: a kill, a crash of the driver, a kernel without end."""
    reason = outcome.failure.message if outcome.failure else "no result"
    return LiveResult("failed", card.name, mode, message=reason)
