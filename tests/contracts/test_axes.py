"""The check of declared axes reaches every array that gonio gives out, and fails where one is wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from jaxtyping import Float

from gonio.core.head import Head
from tests import array_axes
from tests.conftest import COUNTS


def test_every_declared_array_is_checked():
    assert COUNTS["declared"] == COUNTS["wrapped"] > 150


def test_no_module_holds_an_unchecked_function_by_name():
    modules = [m for n, m in sys.modules.items() if n.startswith("gonio.")]
    for module in modules:
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", "").startswith("gonio."):
                unchecked = array_axes.declared(value) is not None and not hasattr(value, "__wrapped__")
                assert not unchecked, f"{module.__name__}.{name}"


def test_a_wrong_axis_is_seen():
    def wrong() -> Float[np.ndarray, "points dim"]:
        return np.zeros(3)

    with pytest.raises(AssertionError, match="wrong gave"):
        array_axes.checked(wrong)()
    assert Head([[1, 2], [3, 4]], link="softmax").norms.shape == (2,)
