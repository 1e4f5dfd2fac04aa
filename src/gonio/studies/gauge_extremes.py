"""How high and how low the correlation of two cosine matrices can be made without changing either model.

    r = Pearson correlation over pairs i < j of  cos(a_i, a_j)  and  cos(b_i, b_j)

A softmax leaves a_i -> M a_i + v open, for each head its own M and v. The lowest r is looked for by L-BFGS from the
stored form and from whitened rows: what is found is reached, what is not found is not excluded. The highest is proven:

    If one label can win in both heads, at inputs x and y, the supremum is 1.

For with M stretching along x and v putting the threshold between that label's score and all others', every row tends
to +-e: that label's cosines tend to -1 and all others to 1, in both heads alike. `split_one` makes such a form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.correlations import pearson
from gonio.studies.centred_logits import correlations

if TYPE_CHECKING:
    from jaxtyping import Float

EPS = float(np.finfo(float).eps)
STRETCH = 1e4  # how many times longer rows are along the split than across it


@dataclass(frozen=True, eq=False)
class EquivalentForm:
    """An equivalent form of some rows: rows @ M.T + v, with M of full rank on their differences."""

    M: Float[np.ndarray, "dim dim"]
    v: Float[np.ndarray, " dim"]

    def apply(self, W: Float[np.ndarray, "labels dim"]) -> Float[np.ndarray, "labels dim"]:
        return W @ self.M.T + self.v


def correlation(X: np.ndarray, Y: np.ndarray) -> float:
    """r of two heads' rows over one set of labels."""
    upper = np.triu_indices(len(X), 1)
    return pearson(correlations(X)[upper], correlations(Y)[upper])


def split_one(W: np.ndarray, V: np.ndarray) -> tuple[EquivalentForm, EquivalentForm, int] | None:
    """Forms of both heads in which one label lies opposite all others; None where none is found to win in both.

    A label's own direction among whitened rows is tried as the input at which it wins; by more than rounding.

    Claims: GONIO.split
    """
    both = [_own_wins(X) for X in (W, V)]
    shared = np.flatnonzero((both[0][1] > 0) & (both[1][1] > 0))
    if not len(shared):
        return None
    label = int(shared[np.argmax(np.minimum(both[0][1], both[1][1])[shared])])
    forms = []
    for X, (directions, _) in zip((W, V), both, strict=True):
        x = directions[label] / np.linalg.norm(directions[label])
        scores = X @ x
        rest = np.delete(scores, label).max()
        if scores[label] - rest <= 8 * X.shape[1] * EPS * np.linalg.norm(X, axis=1).max():
            return None  # rounding could have made this win
        middle = (scores[label] + rest) / 2
        size = np.linalg.norm(X - X.mean(axis=0), axis=1).max() / max(scores[label] - rest, 1e-300)
        stretch = STRETCH * size
        M = np.eye(X.shape[1]) + (stretch - 1) * np.outer(x, x)
        forms.append(EquivalentForm(M, -M @ (X.mean(axis=0) + (middle - X.mean(axis=0) @ x) * x)))
    return forms[0], forms[1], label


