"""The hook in real processes: what it writes, and that the program notices nothing of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from oortriage.capture.capsule import read_capsule
from tests.capture.conftest import FAIL, Programs
from tests.gpu.virtual.compiling import environment


def told(text: str) -> str:
    """A traceback without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


@pytest.mark.parametrize("version", ["", "3.4.0", "3.5.1", "3.9.0"])
def test_a_kernel_that_does_not_fit_leaves_a_capsule(programs: Programs, version: str) -> None:
    folder = environment(version).folder if version else ""
    done = programs.run(FAIL, triton=folder)
    assert done.returncode == 1
    (required,) = re.findall(r"Required: (\d+), Hardware limit: 1000", done.stderr)
    assert "oortriage/capture" not in done.stderr
    (one,) = programs.found()
    assert (one["kernel"], one["module"], one["resource"]) == ("product", "kernels", "shared memory")
    assert (one["required"], one["limit"]) == (int(required), 1000)
    assert one["target"] == {"backend": "cuda", "arch": 75, "warp_size": 32}
    assert one["signature"]["X"] == "*fp16"
    assert one["signature"]["n"] == "i32"
    assert one["signature"]["one"] == "constexpr"
    constants = {tuple(path): value for path, value in one["constants"]}
    assert constants[(3,)] == 1
    assert constants[(5,)] == "settle"
    assert constants[(7,)] == {"dtype": "fp32"}
    assert {tuple(path): value for path, value in one["attributes"]}[(2,)] == [["tt.divisibility", 16]]
    assert (one["options"]["num_warps"], one["options"]["num_stages"]) == (4, 3)
    assert one["arguments"]["n"] == 512
    assert one["arguments"]["X"] == {"type": "Pointer"}
    assert {function["name"] for function in one["functions"]} == {"product", "settle", "larger"}
    assert one["functions"][0]["file"] == "kernels.py"
    assert len(one["functions"][0]["sha256"]) == 64
    assert one["functions"][0]["source"].startswith("def product(")
    if version:
        assert one["versions"]["triton"] == version
    path = next(programs.capsules.glob("*.json"))
    assert read_capsule(str(path)).required_bytes == int(required)
    assert path.stat().st_mode & 0o077 == 0


def test_the_traceback_is_the_same_with_and_without(programs: Programs) -> None:
    plain, hooked = programs.run(FAIL, hooked=False), programs.run(FAIL)
    assert "OutOfResources" in plain.stderr
    assert told(hooked.stderr) == told(plain.stderr)
    assert (hooked.returncode, hooked.stdout) == (plain.returncode, plain.stdout)
    assert programs.found()


def test_a_launch_that_fits_leaves_nothing(programs: Programs) -> None:
    done = programs.run("import card; card.install(1 << 20)\nimport kernels\nkernels.launch()\nprint('done')")
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert not programs.capsules.exists()


def test_the_same_failure_again_is_one_capsule(programs: Programs) -> None:
    again = "try:\n    kernels.launch()\nexcept Exception as e:\n    print(type(e).__name__)\n"
    done = programs.run(f"import card; card.install()\nimport kernels\n{again * 3}")
    assert done.stdout == "OutOfResources\n" * 3
    assert len(programs.found()) == 1


def test_two_kernels_are_two_capsules(programs: Programs) -> None:
    text = "import card; card.install()\nimport kernels\nfor B in (32, 64):\n    try: kernels.launch(B=B)\n    except Exception: pass\n"
    programs.run(text)
    assert len({one["required"] for one in programs.found()}) == 2


