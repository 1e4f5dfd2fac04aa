"""A bound as printed is still a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gonio.core.printed_bounds import at_least, at_most

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, st.integers(1, 6))
def test_a_printed_bound_is_true_and_near(x, digits):
    low, high = float(at_least(x, digits)), float(at_most(x, digits))
    assert low <= x <= high
    assert high - low <= 10.0 ** (1 - digits) * abs(x) * 1.001 + 1e-320 or high == float("inf") or low == -float("inf")
