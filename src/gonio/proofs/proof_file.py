"""Certificates in a file: one .npz of plain columns, bound to the digest of one head. docs/proofs.md tells the format.

Nothing in it is pickled, every column is checked against the others before anything is believed, and a file that was
tampered with can at worst hold certificates that do not verify.
"""

from __future__ import annotations

import zipfile
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
from gonio.proofs.certificates import Certificate, Ties, Wins
from gonio.proofs.comparisons import Possible
from gonio.proofs.kinds import GROUPS, Column, Group, group_of

VERSION = "gonio proof 2"
TYPES = {
    Column.LABEL: np.int64,
    Column.NUMBER: np.float64,
    Column.TEXT: np.str_,
    Column.POINT32: np.float32,
    Column.POINT64: np.float64,
    Column.LABELS: np.int64,
    Column.NUMBERS: np.float64,
}
LISTS = (Column.LABELS, Column.NUMBERS)


def save(path: str | Path, certificates: Sequence[Certificate]) -> None:
    """Write certificates of one head; those of float32 embeddings take half the room (see `bulk.compact`).

    Rivals that several certificates name in the same order are written once.
    """
    path = Path(path)
    if not certificates:
        raise GonioError("proof: there is no certificate to save.")
    digests = {c.head for c in certificates}
    if len(digests) > 1:
        raise GonioError(f"proof: the certificates are about {len(digests)} heads; a file holds those of one.")
    order = [group_of(c) for c in certificates]
    columns: dict[str, np.ndarray] = {
        "format": np.array(VERSION),
        "head": np.array(digests.pop()),
        "order": np.array(order, np.uint8),
    }
    supports: dict[bytes, int] = {}
    for place, group in enumerate(GROUPS):
        several = [c for c, g in zip(certificates, order, strict=True) if g == place]
        for field in group.columns if several else ():
            columns |= _arrays(group, field, [getattr(c, field) for c in several], supports)
    if supports:
        columns["support_rivals_count"] = np.array([len(s) // 8 for s in supports], np.int64)
        columns["support_rivals"] = np.frombuffer(b"".join(supports), np.int64)
    with whole(path, "proof") as temporary, temporary.open("wb") as f:
        np.savez(f, **columns)  # type: ignore[arg-type]


def _arrays(group: Group, field: str, values: list[Any], supports: dict[bytes, int]) -> dict[str, np.ndarray]:
    """One field of all certificates of a group, as one array or two; rivals are added to the supports."""
    name, column = group.array(field), group.columns[field]
    if column is Column.SUPPORT:
        return {name: np.array([supports.setdefault(v.tobytes(), len(supports)) for v in values], np.int64)}
    if column in LISTS:
        counts = np.array([len(v) for v in values], np.int64)
        return {f"{name}_count": counts, name: np.concatenate(values).astype(TYPES[column])}
    if column in (Column.POINT32, Column.POINT64) and len({len(v) for v in values}) > 1:
        raise GonioError("proof: the embeddings of the certificates have different widths; they are not of one head.")
    return {name: np.array(values, TYPES[column])}


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
            f"proof: {path} is of the format {version[:40]!r}; this gonio reads {VERSION!r}, so have the proof written "
            f"anew, or update gonio."
        )
    head, order = columns.text("head"), columns.read("order", "u", 1)
    counts = np.bincount(order, minlength=len(GROUPS)) if len(order) else np.zeros(len(GROUPS), np.int64)
    if len(counts) > len(GROUPS):
        raise columns.damaged("order", "it names a kind of certificate that does not exist")
    groups = [iter(columns.certificates(g, head, int(k))) for g, k in zip(GROUPS, counts, strict=True)]
    return [next(groups[k]) for k in order.tolist()]


class _Columns:
    """The columns of a proof file, each checked when it is read."""

    def __init__(self, path: Path, archive: NpzArchive) -> None:
        self.path, self.archive = path, archive
        self._supports: list[np.ndarray] | None = None

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

    def certificates(self, group: Group, head: str, count: int) -> list[Certificate]:
        """The certificates of one group, `count` of them."""
        if not count:
            return []
        values = [self._field(group, field, count) for field in group.columns]
        kind: Any = group.certificate
        return [kind(head, **dict(zip(group.columns, one, strict=True))) for one in zip(*values, strict=True)]

    def _field(self, group: Group, field: str, count: int) -> list[Any]:
        name, column = group.array(field), group.columns[field]
        if column is Column.SUPPORT:
            places = self.read(name, "i", 1, count)
            if places.min() < 0 or places.max() >= len(self.supports):
                raise self.damaged(name, f"it names supports beyond the {len(self.supports)} that the file holds")
            return [self.supports[k] for k in places.tolist()]
        kind = np.dtype(TYPES[column]).kind
        if column in LISTS:
            return self._split(name, kind, self.read(f"{name}_count", "i", 1, count))
        if column in (Column.POINT32, Column.POINT64):
            return list(self.read(name, kind, 2, count))
        return self.read(name, kind, 1, count).tolist()

    @property
    def supports(self) -> list[np.ndarray]:
        """The lists of rivals that the certificates share."""
        if self._supports is None:
            self._supports = self._split("support_rivals", "i", self.read("support_rivals_count", "i", 1))
        return self._supports

    def _split(self, name: str, kind: str, lengths: np.ndarray) -> list[np.ndarray]:
        values = self.read(name, kind, 1)
        if (lengths < 0).any() or int(lengths.sum()) != len(values):
            raise self.damaged(name, f"it has {len(values)} entries, where {int(lengths.sum())} are announced")
        return np.split(values, np.cumsum(lengths)[:-1])


@dataclass(frozen=True)
class ProofCheck:
    """What a proof file proves about a head.

    subjects         for each kind what it is proven of, each once: a label, two, or labels above labels (-1: zero)
    smallest_margin  of all wins and ties
    failed           why the others were refused
    """

    subjects: dict[str, tuple[Any, ...]]
    smallest_margin: float | None
    failed: tuple[str, ...]

    @property
    def proven(self) -> dict[str, int]:
        """How many of each kind are proven, each counted once however often the file holds it."""
        return {kind: len(several) for kind, several in self.subjects.items()}

    @property
    def fine(self) -> bool:
        """Whether every certificate of the file was verified."""
        return not self.failed

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        return {
            "proven": self.proven,
            "labels": {kind: [_plain(s) for s in several] for kind, several in self.subjects.items()},
            "smallest_margin": self.smallest_margin,
            "failed": list(self.failed),
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{v:,} {k}" for k, v in self.proven.items()) or "nothing proven"
        margin = "" if self.smallest_margin is None else f"; smallest margin {self.smallest_margin:.3g}"
        refused = f"{len(self.failed):,} refused: {self.failed[0]}" if self.failed else "none refused"
        return f"ProofCheck({counts}{margin})\n  {refused}"


def verify_file(head: Head, path: str | Path) -> ProofCheck:
    """Verify every certificate of a proof file against a head, without any solver."""
    certificates = load(path)
    if not certificates:
        raise GonioError(f"{path} holds no proofs, so it proves nothing; give a file that --proof wrote.")
    seen = verify_all(head, certificates)
    good = [k for k in range(len(certificates)) if k not in seen.refused]
    margins = [seen.bounds[k] for k in good if isinstance(certificates[k], (Wins, Ties, Possible))]
    subjects: dict[str, dict[Any, None]] = {}  # in the order of the file
    for k in good:
        subjects.setdefault(certificates[k].kind, {})[certificates[k].subject] = None
    each = {kind: tuple(several) for kind, several in subjects.items()}
    return ProofCheck(each, float(min(margins)) if margins else None, tuple(seen.refused.values()))


def _plain(subject: Any) -> Any:
    return [_plain(s) for s in subject] if isinstance(subject, tuple) else subject
