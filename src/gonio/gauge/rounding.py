"""How far a stored number may lie from the one it stands for: half a step of its type, entry by entry.

A number x of p binary digits with 2^e <= |x| < 2^(e+1) is off by at most 2^(e-p). Rows worked out from others are
float64; a packed table's step is its scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.core.inputs import AfterLayerNorm
from gonio.core.row_table import Affine8, Scaled

if TYPE_CHECKING:
    from jaxtyping import Float

DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e5m2": 3}
LEAST = {"float64": 0.0, "float32": 2.0**-150, "float16": 2.0**-25, "bfloat16": 2.0**-134}  # half the least number
EXPONENT = np.int64(0x7FF0_0000_0000_0000)
BLOCK = 2048


def digits_of(kind: str) -> int:
    """The binary digits of a float type by its name; the 8-bit ones that are not listed have four."""
    return DIGITS.get(kind, 4)


def half_step(x: Float[np.ndarray, "*any"], kind: str) -> Float[np.ndarray, "*any"]:
    """Half the distance between neighbouring numbers of a float type, at each x."""
    power = (np.ascontiguousarray(x, np.float64).view(np.int64) & EXPONENT).view(np.float64)
    return np.maximum(power * 2.0 ** -digits_of(kind), LEAST.get(kind, 0.0))


@dataclass(frozen=True, eq=False)
class Storage:
    """The type a head's rows are stored in. `coarse`: below 16 bits, where rounding hides what it should show."""

    head: Head

    @property
    def kind(self) -> str:
        rows = self.head.rows
        plain = rows.unpack is None or isinstance(rows.unpack, Scaled)
        return rows.stored.dtype.name if plain else rows.kind

    @property
    def coarse(self) -> bool:
        return digits_of(self.kind) < 8

    def half_step(self, rows: Float[np.ndarray, "some dim"], which: np.ndarray) -> Float[np.ndarray, "some dim"]:
        unpack = self.head.rows.unpack
        if isinstance(unpack, Scaled) and unpack.factor:
            return half_step(rows / unpack.factor, self.kind) * abs(unpack.factor)
        if self.kind in DIGITS or self.kind.startswith("float8"):
            return half_step(rows, self.kind)
        if isinstance(unpack, Affine8):
            step = np.broadcast_to(unpack.scale if unpack.scale.ndim == 0 else unpack.scale[which], len(rows))
            return np.repeat(np.abs(step)[:, None] / 2.0, rows.shape[1], axis=1)
        bits = next((int(c) for c in self.kind if c.isdigit()), 4)  # ggml's types: at most 2^bits steps a block
        largest = np.abs(rows).max(axis=1, keepdims=True)
        return np.repeat(largest * 2.0 ** (1 - bits), rows.shape[1], axis=1)


@dataclass(frozen=True, eq=False)
class RoundedTable:
    """Chosen rows of a head in float64, and how far rounding may have moved each entry.

    norm   the LayerNorm the rows are seen through: w -> (w * gain) minus its mean, the last column dropped, since the
           columns sum to zero
    unit   rows are divided by their lengths
    """

    head: Head
    which: np.ndarray
    norm: AfterLayerNorm | None = None
    unit: bool = False

    @property
    def width(self) -> int:
        return self.head.shape[1] - (self.norm is not None)

    @property
    def storage(self) -> Storage:
        return Storage(self.head)

    def stored(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a span as they are stored, in float64, and half a step of each entry."""
        which = self.which[span[0] : span[1]]
        first = int(which[0])
        # A slice of a memory map is read in place, a list of rows is gathered.
        in_a_row = np.array_equal(which, np.arange(first, first + len(which)))
        block = self.head.rows[first : first + len(which)] if in_a_row else self.head.rows[which]
        rows = np.ascontiguousarray(block, np.float64)
        return rows, self.storage.half_step(rows, which)

    def block(self, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a span as they are to be compared, and how far each entry may be off."""
        rows, step = self.stored(span)
        if self.norm is not None:
            rows, step = rows * self.norm.gain, step * self.norm.gain
            d, squares = rows.shape[1], step**2
            off = squares * (1 - 2 / d) + squares.mean(axis=1, keepdims=True) / d
            off += (2.0**-51 * np.abs(rows).max(axis=1, keepdims=True)) ** 2  # the mean is computed
            return (rows - rows.mean(axis=1, keepdims=True))[:, :-1], np.sqrt(off)[:, :-1]
        if self.unit:
            length = np.maximum(self.head.norms[self.which[span[0] : span[1]]], 1e-300)[:, None]
            rows, step = rows / length, step / length
            # The length is rounded with its row: all entries move by one factor.
            common = np.sqrt(((rows * step) ** 2).sum(axis=1, keepdims=True)) + 2.0**-53
            return rows, step + 1.75 * np.abs(rows) * common
        return rows, step

    def bias(self) -> tuple[np.ndarray, np.ndarray]:
        """The bias as it is to be compared (zeros for none), and how far each entry may be off."""
        n = len(self.which)
        b = self.head.bias
        value = np.zeros(n) if b is None else b[self.which].astype(np.float64)
        step = np.zeros(n) if b is None else half_step(value, b.dtype.name)
        if self.norm is not None and self.norm.shift.any():
            shift = self.norm.shift
            for start in range(0, n, BLOCK):
                part = slice(start, min(start + BLOCK, n))
                rows, off = self.stored((part.start, part.stop))
                value[part] += rows @ shift
                size = np.sqrt((rows * shift) ** 2 @ np.ones(len(shift)))
                step[part] = np.sqrt(step[part] ** 2 + off**2 @ shift**2 + (2.0**-49 * size) ** 2)
        return value, step


def pieces(count: int) -> list[tuple[int, int]]:
    """The spans a table is read in."""
    return [(a, min(a + BLOCK, count)) for a in range(0, count, BLOCK)]


def embeddings_step(F: Any) -> np.ndarray:
    """Half a step of each entry of an array of embeddings, by the type it was given in."""
    kind = getattr(getattr(F, "dtype", None), "name", "float64")
    return half_step(np.asarray(F, np.float64), kind if kind in DIGITS else "float64")


def mean_square_step(head: Head) -> float:
    """The mean square of the rounding errors of a head's entries: that of half a step to either side, evenly."""
    table = RoundedTable(head, np.arange(head.shape[0]))
    total = sum(float((table.stored(s)[1] ** 2).sum()) for s in pieces(head.shape[0]))
    return total / (3 * head.shape[0] * head.shape[1])
