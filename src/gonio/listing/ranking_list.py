"""Every ranking that a head can output, listed exactly.

RP(W) = SP(BW): the sign vectors of all differences of scores, B the braid matrix. In general position the walk of
`orders` lists them directly; otherwise the differences are formed from exact whole numbers (rounding them would break
the dependencies w_i - w_k = (w_i - w_j) + (w_j - w_k)) and their cells listed by `flats`.
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
from gonio.listing.arrangement import Arrangement, arrange, fractions, whole_rows
from gonio.listing.kernel_options import UNIT_ROUNDOFF as UNIT
from gonio.listing.counts import count_rankings
from gonio.listing.cell_list import CHECKED, SMALL, Cursor, Listing, unpack
from gonio.listing.merge import merge
from gonio.listing.pattern import LIMIT, Block, Patterns, read_as
from gonio.listing.pieces import Piece, forest_pieces, in_order
from gonio.listing.generic_rankings import list_rankings

if TYPE_CHECKING:
    from jaxtyping import Integer

SIZE = 1 << 16  # rankings of a piece


class Rankings(Patterns):
    """The rankings of a head: `len`, `in`, iteration, `to_array` (rows of label indices, winner first).

    Labels with equal row and bias are always tied, so no ranking without ties exists: `twins` names them, and
    drop_twins=True ranks the first of each group.
    """

    def __init__(self, head: Head, tol: float | None, drop_twins: bool, limit: int | None) -> None:
        self.head, self.tol, self.limit = head, tol, limit
        self.extra = int(head.bias is not None)
        table = head.W.astype(np.float64)
        if self.extra:
            table = np.column_stack([table, head.bias.astype(np.float64)])  # type: ignore[union-attr]
        groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(table + 0.0):  # -0.0 + 0.0 is 0.0
            groups.setdefault(row.tobytes(), []).append(i)
        self.twins = tuple(tuple(g) for g in groups.values() if len(g) > 1)
        self.ranked = tuple(sorted(g[0] for g in groups.values())) if drop_twins else tuple(range(len(table)))
        self._none = bool(self.twins) and not drop_twins
        self._table = table[list(self.ranked)]
        self.merged: list[str] = []
        self.notes = tuple(self._say(drop_twins))

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

    def _empty(self) -> np.ndarray:
        return np.zeros((0, len(self.ranked)), self.dtype)

    def _say(self, drop_twins: bool) -> Iterator[str]:
        head = self.head
        if self.twins:
            first = ", ".join(repr(head.labels[i]) for i in self.twins[0][:4])
            what = (
                "the first of each is ranked"
                if drop_twins
                else "so no ranking without ties exists; drop_twins=True ranks the first of each"
            )
            yield f"{len(self.twins)} groups of labels have equal rows and are always tied, such as {first}: {what}"
        if not self._none and len(self.ranked) > 1:
            rank, full = self.rank, min(len(self.ranked) - 1, head.shape[1])
            if rank < full:
                yield f"the differences of rows have rank {rank}, not {full}"
        if not isinstance(head.inputs, AllInputs):
            yield f"over all inputs; what {head.inputs} allow is asked with can_rank"

    # ----- the differences, exactly

    @cached_property
    def _reduced(self) -> Arrangement:
        """Each label's row less label 0's, as whole numbers with one common factor, and the extra row last."""
        exact = fractions(self._table)
        rows = [[x - y for x, y in zip(row, exact[0], strict=True)] for row in exact]
        if self.extra:
            rows.append([Fraction(0)] * (len(rows[0]) - 1) + [Fraction(1)])
        return arrange(whole_rows(rows))

    @property
    def rank(self) -> int:
        """The rank of the differences of rows (without the bias)."""
        return self._reduced.rank - self.extra

    @cached_property
    def _differences(self) -> tuple[Arrangement, list[tuple[int, int]]]:
        """The arrangement of all differences, row 0 first, and the pairs behind its rows (None for the extra row)."""
        n = len(self.ranked)
        pairs = list(combinations(range(n), 2))
        if self.tol is not None:
            D = np.array([self._table[i] - self._table[j] for i, j in pairs])
            if self.extra:
                D = np.vstack([np.eye(D.shape[1])[-1:], D])
            a, self.merged = merge(D, self.tol)
            return a, pairs
        exact = fractions(self._table)
        rows = [[x - y for x, y in zip(exact[i], exact[j], strict=True)] for i, j in pairs]
        if self.extra:
            rows.insert(0, [Fraction(0)] * (len(rows[0]) - 1) + [Fraction(1)])
        return arrange(whole_rows(rows)), pairs

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self._differences[0], tol=self.tol, general=False)

    # ----- counting

    @property
    def most(self) -> int:
        """The count for rows in general position."""
        n = len(self.ranked)
        if self._none:
            return 0
        if n < 2:
            return 1
        if self.tol is not None:
            a = self._differences[0]
            return 0 if len(a.zero) else count_rankings(n, a.rank - self.extra, bias=bool(self.extra))
        return count_rankings(n, self.rank, bias=bool(self.extra))

    @property
    def generic(self) -> int:
        """The count for a head of this shape in general position."""
        return count_rankings(len(self.ranked), self.head.shape[1], bias=bool(self.extra))

    @property
    def conceivable(self) -> int:
        """n!, the dropped labels left out."""
        return math.factorial(len(self.ranked))

    @property
    def count(self) -> int:
        """How many rankings there are."""
        if self.most <= 1:
            return self.most
        self._allow("counting")
        if self.general:
            return self.most
        self._gap()
        return self._listing.count * (1 if self.extra else 2)

    @cached_property
    def general(self) -> bool:
        """Whether no differences depend on each other but as they must; proven by one walk."""
        if self._none or self.tol is not None:
            return False
        if self._reduced.rank < 2 or len(self.ranked) < 3:
            return True
        if self.most > CHECKED:
            return False
        return all(in_order(self._proves, self._pieces(), 1 if self.most < SMALL else None))

    def _proves(self, piece: Piece) -> Iterator[bool]:
        yield piece.stage > 0 or self._orders(piece)[1] == 0

    def _again(self, head: Head, tol: float | None) -> Rankings:
        return Rankings(head, tol, bool(self.twins) and not self._none, self.limit)

    def _exact_rows(self) -> list[list[int]]:
        exact = fractions(self._table)
        rows = [[x - y for x, y in zip(exact[i], exact[j], strict=True)] for i, j in combinations(range(len(exact)), 2)]
        return whole_rows([*rows, [Fraction(0)] * (len(exact[0]) - 1) + [Fraction(1)]] if self.extra else rows)

    def _values(self) -> tuple[float, float]:
        return self._listing.gap if self._differences[0].rank > 1 else (0.0, np.inf)

    def _gap(self) -> None:
        if self.tol is not None:
            self._apart(*self._values())

    # ----- listing

    def _pieces(self) -> Iterator[Piece]:
        return forest_pieces(len(self.ranked), self._reduced.rank, 1 if self.extra else 2, SIZE)

    @cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray]:
        """The label rows and row 0, in coordinates turned at random, with their rounding bounds."""
        a, n = self._reduced, len(self.ranked)
        exact = fractions(self._table)
        rows = [[exact[i][c] - exact[0][c] for c in a.columns] for i in range(n)]
        zero = [Fraction(int(c == a.width - 1)) for c in a.columns] if self.extra else rows[1]
        top = max(abs(x) for row in rows for x in row)
        scale = Fraction(2) ** -(math.frexp(float(top))[1] if 0 < float(top) < math.inf else 0)
        X = np.array([[float(x * scale) for x in row] for row in rows] + [[float(x) for x in zero]])
        X[-1] /= np.abs(X[-1]).max()
        r = X.shape[1]
        turn = np.linalg.qr(np.random.default_rng([1729, r, 2]).normal(size=(r, r)))[0]
        E0 = (r + 4) * UNIT * (np.abs(X) @ np.abs(turn)).max(axis=1)
        return X @ turn, E0

    def _orders(self, piece: Piece) -> tuple[np.ndarray, int]:
        A, E0 = self._turned
        out = np.empty((piece.count, len(self.ranked)), np.uint8 if len(self.ranked) <= 256 else np.int32)
        prefix = np.array(piece.prefix, np.int64).reshape(-1, 2)
        rows = np.ascontiguousarray(A[:, piece.stage :])
        found, doubts = list_rankings(rows, E0, bool(self.extra), prefix, piece.high, piece.low, piece.stage == 0, out)
        assert found == piece.count
        return out, doubts

    def blocks(self, after: Cursor = (0, 0), on_progress: Callable | None = None) -> Iterator[Block]:
        """The rankings in blocks, from a cursor on: rows of places in `ranked`, winner first."""
        self._allow("listing")
        self._gap()
        if self.most <= 1:
            if self.most and after == (0, 0):
                yield Block(self._fixed()[None], (1, 0))
            return
        seen = 0
        for half, cursor in self._halves(after):
            yield Block(half if self.extra else np.concatenate([half, half[:, ::-1]]), cursor)
            seen += len(half) * (1 if self.extra else 2)
            if on_progress is not None:
                on_progress(seen, self.most, "rankings")

    def _halves(self, after: Cursor) -> Iterator[tuple[np.ndarray, Cursor]]:
        if not self.general or self._reduced.rank == 1 or len(self.ranked) == 2:
            for words, cursor in self._listing.blocks(after):
                yield self._ranked(words), cursor
        else:
            left = (x for x in enumerate(self._pieces()) if x[0] >= after[0] + (after[1] > 0))
            run = lambda x: iter([(self._safe(x[1]), (x[0], 1))])  # noqa: E731
            yield from in_order(run, left, 1 if self.most < SMALL else None)

    def _safe(self, piece: Piece) -> np.ndarray:
        out, doubts = self._orders(piece)
        if doubts and piece.stage == 0:  # the proof of general position saw none
            raise GonioError("rankings: a sign is in doubt that was proven before.")  # pragma: no cover
        return out

    def _fixed(self) -> np.ndarray:
        """The one ranking of a head whose rows are all equal, or of one label: that of the bias."""
        order = np.argsort(-self._table[:, -1], kind="stable") if self.extra else np.arange(len(self.ranked))
        return order.astype(np.uint8 if len(order) <= 256 else np.int32)

    def _ranked(self, words: np.ndarray) -> np.ndarray:
        """Cells of the differences as rankings: a label's place is the number of labels that beat it."""
        a, pairs = self._differences
        n = len(self.ranked)
        bits = unpack(words, a.planes)
        signs = (bits[:, a.plane] == (a.sign > 0))[:, self.extra :]
        beaten = np.zeros((len(words), n), np.int64)
        for k, (i, j) in enumerate(pairs):
            beaten[:, j] += signs[:, k]
            beaten[:, i] += ~signs[:, k]
        out = np.empty((len(words), n), np.uint8 if n <= 256 else np.int32)
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
            return self.rows(Block(np.tile(self._fixed(), (count, 1)), (0, 0)))
        if not self.general or self._reduced.rank == 1 or n == 2:
            half = self._ranked(self._listing.draw(rng, count))
        else:
            half = np.concatenate([self._one(self._forest(rng)) for _ in range(count)]) if count else self._empty()
        if not self.extra:
            turn = np.array([rng.random() < 0.5 for _ in range(count)], bool)
            half[turn] = half[turn][:, ::-1]
        return self.rows(Block(half, (0, 0)))

    def _forest(self, rng: random.Random) -> list[tuple[int, int]]:
        """A forest drawn with the same chance as every other: edges (j, p), falling j, fewer than r of them."""
        n, r, least = len(self.ranked), self._reduced.rank, 1 if self.extra else 2
        e = [[1] + [0] * (r - 1)]  # e[i][k]: forests with k edges on the labels least, .., least + i - 1
        for j in range(least, n):
            e.append([e[-1][k] + (j * e[-1][k - 1] if k else 0) for k in range(r)])
        at, k = rng.randrange(sum(e[-1])), 0
        while at >= e[-1][k]:
            at, k = at - e[-1][k], k + 1
        edges = []
        for j in range(n - 1, least - 1, -1):
            without = e[j - least][k]
            if k and rng.randrange(e[j - least + 1][k]) >= without:
                edges.append((j, rng.randrange(j)))
                k -= 1
        return edges

    def _one(self, edges: list[tuple[int, int]]) -> np.ndarray:
        r, k = self._reduced.rank, len(edges)
        if k < r - 1:
            stage = r - 2 - k
            j = edges[-1][0] if edges else len(self.ranked)
            A, E0 = self._turned
            out = np.empty((1, len(self.ranked)), np.uint8 if len(self.ranked) <= 256 else np.int32)
            prefix = np.array(edges, np.int64).reshape(-1, 2)
            list_rankings(np.ascontiguousarray(A[:, stage:]), E0, bool(self.extra), prefix, j - 1, 1, False, out)
            return out
        # All forests that share all but the last edge are listed together; the one drawn is found by its place.
        *before, (j, p) = edges
        low, end = (1 if self.extra else 2), before[-1][0] if before else len(self.ranked)
        whole = 1 + sum(range(low, end))
        out, _ = self._orders(Piece(0, tuple(before), end - 1, 1, whole))
        return out[1 + sum(range(j + 1, end)) + p][None]

    def __contains__(self, ranking: Any) -> bool:
        """Whether some input ranks the labels so, winner first."""
        from gonio.ask.questions import can_rank

        order = [self.head.index(x) for x in (ranking.tolist() if isinstance(ranking, np.ndarray) else ranking)]
        if sorted(order) != sorted(self.ranked):
            raise GonioError(
                f"rankings: {len(order)} labels were given; a ranking names each of the {len(self.ranked)} labels once."
            )
        if self._none:
            return False
        head = self.head if isinstance(self.head.inputs, AllInputs) else self.head.replace(inputs=AllInputs())
        answer = can_rank(head, order).answer
        if answer == "undecided":
            raise GonioError(
                "rankings: this ranking is on the edge between possible and not; exact arithmetic gave up."
            )
        return answer == "yes"


def rankings(
    head: Head,
    *,
    exact: bool = True,
    tol: float | None = None,
    decimals: bool = False,
    drop_twins: bool = False,
    limit: int | None = LIMIT,
) -> Rankings:
    """Every ranking some input gives, without ties: a lazy, exact collection.

    RP(W) = { the order of W x + b : x, no two scores equal } = SP(BW)

    exact, tol, decimals, limit: as in `label_sets`. drop_twins: where labels have equal rows, rank the first of each
    group.

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
    return Rankings(read_as("rankings", head, exact, tol, decimals), tol, drop_twins, limit)