class TestAutotuner:
    TUNED = "import card; card.install({limit})\nimport kernels\nkernel = kernels.tuned({limit})\n"
    LAUNCH = (
        "kernel[(1,)](card.Pointer('float16'), card.Pointer('float32'), 512, 1, True, KIND='', DT=kernels.tl.float32)\n"
    )

    @pytest.mark.parametrize("version", ["", "3.4.0"])
    def test_configurations_that_are_only_tried_leave_nothing(self, programs: Programs, version: str) -> None:
        folder = environment(version).folder if version else ""
        text = self.TUNED.format(limit=2500) + self.LAUNCH + "print(kernel.best_config)"
        done = programs.run(text, triton=folder)
        assert done.returncode == 0, done.stderr
        assert "B: " in done.stdout
        assert programs.found() == []

    @pytest.mark.parametrize("version", ["", "3.4.0"])
    def test_when_none_fits_the_one_that_is_launched_is_captured(self, programs: Programs, version: str) -> None:
        folder = environment(version).folder if version else ""
        done = programs.run(self.TUNED.format(limit=10) + self.LAUNCH, triton=folder)
        (required,) = re.findall(r"OutOfResources: .*Required: (\d+)", done.stderr)
        assert [one["required"] for one in programs.found()] == [int(required)]


CHILD = """
import multiprocessing, sys

def work():
    import card; card.install()
    import kernels
    try:
        kernels.launch()
    except Exception as problem:
        print(type(problem).__name__, flush=True)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "fork":
        import kernels
    child = context.Process(target=work)
    child.start()
    child.join()
"""


@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_children_are_captured(programs: Programs, how: str) -> None:
    done = programs.run(CHILD, how)
    assert done.stdout == "OutOfResources\n", done.stderr
    assert len(programs.found()) == 1


class TestUsersOwn:
    def test_sitecustomize_runs_as_it_would(self, programs: Programs) -> None:
        own = programs.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("import sys\nsys.users_own = __file__\n")
        text = "import sys, sitecustomize\nprint(sys.users_own == sitecustomize.__file__, sitecustomize.__file__)"
        done = programs.run(text, paths=(own,))
        assert done.stdout == f"True {own / 'sitecustomize.py'}\n", done.stderr
        assert done.stderr == ""

    def test_it_runs_and_kernels_are_captured_too(self, programs: Programs) -> None:
        own = programs.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("print('own', flush=True)\n")
        assert programs.run(FAIL, paths=(own,)).stdout == "own\n"
        assert len(programs.found()) == 1

    def test_one_that_fails_is_reported_as_python_reports_it(self, programs: Programs) -> None:
        own = programs.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("raise RuntimeError('users own')\n")
        hooked = programs.run("print('on')", paths=(own,))
        plain = programs.run("print('on')", paths=(own,), hooked=False)
        assert hooked.stdout == plain.stdout == "on\n"
        assert hooked.stderr == plain.stderr
        assert "users own" in hooked.stderr

    def test_without_one_importing_it_still_works(self, programs: Programs) -> None:
        assert programs.run("import sitecustomize; print('there')").stdout == "there\n"

    def test_loaders_and_finders_stay_what_they_are(self, programs: Programs) -> None:
        text = (
            "import triton.runtime.errors as e\n"
            "print(type(e.__spec__.loader).__name__, 'exec_module' in vars(e.__spec__.loader))\n"
            "print(e.OutOfResources(2, 1, 'x'), e.OutOfResources.__init__.__name__)\n"
            "import pickle, copy\n"
            "print(copy.deepcopy(pickle.loads(pickle.dumps(e.OutOfResources(2, 1, 'x')))).required)\n"
        )
        done = programs.run(text)
        assert done.stdout.splitlines()[0] == "SourceFileLoader False"
        assert done.stdout.splitlines()[1].endswith("__init__")
        assert done.stdout.splitlines()[2] == "2"
        assert programs.found() == []

    def test_triton_is_not_imported_for_it(self, programs: Programs) -> None:
        done = programs.run("import sys; print([n for n in sys.modules if 'triton' in n or 'capture_capsule' in n])")
        assert done.stdout == "[]\n"


