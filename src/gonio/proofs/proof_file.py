"""Certificates in a file: one .npz of plain columns, bound to the digest of one head. docs/proofs.md tells the format.

Nothing in it is pickled, every column is checked against the others before anything is believed, and a file that was
tampered with can at worst hold certificates that do not verify.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gonio.core.atomic_write import whole
from gonio.core.errors import GonioError, LoadError
from gonio.core.head import Head
from gonio.core.npz_archive import NpzArchive
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import Certificate, NeverTies, NeverWins, Ties, Undecided, Wins
from gonio.proofs.comparisons import Impossible, Possible

VERSION = "gonio proof 1"
GROUPS = ("wins32", "wins64", "never", "ties", "never_ties", "undecided", "possible", "impossible")

KINDS = (
    (NeverWins, "never"),
    (Ties, "ties"),
    (NeverTies, "never_ties"),
    (Undecided, "undecided"),
    (Possible, "possible"),
    (Impossible, "impossible"),
)


def save(path: str | Path, certificates: Sequence[Certificate]) -> None:
    """Write certificates of one head; those of float32 embeddings take half the room (see `bulk.compact`)."""
    path = Path(path)
    if not certificates:
        raise GonioError("proof: there is no certificate to save.")
    digests = {c.head for c in certificates}
    if len(digests) > 1:
        raise GonioError(f"proof: the certificates are about {len(digests)} heads; a file holds those of one.")
    groups: dict[str, list[Any]] = {g: [] for g in GROUPS}
    order = []
    for c in certificates:
        group = _group(c)
        groups[group].append(c)
        order.append(GROUPS.index(group))
    columns: dict[str, np.ndarray] = {
        "format": np.array(VERSION),
        "head": np.array(digests.pop()),
        "order": np.array(order, np.uint8),
    }
    for name, several in groups.items():
        if several:
            columns |= {f"{name}_{part}": values for part, values in _columns(name, several).items()}
    with whole(path, "proof") as temporary, temporary.open("wb") as f:
        np.savez(f, **columns)  # type: ignore[arg-type]


def _group(c: Certificate) -> str:
    if isinstance(c, Wins):
        return "wins32" if np.array_equal(c.x.astype(np.float32), c.x) else "wins64"
    for kind, name in KINDS:
        if isinstance(c, kind):
            return name
    raise GonioError(f"proof: a {type(c).__name__} is no certificate that a file can hold.")


def _columns(name: str, several: list[Any]) -> dict[str, np.ndarray]:
    """The certificates of one group, as columns."""
    if name in ("wins32", "wins64"):
        kind = np.float32 if name == "wins32" else np.float64
        out = {"label": _labels([c.label for c in several]), "x": _stack([c.x for c in several], kind)}
        if any(len(c.equals) for c in several):  # labels with the same scores everywhere, which the win leaves out
            out["equals"] = np.array([len(c.equals) for c in several], np.int64)
            out["equal"] = np.concatenate([c.equals for c in several])
        return out
    if name == "ties":
        both = [_stack([v for c in several for v in (c.x, c.y)], np.float64)]
        return {"pair": _labels([(c.a, c.b) for c in several]), "xy": both[0].reshape(len(several), 2, -1)}
    if name in ("possible", "impossible"):
        return _comparison_columns(name, several)
    out = {
        "count": np.array([len(c.rivals) for c in several], np.int64),
        "weighted": np.array([len(c.weights) for c in several], np.int64),
        "rival": np.concatenate([c.rivals for c in several]),
        "weight": np.concatenate([c.weights.astype(np.float64) for c in several]),
    }
    if name == "never_ties":
        share = [c.pair_weights.astype(np.float64) if len(c.pair_weights) == 2 else [np.nan] * 2 for c in several]
        return out | {"pair": _labels([(c.a, c.b) for c in several]), "share": np.array(share)}
    out |= {"label": _labels([c.label for c in several])}
    if name == "undecided":
        out |= {"bound": np.array([c.bound for c in several]), "why": np.array([c.why for c in several], np.str_)}
    return out


def _comparison_columns(name: str, several: list[Any]) -> dict[str, np.ndarray]:
    out = {
        "count": np.array([len(c.above) for c in several], np.int64),
        "above": np.concatenate([c.above for c in several]),
        "below": np.concatenate([c.below for c in several]),
        "tops": np.array([len(c.top) for c in several], np.int64),
        "top": np.concatenate([c.top for c in several]),
    }
    if name == "possible":
        return out | {"x": _stack([c.x for c in several], np.float64)}
    return out | {
        "weighted": np.array([len(c.weights) for c in several], np.int64),
        "weight": np.concatenate([c.weights.astype(np.float64) for c in several]),
    }


def _labels(values: list[Any]) -> np.ndarray:
    return np.array(values, np.int64)


def _stack(xs: list[np.ndarray], kind: Any) -> np.ndarray:
    if len({len(x) for x in xs}) > 1:
        raise GonioError("proof: the embeddings of the certificates have different widths; they are not of one head.")
    return np.stack(xs).astype(kind)


def load(path: str | Path) -> list[Certificate]:
    """The certificates of a file, in the order in which they were saved. Nothing is verified by loading."""
    path = Path(path)
    try:
        archive = NpzArchive(path)
    except LoadError as e:
        raise GonioError(f"proof: {path} cannot be read ({e})") from None
    except (OSError, zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as e:
        raise GonioError(f"proof: {path} is not a proof file ({e}); `--proof FILE` writes one.") from None
    columns = _Columns(path, archive)
    version = columns.text("format")
    if version != VERSION:
        raise GonioError(
            f"proof: {path} is of the format {version[:40]!r}; this gonio reads {VERSION!r}, so update one."
        )
    head, order = columns.text("head"), columns.read("order", "u", 1)
    counts = np.bincount(order, minlength=len(GROUPS)) if len(order) else np.zeros(len(GROUPS), np.int64)
    if len(counts) > len(GROUPS):
        raise columns.damaged("order", "it names a kind of certificate that does not exist")
    groups = [iter(_certificates(g, head, int(k), columns)) for g, k in zip(GROUPS, counts, strict=True)]
    return [next(groups[k]) for k in order.tolist()]


class _Columns:
    """The columns of a proof file, each checked when it is read."""

    def __init__(self, path: Path, archive: NpzArchive) -> None:
        self.path, self.archive = path, archive

    def damaged(self, name: str, why: str) -> GonioError:
        return GonioError(f"proof: {self.path}[{name}] is damaged: {why}; have the proof written anew.")

    def text(self, name: str) -> str:
        a = self.read(name, "U", 0)
        return str(a[()])

    def read(self, name: str, kind: str, axes: int, rows: int | None = None) -> np.ndarray:
        entry = self.archive.entries.get(name)
        if entry is None:
            raise GonioError(f"proof: {self.path} has no column {name!r}, so it is not a proof file of {VERSION!r}.")
        try:
            a = self.archive.read(name)
        except (LoadError, OSError, ValueError, zipfile.BadZipFile, EOFError) as e:
            raise self.damaged(name, str(e)) from None
        if a.dtype.kind not in kind or a.ndim != axes or (rows is not None and len(a) != rows):
            wanted = f"{axes} axes" + (f" and {rows} rows" if rows is not None else "")
            raise self.damaged(name, f"it has shape {a.shape} and type {a.dtype}, where {wanted} are needed")
        return a


def _certificates(group: str, head: str, count: int, columns: _Columns) -> list[Certificate]:
    if not count:
        return []

    def read(part: str, kind: str, axes: int = 1, rows: int = count) -> np.ndarray:
        return columns.read(f"{group}_{part}", kind, axes, rows)

    if group in ("wins32", "wins64"):
        labels, x = read("label", "i").tolist(), read("x", "f", 2)
        equals: list[Any] = [()] * count
        if f"{group}_equals" in columns.archive.entries:
            equals = _split(columns, f"{group}_equal", "i", read("equals", "i"))
        return [Wins(head, i, v, e) for i, v, e in zip(labels, x, equals, strict=True)]
    if group == "ties":
        pairs, xy = _pairs(group, columns, count), read("xy", "f", 3)
        if xy.shape[1] != 2:
            raise columns.damaged("ties_xy", f"it has shape {xy.shape}, where two embeddings a pair are needed")
        return [Ties(head, a, b, x, y) for (a, b), (x, y) in zip(pairs, xy, strict=True)]
    if group in ("possible", "impossible"):
        lengths = read("count", "i")
        sides = (_split(columns, f"{group}_{side}", "i", lengths) for side in ("above", "below"))
        tops = _split(columns, f"{group}_top", "i", read("tops", "i"))
        if group == "possible":
            parts = zip(*sides, tops, read("x", "f", 2), strict=True)
            return [Possible(head, a, b, t, x) for a, b, t, x in parts]
        weights = _split(columns, f"{group}_weight", "f", read("weighted", "i"))
        return [Impossible(head, a, b, t, w) for a, b, t, w in zip(*sides, tops, weights, strict=True)]
    lengths, weighted = read("count", "i"), read("weighted", "i")
    rivals = _split(columns, f"{group}_rival", "i", lengths)
    weights = _split(columns, f"{group}_weight", "f", weighted)
    if group == "never_ties":
        pairs, share = _pairs(group, columns, count), read("share", "f", 2)
        some = [[] if np.isnan(s).all() else s for s in share]
        return [
            NeverTies(head, a, b, r, w, np.array(p))
            for (a, b), r, w, p in zip(pairs, rivals, weights, some, strict=True)
        ]
    labels = read("label", "i").tolist()
    if group == "never":
        return [NeverWins(head, i, r, w) for i, r, w in zip(labels, rivals, weights, strict=True)]
    bound, why = read("bound", "f").tolist(), read("why", "U").tolist()
    several = zip(labels, bound, why, rivals, weights, strict=True)
    return [Undecided(head, i, b, t, r, w) for i, b, t, r, w in several]  # type: ignore[arg-type]


def _pairs(group: str, columns: _Columns, count: int) -> list[tuple[int, int]]:
    pairs = columns.read(f"{group}_pair", "i", 2, count)
    if pairs.shape[1] != 2:
        raise columns.damaged(f"{group}_pair", f"it has shape {pairs.shape}, where two labels a pair are needed")
    return [(int(a), int(b)) for a, b in pairs]


def _split(columns: _Columns, name: str, kind: str, lengths: np.ndarray) -> list[np.ndarray]:
    values = columns.read(name, kind, 1)
    if (lengths < 0).any() or int(lengths.sum()) != len(values):
        raise columns.damaged(name, f"it has {len(values)} entries, where {int(lengths.sum())} are announced")
    return np.split(values, np.cumsum(lengths)[:-1])


@dataclass(frozen=True)
class ProofCheck:
    """What a proof file proves about a head: how many of each kind, the smallest margin of a win, and what failed."""

    proven: dict[str, int]
    smallest_margin: float | None
    failed: tuple[str, ...]

    @property
    def fine(self) -> bool:
        """Whether every certificate of the file was verified."""
        return not self.failed

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {"proven": dict(self.proven), "smallest_margin": self.smallest_margin, "failed": list(self.failed)}

    def __repr__(self) -> str:
        counts = ", ".join(f"{v:,} {k}" for k, v in self.proven.items()) or "nothing proven"
        margin = "" if self.smallest_margin is None else f"; smallest margin {self.smallest_margin:.3g}"
        refused = f"{len(self.failed):,} refused: {self.failed[0]}" if self.failed else "none refused"
        return f"ProofCheck({counts}{margin})\n  {refused}"


def verify_file(head: Head, path: str | Path) -> ProofCheck:
    """Verify every certificate of a proof file against a head, without any solver."""
    certificates = load(path)
    seen = verify_all(head, certificates)
    good = [k for k in range(len(certificates)) if k not in seen.refused]
    margins = [seen.bounds[k] for k in good if isinstance(certificates[k], (Wins, Ties, Possible))]
    counts = Counter(certificates[k].kind for k in good)
    return ProofCheck(dict(counts), float(min(margins)) if margins else None, tuple(seen.refused.values()))
