"""Every ranking that a head can output, listed exactly.

RP(W) = SP(BW): the sign vectors of all differences of scores, B the braid matrix. In general position
`generic_rankings` lists them directly; otherwise the differences are formed from exact whole numbers (rounding them
would break the dependencies w_i - w_k = (w_i - w_j) + (w_j - w_k)) and their cells listed by `degenerate_cells`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import AllInputs
from gonio.core.parallel import batches
from gonio.core.readable_label import quoted
from gonio.core.tasks import run
from gonio.listing.arrangement import Arrangement, arrange, arrange_with_tolerance, whole_rows
from gonio.listing.cell_list import MOST_CHECKED, WORTH_THREADS, CellList, Cursor
from gonio.listing.counts import count_rankings
from gonio.listing.generic_rankings import list_rankings, random_forest
from gonio.listing.kernel_options import UNIT_ROUNDOFF
from gonio.listing.packed_signs import unpack
from gonio.listing.pattern import LIMIT, Block, Numbers, Patterns, read_as
from gonio.listing.pieces import Piece, forest_pieces, in_order
from gonio.listing.score_differences import all_differences, differences_from_0

if TYPE_CHECKING:
    from jaxtyping import Integer

RANKINGS_PER_PIECE = 1 << 16
TOGETHER = 256  # pieces after which a proof stops where one is in doubt


class Rankings(Patterns):
    """The rankings of a head: `len`, `in`, iteration, `to_array` (rows of label indices, winner first).

    Labels with equal row and bias are always tied, so no ranking without ties exists: `twins` names them, and
    drop_twins=True ranks the first of each group.
    """

    def __init__(self, head: Head, tol: float | None, drop_twins: bool, limit: int | None) -> None:
        self.head, self.tol, self.limit = head, tol, limit
        self.extra_rows = int(head.bias is not None)
        table = head.W.astype(np.float64)
        if self.extra_rows:
            table = np.column_stack([table, head.bias.astype(np.float64)])  # type: ignore[union-attr]
        groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(table + 0.0):  # -0.0 + 0.0 is 0.0
            groups.setdefault(row.tobytes(), []).append(i)
        self.twins = tuple(tuple(g) for g in groups.values() if len(g) > 1)
        self.ranked = tuple(sorted(g[0] for g in groups.values())) if drop_twins else tuple(range(len(table)))
        self._no_pattern = bool(self.twins) and not drop_twins
        self._table = table[list(self.ranked)]
        self.notes = tuple(self._write_notes(drop_twins))

    @property
    def _name(self) -> str:
        return "rankings"

    @property
    def _width(self) -> int:
        return len(self.ranked) * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype:
        """The smallest unsigned type that holds a label index."""
        return np.dtype(
            np.uint8 if self.head.shape[0] <= 256 else np.uint16 if self.head.shape[0] <= 65536 else np.uint32
        )

    @property
    def _places(self) -> type:
        """The type that holds a place in `ranked`."""
        return np.uint8 if len(self.ranked) <= 256 else np.int32

    def _empty(self) -> np.ndarray:
        return np.zeros((0, len(self.ranked)), self.dtype)

    def _write_notes(self, drop_twins: bool) -> Iterator[str]:
        head = self.head
        if self.twins:
            first = ", ".join(quoted(head.labels[i]) for i in self.twins[0][:4])
            what = (
                "the first of each is ranked"
                if drop_twins
                else "so no ranking without ties exists; drop_twins=True ranks the first of each"
            )
            yield f"{len(self.twins)} groups of labels have equal rows and are always tied, such as {first}: {what}"
        if not self._no_pattern and len(self.ranked) > 1:
            rank, full = self.rank, min(len(self.ranked) - 1, head.shape[1])
            if rank < full:
                yield f"the differences of rows have rank {rank}, not {full}"
        if head.inputs.shape != "space":
            yield f"over all inputs; what {head.inputs} allow is asked with can_rank"

    # ----- the differences, exactly

    @cached_property
    def _from_label_0(self) -> Arrangement:
        """The arrangement of each label's row less label 0's, the extra row last."""
        return arrange(whole_rows(differences_from_0(self._table, bool(self.extra_rows))))

    @property
    def rank(self) -> int:
        """The rank of the differences of rows (without the bias)."""
        return self._from_label_0.rank - self.extra_rows

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.ranked)), 2))

    @cached_property
    def _differences(self) -> Arrangement:
        """The arrangement of the differences of all pairs, the extra row first."""
        if self.tol is None:
            return arrange(whole_rows(all_differences(self._table, bool(self.extra_rows))))
        rows = np.array([self._table[i] - self._table[j] for i, j in self._pairs])
        if self.extra_rows:
            rows = np.vstack([np.eye(rows.shape[1])[-1:], rows])
        return arrange_with_tolerance(rows, self.tol)[0]

    @cached_property
    def _cells(self) -> CellList:
        return CellList(self._differences, tol=self.tol, general=False)

    # ----- counting

    @property
    def most(self) -> int:
        """The count for rows in general position."""
        n = len(self.ranked)
        if self._no_pattern:
            return 0
        if n < 2:
            return 1
        if self.tol is not None:
            a = self._differences
            return 0 if len(a.zero) else count_rankings(n, a.rank - self.extra_rows, bias=bool(self.extra_rows))
        return count_rankings(n, self.rank, bias=bool(self.extra_rows))

    @property
    def generic(self) -> int:
        """The count for a head of this shape in general position."""
        return count_rankings(len(self.ranked), self.head.shape[1], bias=bool(self.extra_rows))

    @property
    def conceivable(self) -> int:
        """n!, the dropped labels left out."""
        return math.factorial(len(self.ranked))

    @property
    def count(self) -> int:
        """How many rankings there are."""
        if self.most <= 1:
            return self.most
        self._refuse_if_too_many("counting")
        if self.general:
            return self.most
        self._check_tolerance()
        return self._cells.count * (1 if self.extra_rows else 2)

    @cached_property
    def general(self) -> bool:
        """Whether no differences depend on each other but as they must; proven by one walk."""
        if self._no_pattern or self.tol is not None:
            return False
        if self._from_label_0.rank < 2 or len(self.ranked) < 3:
            return True
        if self.most > MOST_CHECKED:
            return False
        if self.most < WORTH_THREADS:
            return all(_proves(self, piece) for piece in self._pieces())
        known = (self._from_label_0.whole, self.extra_rows)
        every = (run("rankings", _proves, self, some, key=known) for some in batches(self._pieces(), TOGETHER))
        return all(all(several) for several in every)

    def _with_numbers(self, head: Head, tol: float | None) -> Rankings:
        return Rankings(head, tol, bool(self.twins) and not self._no_pattern, self.limit)

    def _exact_rows(self) -> list[list[int]]:
        return whole_rows(all_differences(self._table, bool(self.extra_rows)))

    def _tolerance_gap(self) -> tuple[float, float]:
        return self._cells.gap if self._differences.rank > 1 else (0.0, np.inf)

    def _check_tolerance(self) -> None:
        if self.tol is not None:
            self._must_be_apart(*self._tolerance_gap())

    # ----- listing

    @property
    def _least(self) -> int:
        """The smallest label that may have a parent in a forest, see `generic_rankings`."""
        return 1 if self.extra_rows else 2

    def _pieces(self) -> Iterator[Piece]:
        return forest_pieces(len(self.ranked), self._from_label_0.rank, self._least, RANKINGS_PER_PIECE)

    @cached_property
    def _rotated(self) -> tuple[np.ndarray, np.ndarray]:
        """The label rows and the reference row, in coordinates rotated at random, with their rounding bounds."""
        a = self._from_label_0
        exact = [[row[c] for c in a.columns] for row in differences_from_0(self._table, False)]
        reference = [Fraction(int(c == a.width - 1)) for c in a.columns] if self.extra_rows else exact[1]
        largest = float(max(abs(x) for row in exact for x in row))
        scale = Fraction(2) ** -(math.frexp(largest)[1] if 0 < largest < math.inf else 0)
        rows = np.array([[float(x * scale) for x in row] for row in exact] + [[float(x) for x in reference]])
        rows[-1] /= np.abs(rows[-1]).max()
        r = rows.shape[1]
        rotation = np.linalg.qr(np.random.default_rng([1729, r, 2]).normal(size=(r, r)))[0]
        return rows @ rotation, (r + 4) * UNIT_ROUNDOFF * (np.abs(rows) @ np.abs(rotation)).max(axis=1)

    def _list_piece(self, piece: Piece, with_leaves: bool) -> tuple[np.ndarray, int]:
        """The rankings of a piece with the reference row positive, and how many are in doubt."""
        rows, bounds = self._rotated
        out = np.empty((piece.count, len(self.ranked)), self._places)
        prefix = np.array(piece.prefix, np.int64).reshape(-1, 2)
        stage = np.ascontiguousarray(rows[:, piece.stage :])
        found, doubts = list_rankings(
            stage, bounds, bool(self.extra_rows), prefix, piece.high, piece.low, with_leaves, out
        )
        assert found == piece.count
        return out, doubts

    def blocks(self, after: Cursor = (0, 0), on_progress: Callable | None = None) -> Iterator[Block]:
        """The rankings in blocks, from a cursor on: rows of places in `ranked`, winner first."""
        self._refuse_if_too_many("listing")
        self._check_tolerance()
        if self.most <= 1:
            if self.most and after == (0, 0):
                yield Block(self._only_ranking()[None], (1, 0))
            return
        seen = 0
        for half, cursor in self._positive_half(after):
            yield Block(half if self.extra_rows else np.concatenate([half, half[:, ::-1]]), cursor)
            seen += len(half) * (1 if self.extra_rows else 2)
            if on_progress is not None:
                on_progress(seen, self.most, "rankings")

    def _positive_half(self, after: Cursor) -> Iterator[tuple[np.ndarray, Cursor]]:
        if not self.general or self._from_label_0.rank == 1 or len(self.ranked) == 2:
            for words, cursor in self._cells.blocks(after):
                yield self._rankings_of(words), cursor
        else:
            left = (x for x in enumerate(self._pieces()) if x[0] >= after[0] + (after[1] > 0))
            walk = lambda x: iter([(self._proven_piece(x[1]), (x[0], 1))])  # noqa: E731
            yield from in_order(walk, left, 1 if self.most < WORTH_THREADS else None)

    def _proven_piece(self, piece: Piece) -> np.ndarray:
        out, doubts = self._list_piece(piece, piece.stage == 0)
        if doubts and piece.stage == 0:  # the proof of general position saw none
            raise GonioError("rankings: a sign is in doubt that was proven before.")  # pragma: no cover
        return out

    def _only_ranking(self) -> np.ndarray:
        """The one ranking of a head whose rows are all equal, or of one label: that of the bias."""
        order = np.argsort(-self._table[:, -1], kind="stable") if self.extra_rows else np.arange(len(self.ranked))
        return order.astype(self._places)

    def _rankings_of(self, words: np.ndarray) -> np.ndarray:
        """Cells of the differences as rankings: a label's place is the number of labels that beat it."""
        a, n = self._differences, len(self.ranked)
        bits = unpack(words, a.planes)
        signs = (bits[:, a.plane] == (a.sign > 0))[:, self.extra_rows :]
        beaten = np.zeros((len(words), n), np.int64)
        for k, (i, j) in enumerate(self._pairs):
            beaten[:, j] += signs[:, k]
            beaten[:, i] += ~signs[:, k]
        out = np.empty((len(words), n), self._places)
        np.put_along_axis(out, beaten, np.broadcast_to(np.arange(n), beaten.shape).astype(out.dtype), axis=1)
        return out

    def rows(self, block: Block) -> Integer[np.ndarray, "patterns labels"]:
        """The rankings of a block as rows of label indices, winner first."""
        if self.ranked == tuple(range(self.head.shape[0])) and block.rows.dtype == self.dtype:
            return block.rows
        return np.array(self.ranked, self.dtype)[block.rows]

    def _draw(self, rng: random.Random, count: int) -> np.ndarray:
        n = len(self.ranked)
        if self.most <= 1:
            return self.rows(Block(np.tile(self._only_ranking(), (count, 1)), (0, 0)))
        if not self.general or self._from_label_0.rank == 1 or n == 2:
            half = self._rankings_of(self._cells.draw(rng, count))
        else:
            half = (
                np.concatenate(
                    [
                        self._generic_ranking(random_forest(rng, n, self._from_label_0.rank, self._least))
                        for _ in range(count)
                    ]
                )
                if count
                else self._empty()
            )
        if not self.extra_rows:
            turn = np.array([rng.random() < 0.5 for _ in range(count)], bool)
            half[turn] = half[turn][:, ::-1]
        return self.rows(Block(half, (0, 0)))

    def _generic_ranking(self, edges: list[tuple[int, int]]) -> np.ndarray:
        """The ranking of one forest, in general position."""
        r = self._from_label_0.rank
        if len(edges) < r - 1:
            return self._list_piece(Piece(r - 2 - len(edges), tuple(edges), 1, 1, 1), False)[0]
        # All forests that share all but the last edge are listed together; the one wanted is found by its place.
        *before, (j, p) = edges
        end = before[-1][0] if before else len(self.ranked)
        out, _ = self._list_piece(Piece(0, tuple(before), end - 1, 1, 1 + sum(range(self._least, end))), True)
        return out[1 + sum(range(j + 1, end)) + p][None]

    def __contains__(self, ranking: Any) -> bool:
        """Whether some input ranks the labels so, winner first."""
        from gonio.ask.questions import can_rank

        order = [self.head.index(x) for x in (ranking.tolist() if isinstance(ranking, np.ndarray) else ranking)]
        if sorted(order) != sorted(self.ranked):
            raise GonioError(
                f"rankings: {len(order)} labels were given; a ranking names each of the {len(self.ranked)} labels once."
            )
        if self._no_pattern:
            return False
        head = self.head if self.head.inputs.shape == "space" else self.head.replace(inputs=AllInputs())
        answer = can_rank(head, order).answer
        if answer == "undecided":
            raise GonioError(
                "rankings: this ranking is on the edge between possible and not; exact arithmetic gave up."
            )
        return answer == "yes"


def _proves(several: Rankings, piece: Piece) -> bool:
    """Whether no sign of a piece is in doubt."""
    return piece.stage > 0 or several._list_piece(piece, True)[1] == 0


def rankings(
    head: Head,
    *,
    numbers: Numbers = "floats",
    drop_twins: bool = False,
    limit: int | None = LIMIT,
) -> Rankings:
    """Every ranking some input gives, without ties: a lazy, exact collection.

    RP(W) = { the order of W x + b : x, no two scores equal } = SP(BW)

    numbers, limit: as in `label_sets`. drop_twins: where labels have equal rows, rank the first of each group.

    >>> square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1]], link="softmax")
    >>> len(rankings(square)), [0, 3, 1, 2] in rankings(square)
    (8, False)

    Claims: NG26.D5.4
    """
    head.must_score("rankings")
    if head.link == "cosine":
        raise GonioError(
            "rankings: the link is cosine, whose rows are compared with each other; there is no input to rank for."
        )
    meant, tol = read_as("rankings", head, numbers)
    return Rankings(meant, tol, drop_twins, limit)