class TestHarmless:
    def test_a_folder_that_cannot_be_made_is_one_line(self, programs: Programs) -> None:
        programs.capsules.write_text("a file stands here")
        plain = programs.run(FAIL, hooked=False)
        done = programs.run(FAIL)
        lines = done.stderr.splitlines()
        ours = [line for line in lines if line.startswith("oortriage capture: failed, nothing was written")]
        assert len(ours) == 1
        assert told("\n".join(line for line in lines if line not in ours)) == told(plain.stderr.rstrip("\n"))
        assert done.returncode == plain.returncode

    def test_a_hook_that_breaks_is_said_once(self, programs: Programs) -> None:
        text = (
            "import sys\nclass Broken:\n    def out_of_resources(self, *a): raise RecursionError('deep')\n"
            "sys.modules['oortriage_capture_source'] = sys.modules['oortriage_capture_capsule'] = Broken()\n"
            "import triton.runtime.errors as e\n"
            "for _ in range(3): print(e.OutOfResources(2, 1, 'x').required)\n"
        )
        done = programs.run(text)
        assert done.stdout == "2\n2\n2\n"
        assert done.stderr.count("oortriage capture: failed") == 1

    def test_a_kernel_without_python_source_is_captured_without(self, programs: Programs) -> None:
        done = programs.run(
            "import card; card.install()\nimport kernels\nfrom triton.compiler import compiler\n"
            "before = compiler.CompiledKernel._init_handles\n"
            "def _init_handles(self):\n    self.src = object()\n    return before(self)\n"
            "compiler.CompiledKernel._init_handles = _init_handles\nkernels.launch()\n"
        )
        assert "OutOfResources: out of resource" in done.stderr
        assert "oortriage capture" not in done.stderr
        (one,) = programs.found()
        assert (one["functions"], one["entry"], one["limit"]) == ([], "", 1000)

    def test_without_the_variable_nothing_is_hooked(self, programs: Programs) -> None:
        env = programs.environment()
        del env["OORTRIAGE_CAPTURE"]
        done = programs.run("import sys; print('oortriage_capture_hook' in sys.modules)", env={"OORTRIAGE_CAPTURE": ""})
        assert done.stdout == "False\n"

    def test_a_changed_module_path_does_not_matter(self, programs: Programs) -> None:
        text = FAIL.replace("import kernels", "import kernels, sys\nsys.path[:] = []\n")
        assert "OutOfResources" in programs.run(text).stderr
        assert len(programs.found()) == 1


SECRETS = ("planted-in-the-environment", "planted-on-the-command-line", "planted-in-a-global", "planted-in-an-argument")


def test_nothing_secret_is_in_a_capsule(programs: Programs) -> None:
    text = FAIL.replace("kernels.launch()", "class Held(card.Pointer, frozen=True):\n    token: str = ''\n"
        "kernels.product[(1,)](Held('float16', 'planted-in-an-argument'), card.Pointer('float32'), 512, 1, True,"
        " KIND='', B=32, DT=kernels.tl.float32)")  # fmt: skip
    env = {"HF_TOKEN": SECRETS[0], "HOME": "/home/planted-in-the-home"}
    done = programs.run(text, f"--api-key={SECRETS[1]}", env=env)
    assert "OutOfResources" in done.stderr
    written = json.dumps(programs.found())
    assert "product" in written
    for secret in (*SECRETS, "planted-in-the-home", str(programs.folder)):
        assert secret not in written


def test_no_half_written_file_stays(programs: Programs) -> None:
    """The name a capsule gets is complete from the first moment it is there."""
    text = (
        "import os\nreal = os.replace\n"
        "def replace(a, b):\n    print(len(open(a).read()) > 500, os.path.exists(b))\n    real(a, b)\n"
        "os.replace = replace\n" + FAIL
    )
    done = programs.run(text)
    assert "True False" in done.stdout
    assert len(programs.found()) == 1


def test_tensors_are_described_by_their_form(programs: Programs) -> None:
    pytest.importorskip("torch")
    text = FAIL.replace("kernels.launch()", "import torch\nx = torch.zeros(64, 128, dtype=torch.float16).t()\n"
        "kernels.product[(1,)](x, torch.zeros(8), 512, 1, True, KIND='', B=32, DT=kernels.tl.float32)")  # fmt: skip
    done = programs.run(text)
    assert "OutOfResources" in done.stderr
    (one,) = programs.found()
    assert one["arguments"]["X"] == {"dtype": "torch.float16", "shape": [128, 64], "strides": [1, 128]}
    assert one["versions"]["torch"]
    assert one["gpu"] == ""


def test_paths_of_this_machine_are_shortened(programs: Programs, tmp_path: Path) -> None:
    programs.run(FAIL)
    assert str(tmp_path) not in json.dumps(programs.found())
