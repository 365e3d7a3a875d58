"""Which devices a CUDA program sees: ``CUDA_VISIBLE_DEVICES`` read as the CUDA runtime reads it.

Indices, UUIDs (or a beginning of one that only one device has) and MIG names may stand there; the first
entry that names nothing ends the list, and one that comes twice leaves no device at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

NAME = "CUDA_VISIBLE_DEVICES"


class Visible(msgspec.Struct, frozen=True):
    """The UUIDs that a CUDA program sees, in its order, and the setting in words.

    ``uuids`` is None where nothing is set: then every device is seen. ``notes`` say what was odd.
    """

    uuids: tuple[str, ...] | None
    setting: str
    notes: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True):
    """A device that may be named.

    ``instances`` are the UUIDs of its MIG devices, ``places`` their older names (``GPU-.../1/0``).
    """

    uuid: str
    instances: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


def visible(environment: Mapping[str, str], devices: Sequence[Candidate]) -> Visible:
    """Say which devices are seen.

    Args:
        environment: the variables of the process.
        devices: those the driver has, in the order in which CUDA counts them.
    """
    text = environment.get(NAME)
    if text is None:
        return Visible(None, f"{NAME} is not set: every GPU is seen")
    setting = f"{NAME}={text}"
    entries = [one.strip() for one in text.split(",")] if text.strip() else []
    found: list[str] = []
    for entry in entries:
        uuid = _named(entry, devices)
        if not uuid:
            note = (
                ()
                if entry in ("-1", "NoDevFiles")
                else (f"{entry or 'an empty entry'} names no GPU: the list ends there",)
            )
            return Visible(tuple(found), setting, note)
        if uuid in found:
            return Visible((), setting, (f"{entry} names a GPU a second time: CUDA then sees none",))
        found.append(uuid)
    return Visible(tuple(found), setting)


def _named(entry: str, devices: Sequence[Candidate]) -> str:
    """Return the UUID an entry names; empty when it names none, or more than one."""
    if number := re.match(r"[+-]?[0-9]{1,9}", entry):
        index = int(number.group())
        return devices[index].uuid if 0 <= index < len(devices) else ""
    if entry.startswith("MIG-"):
        every = [one for device in devices for one in device.instances]
        old = dict(pair for device in devices for pair in zip(device.places, device.instances, strict=False))
        found = [one for one in every if one.startswith(entry)] or [old.get(entry.removeprefix("MIG-"), "")]
    elif entry.startswith("GPU-"):
        found = [one.uuid for one in devices if one.uuid.startswith(entry)]
    else:
        found = []
    return found[0] if len(found) == 1 else ""
