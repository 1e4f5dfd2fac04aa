"""Rows under a linear map, with a bound of what rounding did to them.

    v_j = L (a_j - centre)

`centre` and `L` may be any floats: a search chooses them so that the v_j are isotropic; nothing rests on its choice.
The V_j computed in float64 are within `drift` of the exact v_j; V32 holds them once more, rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.byte_rows import ByteRows, worthwhile
from gonio.core.float_units import UNIT, UNIT32
from gonio.core.parallel import spans

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 4096


@dataclass(frozen=True, eq=False)
class MappedRows:
    """The v_j of all rows, in float64 by label (where kept) and in float32 by falling norm."""

    centre: Float[np.ndarray, " width"]
    L: Float[np.ndarray, "rank width"]
    V: Float[np.ndarray, "labels rank"]
    V32: Float[np.ndarray, "labels rank"]  # the long rows first: a rival shorter than a score cannot reach it
    order: Int[np.ndarray, " labels"]  # the labels of these
    norms: Float[np.ndarray, " labels"]  # by label
    drift: float  # |V_j - v_j| is at most this for every j
    reach: float  # |a_j - centre| is at most this for every j

    @property
    def rank(self) -> int:
        return self.L.shape[0]

    @property
    def largest(self) -> float:
        """The largest |v_j|."""
        return float(self.norms.max())

    @cached_property
    def bytes(self) -> ByteRows | None:
        """V32 in bytes, where all its products are made sooner so; else None."""
        n = len(self.V32)
        return ByteRows.of(self.V32) if worthwhile(n, n, self.rank) else None


def map_rows(
    rows: Callable[[slice], np.ndarray],
    count: int,
    centre: np.ndarray,
    L: np.ndarray,
    workers: BlasPool,
    *,
    error: float = 0.0,
    keep: bool = True,
) -> MappedRows:
    """The rows 0 .. count - 1 under the map; each entry of theirs is within `error` of the one meant.

    Without `keep` the float64 rows are dropped once they have been rounded to float32.
    """
    V, drift, reach = multiplied(rows, count, centre, L, workers, error)
    norms, V32, order = by_norm(V, workers)
    return MappedRows(centre, L, V if keep else V[:0], V32, order, norms, drift, reach)


def multiplied(
    rows: Callable[[slice], np.ndarray], count: int, centre: np.ndarray, L: np.ndarray, workers: BlasPool, error: float
) -> tuple[np.ndarray, float, float]:
    """V in float64, a bound of its error and the largest |a_j - centre|.

    With A = fl(a - centre):  |V_j - v_j| <= (width + 3) u | |A_j| |L|' | + error | |L| 1 |,  u = 2^-53.
    """
    width = L.shape[1]
    V = np.empty((count, len(L)))
    size32 = np.abs(L).T.astype(np.float32)

    def one(s: tuple[int, int]) -> tuple[float, float]:
        A = rows(slice(*s)) - centre
        np.matmul(A, L.T, out=V[slice(*s)])
        A = np.abs(A, out=A).astype(np.float32)
        bound = A @ size32
        return (
            float(np.sqrt(np.einsum("ij,ij->i", bound, bound).max())),
            float(np.sqrt(np.einsum("ij,ij->i", A, A, dtype=np.float64).max())),
        )

    found = np.array(workers.run(one, spans(count, BLOCK)))
    in_float32 = 1 + 4 * (width + 8) * UNIT32  # the bound itself was computed in float32
    reach = float(found[:, 1].max()) * in_float32
    of_entries = float(np.linalg.norm(np.abs(L).sum(axis=1)))
    drift = (width + 3) * UNIT * float(found[:, 0].max()) * in_float32 + error * of_entries
    underflow = 2.0**-140 * width * (1 + of_entries) * (1 + reach)
    return V, drift * 1.01 + underflow, reach


def by_norm(V: np.ndarray, workers: BlasPool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The norms of the rows, the rows in float32 by falling norm, and that order."""
    norms, V32 = np.empty(len(V)), np.empty(V.shape, np.float32)
    parts = list(spans(len(V), BLOCK))

    def measure(s: tuple[int, int]) -> None:
        norms[slice(*s)] = np.sqrt(np.einsum("ij,ij->i", V[slice(*s)], V[slice(*s)]))

    def round_off(s: tuple[int, int]) -> None:
        V32[slice(*s)] = V[order[slice(*s)]]

    workers.run(measure, parts)
    order = np.argsort(-norms, kind="stable")
    workers.run(round_off, parts)
    return norms, V32, order
