"""What label sets and rankings share: an exact, lazy collection that counts, lists, samples and compares itself."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.renderers import rendered
from gonio.listing.cell_list import Cursor

if TYPE_CHECKING:
    from jaxtyping import Integer

    from gonio.listing.near_degenerate import NearDegenerate

Numbers = Literal["floats", "decimals"] | float  # what the stored numbers stand for

LIMIT = 10_000_000_000  # patterns that are listed without being told to: some minutes
HELD = 4 << 30  # bytes of an array that holds them all
PER_SECOND = 8e6  # patterns, roughly, on one core: for estimates only


@dataclass(frozen=True, eq=False)
class Block:
    """Some patterns, one a row, and the cursor from which a later listing goes on after them."""

    rows: Integer[np.ndarray, "patterns width"]
    cursor: Cursor


class Patterns(ABC):
    """Every pattern a head can output, exactly; nothing is listed before it is asked for."""

    head: Head
    notes: tuple[str, ...]
    limit: int | None
    tol: float | None

    # ----- what the two kinds say about themselves

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are: an exact whole number of any size."""

    @property
    @abstractmethod
    def most(self) -> int:
        """How many there can be at most: the closed form for as many distinct rows of this rank."""

    @property
    @abstractmethod
    def generic(self) -> int:
        """How many a head of this shape has in general position; `most` also counts with the rank of this one."""

    @property
    @abstractmethod
    def conceivable(self) -> int:
        """How many there would be without any restriction: 2^n label sets, n! rankings."""

    @abstractmethod
    def blocks(self, after: Cursor = (0, 0), on_progress: Callable | None = None) -> Iterator[Block]:
        """The patterns in blocks of packed rows, in a fixed order, from a cursor on."""

    @abstractmethod
    def rows(self, block: Block) -> np.ndarray:
        """The patterns of a packed block, one a row."""

    @abstractmethod
    def _draw(self, rng: random.Random, count: int) -> np.ndarray: ...

    @property
    @abstractmethod
    def _width(self) -> int:
        """Bytes of one row of `to_array`."""

    @abstractmethod
    def _with_numbers(self, head: Head, tol: float | None) -> Patterns:
        """The same question about another reading of the head's numbers."""

    @abstractmethod
    def _exact_rows(self) -> list[list[int]]:
        """The rows of the arrangement as whole numbers."""

    @abstractmethod
    def _tolerance_gap(self) -> tuple[float, float]:
        """With a tolerance: the largest value taken for zero and the smallest taken as it is."""

    # ----- what follows

    @cached_property
    def near_degenerate(self) -> NearDegenerate | None:
        """A second reading of the numbers that counts otherwise, where rounding has broken a degeneracy."""
        from gonio.listing.near_degenerate import second_reading

        return second_reading(self)

    @property
    def impossible(self) -> int:
        """How many conceivable patterns no input gives."""
        return self.conceivable - self.count

    @property
    def share(self) -> float:
        """The share of the conceivable patterns that some input gives."""
        count, of = self.count, self.conceivable
        return count / of if digits(of) - digits(max(count, 1)) < 300 else 0.0

    def __len__(self) -> int:
        count = self.count
        if count >= 1 << 63:
            raise GonioError(f"{self._name}: there are {count:,}; len() holds at most 2^63 - 1, so ask .count.")
        return count

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self.blocks():
            yield from self.rows(block)

    def to_array(self, on_progress: Callable | None = None) -> np.ndarray:
        """All patterns as one array, one a row."""
        self._refuse_if_too_many("to_array")
        if self.most * self._width > HELD:
            raise GonioError(
                f"{self._name}: all of them, up to {self.most:,}, take {self.most * self._width / 1e9:.1f} GB "
                "in one array; "
                f"go through .blocks() instead, which holds a few megabytes."
            )
        parts = [self.rows(b) for b in self.blocks(on_progress=on_progress)]
        return np.concatenate(parts) if parts else self._empty()

    def sample(self, k: int, seed: int = 0) -> np.ndarray:
        """k patterns drawn independently, each pattern with exactly the same chance."""
        if k < 0:
            raise GonioError(f"{self._name}: {k} draws were asked for; a number from 0 on is needed.")
        if self.count == 0:
            raise GonioError(f"{self._name}: there is none to draw from. {' '.join(self.notes)}")
        return self._draw(random.Random(seed), k)  # noqa: S311  reproducible draws, not secrets

    def difference(self, other: Patterns) -> np.ndarray:
        """The patterns of this head that the other does not have."""
        if type(other) is not type(self) or other.head.shape[0] != self.head.shape[0]:
            raise GonioError(f"{self._name}: a difference needs {self._name} of a head with as many labels.")
        mine, theirs = self.to_array(), other.to_array()
        both = (
            np.ascontiguousarray(np.concatenate([mine, theirs])).view(f"V{mine.shape[1] * mine.itemsize}").reshape(-1)
        )
        _, code = np.unique(both, return_inverse=True)
        return mine[~np.isin(code[: len(mine)], code[len(mine) :])]

    def _refuse_if_too_many(self, what: str) -> None:
        if self.limit is not None and self.most > self.limit:
            minutes = self.most // int(60 * PER_SECOND)
            raise GonioError(
                f"{self._name}: {what} would go through up to {_short(self.most)} of them, about {_short(minutes)} "
                f"minutes on one core; pass limit=None to {self._name}() to do it all the same, ask .most for the "
                f"number, can_label or can_rank about single ones, or draw some with .sample."
            )

    def _must_be_apart(self, low: float, high: float) -> None:
        """Complain where the largest value taken for zero is not far below the smallest taken as it is."""
        if low * 10 > high:
            raise GonioError(
                f"{self._name}: at tolerance {self.tol:g} the largest value taken for zero is {low:.3g} and the "
                f"smallest taken as it is {high:.3g}; they are not apart, so the answer would be neither the one nor "
                'the other. Choose a tolerance in a gap, or numbers="floats".'
            )

    @property
    @abstractmethod
    def _name(self) -> str: ...

    @abstractmethod
    def _empty(self) -> np.ndarray: ...

    def _repr_html_(self) -> str:
        return rendered(self, "card")

    def __repr__(self) -> str:
        n, d = self.head.shape
        kind = self._name.replace("_", " ")
        size = f"at most {_short(self.most)} of {_short(self.conceivable)}"
        return f"{type(self).__name__}({n:,} labels, width {d}: {size} {kind})" + "".join(
            f"\n  {x}" for x in self.notes
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts in plain values, for JSON: exactly as stored, and of a second reading where there is one."""
        near = self.near_degenerate
        return {
            "labels": self.head.shape[0],
            "count": self.count,
            "conceivable": _exactly(self.conceivable),
            "impossible": _exactly(self.impossible),
            "share": self.share,
            "notes": list(self.notes),
            "near_degenerate": None if near is None else near.to_dict(),
        }


def read_as(who: str, head: Head, numbers: Numbers) -> tuple[Head, float | None]:
    """The head whose numbers are meant, and the size up to which its values count as zero (None: exact arithmetic)."""
    if numbers == "floats":
        return head, None
    if numbers == "decimals":
        from gonio.listing.near_degenerate import as_printed

        printed = as_printed(head)
        if printed is None:
            raise GonioError(
                f'{who}: numbers="decimals", but the numbers have too many digits to be short decimals; take '
                '"floats", the rationals they are, or a tolerance such as 1e-9.'
            )
        return printed, None
    if isinstance(numbers, str | bool) or not 0 < numbers < 0.1:
        raise GonioError(
            f'{who}: numbers is {numbers!r}; "floats", "decimals" or a tolerance between 0 and 0.1 is needed.'
        )
    return head, float(numbers)


def _short(x: int) -> str:
    """A whole number of any size, to read: Python refuses to print those of more than 4,300 digits."""
    return f"{x:,}" if x < 10**15 else f"{float(x):.3g}" if x < 10**300 else f"10^{digits(x) - 1}"


def digits(x: int) -> int:
    """About how many digits a positive whole number has."""
    return int(x.bit_length() * 0.30102999566398120) + 1


def _exactly(x: int) -> str:
    """All digits where there are few enough to print, otherwise their number."""
    return str(x) if digits(x) < 4000 else f"about 10^{digits(x) - 1}"
