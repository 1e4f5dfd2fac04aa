"""Rows rounded to one byte a number, with what the rounding left: a first look at products, exact but for a known rest.

A row is  v = scale p + r,  p whole numbers from -127 to 127, |r| <= rest. For two rows u and v

    |u.v - scale_u scale_v (p_u.p_v)|  =  |r_u.v + (scale_u p_u).r_v|  <=  rest_u |v| + (|u| + rest_u) rest_v

and p_u.p_v is exact (`byte_products`). The same holds of the leading coordinates of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gonio.core import byte_products
from gonio.core.parallel import in_threads, spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Int8, UInt8

LARGEST = 127
ENOUGH = 1e10  # multiplications below which it does not pay to round (and, the first time, to compile)
PIECE = 512  # rows that are rounded at a time


@dataclass(frozen=True, eq=False)
class ByteRows:
    """Rows in bytes.

    numbers   p, the width filled up with zeros to a multiple of four
    packed    the same as the columns of a product
    scale     of each row, never 0
    rest      |v - scale p| of each row, rounded up
    length    |v| of each row, rounded up
    """

    numbers: Int8[np.ndarray, "rows fours"]
    packed: UInt8[np.ndarray, "blocks fours bytes"]
    scale: Float[np.ndarray, " rows"]
    rest: Float[np.ndarray, " rows"]
    length: Float[np.ndarray, " rows"]

    @classmethod
    def of(cls, rows: Float[np.ndarray, "rows width"]) -> ByteRows:
        """Rows of finite floats, rounded."""
        numbers, scale, rest, length = rounded(rows)
        return cls(numbers, byte_products.packed(numbers), scale, rest, length)

    def of_these(self, which: Int[np.ndarray, " some"]) -> ByteRows:
        """Some of the rows."""
        numbers = self.numbers[which]
        return ByteRows(numbers, byte_products.packed(numbers), self.scale[which], self.rest[which], self.length[which])


def worthwhile(rows: int, others: int, width: int) -> bool:
    """Whether products of so many rows with so many others are done sooner in bytes."""
    steps = float(rows) * others * width
    return byte_products.are_fast() and steps >= ENOUGH and width <= byte_products.WIDEST


def rounded(rows: Float[np.ndarray, "rows width"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(p, scale, rest, length) of rows of finite floats."""
    n, width = rows.shape
    numbers = np.zeros((n, -(-width // byte_products.FOUR) * byte_products.FOUR), np.int8)
    scale, rest, length = np.empty(n), np.empty(n), np.empty(n)

    def one(s: tuple[int, int]) -> None:
        part = slice(*s)
        v = rows[part].astype(np.float64)
        top = np.maximum(v.max(axis=1, initial=0), -v.min(axis=1, initial=0))
        scale[part] = np.where(top > 0, top / LARGEST, 1.0)
        p = np.rint(v / scale[part, None])
        numbers[part, :width] = np.clip(p, -LARGEST, LARGEST, out=p)
        length[part] = np.sqrt(np.einsum("ij,ij->i", v, v)) * (1 + 1e-9)
        v -= np.multiply(p, scale[part, None], out=p)
        # scale p is rounded in float64, and so is the difference; 1e-14 |v| is more than both.
        rest[part] = np.sqrt(np.einsum("ij,ij->i", v, v)) * (1 + 1e-9) + 1e-14 * length[part]

    in_threads(one, spans(n, PIECE))
    return numbers, scale, rest, length
