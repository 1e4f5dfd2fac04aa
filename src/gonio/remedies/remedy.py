"""What every remedy can do: be a scikit-learn transformer, abstain on judged pairs, save itself and be read back.

    fit(X, y=None, *, pairs=None, judgements=None)

Given judged pairs, the remedy is tried on them first, held out: for each of five parts of the pairs it is fitted on the
rows those pairs do not name, and the scores it gives them are compared with the cosines of the untouched rows, by
Spearman's correlation with the judgements. Unless it helps in `confidence` of the bootstrap resamples of the pairs, it
abstains: `transform` then gives the rows as they are, and `reason_` says why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gonio.core import checks
from gonio.core.atomic_write import whole
from gonio.core.correlations import spearman
from gonio.core.directions import cosines
from gonio.core.errors import GonioError, LoadError
from gonio.core.npz_archive import NpzArchive

if TYPE_CHECKING:
    from jaxtyping import Float

FOLDS, RESAMPLES = 5, 500
FORMAT = "gonio remedy 1"
REMEDIES: dict[str, type[Remedy]] = {}


class Remedy(TransformerMixin, BaseEstimator):
    """A change of vectors, learned from rows.

    convention  which part of the change lies inside a gauge and so changes no model: letters as in
                gonio.papers.invariance_table, with the links for which it is convention
    alters      what information the change alters, in words
    """

    convention: ClassVar[str]
    alters: ClassVar[str]
    _learned: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:
        confidence: float
        n_features_in_: int
        feature_names_in_: np.ndarray

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if not cls.__name__.startswith("_"):
            REMEDIES[cls.__name__] = cls

    # -- scikit-learn ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, judgements: Any = None) -> Self:
        """Learn the change from the rows of X; given judged pairs of rows, decide whether to abstain."""
        X = self._read(X, reset=True)
        self.abstained_, self.reason_, self.before_, self.after_ = False, "no judged pairs were given", None, None
        if pairs is not None or judgements is not None:
            self._decide(X, pairs, judgements)
        self._fit(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The changed rows; as they are where the remedy abstained."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        return X if self.abstained_ else self._transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns given out."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names if self.abstained_ else self._names(names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self, X: Any, *, reset: bool) -> Float[np.ndarray, "rows dim"]:
        """X as float32 or float64, finite, of the width seen in `fit`; complaints in scikit-learn's words."""
        try:
            return np.asarray(validate_data(self, X, reset=reset, dtype=[np.float64, np.float32]))
        except ValueError as e:
            raise GonioError(f"{type(self).__name__}: {e}") from None

    # -- given by each remedy ----------------------------------------------------------------------------------------

    def _fit(self, X: np.ndarray) -> None:
        raise NotImplementedError

    def _transform(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _names(self, names: Any) -> Any:
        return names

    def _scores(self, A: np.ndarray, B: np.ndarray) -> Float[np.ndarray, " pairs"]:
        """What is compared with judgements: the cosine of each changed row of A with that of B."""
        return cosines(self._transform(A), self._transform(B))

    # -- abstaining --------------------------------------------------------------------------------------------------

    def _decide(self, X: np.ndarray, pairs: Any, judgements: Any) -> None:
        if not 0 <= self.confidence <= 1:
            raise GonioError(f"{type(self).__name__}: confidence is {self.confidence}; a number from 0 to 1 is needed.")
        p, y = checks.judged(pairs, judgements, len(X), type(self).__name__, 2 * FOLDS)
        rng = np.random.default_rng(0)
        part = rng.permutation(len(p)) % FOLDS
        after = np.empty(len(p))
        for f in range(FOLDS):
            held = p[part == f]
            rest = np.setdiff1d(np.arange(len(X)), held)
            trial = type(self)(**self.get_params())
            trial.n_features_in_ = X.shape[1]
            trial.abstained_ = False
            # Where the judged rows are all there is, the change is learned from all of them: it never sees judgements.
            trial._fit(X[rest] if len(rest) >= max(2, len(X) // 4) else X)
            after[part == f] = trial._scores(X[held[:, 0]], X[held[:, 1]])
        before = cosines(X[p[:, 0]], X[p[:, 1]])
        known = np.isfinite(before) & np.isfinite(after)
        if known.sum() < 2 * FOLDS:
            self.abstained_ = True
            self.reason_ = f"abstained: only {known.sum()} of {len(p)} judged pairs have a cosine before and after"
            return
        before, after, y = before[known], after[known], y[known]
        self.before_, self.after_ = _agreement(before, y), _agreement(after, y)
        drawn = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), RESAMPLES)
        helps = float(np.mean(resampled(after, y, drawn) > resampled(before, y, drawn)))
        self.abstained_ = helps < self.confidence
        self.reason_ = (
            f"{'abstained' if self.abstained_ else 'applied'}: on {len(y):,} held-out judged pairs Spearman "
            f"{self.before_:.3f} before and {self.after_:.3f} after; it helped in {100 * helps:.0f}% of resamples, and "
            f"{100 * self.confidence:.0f}% are asked for"
        )

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the fit to an npz file of plain arrays; `gonio.remedies.load` reads it."""
        check_is_fitted(self)
        about = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "params": self.get_params(),
            "dim": int(self.n_features_in_),
            "abstained": bool(self.abstained_),
            "reason": self.reason_,
            "before": self.before_,
            "after": self.after_,
        }
        arrays = {name: np.asarray(getattr(self, name)) for name in self._learned}
        if hasattr(self, "feature_names_in_"):
            about["names"] = [str(x) for x in self.feature_names_in_]
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        with whole(path, f"{type(self).__name__}.save") as temporary, temporary.open("wb") as f:
            np.savez(f, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        return path


def load(path: str | Path) -> Remedy:
    """A remedy as it was fitted, from its npz file. Nothing in the file is executed."""
    try:
        archive = NpzArchive(Path(path))
        held = {k: np.array(archive.read(k)) for k in archive.entries}
        about = json.loads(str(held.pop("about")))
        if about["format"] != FORMAT:
            raise ValueError(about["format"])
        kind = REMEDIES[about["kind"]]
        out = kind(**about["params"])
        out.n_features_in_ = int(about["dim"])
        out.abstained_, out.reason_ = bool(about["abstained"]), str(about["reason"])
        out.before_, out.after_ = about["before"], about["after"]
        if "names" in about:
            out.feature_names_in_ = np.array(about["names"], dtype=object)
        for name in kind._learned:
            a = held[name]
            checks.finite(np.atleast_1d(checks.array(a, "remedies.load", name)), "remedies.load", name)
            setattr(out, name, a if a.ndim else a.item())
    except LoadError as e:
        raise GonioError(f"remedies.load: {path} is not a saved remedy ({e})") from None
    except GonioError:
        raise
    except Exception as e:
        raise GonioError(f"remedies.load: {path} is not a saved remedy ({type(e).__name__}: {e}).") from None
    return out


def _agreement(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's correlation; 0 where one of the two does not vary."""
    found = spearman(x, y)
    return found if np.isfinite(found) else 0.0


def resampled(x: np.ndarray, y: np.ndarray, drawn: np.ndarray) -> Float[np.ndarray, " resamples"]:
    """Spearman's correlation in each resample of pairs, by how often each was drawn; ranks are among all."""
    from scipy.stats import rankdata

    w = drawn / drawn.sum(axis=1, keepdims=True)
    a, b = (rankdata(v) - (len(v) + 1) / 2 for v in (x, y))
    ma, mb = w @ a, w @ b
    spread = np.sqrt(np.maximum(0, w @ (a * a) - ma * ma) * np.maximum(0, w @ (b * b) - mb * mb))
    return np.where(spread > 0, (w @ (a * b) - ma * mb) / np.where(spread > 0, spread, 1), 0.0)
