"""Have names and frequencies to do with who is nearest? Against labels dealt anew, freely and within frequency."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gonio.studies.study import Measured

DEALS = 499
BINS = 10
LEAST = 60  # labels whose names say something


def label_meaning(
    labels: tuple[str, ...] | None, near: np.ndarray, frequency: np.ndarray, rng: np.random.Generator
) -> list[Measured]:
    """Shares of labels whose nearest is spelled or as frequent alike, beside what dealt labels give, with its 95 %."""
    rank = np.argsort(np.argsort(frequency, kind="stable"), kind="stable")
    decile = rank * BINS // len(rank)
    out = list(_beside("nearest of the same tenth of frequency", decile, near, rng))
    if labels is None:
        return out
    begins = np.array([beginning(x) for x in labels])
    known = begins != ""
    if known.sum() < LEAST:
        return out
    codes = np.unique(begins, return_inverse=True)[1]
    codes = np.where(known, codes, -1 - np.arange(len(codes)))  # a name that says nothing is like no other
    out += _beside("nearest spelled alike", codes, near, rng)
    out += list(_beside("nearest spelled alike", codes, near, rng, within=decile))[1:]
    return out


def beginning(label: str) -> str:
    """The first three letters of a label, whatever its case and its tokenizer's space mark; empty for others.

    >>> beginning(" Dogs"), beginning("dog"), beginning("..")
    ('dog', 'dog', '')
    """
    letters = re.sub(r"[^a-z]", "", label.lower().replace("Ġ", "").replace("▁", ""))
    return letters[:3] if len(letters) >= 3 else ""


def _beside(name: str, codes: np.ndarray, near: np.ndarray, rng: np.random.Generator, within: np.ndarray | None = None):
    """The share of labels whose nearest has the same code, and the same when codes are dealt anew."""
    seen = float((codes == codes[near]).mean())
    deal: Callable[[], np.ndarray] = lambda: rng.permutation(len(codes))  # noqa: E731
    if within is not None:
        groups = [np.flatnonzero(within == g) for g in np.unique(within)]

        def deal() -> np.ndarray:
            order = np.arange(len(codes))
            for g in groups:
                order[g] = rng.permutation(g)
            return order

    null = np.array([float((c == c[near]).mean()) for c in (codes[deal()] for _ in range(DEALS))])
    low, high = np.quantile(null, [0.025, 0.975])
    p = float((1 + (null >= seen).sum()) / (1 + DEALS))
    how = "within frequency" if within is not None else "freely"
    yield Measured(name, seen)
    yield Measured(f"{name}, dealt {how}", float(null.mean()), float(low), float(high), f"{DEALS} deals; p {p:.3f}")
