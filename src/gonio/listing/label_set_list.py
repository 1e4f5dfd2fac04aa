"""Every label set that a head can output: the sign vectors of its scores, listed exactly.

SP(W) = { sign(W x + b) : x, no score zero }.  With a bias these are the cells of the rows (w_i, b_i) on the plus side
of the extra row (0, .., 0, 1).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import AllInputs
from gonio.core.readable_label import quoted
from gonio.listing.arrangement import Arrangement, arrange, arrange_with_tolerance, whole_rows
from gonio.listing.cell_list import CellList, Cursor
from gonio.listing.counts import count_label_sets
from gonio.listing.packed_signs import pack, unpack
from gonio.listing.pattern import LIMIT, Block, Numbers, Patterns, read_as

if TYPE_CHECKING:
    from jaxtyping import Integer


class LabelSets(Patterns):
    """The label sets of a head: `len`, `in`, iteration, `to_array` (int8 rows of +1 and -1 in label order).

    Rows of blocks are packed: bit i % 64 of word i // 64 is 1 where label i is on. Labels that were dropped (`dropped`)
    are 0 in the arrays and 0 in the bits.
    """

    def __init__(self, head: Head, tol: float | None, drop_zero: bool, limit: int | None) -> None:
        self.head, self.tol, self.limit = head, tol, limit
        n = head.shape[0]
        rows = _rows(head)
        self.arrangement: Arrangement
        self.arrangement, merged = (arrange(whole_rows(rows)), []) if tol is None else arrange_with_tolerance(rows, tol)
        self.extra_rows = int(head.bias is not None)
        zero = [int(i) - self.extra_rows for i in self.arrangement.zero]
        self.dropped = tuple(zero) if drop_zero else ()
        self._no_pattern = bool(zero) and not drop_zero
        self.notes = tuple(_notes(head, self.arrangement, zero, drop_zero, merged))
        self.cells = CellList(self.arrangement, tol=tol)
        self._signed_labels = n - len(self.dropped)

    @property
    def _name(self) -> str:
        return "label_sets"

    @property
    def count(self) -> int:
        """How many label sets there are."""
        if self._no_pattern:
            return 0
        if self.arrangement.rank == 0:
            return 0 if self._signed_labels else 1
        self._refuse_if_too_many("counting")
        self._check_tolerance()
        return self.cells.count * (1 if self.extra_rows else 2)

    @property
    def most(self) -> int:
        """Cover's count for rows in general position."""
        a = self.arrangement
        if self._no_pattern or a.rank == 0:
            return int(not self._no_pattern and not self._signed_labels)
        return self.cells.most * (1 if self.extra_rows else 2)

    @property
    def generic(self) -> int:
        """Cover's count for a head of this shape."""
        return count_label_sets(self._signed_labels, self.head.shape[1], bias=bool(self.extra_rows))

    @property
    def conceivable(self) -> int:
        """2^n, the dropped labels left out."""
        return 2**self._signed_labels

    @property
    def general(self) -> bool:
        """Whether the rows are in general position, so that the count is Cover's; proven."""
        return not self._no_pattern and self.cells.general

    @property
    def _width(self) -> int:
        return self.head.shape[0]

    def _empty(self) -> np.ndarray:
        return np.zeros((0, self.head.shape[0]), np.int8)

    @cached_property
    def _planes_are_labels(self) -> bool:
        """Whether planes are labels: no row zero, merged or turned."""
        a = self.arrangement
        return len(a.plane) == a.planes and bool((a.sign == 1).all()) and not self.extra_rows

    def _with_numbers(self, head: Head, tol: float | None) -> LabelSets:
        return LabelSets(head, tol, bool(self.dropped), self.limit)

    def _exact_rows(self) -> list[list[int]]:
        return whole_rows(_rows(self.head))

    def _tolerance_gap(self) -> tuple[float, float]:
        return self.cells.gap if self.arrangement.rank > 1 else (0.0, np.inf)

    def _check_tolerance(self) -> None:
        if self.tol is not None:
            self._must_be_apart(*self._tolerance_gap())

    def blocks(self, after: Cursor = (0, 0), on_progress: Callable | None = None) -> Iterator[Block]:
        """The label sets in blocks of 64-bit words, from a cursor on; every other block is the one before negated."""
        self._refuse_if_too_many("listing")
        self._check_tolerance()
        if self._no_pattern or self.arrangement.rank == 0:
            if not self._signed_labels and after == (0, 0):
                yield Block(np.zeros((1, max(1, (self.head.shape[0] + 63) // 64)), np.uint64), (1, 0))
            return
        n, seen, total = self.head.shape[0], 0, self.most
        full = pack(np.array([[i not in self.dropped for i in range(n)]]))[0]
        for words, cursor in self.cells.blocks(after):
            packed = words if self._planes_are_labels else self._in_label_order(words)
            yield Block(packed, cursor) if self.extra_rows else Block(np.concatenate([packed, packed ^ full]), cursor)
            seen += len(packed) * (1 if self.extra_rows else 2)
            if on_progress is not None:
                on_progress(seen, total, "label sets")

    def _in_label_order(self, words: np.ndarray) -> np.ndarray:
        a = self.arrangement
        bits = unpack(words, a.planes)
        rows = np.arange(self.extra_rows, len(a.plane))
        plane = a.plane[rows]
        out = bits[:, np.maximum(plane, 0)] == (a.sign[rows] > 0)
        out[:, plane < 0] = False
        return pack(out)

    def rows(self, block: Block) -> Integer[np.ndarray, "patterns labels"]:
        """The label sets of a block as int8 rows of +1 and -1."""
        n = self.head.shape[0]
        out = unpack(block.rows, n).astype(np.int8) * 2 - 1
        out[:, list(self.dropped)] = 0
        return out

    def _draw(self, rng: random.Random, count: int) -> np.ndarray:
        if self.arrangement.rank == 0:
            return np.zeros((count, self.head.shape[0]), np.int8)
        words = self.cells.draw(rng, count)
        packed = words if self._planes_are_labels else self._in_label_order(words)
        out = self.rows(Block(packed, (0, 0)))
        if not self.extra_rows:
            out *= np.array([1 if rng.random() < 0.5 else -1 for _ in range(count)], np.int8)[:, None]
        return out

    def __contains__(self, labels: Any) -> bool:
        """Whether some input gives this label set: a row of +1 and -1 (or a set or list of the labels that are on)."""
        from gonio.ask.questions import can_label

        n = self.head.shape[0]
        if isinstance(labels, (set, frozenset)) or (
            isinstance(labels, (list, tuple)) and any(isinstance(x, str) for x in labels)
        ):
            on = {self.head.index(x) for x in labels}
        else:
            signs = np.asarray(labels)
            if signs.shape != (n,):
                raise GonioError(f"label_sets: {labels!r} is not a label set; give {n} signs, or a set of labels.")
            if not np.isin(signs, (-1, 1)).all() and not self.dropped:
                return False
            on = {int(i) for i in np.flatnonzero(signs > 0)}
        if self._no_pattern:
            return False
        off = [i for i in range(n) if i not in on and i not in self.dropped]
        head = self.head if self.head.inputs.shape == "space" else self.head.replace(inputs=AllInputs())
        answer = can_label(head, on=sorted(on - set(self.dropped)), off=off).answer
        if answer == "undecided":
            raise GonioError(
                "label_sets: this label set is on the edge between possible and not; exact arithmetic gave up."
            )
        return answer == "yes"


def label_sets(
    head: Head,
    *,
    numbers: Numbers = "floats",
    drop_zero: bool = False,
    limit: int | None = LIMIT,
) -> LabelSets:
    """Every label set some input gives: a lazy, exact collection.

    SP(W) = { sign(W x + b) : x, no score zero }

    numbers: what the stored numbers stand for. "floats": the rationals they are. "decimals": the short decimals that
    they print as (0.55, and not the float nearest to it), exactly. A tolerance such as 1e-9: values up to it (rows have
    length 1) count as zero; refused where values occur on both sides near it. Where the second or third makes a
    difference, `.near_degenerate` tells. A zero row has no sign, so there is no label set; drop_zero leaves such labels
    out. limit: refuse to go through more than so many (None: never refuse).

    >>> sets = label_sets(Head([[1, 0], [0, 1], [1, 1]], link="sigmoid"))
    >>> len(sets), [1, 1, -1] in sets, sets.impossible
    (6, False, 2)

    Claims: NG26.D5.1, NG26.PE.2
    """
    head.must_score("label_sets")
    if head.link == "cosine":
        raise GonioError("label_sets: the link is cosine, whose rows are compared with each other and not thresholded.")
    meant, tol = read_as("label_sets", head, numbers)
    return LabelSets(meant, tol, drop_zero, limit)


def _rows(head: Head) -> np.ndarray:
    """The rows of the arrangement: W, or (0, 1) over (W, b)."""
    W = head.W.astype(np.float64)
    if head.bias is None:
        return W
    extra = np.zeros((1, W.shape[1] + 1))
    extra[0, -1] = 1
    return np.vstack([extra, np.column_stack([W, head.bias.astype(np.float64)])])


def _notes(head: Head, a: Arrangement, zero: list[int], drop_zero: bool, merged: list[str]) -> Iterator[str]:
    n, extra_rows = head.shape[0], int(head.bias is not None)
    name = lambda i: quoted(head.labels[i])  # noqa: E731
    if zero:
        which = ", ".join(name(i) for i in zero[:5]) + (" ..." if len(zero) > 5 else "")
        score = "score" if extra_rows else "row"
        if drop_zero:
            yield f"{len(zero)} labels whose {score} is zero were left out: {which}"
        else:
            yield (
                f"the {score} of {which} is zero for every input, so no label set exists; drop_zero=True leaves it out"
            )
    constant = [i - 1 for i in np.flatnonzero(a.plane == a.plane[0]) if i > 0] if extra_rows else []
    if constant:
        which = ", ".join(map(name, constant[:5]))
        yield f"{len(constant)} labels have a zero row and keep the sign of their bias: {which}"
    lines = [[i - extra_rows for i in g if i >= extra_rows] for g in a.parallel]
    lines = [g for g in lines if len(g) > 1]
    if lines:
        first = ", ".join(name(i) for i in lines[0][:4])
        yield f"{len(lines)} groups of labels lie on one line and are always equal or opposite, such as {first}"
    rank = a.rank - extra_rows
    if rank < min(n, head.shape[1]):
        yield f"the rows have rank {rank}, not {min(n, head.shape[1])}"
    yield from merged
    if head.inputs.shape != "space":
        yield f"over all inputs; what {head.inputs} allow is asked with can_label"
