"""Heads and results for the tests of clusters."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

from gonio.core.head import Head


def head(n: int = 1500, d: int = 16, bias: bool = False) -> Head:
    """A head with labels that win and labels that never do, so that every stage of the search has work."""
    rng = np.random.default_rng(7)
    W = rng.standard_normal((n, d)).astype(np.float32)
    W[: n // 3] *= 0.3
    return Head(W, rng.standard_normal(n) if bias else None, link="softmax")


def bytes_of(x) -> bytes:
    """All numbers of a result, in order."""
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{x.shape}".encode() + np.ascontiguousarray(x).tobytes()
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return b"".join(bytes_of(v) for v in vars(x).values() if not isinstance(v, Head))
    if isinstance(x, dict):
        return b"".join(bytes_of(k) + bytes_of(x[k]) for k in sorted(x, key=str))
    if isinstance(x, (tuple, list)):
        return b"".join(map(bytes_of, x))
    return repr(x).encode()


def digest(x) -> str:
    return hashlib.sha256(bytes_of(x)).hexdigest()


def verdicts(result) -> str:
    """Everything that can_win says: verdicts, margins, stages, proofs."""
    proofs = list(result.certificates())
    return digest([result.labels, result.codes, result.margin, result.least_margin, result.stage, proofs])
