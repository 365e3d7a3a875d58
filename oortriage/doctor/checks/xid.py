"""Xids: what NVIDIA's driver wrote to the kernel's log."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.reading import short_bus
from oortriage.doctor.xid_table import ACTIONS, CATALOGUE, XIDS

NAME = "xid"
TITLE = "Xid messages in the kernel's log"

SERIOUS = Code(
    "DR371",
    "error",
    "an Xid that needs a reset or a restart",
    "The driver reported a fault after which the card must be reset or the machine restarted.",
    "end what uses the card and reset it, or restart the machine; when it comes back, have the card looked at",
    CATALOGUE,
)
PROGRAM = Code(
    "DR372",
    "warning",
    "an Xid that ended a program",
    "The driver ended a program's work on the card: most often a fault of the program, sometimes of the card.",
    "start the program again; when it comes back, run it under compute-sanitizer",
    CATALOGUE,
)
INFORMS = Code(
    "DR373",
    "note",
    "an Xid that informs",
    "NVIDIA's first action for it is none; it matters beside another one.",
    "nothing by itself",
    CATALOGUE,
)
UNKNOWN = Code(
    "DR374",
    "note",
    "an Xid without a meaning here",
    "The number is not in this tool's table; it is shown as it is.",
    "look it up in NVIDIA's catalogue",
    CATALOGUE,
)
SWITCH = Code(
    "DR375",
    "warning",
    "an SXid: a fault of an NVSwitch",
    "The driver of the NVSwitches reported a fault. One that it calls fatal takes the fabric down.",
    "look up the number in the Fabric Manager User Guide; see whether nvidia-fabricmanager runs",
    "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
)
CODES = (SERIOUS, PROGRAM, INFORMS, UNKNOWN, SWITCH)

_XID = re.compile(
    r"NVRM: (?:GPU [^\n]{0,60}?: )?Xid \((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]{5,20})\): (?P<number>\d{1,4})\b"
    r"(?P<rest>[^\n]{0,400})"
)
_SXID = re.compile(r"SXid \((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]{5,20})\): (?P<number>\d{1,6})\b(?P<rest>[^\n]{0,300})")
_ACTION_TOLD = re.compile(r"to 0x[0-9a-fA-F]+ \(([A-Za-z ]{3,40})\)")
#: The driver's names of programs and process numbers say who was hit, and leave with no issue report.
_MOST_KINDS = 200
_ORIGINS = {"application": "program", "driver": "driver", "hardware": "hardware", "link": "link between cards"}


class Trace(msgspec.Struct, frozen=True):
    """One number on one card: how often, and the last line's own words."""

    number: int
    bus: str
    times: int
    words: str


def check(machine: Machine) -> Checked:
    """Look through the kernel's messages."""
    log = machine.kernel_log()
    if isinstance(log, Unread):
        return Checked(not_checked=((TITLE, f"{log.reason}; `--dmesg FILE` reads a saved log"),))
    traces, switches = traces_of(log.text, _XID), traces_of(log.text, _SXID)
    buses = {health.bus: health.index for health in machine.nvml.health if health.bus}
    facts: dict[str, Any] = {
        "read_from": log.found,
        "xids": [{**msgspec.to_builtins(one), "gpu": buses.get(one.bus)} for one in traces],
        "sxids": msgspec.to_builtins(switches),
    }
    findings = [_judged(one, buses) for one in traces]
    for one in switches:
        said = f"SXid {one.number} at {one.bus}, {_times(one.times)}: {one.words}"
        findings.append(SWITCH.found(f"NVSwitch {one.bus}", said))
    return Checked(facts, tuple(findings))


def traces_of(text: str, shape: re.Pattern[str] = _XID) -> list[Trace]:
    """Gather the messages by card and number, in the order in which they first came."""
    found: dict[tuple[str, int], tuple[int, str]] = {}
    for one in shape.finditer(text):
        key = (short_bus(one["bus"]) or one["bus"], int(one["number"]))
        if key not in found and len(found) >= _MOST_KINDS:
            continue
        found[key] = (found.get(key, (0, ""))[0] + 1, one["rest"].strip(" ,\r")[:200])
    return [Trace(number, bus, times, words) for (bus, number), (times, words) in found.items()]


def _judged(one: Trace, buses: dict[str, int]) -> Finding:
    whose = f"GPU {buses[one.bus]}" if one.bus in buses else f"GPU at {one.bus}"
    known = XIDS.get(one.number)
    said = f"Xid {one.number}, {_times(one.times)}"
    if buses and one.bus not in buses:
        said += ", on a card that is not seen here"
    if known is None:
        return UNKNOWN.found(whose, f"{said}: {one.words}")
    said += f": {known.meaning}"
    if known.origin != "information":
        said += f" (most often a matter of the {_ORIGINS[known.origin]})"
    told = _ACTION_TOLD.search(one.words)
    if one.number == 154 and told:
        wanted = told.group(1)
        code = INFORMS if wanted.lower() == "none" else SERIOUS
        return code.found(whose, f"{said}: {wanted}", f"do what the driver says: {wanted}")
    remedy = ACTIONS[known.action]
    if known.action in ("reset_gpu", "restart_machine", "mechanics"):
        return SERIOUS.found(whose, said, remedy)
    if known.action == "none":
        return INFORMS.found(whose, said, remedy)
    return PROGRAM.found(whose, said, remedy)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
