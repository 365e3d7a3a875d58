"""What PyTorch answers about a card that is not there, and that it forgets it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from oortriage.gpu.virtual.driver import Card  # noqa: E402
from oortriage.gpu.virtual.torch_face import torch_sees  # noqa: E402
from tests.gpu.virtual.compiling import MI300, T4  # noqa: E402

CARD = Card(T4, 65_536, name="Tesla T4", multiprocessors=40, memory_bytes=15 << 30)


def answers() -> dict[str, Any]:
    return {**{f"cuda.{name}": one for name, one in vars(torch.cuda).items()}, **vars(torch.version)}


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    before = answers()
    yield
    after = answers()
    assert [name for name in after if after[name] is not before.get(name)] == []


def test_the_card_is_there() -> None:
    with torch_sees(CARD):
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.current_device() == 0
        assert torch.cuda.get_device_capability() == (7, 5)
        assert torch.cuda.get_device_capability(torch.device("cuda", 0)) == (7, 5)
        assert torch.cuda.get_device_name(0) == "Tesla T4"
        assert not torch.cuda.is_current_stream_capturing()
        assert torch.cuda.current_stream().cuda_stream == 0
        torch.cuda.synchronize()
        with torch.cuda.device(0):
            assert torch.empty(1).device.type == "cpu"


def test_its_properties_are_told() -> None:
    with torch_sees(CARD):
        properties = torch.cuda.get_device_properties("cuda")
    assert (properties.major, properties.minor, properties.multi_processor_count) == (7, 5, 40)
    assert (properties.shared_memory_per_block_optin, properties.total_memory) == (65_536, 15 << 30)
    assert (properties.name, properties.warp_size) == ("Tesla T4", 32)


@pytest.mark.parametrize(("built_cuda", "built_hip"), [(None, None), ("12.4", None), (None, "6.3.1")])
def test_the_build_is_that_of_the_card(
    monkeypatch: pytest.MonkeyPatch, built_cuda: str | None, built_hip: str | None
) -> None:
    monkeypatch.setattr(torch.version, "cuda", built_cuda)
    monkeypatch.setattr(torch.version, "hip", built_hip)
    with torch_sees(CARD):
        assert torch.version.cuda
        assert torch.version.hip is None
    with torch_sees(Card(MI300, 65_536)):
        assert torch.version.hip
        assert torch.version.cuda is None
        assert torch.cuda.get_device_properties(0).gcnArchName == "gfx942"
    assert (torch.version.cuda, torch.version.hip) == (built_cuda, built_hip)
    monkeypatch.undo()


def test_after_an_exception_it_is_forgotten() -> None:
    with pytest.raises(KeyError), torch_sees(CARD):
        raise KeyError
