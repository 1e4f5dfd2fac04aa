"""Pages of a mapped file leave the process and come back with the same numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gonio.core.mapped_pages import give_back
from gonio.embeddings import table_of


def resident_of_files() -> int:
    """Bytes of mapped files that this process holds in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("RssFile"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is read where Linux writes it")
def test_a_table_read_by_blocks_does_not_stay_in_memory(tmp_path):
    X = np.random.default_rng(0).standard_normal((1 << 20, 32)).astype(np.float32)  # 134 MB
    np.save(tmp_path / "x.npy", X)
    before = resident_of_files()
    total = np.zeros(32)
    for _, block in table_of(str(tmp_path / "x.npy")).blocks():
        total += block.sum(axis=0, dtype=np.float64)
    assert resident_of_files() - before < X.nbytes / 4
    assert np.allclose(total, X.sum(axis=0, dtype=np.float64))


def test_given_back_numbers_read_the_same(tmp_path):
    X = np.arange(100_003, dtype=np.float64)
    X.tofile(tmp_path / "x.raw")
    for offset in (0, 8, 4096, 40_008):  # the array begins anywhere in its file
        a = np.memmap(tmp_path / "x.raw", np.float64, "r", offset)
        for part in (a[:], a[5:60_001], a[::2], a[:3]):
            want = np.array(part)
            give_back(part)
            assert np.array_equal(part, want)


def test_memory_that_is_no_mapped_file_is_left_alone(tmp_path):
    a = np.arange(100_000.0)
    give_back(a)
    assert a[-1] == 99_999
    b = np.memmap(tmp_path / "w.raw", np.float64, "w+", shape=(100_000,))
    b[:] = 7
    give_back(b)
    assert (b == 7).all()  # written, not yet on disk: dropping its pages could lose it
