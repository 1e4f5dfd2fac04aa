"""Compiled code is kept on the disk where it can be, and done without where it cannot."""

from __future__ import annotations

import numba
import pytest
from numba.core import caching

from gonio.core.compiled import njit


def double(x):
    return 2 * x


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_where_no_folder_takes_the_cache_code_is_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit(cache=True)(double)
    assert njit(cache=True, nogil=True)(double)(21) == 42


def test_other_complaints_are_passed_on(monkeypatch):
    def refuse(**_):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="something else"):
        njit(nogil=True)(double)
