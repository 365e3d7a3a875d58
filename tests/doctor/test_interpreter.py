"""What is installed, asked without importing it: of a made environment, by this Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.doctor.interpreter import Installed, look, told, torch_build, variables_of
from oortriage.doctor.look_inside import architectures
from oortriage.doctor.outside import Ran, Unread

TYPED = "from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
OLD = "__version__ = '1.13.1+cu117'\ncuda = '11.7'\nhip = None\n"
ENVS = "environment_variables: dict[str, object] = {\n    'VLLM_A': lambda: 1,\n    **other,\n    \"VLLM_B\": lambda: 2,\n}\n"


def package(folder: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {one}" for one in requires),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A torch that cannot be imported, and a vLLM whose import would end the process."""
    torch, vllm = tmp_path / "torch", tmp_path / "vllm"
    (torch / "lib").mkdir(parents=True)
    vllm.mkdir()
    (torch / "__init__.py").write_text("raise SystemExit('torch was imported')")
    (torch / "version.py").write_text(TYPED)
    # Mentions of an architecture in other texts are none.
    (torch / "lib" / "libtorch_python.so").write_bytes(
        b"\x7fELF" + b"\0" * 4096 + b"see sm_80\0" + b"\0sm_75 sm_90 sm_90a compute_120\0" + b"\xff" * 64
    )
    (vllm / "__init__.py").write_text("import os; os._exit(9)")
    (vllm / "envs.py").write_text(ENVS)
    (vllm / "_C.abi3.so").write_bytes(b"\x7fELF")
    (vllm / "_C_stable_libtorch.abi3.so").write_bytes(
        b"\x7fELF" + b"\0" * 5000 + b"libc.so.6\0libcudart.so.13\0" + b"\0" * 50
    )
    package(tmp_path, "torch", "2.11.0", ("triton==3.6.0",))
    package(tmp_path, "vllm", "0.22.1", ("torch==2.11.0",))
    return tmp_path


def asked(folder: Path) -> Installed:
    found = look(sys.executable, {**os.environ, "PYTHONPATH": str(folder)})
    assert isinstance(found, Installed), found
    return found


def test_an_environment(environment: Path) -> None:
    found = asked(environment)
    assert found.torch is not None
    assert (found.torch.version, found.torch.cuda, found.torch.hip) == ("2.11.0+cu130", "13.0", "")
    assert found.torch.architectures == ("sm_75", "sm_90", "sm_90a", "compute_120")
    assert found.cudart == {"vllm": "13"}
    assert found.version("vllm") == "0.22.1"
    assert found.requires["vllm"] == ("torch==2.11.0",)
    assert found.vllm_variables == {"VLLM_A", "VLLM_B"}
    assert found.marker["python_version"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_a_cpu_build_has_no_architectures(environment: Path) -> None:
    (environment / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n")
    found = asked(environment)
    assert found.torch is not None
    assert (found.torch.cuda, found.torch.architectures) == ("", ())


@pytest.mark.parametrize("before", [b"\0", b"std::string ipc_h", b"\xff", b" "])
def test_whatever_stands_before_the_list(tmp_path: Path, before: bytes) -> None:
    """In torch 2.8.0 and 2.9.1 it is another constant, without a zero between."""
    (tmp_path / "lib").mkdir()
    listed = b"sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
    (tmp_path / "lib" / "libtorch_python.so").write_bytes(b"\0" * 99 + before + listed + b"\0sm_90a\0" + b"x" * 99)
    assert architectures(str(tmp_path)) == listed.decode().split()


@pytest.mark.parametrize("content", [b"", b"\0" * 100], ids=["empty", "zeros"])
def test_a_library_without_the_list(environment: Path, content: bytes) -> None:
    (environment / "torch" / "lib" / "libtorch_python.so").write_bytes(content)
    found = asked(environment)
    assert found.torch is not None
    assert found.torch.architectures == ()


def test_two_versions_of_one_package(environment: Path) -> None:
    package(environment / "more", "torch", "2.9.1")
    found = look(sys.executable, {**os.environ, "PYTHONPATH": f"{environment}{os.pathsep}{environment / 'more'}"})
    assert isinstance(found, Installed)
    # The environment of the tests may have a torch of its own beside them.
    assert ("torch", "2.11.0", "2.9.1") in found.twice


def test_metadata_without_a_name_is_passed_over(environment: Path) -> None:
    (environment / "broken-1.0.dist-info").mkdir()
    (environment / "broken-1.0.dist-info" / "METADATA").write_bytes(b"\xff\xfe\0")
    assert asked(environment).version("vllm") == "0.22.1"


def test_no_module_of_the_current_folder_is_used(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (environment / "platform.py").write_text("raise SystemExit('taken from the current folder')")
    monkeypatch.chdir(environment)
    assert isinstance(look(sys.executable, dict(os.environ)), Installed)


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/true", "/bin/cat"])
def test_what_is_no_python(program: str) -> None:
    assert isinstance(look(program), Unread)


def test_an_answer_of_another_shape() -> None:
    found = told(Ran(0, '{"python": 3}\n', "last words\n"))
    assert isinstance(found, Unread)
    assert "last words" in found.reason


@pytest.mark.parametrize(
    ("text", "version", "cuda"),
    [(TYPED, "2.11.0+cu130", "13.0"), (OLD, "1.13.1+cu117", "11.7"), ("", "", ""), ("\0", "", "")],
)
def test_versions_that_torch_states(text: str, version: str, cuda: str) -> None:
    found = torch_build(text)
    assert (found.version, found.cuda) == (version, cuda)


@pytest.mark.parametrize(
    "text", ["", "environment_variables = 3", "def (", "environment_variables = {}", "x = {'A': 1}"]
)
def test_a_table_that_is_not_there(text: str) -> None:
    assert variables_of(text) is None


@given(st.text(max_size=60))
def test_any_text_is_an_answer(text: str) -> None:
    torch_build(text)
    variables_of(text)
