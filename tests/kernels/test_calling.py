"""A wrapper gets the arguments that its release has parameters for."""

from __future__ import annotations

from oortriage.kernels.calling import call_with


def test_what_it_has_no_parameter_for_is_left_out_and_the_result_comes_back() -> None:
    assert call_with(lambda a, b=2: (a, b), {"a": 1, "c": 3}) == (1, 2)
    assert call_with(lambda a, *, b=2: (a, b), {"b": 5, "a": 1}) == (1, 5)
