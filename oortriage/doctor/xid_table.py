"""NVIDIA's Xid numbers: what they mean and what NVIDIA says is to be done first.

Numbers and first actions are those of NVIDIA's catalogue for Ampere and later, read 2026-11-30; the words are ours.
A number that is not here is shown as it is, without a meaning.
"""

from __future__ import annotations

from typing import Literal

import msgspec

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (read 2026-11-30)"

#: What is to be done first: ``restart_app``, ``reset_gpu``, ``restart_machine``; ``none``: nothing, it only informs.
Action = Literal["none", "restart_app", "reset_gpu", "restart_machine", "mechanics", "update"]

ACTIONS: dict[Action, str] = {
    "none": "nothing by itself; see the other Xids beside it",
    "restart_app": "start the program again; when it comes back, test the program, then the card",
    "reset_gpu": "end what uses the card and reset it, or restart the machine",
    "restart_machine": "restart the machine (a cold start where a warm one does not help)",
    "mechanics": "check the power cables and the seat of the card",
    "update": "update driver and firmware",
}


class Xid(msgspec.Struct, frozen=True):
    """One number. ``origin``: whose fault it most often is."""

    meaning: str
    action: Action
    origin: Literal["application", "driver", "hardware", "link", "information"]


XIDS: dict[int, Xid] = {
    8: Xid("the GPU stopped processing", "restart_app", "driver"),
    11: Xid("invalid or corrupted push buffer stream", "restart_app", "driver"),
    13: Xid(
        "exception of the compute engine, most often an access out of bounds in a kernel", "restart_app", "application"
    ),
    31: Xid("page fault of the GPU: a kernel touched memory that is not mapped", "restart_app", "application"),
    32: Xid("invalid or corrupted push buffer stream, most often the PCIe link's quality", "restart_app", "hardware"),
    37: Xid("firmware of the driver met an unknown method", "none", "driver"),
    38: Xid("watchdog of the driver's firmware", "none", "driver"),
    39: Xid("exception of copy engine 0", "restart_app", "driver"),
    40: Xid("exception of copy engine 1", "restart_app", "driver"),
    41: Xid("exception of copy engine 2", "restart_app", "driver"),
    43: Xid("a program met a fault of its own and was stopped; the card is healthy", "none", "application"),
    44: Xid("fault during a change of context", "none", "driver"),
    45: Xid("a program's channels were taken down: it was killed, or another Xid came before", "none", "information"),
    46: Xid("the GPU stopped processing", "reset_gpu", "hardware"),
    48: Xid("double-bit ECC error: memory that could not be corrected", "reset_gpu", "hardware"),
    54: Xid("auxiliary power is not connected, or clocks are cut for lack of power", "mechanics", "hardware"),
    62: Xid("the card's micro-controller halted", "reset_gpu", "hardware"),
    63: Xid("a row was remapped or a page retired: recorded for the next reset", "none", "information"),
    64: Xid("a row could not be remapped, or a page not be retired", "reset_gpu", "hardware"),
    66: Xid("illegal access by the driver", "none", "driver"),
    67: Xid("illegal access by the driver", "none", "driver"),
    68: Xid("exception of the video decoder", "restart_app", "application"),
    69: Xid("error of a class of the compute engine", "restart_app", "application"),
    74: Xid("NVLink error, here or at the other end of the link", "reset_gpu", "link"),
    78: Xid("a vGPU could not be started", "update", "driver"),
    79: Xid("the GPU has fallen off the bus: it no longer answers over PCIe", "restart_machine", "hardware"),
    80: Xid("corrupted data were sent to the GPU", "restart_app", "hardware"),
    92: Xid("many single-bit ECC errors, all corrected", "none", "hardware"),
    94: Xid("contained memory error: only the program that met it is lost", "restart_app", "hardware"),
    95: Xid("uncontained memory error: any program on the card may be affected", "reset_gpu", "hardware"),
    108: Xid("translation error at the other end of NVLink", "none", "link"),
    109: Xid("a change of context did not end in time", "reset_gpu", "driver"),
    110: Xid("security fault", "reset_gpu", "hardware"),
    119: Xid("the GSP, the card's own processor, did not answer in time", "reset_gpu", "driver"),
    120: Xid("error in the GSP, the card's own processor", "reset_gpu", "driver"),
    121: Xid("error of the chip-to-chip link", "none", "link"),
    136: Xid("training of an NVLink link failed", "reset_gpu", "link"),
    137: Xid("NVLink privilege error, most often after a fault at the other end", "none", "link"),
    140: Xid("ECC error that could not be recovered", "reset_gpu", "hardware"),
    143: Xid("the card could not be initialised", "reset_gpu", "hardware"),
    144: Xid("NVLink error (SAW)", "reset_gpu", "link"),
    145: Xid("NVLink error (RLW)", "reset_gpu", "link"),
    146: Xid("NVLink error (TLW)", "reset_gpu", "link"),
    147: Xid("NVLink error (TREX)", "none", "link"),
    148: Xid("NVLink error (NVLPW)", "none", "link"),
    149: Xid("NVLink error (NETIR)", "reset_gpu", "link"),
    150: Xid("NVLink error (MSE)", "reset_gpu", "link"),
    154: Xid("the driver says which recovery is needed; its line names it", "none", "information"),
    155: Xid("NVLink error defined by software", "reset_gpu", "link"),
    156: Xid("a resource of the card was retired", "reset_gpu", "hardware"),
    157: Xid("a resource of the card could not be retired", "none", "hardware"),
    158: Xid("fatal time-out of the GPU", "reset_gpu", "hardware"),
}