def _own_wins(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each label's own direction among whitened rows, and by how much it wins there over the best other."""
    C = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(C.T @ C)
    live = values > values[-1] * 1e-10
    inverse = (vectors[:, live] / values[live]) @ vectors[:, live].T
    directions = C @ inverse
    P = C @ directions.T  # scores of label i at label j's direction
    own = np.diag(P).copy()
    np.fill_diagonal(P, -np.inf)
    return directions, own - P.max(axis=0)


def lowest(
    W: np.ndarray,
    V: np.ndarray,
    *,
    steps: int = 60,
    translate: tuple[bool, bool] = (True, True),
    linear: tuple[bool, bool] = (True, True),
) -> tuple[float, EquivalentForm, EquivalentForm]:
    """The lowest r found over forms of both heads, with the forms.

    `translate`, `linear`: whether an offset and an invertible map of each head are free; of a sigmoid head no offset
    is, of an input table perhaps nothing else.
    """
    best: tuple[float, EquivalentForm, EquivalentForm] | None = None
    for whiten in (False, True) if all(linear) else (False,):
        found = _descend(W, V, steps, translate, linear, whiten)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    return best


def _descend(
    W: np.ndarray, V: np.ndarray, steps: int, translate: tuple[bool, bool], linear: tuple[bool, bool], whiten: bool
) -> tuple[float, EquivalentForm, EquivalentForm]:
    from scipy.optimize import minimize

    bases = [_basis(X, t) for X, t in zip((W, V), translate, strict=True)]
    start = []
    for B, root, mean in bases:
        start += [np.eye(B.shape[1]).ravel(), 0 * mean] if whiten else [root.ravel(), mean]

    def parts(p: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        out, at = [], 0
        for B, _, _ in bases:
            r = B.shape[1]
            out.append((p[at : at + r * r].reshape(r, r), p[at + r * r : at + r * r + r]))
            at += r * r + r
        return out

    def value(p: np.ndarray) -> tuple[float, np.ndarray]:
        rows = [B @ M.T + v for (B, _, _), (M, v) in zip(bases, parts(p), strict=True)]
        r, grads = correlation_and_gradient(*rows)
        flat = []
        for k, ((B, _, _), G) in enumerate(zip(bases, grads, strict=True)):
            # What is not free has no slope, so the descent never moves it.
            flat += [linear[k] * (G.T @ B).ravel(), translate[k] * G.sum(axis=0)]
        return r, np.concatenate(flat)

    found = minimize(value, np.concatenate(start), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    forms, ends = [], []
    for k, ((_, root, mean), (M, v), X) in enumerate(zip(bases, parts(found.x), (W, V), strict=True)):
        axes = _axes(X, translate[k])
        inner = M @ np.linalg.inv(root)
        forms.append(EquivalentForm(inner @ axes.T, v - inner @ mean))
        ends.append(forms[-1].apply(X))
    return correlation(*ends), forms[0], forms[1]


def _axes(X: np.ndarray, centre: bool) -> np.ndarray:
    C = X - X.mean(axis=0) if centre else X
    values, vectors = np.linalg.eigh(C.T @ C)
    return vectors[:, values > values[-1] * 1e-10]


def _basis(X: np.ndarray, centre: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(whitened rows B, root, mean) with  B @ root.T + mean  the rows in the axes that they span."""
    axes = _axes(X, centre)
    Y = X @ axes
    mean = Y.mean(axis=0) if centre else np.zeros(Y.shape[1])
    C = Y - mean
    values, vectors = np.linalg.eigh(C.T @ C / len(C))
    root = (vectors * np.sqrt(values)) @ vectors.T
    return C @ np.linalg.inv(root), root, mean


def correlation_and_gradient(X: np.ndarray, Y: np.ndarray) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """r of two heads' rows, and its derivatives by the rows of each.

    With x, y the centred upper triangles:  dr/dx = (y/|y| - r x/|x|) / |x|;  dr/dU = G U for the symmetric G of these;
    and through the length of a row  dr/dX_i = (g - (g.u)u) / |X_i|.
    """
    units = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, Y)]
    n = len(X)
    pairs = n * (n - 1) / 2
    tri = []
    for U in units:
        C = U @ U.T
        C -= (C.sum() - n) / (2 * pairs)
        np.fill_diagonal(C, 0)
        tri.append(C)
    size = [np.sqrt((C * C).sum() / 2) for C in tri]
    r = float((tri[0] * tri[1]).sum() / (2 * size[0] * size[1]))
    out = []
    for k in (0, 1):
        G = (tri[1 - k] / size[1 - k] - r * tri[k] / size[k]) / size[k]
        U, Z = units[k], (X, Y)[k]
        g = G @ U
        g -= (g * U).sum(axis=1, keepdims=True) * U
        out.append(g / np.linalg.norm(Z, axis=1, keepdims=True))
    return r, (out[0], out[1])
