"""A direction against the labels: what it does to the predictions, beside its cosine with the rows.

    steering vector v, added to states        effect on label i:  (g_i - m).v            m the mean row (softmax)
    probe v, which reads states by v.f        corr over states of  v.f  and the centred logit of i

The two are different things: a change of convention turns states by M^-T and rows by M, so a steering vector moves as
states do and a probe as rows do. The cosine of either with a row is convention: it moves with M and with the mean row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.states import States, must_fit

if TYPE_CHECKING:
    from jaxtyping import Float

Use = Literal["steering", "probe"]


@dataclass(frozen=True, eq=False, repr=False)
class Direction:
    """What a direction does to every label.

    effect     steering: the change of each (centred) logit when it is added once; probe: the correlation over states
    spread     steering, over states: each effect over the standard deviation of that logit; None without states
    cosine     with each row as stored
    agreement  rank correlation of effect and cosine: how far the cosine misleads
    """

    head: Head
    use: str
    effect: Float[np.ndarray, " labels"]
    spread: Float[np.ndarray, " labels"] | None
    cosine: Float[np.ndarray, " labels"]
    agreement: float

    def __post_init__(self) -> None:
        for a in (self.effect, self.spread, self.cosine):
            if a is not None:
                a.flags.writeable = False

    def columns(self) -> dict[str, list[Any]]:
        """One row a label."""
        out = {"label": list(self.head.labels), "effect": self.effect.tolist(), "cosine": self.cosine.tolist()}
        return out | ({} if self.spread is None else {"effect_over_spread": self.spread.tolist()})

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "use": self.use,
            "agreement": None if self.agreement != self.agreement else self.agreement,
            **self.columns(),
        }

    def __repr__(self) -> str:
        order = np.argsort(-np.nan_to_num(self.effect), kind="stable")
        names = ", ".join(repr(self.head.labels[i]) for i in order[:3])
        return f"Direction({self.use}): raises {names}\n  its cosines order labels alike to {self.agreement:.2f}"


def direction(head: Head, v: Any, embeddings: Any = None, *, use: Use = "steering") -> Direction:
    """What a steering vector or a probe means to the labels of a head, beside its cosine with their rows.

    >>> head = Head([[1, 0.5], [0.5, 1], [-1, 0.4]], link="softmax")
    >>> direction(head, [1.0, 0.0]).effect.round(3)
    array([ 0.833,  0.333, -1.167])
    """
    head.must_score("direction")
    checks.one_of(use, ("steering", "probe"), "direction", "use")
    d = head.shape[1]
    v = checks.vector(v, "direction", "v", d, per="dimension").astype(np.float64)
    if not v.any():
        raise GonioError("direction: the vector is zero, so it does nothing.")
    if isinstance(embeddings, States):
        must_fit(embeddings, head, "direction")
    W = head.W.astype(np.float64)
    length = head.norms * np.linalg.norm(v)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.where(length > 0, W @ v / length, np.nan)
    rows = W - W.mean(axis=0) if head.link == "softmax" and head.softcap is None else W
    spread = None
    if use == "steering":
        if head.softcap is not None:
            raise GonioError(
                "direction: under a soft-cap what a vector adds depends on where it is added; use='probe'."
            )
        effect = rows @ v
        if embeddings is not None:
            sd = np.sqrt(np.einsum("ij,jk,ik->i", rows, _covariance(embeddings, d), rows).clip(0))
            with np.errstate(invalid="ignore", divide="ignore"):
                spread = np.where(sd > 0, effect / sd, np.nan)
    else:
        if embeddings is None:
            raise GonioError("direction: a probe reads states; give some (--text, --embeddings).")
        if head.softcap is not None:
            raise GonioError("direction: a soft-cap bends the logits; probes are compared with heads without one.")
        S = _covariance(embeddings, d)
        mine = float(v @ S @ v)
        sd = np.sqrt(np.einsum("ij,jk,ik->i", rows, S, rows).clip(0) * max(mine, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = np.where(sd > 0, rows @ (S @ v) / sd, np.nan)
    both = np.isfinite(effect) & np.isfinite(cosine)
    varies = both.sum() > 2 and np.ptp(effect[both]) > 0 and np.ptp(cosine[both]) > 0
    agreement = float(spearman(effect[both], cosine[both])) if varies else float("nan")
    return Direction(head, use, effect, spread, cosine, agreement)


def _covariance(embeddings: Any, d: int) -> np.ndarray:
    F = checks.embeddings(embeddings, d, "direction").astype(np.float64)
    F = F - F.mean(axis=0)
    return F.T @ F / len(F)
