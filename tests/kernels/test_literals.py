"""Constants are read where they are literals, and nothing is made up where they are not."""

from __future__ import annotations

from oortriage.kernels.libraries.literals import literal_constants


def test_literals_only() -> None:
    text = "import os\nPAD = -1\nNAMES: tuple = ('a', 'b')\nHOME = os.environ['HOME']\nx = y = 2\na, b = 1, 2\nlater: int\n"
    assert literal_constants(text) == {"PAD": -1, "NAMES": ("a", "b")}
