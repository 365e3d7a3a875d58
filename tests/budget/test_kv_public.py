"""The evidence is what the product computes now, and each figure that does not come out says why."""

from __future__ import annotations

import json
import runpy

import msgspec

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "evidence"


def test_the_written_table_is_what_comes_out() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "kv_public.py"))
    table = msgspec.toml.decode((FOLDER / "kv-public.toml").read_bytes())
    models = {name: script["read_model"](config, name) for name, config in table["models"].items()}
    rows = [row for report in table["report"] for row in script["_rows"](report, models)]
    written = json.loads((FOLDER / "kv-public.json").read_text(encoding="utf-8"))
    assert [msgspec.to_builtins(row) for row in rows] == written["public"]
    assert len({report["url"] for report in table["report"]}) >= 25
    assert all(row.agrees or row.reason for row in rows)
    assert sum(row.agrees for row in rows) / len(rows) > 0.9
    assert all(row["agrees"] for row in written["own"])
