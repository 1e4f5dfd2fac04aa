"""Damage for files: seeded, and mostly where headers are."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import gonio

MB = 1 << 20


def mutations(raw: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """`count` damaged copies of a file: flipped bytes, words of all ones or zeros, cuts, repeats and splices."""
    rng = np.random.default_rng(seed)
    size = len(raw)

    def place() -> int:
        where = rng.random()
        near = min(size, 4096)
        if where < 0.6:
            return int(rng.integers(near))
        return size - 1 - int(rng.integers(near)) if where < 0.8 else int(rng.integers(size))

    for _ in range(count):
        out = bytearray(raw)
        kind = rng.integers(7)
        if kind == 0:
            for _ in range(int(rng.integers(1, 6))):
                out[place()] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            at = place()
            out[at : at + 8] = b"\xff" * len(out[at : at + 8])
        elif kind == 2:
            at = place()
            out[at : at + 8] = b"\0" * len(out[at : at + 8])
        elif kind == 3:
            del out[place() :]
        elif kind == 4:
            at = place()
            out[at:at] = out[at : at + int(rng.integers(1, 64))]
        elif kind == 5:
            at = place()
            del out[at : at + int(rng.integers(1, 64))]
        else:  # a number in a text header, made absurd
            digits = [i for i in range(min(size, 4096)) if 48 <= out[i] < 58]
            if digits:
                out[digits[int(rng.integers(len(digits)))]] = 48 + int(rng.integers(10))
                at = digits[int(rng.integers(len(digits)))]
                out[at:at] = b"9" * int(rng.integers(1, 12))
        yield bytes(out)


def survives(
    path: Path, raw: bytes, count: int, *, seed: int = 0, seconds: float = 20, room: int = 64 * MB, **options
) -> None:
    """Each damaged copy gives a head or a GonioError of one line: no crash, no hang, no surprise allocation."""
    told = 0
    for i, broken in enumerate(mutations(raw, count, seed)):
        path.write_bytes(broken)
        began = time.monotonic()
        tracemalloc.start()
        try:
            head = gonio.load(path, **options)
            assert np.isfinite(head.norms).all()
        except gonio.GonioError as e:
            assert "\n" not in str(e), f"mutation {i}: {e}"
            told += 1
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < room + 8 * len(raw), f"mutation {i} of {path.name} allocated {peak:,} bytes"
        assert time.monotonic() - began < seconds, f"mutation {i} of {path.name} hung"
    assert told > 0, "no mutation was noticed: the damage is too small to test anything"
