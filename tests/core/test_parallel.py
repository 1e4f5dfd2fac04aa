"""Work in blocks and threads."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info

from gonio.core.parallel import batches, in_threads, one_blas_thread


def blas_threads() -> set[int]:
    return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_again_after():
    with one_blas_thread():
        pass  # the libraries are found
    before = blas_threads()
    with one_blas_thread(), one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before
    assert in_threads(lambda k: (k, *blas_threads()), range(3))[2][0] == 2
    assert blas_threads() == before


def test_work_in_threads_comes_back_in_order():
    assert in_threads(lambda k: float(np.sum(np.arange(k))), [3, 1, 2]) == [3.0, 0.0, 1.0]


def test_batches_hold_every_item_in_order():
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []
