"""What a capsule states, in the words of a diagnosis: figures, card, releases."""

from __future__ import annotations

from oortriage.capture.capsule import Capsule
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis, StatedFact


def stated_by(capsule: Capsule, name: str) -> Diagnosis:
    """Return a diagnosis that says what the capsule says; nothing in it is a guess."""
    facts = {"gpu": capsule.gpu, "compute_capability": capsule.target.name, "kernel": capsule.kernel}
    facts |= {f"{library}_version": version for library, version in capsule.versions.items() if library == "triton"}
    shared = capsule.required_bytes > 0
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        file=name,
        code="",
        title=capsule.sentence,
        resource="shared_memory",
        cause="",
        phase="unknown",
        status="fatal",
        confidence=1.0,
        fingerprint="",
        summary=capsule.sentence,
        numbers={"required_bytes": capsule.required, "limit_bytes": capsule.limit} if shared else {},
        facts={key: StatedFact(value, name, 0, 1.0, "capsule") for key, value in facts.items() if value},
    )


def notes_of(capsule: Capsule) -> list[str]:
    """Say where a capsule's source is from, by hash: replaying it runs that source."""
    kernel = next((one for one in capsule.functions if one.id == capsule.entry), None)
    place = f"{kernel.file} line {kernel.line}" if kernel and kernel.file else "a file that was not named"
    count = len(capsule.functions)
    first = f"captured {capsule.time or 'at a time not told'} from {place}; to build the kernel, the source of its "
    notes = [f"{first}{count} function(s) was run: sha256 {capsule.source_hash}"]
    if not capsule.required_bytes:
        notes.append(f"the capsule's own failure is another resource: {capsule.sentence}; shared memory is computed")
    return notes
