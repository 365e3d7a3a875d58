"""``--live`` on the command line, on a machine without a card."""

from __future__ import annotations

import pytest

from oortriage.cli.selectors import with_live_value


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        (["reproduce", "x.log", "--live"], ["reproduce", "x.log", "--live=auto"]),
        (["reproduce", "--live", "x.log"], ["reproduce", "--live=auto", "x.log"]),
        (["reproduce", "--live", "native", "x.log"], ["reproduce", "--live", "native", "x.log"]),
        (["reproduce", "--live=emulated"], ["reproduce", "--live=emulated"]),
        (["reproduce", "--live", "--device", "1"], ["reproduce", "--live=auto", "--device", "1"]),
        (["run", "--", "serve", "--live"], ["run", "--", "serve", "--live"]),
    ],
)
def test_a_bare_option_means_auto(given: list[str], whole: list[str]) -> None:
    assert with_live_value(given) == whole
