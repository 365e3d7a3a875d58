"""What the driver of a card that is not there answers."""

from __future__ import annotations

import pytest

from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card, VirtualDriver, call_once
from tests.gpu.virtual.compiling import MI300, T4

CARD = Card(T4, 65_536, name="Tesla T4", multiprocessors=40, registers=65_536)


@pytest.mark.parametrize(
    ("target", "capability"),
    [
        (Target("cuda", 75, 32), (7, 5)),
        (Target("cuda", 90, 32), (9, 0)),
        (Target("cuda", 120, 32), (12, 0)),
        (Target("hip", "gfx90a", 64), (9, 0)),
        (Target("hip", "gfx942", 64), (9, 4)),
        (Target("hip", "gfx1100", 32), (11, 0)),
        (Target("hip", "gfx1201", 32), (12, 0)),
    ],
)
def test_the_capability_is_that_of_the_target(target: Target, capability: tuple[int, int]) -> None:
    card = Card(target, 65_536)
    assert card.capability == capability
    assert VirtualDriver(card, 0).get_device_capability(0) == capability


def test_wrappers_are_told_the_limits() -> None:
    properties = VirtualDriver(CARD, 3).utils.get_device_properties(0)
    assert properties["max_shared_mem"] == 65_536
    assert properties["max_num_regs"] == 65_536
    assert properties["multiprocessor_count"] == 40
    assert properties["warpSize"] == 32
    assert all(isinstance(value, int) and value > 0 for value in properties.values())


def test_the_device_stays_the_one_that_kernels_are_kept_by() -> None:
    driver = VirtualDriver(CARD, 3)
    driver.set_current_device(0)
    assert driver.get_current_device() == 3
    assert driver.get_current_stream(3) == 0
    assert driver.is_active()


def test_nothing_is_loaded_or_cleared() -> None:
    driver = VirtualDriver(CARD, 0)
    driver.utils.unload_module(object())
    driver.clear_cache(driver.get_empty_cache_for_benchmark())
    assert driver.map_python_to_cpp_type("i32") == "i32"
    assert driver.assemble_tensormap_to_arg(None, (1, 2)) == (1, 2)


def test_the_target_is_triton_s_own() -> None:
    compiler = pytest.importorskip("triton.backends.compiler")
    assert VirtualDriver(CARD, 0).get_current_target() == compiler.GPUTarget("cuda", 75, 32)
    assert VirtualDriver(Card(MI300, 65_536), 0).get_current_target() == compiler.GPUTarget("hip", "gfx942", 64)


def test_tensors_lie_on_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    driver = VirtualDriver(CARD, 0)
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert driver.get_device_interface() is torch.cuda


@pytest.mark.parametrize(("quantiles", "times"), [((0.5, 0.2, 0.8), [1.0] * 3), (None, [1.0])])
def test_a_kernel_is_called_once_instead_of_measured(quantiles: tuple[float, ...] | None, times: list[float]) -> None:
    calls: list[int] = []
    assert VirtualDriver(CARD, 0).get_benchmarker() is call_once
    assert call_once(lambda: calls.append(1), quantiles=quantiles, warmup=25, rep=100) == times
    assert calls == [1]
