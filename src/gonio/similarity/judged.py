"""A score learned from judged pairs: ridge regression on features of a pair.

    features of (i, j):  cos(u, v), cos of centred rows, log(|x|/|y|)^2, and u * v and |u - v| entry by entry

with u, v the rows at length 1. It stands for measures that are trained on judgements (STS models): what a space holds
can be more than its cosine shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.similarity.measures import Measure, register
from gonio.similarity.space import Space

if TYPE_CHECKING:
    from jaxtyping import Float

ALPHAS = 10.0 ** np.arange(-1, 6)
FOLDS = 5


@register
class Judged(Measure):
    """Ridge regression on features of a pair, fitted on judged pairs.

    `held_out` is Spearman's correlation of out-of-fold predictions with the judgements: how well it does on pairs it
    has not seen (their labels may occur in other pairs); `out_of_fold` holds those predictions. Zero rows: NaN.
    """

    name = "judged"
    invariant = frozenset("S")
    needs = "judgements"

    def __init__(self, head: Head, pairs: Any = None, judgements: Any = None, seed: int = 0) -> None:
        super().__init__(head)
        from scipy.stats import spearmanr
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold, cross_val_predict
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        p, y = checks.judged(pairs, judgements, head.shape[0], self.name, 2 * FOLDS)
        self.space, self.centred = Space(head), Space(head, centre=True)
        zero = head.norms == 0
        alive = ~(zero[p[:, 0]] | zero[p[:, 1]])
        if alive.sum() < 2 * FOLDS:
            raise GonioError(f"{self.name}: only {alive.sum()} judged pairs have no zero row; {2 * FOLDS} are needed.")
        p, y = p[alive], y[alive]
        X = self.features(p[:, 0], p[:, 1])
        model = make_pipeline(StandardScaler(), RidgeCV(ALPHAS * X.shape[1] / 100))
        guess = np.asarray(cross_val_predict(model, X, y, cv=KFold(FOLDS, shuffle=True, random_state=seed)))
        with np.errstate(invalid="ignore"):
            self.held_out = float(spearmanr(guess, y)[0]) if np.ptp(guess) > 0 else 0.0  # type: ignore[arg-type]
        self.out_of_fold = np.full(len(alive), np.nan)
        self.out_of_fold[alive] = guess
        self.model = model.fit(X, y)
        self.caveat = f"fitted on {len(y):,} judged pairs, Spearman {self.held_out:.3f} on held-out ones"

    def features(self, i: np.ndarray, j: np.ndarray) -> Float[np.ndarray, "pairs features"]:
        """The features of some pairs; the same for (i, j) and (j, i)."""
        r = self.head.norms
        u, v = (self.head.rows[w].astype(np.float64) / np.where(r[w] > 0, r[w], 1)[:, None] for w in (i, j))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((r[i] > 0) & (r[j] > 0), np.log(r[i] / r[j]) ** 2, 0)
        centred = np.nan_to_num(self.centred.cosines(i, j))
        return np.column_stack([np.einsum("ij,ij->i", u, v), centred, ratio, u * v, np.abs(u - v)])

    def _pairs(self, i, j):
        out = np.concatenate([self.model.predict(self.features(i[s:e], j[s:e])) for s, e in spans(len(i), 4096)])
        out[(self.head.norms[i] == 0) | (self.head.norms[j] == 0)] = np.nan
        return out

    def _barred(self):
        return self.head.norms == 0
