"""Small files of every kind that gonio reads, damaged by the thousand: an answer or one sentence for each of them."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from gonio.core.errors import GonioError
from gonio.core.unpack_limit import DEFAULT, set_unpack_limit
from tests.mutate import MB, mutations
from tests.parsers import PARSERS, seeds_of

CASES = 22_700  # of all parsers together, in the slow tier
EACH = -(-CASES // len(PARSERS))
SECONDS, ROOM = 10, 160 * MB  # for one small file; 50 MB may be unpacked

pytestmark = pytest.mark.filterwarnings("ignore")  # torch and numpy warn about what they find in damaged files


@pytest.fixture(autouse=True)
def limit():
    yield
    set_unpack_limit(DEFAULT)


def tried(name, folder, count, seed):
    """How many damaged files were read, and how many refused in one sentence; whatever else happens is an error."""
    seeds = seeds_of(name, folder)
    (folder / "work").mkdir()
    for raw in seeds:
        PARSERS[name](folder / "work", raw)  # whole, it is read
    done = refused = 0
    for k, raw in enumerate(seeds):
        for broken in mutations(raw, -(-count // len(seeds)), seed + k):
            began = time.process_time()
            tracemalloc.start()
            try:
                PARSERS[name](folder / "work", broken)
            except GonioError as e:
                assert "\n" not in str(e), f"{name} {done}: {e}"
                refused += 1
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert peak < ROOM, f"{name} {done} allocated {peak:,} bytes: {broken!r}"
            assert time.process_time() - began < SECONDS, f"{name} {done} took long: {broken!r}"
            done += 1
    return done, refused


@pytest.mark.parametrize("name", PARSERS)
def test_a_few_damaged_files_of_every_kind(name, tmp_path):
    done, _ = tried(name, tmp_path, 20, 1)
    assert done >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_thousands_of_damaged_files_of_every_kind(name, tmp_path):
    """22,700 files in all, no traceback, no hang, no blow-up."""
    done, refused = tried(name, tmp_path, EACH, 1000)
    assert done >= EACH
    assert done * len(PARSERS) >= CASES
    assert refused > 0 or name in ("vocabulary lines", "modules")  # any text is a vocabulary; no modules are needed
