"""The strong rows that labels climb among, in bytes where products of these are faster: scores and means, nearly.

A place u in [-1, 1]^d is rounded to steps of 1/127, which moves a score by about a hundredth of a typical one; what a
win rests on is looked at again. Shares of rivals are rounded to bytes, and what that leaves of them to bytes once more:
the mean of the rows is then as near as the rows in bytes are.

Example: rows 1 and -0.5 of one coordinate, at u = 0.5: the scores 0.504 and -0.252 for 0.5 and -0.25.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core import byte_products
from gonio.core.byte_rows import LARGEST, ByteRows
from gonio.search.scaled_box import ScaledBox

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Int8, Int32, UInt8


@dataclass(frozen=True, eq=False)
class StrongRows:
    """The rows that a stage begins with; `bytes` where they are faster."""

    labels: Int[np.ndarray, " pool"]
    rows: Float[np.ndarray, "pool dim"]
    constants: Float[np.ndarray, " pool"]
    bytes: ByteRows | None

    @classmethod
    def of(cls, box: ScaledBox, size: int) -> StrongRows:
        """The strongest rows of a box."""
        labels = np.sort(box.by_strength[:size])
        some = None if box.bytes is None else box.bytes.of_these(labels)
        return cls(labels, box.scaled[labels], box.shifted[labels], some)

    def scores_by_bytes(self, u: Float[np.ndarray, "labels dim"], out: Float[np.ndarray, "labels pool"]) -> None:
        """The scores at places u, nearly."""
        assert self.bytes is not None
        numbers = _filled(u.shape[1], np.rint(u * np.float32(LARGEST)))
        out[:] = _product(numbers, self.bytes.packed, len(self.labels))
        out *= (self.bytes.scale / LARGEST).astype(np.float32)
        out += self.constants

    @cached_property
    def turned(self) -> UInt8[np.ndarray, "blocks fours bytes"]:
        """The coordinates of all rows, in bytes, as the columns of a product."""
        assert self.bytes is not None
        return byte_products.packed(_filled(len(self.labels), np.ascontiguousarray(self.bytes.numbers.T)))

    def means_by_bytes(self, shares: Float[np.ndarray, "labels pool"]) -> Float[np.ndarray, "labels dim"]:
        """The sums of the rows by shares, which are rounded to bytes and what is left of them to bytes again."""
        assert self.bytes is not None
        dim = self.rows.shape[1]
        steps = shares * self.bytes.scale.astype(np.float32)
        unit = np.maximum(steps.max(axis=1, keepdims=True), np.float32(1e-30)) / LARGEST
        steps /= unit
        whole = np.rint(steps)
        out = _product(_filled(whole.shape[1], whole), self.turned, dim).astype(np.float32)
        steps -= whole
        steps *= 2 * LARGEST
        rest = _product(_filled(whole.shape[1], np.rint(steps, out=steps)), self.turned, dim)
        out += rest * np.float32(0.5 / LARGEST)
        out *= unit
        return out


def _filled(width: int, numbers: np.ndarray) -> Int8[np.ndarray, "rows fours"]:
    """Whole numbers as bytes, with zeros up to a multiple of four in each row."""
    out = np.zeros((len(numbers), -(-width // byte_products.FOUR) * byte_products.FOUR), np.int8)
    out[:, :width] = numbers
    return out


def _product(numbers: np.ndarray, columns: np.ndarray, count: int) -> Int32[np.ndarray, "rows count"]:
    """All products of rows of bytes with so many columns."""
    out = np.empty(byte_products.room(len(numbers), count), np.int32)
    return byte_products.products(numbers, columns, 0, count, numbers.shape[1], out)[:, :count]
