"""``oortriage demo``: the bundled log, its verdict, no set-up."""

from __future__ import annotations

import json

from tests.cli.conftest import T4, Run


def test_the_demo_tells_the_t4_case(run: Run) -> None:
    """81,920 bytes for one block: FP32, head size 256, tiles of 16 and 32; a T4 has 65,536."""
    done = run("demo", "--format", "json")
    table = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (table["resource"], table["file"]) == ("shared_memory", "vllm-t4.log")
    assert table["numbers"] == {"required_bytes": 81920, "limit_bytes": 65536}
    assert table["facts"]["gpu"]["value"] == "Tesla T4"
    assert sum(term["bytes"] for term in table["bill"]["terms"]) == 81920


def test_the_demo_fits_on_one_screen(run: Run) -> None:
    done = run("demo")
    assert done.returncode == 0
    assert done.stdout.startswith("Shared memory of one block (on the chip)")
    assert len(done.stdout.splitlines()) <= 60


def test_the_demo_can_show_its_log(run: Run) -> None:
    done = run("demo", "--log")
    assert (done.returncode, done.stdout) == (0, T4.read_text(encoding="utf-8"))
