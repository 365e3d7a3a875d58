"""The stand-in for einops against what torch says itself."""

from __future__ import annotations

import pytest

from oortriage.kernels.rearrange import rearrange

torch = pytest.importorskip("torch")


def test_dimensions_are_split_moved_and_merged() -> None:
    tensor = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert torch.equal(rearrange(tensor, "b h n d -> b n (h d)"), tensor.permute(0, 2, 1, 3).reshape(2, 4, 15))
    assert torch.equal(rearrange(tensor, "... p n -> ... (p n)"), tensor.flatten(-2))
    assert torch.equal(rearrange(tensor, "... (p n) -> ... p n", n=5), tensor.unflatten(-1, (1, 5)))


def test_dimensions_of_one_come_and_go() -> None:
    tensor = torch.arange(6).reshape(2, 3)
    assert torch.equal(rearrange(tensor, "h p -> h 1 p 1"), tensor[:, None, :, None])
    assert torch.equal(rearrange(tensor[:, None], "h 1 p -> p h"), tensor.T)


@pytest.mark.parametrize(
    "pattern", ["a b -> b a", "a b c d -> a b c", "(a e) b c d -> a e b c d", "a ... d -> d a ..."]
)
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"fit|keep|open|front"):
        rearrange(torch.empty(2, 3, 4, 5), pattern)
