"""Materials and documents made by hand: everything run, and the same text in every field."""

from __future__ import annotations

from typing import Any

from oortriage.fix.engine.run import EngineRun
from oortriage.fix.impact import Impact
from oortriage.fix.verify import Layer, Verification
from oortriage.ledger.allocation import Buffer
from oortriage.report.document import Code, Document, Figure, Items, Paragraph, Section, SectionKey, Table
from oortriage.report.material import Material
from tests.report._made import filled
from tests.report.test_replay import experiment, reproduction

KEYS: tuple[SectionKey, ...] = SectionKey.__args__  # type: ignore[attr-defined]


def verification(text: str = "passed as it should", **fields: Any) -> Verification:
    base: dict[str, Any] = {
        "schema_version": 1, "rule": "tile16", "vllm": text, "version": "0.17.1", "applied": True, "verified": True,
        "layers": [
            Layer("policy", "passed", text), Layer("bytes", "passed", text), Layer("kernel", "failed", text),
            Layer("engine", "not_run", "needs --engine"), Layer("cost", "not_run", text),
        ],
        "impact": [Impact("T4", "sm_75", "float32", 256, 0, "prefill", 65_536, 81_920, 49_152, 16, True, "TILE_SIZE 32 -> 16")],
        "notes": [text],
        "engine": [
            EngineRun("control", "core", "out_of_resources", "request", 1, required_bytes=81_920, limit_bytes=65_536, fingerprint="v1-4179a256e6a5"),
            EngineRun("file", "core", "generated", "done", 0, tokens=[[1, 2], [3]], seconds={"start": 21.0}),
            EngineRun("plugin", "core", "failed", "start", 1, detail=text, warnings=[text]),
        ],
    }  # fmt: skip
    return Verification(**{**base, **fields})


def everything(text: str) -> Material:
    """Put one text in every field of a material that can hold words from outside."""
    text = f"a{text}z"
    return Material(
        filled(text),
        reproduction(
            kernel=text, function=text, gpu=text, source=text, settings={text: text}, assumptions=[text], notes=[text],
            buffers=[Buffer(text, "operand", text, (16, 32), text, 81_920, 0, text, 7, 1, text)],
        ),
        experiment(gpu=text, sentence=text, source=text, notes=[text], assumptions=[text]),
        verification(text),
        [text],
        {text: text},
    )  # fmt: skip


def document(text: str) -> Document:
    """Put one text in every field of a document, and begin every line with it."""
    blocks = [
        Paragraph(text), Items([text, text]), Items([text], numbered=True), Table([text, ""], [[text, text], [text]], caption=text),
        Table([text], [[text]]), Code(text, text), Code(text, "", "diff"), Figure("<svg/>", text, text),
    ]  # fmt: skip
    return Document(text, text, [Section(key, text, list(blocks), at) for at, key in enumerate(KEYS)])
