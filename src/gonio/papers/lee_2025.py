"""Lee et al. 2025: do the geometries of two models' token embeddings agree?"""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.diagnostics.agreement_of_heads import Agreement, agreement
from gonio.gauge.transforms import Linear, Translation
from gonio.papers.comparison import Picture, Reproduction, alone, holds

WHERE = {"function": "gonio.diagnostics.agreement_of_heads.agreement", "test": "tests/diagnostics"}

RECORDED = "stored cosines and logits: PP-OCRv3 and v4 0.808, 0.441; SmolLM2 and a copy of 4 bits 0.996, 0.763"


def one_model_twice(seed: int = 0) -> tuple[Head, Head, np.ndarray, np.ndarray]:
    """A softmax model and the same model in other coordinates, with their embeddings of the same inputs."""
    rng = np.random.default_rng(seed)
    W, F = rng.normal(size=(150, 12)) @ np.diag(np.linspace(3, 0.3, 12)), rng.normal(size=(400, 12))
    a = Head(W, link="softmax")
    M = np.eye(12) + rng.normal(size=(12, 12))
    turn = Linear(M)
    b = Translation(6 * rng.normal(size=12)).apply(turn.apply(a))
    return a, b, F, turn.embeddings(F)


def reproduce() -> Reproduction:
    """Correlations of similarity matrices for raw, centred, whitened and logit similarity, against random gauges."""
    a, b, Fa, Fb = one_model_twice()
    found = agreement(a, b, embeddings=(Fa, Fb))
    raw, logit = _row(found, "raw"), _row(found, "logit")
    rng = np.random.default_rng(5)
    other = Head(rng.normal(size=(150, 12)), link="softmax")
    apart = agreement(a, other, embeddings=(Fa, rng.normal(size=(400, 12))))
    return Reproduction(
        "lee-2025",
        "Lee et al. 2025, Shared global and local geometry of language model embeddings",
        (
            holds(
                "One model in two coordinate systems: the correlation of raw cosine matrices is far from 1",
                raw < 0.9,
                round(raw, 3),
                **WHERE,
            ),
            holds("... and that of logit similarity is 1", logit > 1 - 1e-6, round(logit, 9), **WHERE),
            holds(
                "Two unrelated models: logit similarity does not correlate",
                abs(_row(apart, "logit")) < 0.1,
                round(_row(apart, "logit"), 3),
                **WHERE,
            ),
            alone(
                "Correlation per pair of public models",
                RECORDED,
                why=(
                    "printed for pairs of models whose weights are behind a hub; run on other pairs instead, recorded "
                    "in docs/findings.md: gonio study geometry runs them again"
                ),
                **WHERE,
            ),
        ),
        (
            Picture(
                "agreement",
                "The same model twice: points as given, bars over random equivalent forms.",
                lambda fig: _draw(fig, found),
                (6, 3.6),
            ),
        ),
        "gonio.diagnostics.agreement(gonio.load(A), gonio.load(B))",
    )


def _row(found: Agreement, kind: str) -> float:
    return next(float(r.correlation) for r in found.rows if r.kind == kind)


def _draw(fig: Any, found: Agreement) -> None:
    found.plot(fig.subplots())
