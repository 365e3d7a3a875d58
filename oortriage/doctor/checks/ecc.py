"""Errors of the memory itself: ECC counters, rows remapped, pages retired."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.reading import Health
from oortriage.doctor.versions import is_data_center

NAME = "ecc"
TITLE = "ECC errors, remapped rows and retired pages"

_ERRORS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
_PAGES = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html"

UNCORRECTED = Code(
    "DR361",
    "error",
    "uncorrectable memory errors since the driver was loaded",
    "The card met memory errors that ECC could not correct. The program that read them was ended (`uncorrectable ECC "
    "error encountered`); its data were lost.",
    "end what uses the card and reset it, so that the rows are remapped; when they come again, have the card replaced",
    _ERRORS,
)
UNCORRECTED_EVER = Code(
    "DR362",
    "note",
    "uncorrectable memory errors in the card's life",
    "The counter over the card's life is not zero, that since the driver was loaded is.",
    "nothing to do unless it grows; a remapped row does not err again",
    _ERRORS,
)
REMAP_FAILED = Code(
    "DR363",
    "error",
    "a row could not be remapped",
    "The card has no spare row left for one that errs. NVIDIA's criterion for replacing it is met.",
    "take the card out of service and have it replaced",
    _ERRORS,
)
REMAP_PENDING = Code(
    "DR364",
    "warning",
    "a row waits to be remapped",
    "A row that errs is replaced by a spare one at the next reset of the card.",
    "end what uses the card and reset it (`sudo nvidia-smi --gpu-reset -i N`), or restart the machine",
    _ERRORS,
)
RETIRE_PENDING = Code(
    "DR365",
    "warning",
    "pages wait to be retired",
    "Pages with errors are taken out of use when the driver is loaded again.",
    "restart the machine, or load the driver again",
    _PAGES,
)
ECC_OFF = Code(
    "DR366",
    "note",
    "ECC is off",
    "Memory errors go unnoticed. On cards with GDDR memory ECC also takes a part of the memory when it is on.",
    "`sudo nvidia-smi -i N -e 1` and a restart, if results matter more than that memory",
    "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
)
ECC_PENDING = Code(
    "DR367",
    "warning",
    "a change of the ECC mode is pending",
    "The ECC mode asked for takes effect after a restart; memory and counters change with it.",
    "restart the machine",
    "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
)
CODES = (UNCORRECTED, UNCORRECTED_EVER, REMAP_FAILED, REMAP_PENDING, RETIRE_PENDING, ECC_OFF, ECC_PENDING)


def check(machine: Machine) -> Checked:
    """Look at the error counters of each card."""
    reading = machine.nvml
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    findings: list[Finding] = []
    missed = []
    cards = []
    for one in reading.devices:
        health = reading.of(one.index)
        cards.append(_facts(health))
        if health.ecc is None and health.uncorrected_volatile is None:
            missed.append((f"GPU {one.index}: ECC", "the card or its driver does not tell it"))
        findings += _findings(f"GPU {one.index}", one.name, health)
    return Checked({"cards": cards}, tuple(findings), tuple(missed))


def _facts(health: Health) -> dict[str, Any]:
    return {
        "index": health.index,
        "ecc": health.ecc,
        "corrected_volatile": health.corrected_volatile,
        "uncorrected_volatile": health.uncorrected_volatile,
        "corrected_aggregate": health.corrected_aggregate,
        "uncorrected_aggregate": health.uncorrected_aggregate,
        "remapped_correctable": health.remapped[0] if health.remapped else None,
        "remapped_uncorrectable": health.remapped[1] if health.remapped else None,
        "remap_pending": health.remap_pending,
        "remap_failed": health.remap_failed,
        "retired_single_bit": health.retired[0] if health.retired else None,
        "retired_double_bit": health.retired[1] if health.retired else None,
        "retire_pending": health.retire_pending,
    }


def _findings(subject: str, name: str, health: Health) -> list[Finding]:
    findings = []
    if health.uncorrected_volatile:
        findings.append(
            UNCORRECTED.found(subject, f"{name}: {health.uncorrected_volatile} since the driver was loaded")
        )
    elif health.uncorrected_aggregate:
        findings.append(UNCORRECTED_EVER.found(subject, f"{name}: {health.uncorrected_aggregate} in its life"))
    rows = (
        f"{health.remapped[0]} rows remapped after correctable, {health.remapped[1]} after uncorrectable errors"
        if health.remapped
        else "rows"
    )
    if health.remap_failed:
        findings.append(REMAP_FAILED.found(subject, f"{name}: {rows}; one could not be"))
    if health.remap_pending:
        findings.append(REMAP_PENDING.found(subject, f"{name}: {rows}; one waits for a reset"))
    if health.retire_pending:
        findings.append(RETIRE_PENDING.found(subject, f"{name}: pages wait to be retired"))
    if health.ecc is not None and health.ecc_pending is not None and health.ecc != health.ecc_pending:
        findings.append(
            ECC_PENDING.found(
                subject, f"{name}: ECC is {_on(health.ecc)}, and {_on(health.ecc_pending)} after a restart"
            )
        )
    elif health.ecc is False and is_data_center(name):
        findings.append(ECC_OFF.found(subject, f"{name}: ECC is off"))
    return findings


def _on(value: bool) -> str:
    return "on" if value else "off"
