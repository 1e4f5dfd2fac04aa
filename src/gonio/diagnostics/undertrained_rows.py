"""Undertrained rows: labels whose row looks like that of tokens known never to occur in training.

With U the known unused labels and u the mean of their rows (Land and Bartolo 2024):

    cosine distance                     1 - E_i.u / max(|E_i||u|, 1e-6)
    cosine distance without first PC    the same after (E_i.v) v is taken from the uncentred rows, v the first
                                        principal axis of the centred rows; u after removal
    centred cosine distance             the same of rows minus the mean row
    l2 distance                         |E_i - u|
    bias                                b_i, where there is one
    norm                                |E_i|: their indicator for input embeddings of untied models

Adding one vector to all rows changes no softmax prediction; only the centred cosine distance and l2 stay under it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.parallel import spans
from gonio.diagnostics.duplicates import NearDuplicates, near_duplicates
from gonio.diagnostics.moments import ROWS, moments, spectrum
from gonio.diagnostics.result import Result, axes, quoted

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from gonio.ask.wins import CanWin

RAW, WITHOUT_PC, CENTRED, L2 = (
    "cosine distance",
    "cosine distance without first PC",
    "centred cosine distance",
    "l2 distance",
)
INVARIANT = (CENTRED, L2)
SHARE = 0.02
TINY = 1e-6  # the published floor of |E||u|
MEMBERS = 5  # nearly equal rows from which a cluster may be of tokens that never occurred
TIGHT = 0.1  # and the spread it may have, against that of all rows

_RESERVED = re.compile(r"\[unused\d+\]|<unused_?\d+>|<\|?reserved[^>]*>|madeupword\d+|<extra_id_\d+>|\[PAD\d+\]", re.I)
_NEVER_UTF8 = (0xC0, 0xC1, *range(0xF5, 0x100))  # bytes that no UTF-8 text holds


@dataclass(frozen=True, eq=False, repr=False)
class Undertrained(Result):
    """Rows that look untrained.

    indicators   name -> one value a label, small where it looks untrained
    invariant    the indicators that no translation of the rows moves
    reference    the labels taken as unused; `how` says where they are from, and whether that is assumed
    candidates   the lowest 2% by the centred indicator among the other labels, lowest first; none without a reference
    never_win    candidates that provably can never win, where `can_win` was given
    """

    indicators: Mapping[str, Float[np.ndarray, " labels"]]
    invariant: tuple[str, ...]
    candidates: Int[np.ndarray, " candidates"]
    reference: Int[np.ndarray, " reference"]
    how: str
    never_win: Int[np.ndarray, " never"] | None
    labels: tuple[str, ...] = field(default=())

    def lines(self) -> tuple[str, str]:
        return (
            f"{len(self.reference):,} reference rows ({self.how})",
            f"{len(self.candidates):,} candidates"
            + (f": {quoted(self.labels, self.candidates)}" if len(self.candidates) else ""),
        )

    def explain(self) -> str:
        """One paragraph in plain words."""
        if not len(self.reference):
            return (
                "No label is known to be unused and no cluster of rows is nearly equal, so there is nothing to compare "
                "with; name some tokens that never occur in training."
            )
        said = (
            f"{len(self.reference):,} labels serve as examples of untrained rows ({self.how}). The "
            f"{len(self.candidates):,} labels nearest to them in direction, after the mean row is taken away, are "
            f"candidates, not verdicts: {quoted(self.labels, self.candidates)}. Of the indicators, "
            f"{' and '.join(self.invariant)} stay when one vector is added to all rows; the others are partly "
            f"convention."
        )
        if self.never_win is not None:
            said += f" {len(self.never_win):,} of the candidates can never win for any input."
        return said

    def plot(self, ax: Any = None) -> Any:
        """The two invariant indicators against each other, candidates and reference marked."""
        ax = axes(ax)
        if CENTRED in self.indicators:
            x, y = (self.indicators[k] for k in INVARIANT)
            ax.scatter(x, y, s=3, color="0.6", linewidths=0)
            for which, name, colour in (
                (self.candidates, "candidates", "#c0392b"),
                (self.reference, "reference", "#1f6f8b"),
            ):
                ax.scatter(x[which], y[which], s=8, label=name, color=colour, linewidths=0)
            ax.legend(frameon=False)
        else:
            ax.text(0.5, 0.5, "no reference rows", ha="center", transform=ax.transAxes)
        ax.set_xlabel(CENTRED)
        ax.set_ylabel(L2)
        return ax


def undertrained(
    head: Head, unused: Any = None, *, can_win: CanWin | None = None, duplicates: NearDuplicates | None = None
) -> Undertrained:
    """Labels whose rows look like those of tokens that never occurred in training.

    Parameters
    ----------
    unused : labels known to be unused, by name or number, optional
        Otherwise padded rows, names such as [unused7] or <|reserved_special_token_3|>, tokens for bytes that no
        UTF-8 text holds, and where there are none of these, the largest tight cluster of nearly equal rows: softmax
        training moves all rows that never occur alike. That they are untrained is then assumed, and said.
    can_win : the result of gonio.can_win(head), optional: which candidates can never win
    duplicates : the result of near_duplicates(head), where it is known

    Claims: LB24.invariant
    """
    reference, how = _given(unused, head) if unused is not None else find_unused(head)
    if not len(reference):
        reference, how = _cluster(head, near_duplicates(head) if duplicates is None else duplicates)
    norm = head.norms.copy()
    found: dict[str, np.ndarray] = {"norm": norm}
    if head.bias is not None:
        found["bias"] = head.bias.astype(np.float64)
    candidates = np.zeros(0, np.int64)
    if len(reference):
        found = indicators(head, reference) | found
        known = np.union1d(reference, head.padded)
        others = np.setdiff1d(np.arange(head.shape[0]), known)
        most = int(np.ceil(SHARE * len(others)))
        candidates = others[np.argsort(found[CENTRED][others], kind="stable")[:most]]
    never = None if can_win is None else candidates[np.isin(candidates, can_win.never)]
    invariant = INVARIANT if len(reference) else ()
    return Undertrained(found, invariant, candidates, reference, how, never, head.labels)


def indicators(head: Head, reference: np.ndarray) -> dict[str, Float[np.ndarray, " labels"]]:
    """The four indicators that need a reference, from two passes over the rows."""
    n, _ = head.shape
    _, axes_, m = spectrum(head)
    v = axes_[:, 0]
    mean_of_unused = head.rows[reference].astype(np.float64).mean(axis=0)
    without = mean_of_unused - (mean_of_unused @ v) * v
    centred = mean_of_unused - m.mean
    out = {k: np.empty(n) for k in (RAW, WITHOUT_PC, CENTRED, L2)}
    for s, e in spans(n, ROWS):
        E = head.rows[s:e].astype(np.float64)
        out[RAW][s:e] = cosine_distance(E, mean_of_unused)
        out[L2][s:e] = np.linalg.norm(E - mean_of_unused, axis=1)
        out[CENTRED][s:e] = cosine_distance(E - m.mean, centred)
        out[WITHOUT_PC][s:e] = cosine_distance(E - np.outer(E @ v, v), without)
    return out


def cosine_distance(E: np.ndarray, u: np.ndarray) -> Float[np.ndarray, " rows"]:
    """1 - E_i.u / max(|E_i||u|, 1e-6); zero rows have 1."""
    return 1 - E @ u / np.maximum(np.linalg.norm(E, axis=1) * np.linalg.norm(u), TINY)


def find_unused(head: Head) -> tuple[Int[np.ndarray, " unused"], str]:
    """Labels that cannot have occurred, as far as the file and the names tell, and how they were found."""
    if len(head.padded):
        return head.padded.copy(), "rows without a token"
    if head.named:
        reserved = [i for i, x in enumerate(head.labels) if _RESERVED.fullmatch(x)]
        if reserved:
            return np.array(reserved), "names kept in reserve"
        byte_level = sum(x.startswith("Ġ") for x in head.labels) > 10
        names = {chr(b) for b in _NEVER_UTF8} if byte_level else {f"<0x{b:02X}>" for b in _NEVER_UTF8}
        found = [i for i, x in enumerate(head.labels) if x in names]
        if found:
            return np.array(found), "bytes that no UTF-8 text holds"
    return np.zeros(0, np.int64), "none found"


def _cluster(head: Head, duplicates: NearDuplicates) -> tuple[np.ndarray, str]:
    """The largest group of near-duplicates that is tight against the spread of all rows, and not most of them."""
    large = [g for g in duplicates.groups if MEMBERS <= len(g) <= head.shape[0] // 2]
    spread = float(np.sqrt(max(0.0, np.trace(moments(head).covariance)))) if large else 0.0
    for group in large:
        rows = head.rows[np.array(group)].astype(np.float64)
        if np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()) <= TIGHT * spread:
            return np.array(group), f"a cluster of {len(group):,} nearly equal rows, assumed to be untrained"
    return np.zeros(0, np.int64), "none found"


def _given(unused: Any, head: Head) -> tuple[np.ndarray, str]:
    if isinstance(unused, (str, int, np.integer)):
        unused = [unused]
    try:
        rows = np.unique([head.index(x.item() if isinstance(x, np.generic) else x) for x in unused])
    except TypeError:
        raise GonioError(
            f"undertrained: unused is a {type(unused).__name__}; labels by name or number are needed."
        ) from None
    if not len(rows):
        raise GonioError("undertrained: unused names no label; name at least one, or leave it out to have them found.")
    return rows.astype(np.int64), "given"
