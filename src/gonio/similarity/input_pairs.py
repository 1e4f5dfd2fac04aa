"""How alike two inputs are to a model, by what it predicts from them, beside the cosine of their states.

    centred-logit distance    root mean square over labels of the difference of the two inputs' (centred) logits
    divergence                Jensen-Shannon divergence of the two predictions, in bits: 0 the same, 1 nothing in common
                              (softmax: of the two distributions; sigmoid: the mean over labels)

Both are functions of predictions. The cosine of states is not: any invertible map of states, undone in the rows,
changes it, and with a bias any shift f + u, undone by b - W u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.core.states import States

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PAIRS = 64


@dataclass(frozen=True, eq=False, repr=False)
class InputsAlike:
    """Pairs of inputs, and how alike each pair is.

    agreement   rank correlation, over the pairs, of the cosine with the divergence turned round; NaN below three pairs
    gauge       what may change of the states while the model does not, in words
    """

    pairs: Int[np.ndarray, "pairs 2"]
    cosine: Float[np.ndarray, " pairs"]
    distance: Float[np.ndarray, " pairs"]
    divergence: Float[np.ndarray, " pairs"]
    agreement: float
    gauge: str

    def __post_init__(self) -> None:
        for a in (self.pairs, self.cosine, self.distance, self.divergence):
            a.flags.writeable = False

    def columns(self) -> dict[str, list[Any]]:
        """One row a pair."""
        return {
            "first": self.pairs[:, 0].tolist(),
            "second": self.pairs[:, 1].tolist(),
            "cosine": self.cosine.tolist(),
            "centred_logit_distance": self.distance.tolist(),
            "divergence_bits": self.divergence.tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "agreement": None if self.agreement != self.agreement else self.agreement,
            "gauge": self.gauge,
        } | self.columns()

    def __repr__(self) -> str:
        return (
            f"InputsAlike({len(self.pairs):,} pairs)\n"
            f"  divergence {self.divergence.min():.3f} to {self.divergence.max():.3f} bits; cosines order the pairs "
            f"alike to {self.agreement:.2f}"
        )


def inputs_alike(head: Head, embeddings: Any, pairs: Any = None) -> InputsAlike:
    """How alike inputs are to a model: by its predictions, beside the cosine of the states.

    >>> head = Head([[1.0, 0], [0, 1], [-1, -1]], link="softmax")
    >>> inputs_alike(head, [[2.0, 0], [20, 0], [0, 2]], [(0, 1), (0, 2)]).cosine
    array([1., 0.])
    """
    if head.link not in ("softmax", "sigmoid"):
        raise GonioError(f"inputs_alike: the link is {head.link!r}, which gives no probabilities to compare.")
    F = checks.embeddings(embeddings, head.shape[1], "inputs_alike").astype(np.float64)
    p = np.array(list(_all(len(F)) if pairs is None else pairs), dtype=np.int64).reshape(-1, 2)
    if not len(p) or p.min() < 0 or p.max() >= len(F):
        raise GonioError(f"inputs_alike: pairs of the {len(F):,} inputs are needed, counted from 0.")
    length = np.linalg.norm(F, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.einsum("ij,ij->i", F[p[:, 0]], F[p[:, 1]]) / (length[p[:, 0]] * length[p[:, 1]])
    distance, divergence = np.empty(len(p)), np.empty(len(p))
    for s, e in spans(len(p), PAIRS):
        some, back = np.unique(p[s:e], return_inverse=True)
        back = back.reshape(-1, 2)
        z = head.logits(F[some])
        prob = head.probabilities(F[some])
        if head.link == "softmax" and head.softcap is None:
            z = z - z.mean(axis=1, keepdims=True)
        distance[s:e] = np.sqrt(((z[back[:, 0]] - z[back[:, 1]]) ** 2).mean(axis=1))
        divergence[s:e] = _divergence(prob[back[:, 0]], prob[back[:, 1]], head.link == "sigmoid")
    fine = np.isfinite(cosine)
    varies = fine.sum() > 2 and np.ptp(cosine[fine]) > 0 and np.ptp(divergence[fine]) > 0
    agreement = float(spearman(cosine[fine], -divergence[fine])) if varies else float("nan")
    return InputsAlike(p, cosine, distance, divergence, agreement, _gauge(head))


def last_of_each(states: States) -> tuple[Float[np.ndarray, "documents dim"], Int[np.ndarray, " documents"]]:
    """The last state of each document, and the document."""
    order = np.lexsort((states.positions, states.documents))
    of = states.documents[order]
    last = order[np.append(np.flatnonzero(np.diff(of)), len(of) - 1)]
    return np.asarray(states.F[np.sort(last)]), states.documents[np.sort(last)]


def _all(count: int):
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _divergence(p: np.ndarray, q: np.ndarray, each: bool) -> np.ndarray:
    both = (_terms(p, q) + _terms(1 - p, 1 - q)).mean(axis=1) if each else _terms(p, q).sum(axis=1)
    return np.clip(both, 0, 1)


def _terms(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Half of p log2(p / m) + q log2(q / m), m the mean of the two; 0 log 0 is 0."""
    m = (p + q) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return 0.5 * (np.where(p > 0, p * np.log2(p / m), 0) + np.where(q > 0, q * np.log2(q / m), 0))


def _gauge(head: Head) -> str:
    shift = " and any vector added to all of them, taken up by the bias," if head.bias is not None else ""
    return f"any invertible map of the states, undone in the rows,{shift} changes their cosines and no prediction"
