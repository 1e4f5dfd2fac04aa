"""The audit of an existing factor model: which similarity is defined, how far lists move, who can never be shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.correlations import spearman
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.core.head import Head, Trained
from gonio.core.inputs import AllInputs
from gonio.core.parallel import spans
from gonio.core.renderers import rendered
from gonio.factors.adapt import Tables, tables
from gonio.factors.rescaling import singular_form
from gonio.factors.rescaling_survey import RescalingSurvey, shared, survey_of
from gonio.factors.similar import lists, vectors

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.ask.wins import CanWin

USERS = 1024  # users scored at a time


@dataclass(frozen=True, eq=False, repr=False)
class FactorAudit:
    """What a factor model's item-item cosines mean, and which items it can show.

    defined        in words, which similarity the training fixes
    survey         signs and lists under rescaling, in the basis of the scores' own singular form
    moved          for each item asked about, the share of its list by plain cosine that projecting back keeps
    norm_popularity   Spearman correlation of item norms with popularity (or with the mean score, where none is given)
    never_first    items that no user vector whatever puts first;  `wins` holds the proofs
    undecided      items of which neither is proven
    never_shown    items that no user of the data has among the top k by score
    constant       columns of the users that are one constant: a bias in disguise
    """

    tables: Tables
    k: int
    rank: int
    defined: str
    survey: RescalingSurvey
    moved: Float[np.ndarray, " asked"]
    norm_popularity: float
    popularity_known: bool
    wins: CanWin | None
    never_shown: Int[np.ndarray, " hidden"]
    shown: Int[np.ndarray, " items"]
    constant: Int[np.ndarray, " constant"]

    def __post_init__(self) -> None:
        for a in (self.moved, self.never_shown, self.shown, self.constant):
            a.flags.writeable = False

    @property
    def head(self) -> Head:
        """The items over the users of the data."""
        return self.tables.head

    @property
    def never_first(self) -> Int[np.ndarray, " never"]:
        """Items that no user vector can put first."""
        return np.zeros(0, np.int64) if self.wins is None else self.wins.never

    @property
    def undecided(self) -> Int[np.ndarray, " undecided"]:
        return np.zeros(0, np.int64) if self.wins is None else self.wins.undecided

    def columns(self) -> dict[str, list[Any]]:
        """One row an item: its length, how often it is shown, whether it can be first, how far its list moves."""
        n = len(self.tables.items)
        first = ["not asked"] * n
        if self.wins is not None:
            for i, answer in zip(self.wins.labels, self.wins.columns()["can_win"], strict=True):
                first[int(i)] = answer
        kept: list[Any] = [None] * n
        for i, share in zip(self.survey.survival.asked, self.moved, strict=True):
            kept[int(i)] = float(share)
        return {
            "item": list(self.head.labels),
            "norm": np.linalg.norm(self.tables.items, axis=1).tolist(),
            "shown_to_users": self.shown.tolist(),
            "can_be_first": first,
            "list_kept_when_projected": kept,
        }

    def to_dict(self) -> dict[str, Any]:
        """The audit in plain values."""
        n, p = len(self.tables.users), len(self.tables.items)
        return {
            "place": self.tables.place,
            "users": n,
            "items": p,
            "dim": self.tables.items.shape[1],
            "rank": self.rank,
            "link": self.tables.link,
            "trained": self.tables.trained if self.tables.link == "dot" else None,
            "trained_assumed": self.tables.assumed,
            "defined": self.defined,
            "rescaling": self.survey.to_dict(),
            "list_kept_when_projected": float(self.moved.mean()) if len(self.moved) else None,
            "norm_popularity": None if np.isnan(self.norm_popularity) else self.norm_popularity,
            "popularity_known": self.popularity_known,
            "top": self.k,
            "never_first": self.never_first.tolist(),
            "never_first_undecided": self.undecided.tolist(),
            "never_shown": self.never_shown.tolist(),
            "constant_columns": self.constant.tolist(),
        }

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        n, p = len(self.tables.users), len(self.tables.items)
        return (
            f"FactorAudit({n:,} users x {p:,} items, rank {self.rank}; {self.defined})\n"
            f"  never first: {len(self.never_first):,} items; in no user's top {self.k}: {len(self.never_shown):,}"
        )


def audit(
    x: Any,
    *,
    trained: Trained | None = None,
    popularity: Any = None,
    k: int = 10,
    asked: int = 1_000,
    can_win: bool = True,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> FactorAudit:
    """Audit a factor model: a pair (users, items) of arrays or .npy files, a FactorModel, or an implicit-, lightfm- or
    surprise-like object.

    trained : "product" or "factors", where you know what the training penalised
    popularity : how often each item was touched; without it norms are compared with the items' mean score
    k : the length of lists and of recommendations
    asked : of how many items the lists are followed through rescalings
    """
    t = tables(x, trained=trained)
    p = len(t.items)
    if p < 2:
        raise GonioError(f"audit: the model has {p} item; at least two are needed to speak of similarity.")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise GonioError(f"audit: k is {k!r}; a whole number of at least 1 is needed.")
    k = min(int(k), p - 1)
    counts = t.popularity
    if popularity is not None:
        counts = checks.vector(popularity, "audit", "popularity", p, per="item")
    if not t.items.any() or not t.users.any():
        raise GonioError("audit: all users or all items are zero vectors, so every score is 0; fit the model first.")
    V, s, T = singular_form(t.users, t.items)
    if not len(s):
        raise GonioError("audit: every score of every user is 0; the users and items have no direction in common.")
    left_open = t.link == "dot" and t.trained == "product"
    # The columns a file happens to have are as arbitrary as their scales: rescalings are tried where the scores'
    # own singular directions are the columns.
    users, items = (t.users @ T * np.sqrt(s), V * np.sqrt(s)) if left_open else (t.users, t.items)
    lists_of = survey_of(users, items, k, given=t.items, left_open=left_open, asked=asked, on_progress=on_progress)
    which = lists_of.survival.asked
    plain = lists(t.items, k, which)[0]
    back = lists(vectors(t.users, t.items, "projected"), k, which)[0]
    shown = _shown(t, k, on_progress)
    return FactorAudit(
        t,
        k,
        len(s),
        _defined(t),
        lists_of,
        shared(plain, back),
        spearman(np.linalg.norm(t.items, axis=1), _mean_scores(t) if counts is None else counts),
        counts is not None,
        _wins(t, on_progress) if can_win and t.link == "dot" else None,
        np.flatnonzero(shown == 0),
        shown,
        np.flatnonzero((t.users == t.users[0]).all(axis=0) & (t.users[0] != 0)),
    )


def _defined(t: Tables) -> str:
    if t.link == "cosine":
        return "the cosine is what was trained"
    if t.trained == "factors":
        return "plain cosines are unique up to rotation and depend on the strength of the penalty"
    return "plain cosines are a convention; the scores and the projected-back cosine are defined"


def _wins(t: Tables, on_progress: Callable | None) -> CanWin:
    """Who can be first for some user vector, with proofs: a user vector, unlike a user, may be anything."""
    from gonio.ask.wins import can_win

    head = Head(t.items, t.bias, link="dot", labels=t.head.labels if t.head.named else None, inputs=AllInputs())
    return can_win(head, on_progress=on_progress)


def _shown(t: Tables, k: int, on_progress: Callable | None) -> Int[np.ndarray, " items"]:
    """For how many users each item is among the k best scores."""
    p = len(t.items)
    out = np.zeros(p, np.int64)
    items = t.items
    if t.link == "cosine":
        items = unit(items)
    for a, b in spans(len(t.users), USERS):
        scores = t.users[a:b] @ items.T
        if t.bias is not None:
            scores += t.bias
        out += np.bincount(np.argpartition(-scores, k - 1, axis=1)[:, :k].ravel(), minlength=p)
        if on_progress is not None:
            on_progress(b, len(t.users), "users scored")
    return out


def _mean_scores(t: Tables) -> Float[np.ndarray, " items"]:
    out = t.items @ t.users.mean(axis=0)
    return out if t.bias is None else out + t.bias
