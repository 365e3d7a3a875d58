"""Capsules as data: nothing in one is trusted, and reading one runs nothing of it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oortriage.capture.capsule import is_capsule, read_capsule
from oortriage.capture.environment import capsules_in, capture_folder, capture_variables, hook_folder
from oortriage.errors import InputError

PLAIN: dict[str, Any] = {
    "schema": "oortriage-capsule",
    "schema_version": 1,
    "kernel": "product",
    "resource": "shared memory",
    "required": 81920,
    "limit": 65536,
    "target": {"backend": "cuda", "arch": 75, "warp_size": 32},
    "signature": {"X": "*fp16"},
}


def put(folder: Path, data: Any, name: str = "one.json") -> str:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def test_the_least_there_is(tmp_path: Path) -> None:
    name = put(tmp_path, PLAIN)
    assert is_capsule(name)
    one = read_capsule(name)
    assert (one.required_bytes, one.target.name, one.functions) == (81920, "sm_75", [])
    assert one.sentence == (
        "product needs 81,920 bytes of shared memory a block, sm_75 has 65,536: 16,384 too many"
    )  # fmt: skip


def test_another_resource_has_its_own_unit(tmp_path: Path) -> None:
    one = read_capsule(put(tmp_path, {**PLAIN, "resource": "tensor memory", "required": 600, "limit": 512}))
    assert one.required_bytes == 0
    assert "600 columns of tensor memory" in one.sentence


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"required": "many"},
        {"required": None},
        {"target": {"backend": "metal", "arch": 1, "warp_size": 32}},
        {"functions": [{"name": "f"}]},
        {"constants": [1]},
    ],
)
def test_one_of_another_kind_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    name = put(tmp_path, {**PLAIN, **change})
    assert is_capsule(name)
    with pytest.raises(InputError, match="no capsule of this version"):
        read_capsule(name)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": "SM101"}', "\x00" * 300])
def test_other_files_are_none(tmp_path: Path, text: str) -> None:
    assert not is_capsule(put(tmp_path, text))


def test_neither_is_what_is_not_there(tmp_path: Path) -> None:
    assert not is_capsule(str(tmp_path / "none.json"))
    assert not is_capsule("-")
    assert not is_capsule(str(tmp_path))
    assert not is_capsule("a\0b.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_capsule(str(tmp_path / "none.json"))


def test_the_hash_is_of_what_would_run(tmp_path: Path) -> None:
    function = {"id": "f0", "name": "f", "source": "def f(): pass", "globals": {"A": 1}}

    def digest(name: str, **change: Any) -> str:
        return read_capsule(put(tmp_path, {**PLAIN, "functions": [{**function, **change}]}, name)).source_hash

    assert digest("a.json") == digest("b.json", file="elsewhere.py")
    assert len({digest("a.json"), digest("c.json", source="def f(): 1"), digest("d.json", globals={"A": 2})}) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(PLAIN)), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([*sorted(PLAIN), "functions", "constants", "options", "versions"]),
)
def test_anything_else_is_read_or_refused(tmp_path: Path, value: Any, name: str) -> None:
    with contextlib.suppress(InputError):
        assert read_capsule(put(tmp_path, {**PLAIN, name: value}, "any.json")).sentence


class TestVariables:
    def test_the_hook_goes_first_and_the_users_path_stays(self, tmp_path: Path) -> None:
        found = capture_variables(tmp_path, {"PYTHONPATH": f"/a:{hook_folder()}:/b"})
        assert found == {"OORTRIAGE_CAPTURE": str(tmp_path), "PYTHONPATH": f"{hook_folder()}:/a:/b"}

    def test_without_a_path_no_empty_entry_is_made(self, tmp_path: Path) -> None:
        for own in ({}, {"PYTHONPATH": ""}):
            assert capture_variables(tmp_path, own)["PYTHONPATH"] == str(hook_folder())

    def test_where_capsules_go(self, tmp_path: Path) -> None:
        assert capture_folder(tmp_path, {"OORTRIAGE_CAPTURE": "/x"}) == tmp_path
        assert capture_folder(None, {"OORTRIAGE_CAPTURE": "/x"}) == Path("/x")
        assert capture_folder(None, {}) == Path.cwd() / "oortriage-capsules"

    def test_a_folder_that_is_not_there_holds_none(self, tmp_path: Path) -> None:
        assert capsules_in(tmp_path / "none") == {}
        put(tmp_path, PLAIN)
        (tmp_path / ".half.json.12").touch()
        assert list(capsules_in(tmp_path)) == [tmp_path / "one.json"]
