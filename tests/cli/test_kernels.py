"""``oortriage kernels``: the list, one recipe's page, and a name there is not."""

from __future__ import annotations

import json

from tests.cli.conftest import Run, complained


def test_the_list(run: Run) -> None:
    done = run("kernels")
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"reference.attention", "vllm.unified_attention"} <= set(names)
    assert [one["name"] for one in json.loads(run("kernels", "--json").stdout)] == names


def test_one_recipe(run: Run) -> None:
    done = run("kernels", "reference.attention")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  --set head_size=128  elements a head\n" in done.stdout
    assert "\n  --vary num_stages=1,2,3\n" in done.stdout
    page = json.loads(run("kernels", "reference.attention", "--json").stdout)
    assert page["name"] == "reference.attention"
    assert {"name", "default", "help", "tries"} <= set(page["parameters"][0])


def test_a_name_there_is_not(run: Run) -> None:
    assert complained(run("kernels", "vllm.unifed_attention")).startswith(
        "oortriage: no kernel 'vllm.unifed_attention'; there are vllm.unified_attention"
    )
