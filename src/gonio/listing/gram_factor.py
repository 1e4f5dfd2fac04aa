"""Rows with given cosines: L of full column rank with L L' = C, up to the error of C.

An m x m matrix whose entries are off by at most e is off by at most  m e  as an operator, so an eigenvalue up to that
may be 0 (Weyl) and is taken for 0; the space of the others turns by at most about  2 m e / (the smallest of them)
(Davis and Kahan), and so do the rows L. What hangs on less than that cannot be told from the cosines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError

if TYPE_CHECKING:
    from jaxtyping import Float

FLOAT64_ERROR = 1e-14  # of a computed cosine: some dozen roundings
FLOAT32_ERROR = 2.0**-23
ERRORS_APART = 30  # what differs by less than so many errors of a row is not told apart
LEAST_TOLERANCE = 1e-9  # below this values are not told apart whatever the precision


@dataclass(frozen=True, eq=False)
class GramFactor:
    """L with L L' = C up to the error of C.

    rows        L, of full column rank
    error       how far an entry of C may be off, and `told` how that is known
    row_error   how far a row of L may be off, for rows of length about 1
    """

    rows: Float[np.ndarray, "rows rank"]
    error: float
    told: str
    row_error: float

    @property
    def tolerance(self) -> float:
        """Values up to this are taken for zero."""
        return max(LEAST_TOLERANCE, ERRORS_APART * self.row_error)


def stated_error(C: np.ndarray) -> tuple[float, str]:
    """How far an entry may be off, read off the numbers: half a unit of the last decimal that they carry, float32, or
    float64. 0, 1/2 and 1 say nothing, since they may be exact; where all are such, they are taken as exact.
    """
    given = np.asarray(C)
    x = np.abs(given.astype(np.float64).reshape(-1))
    x = x[~np.isin(x, (0.0, 0.5, 1.0))]
    with np.errstate(over="ignore"):
        single = given.dtype.itemsize < 8 or (len(x) > 0 and bool((x.astype(np.float32) == x).all()))
    if not len(x):
        return (FLOAT32_ERROR, "float32") if given.dtype.itemsize < 8 else (FLOAT64_ERROR, "float64")
    # An entry of a float32 matrix prints its own short decimal.
    text = [np.format_float_positional(v, trim="-") for v in (x.astype(np.float32) if single else x)]
    digits = max(len(t.partition(".")[2]) for t in text)
    if digits < (7 if single else 14):
        return 0.5 * 10.0**-digits, f"{digits} decimals"
    return (FLOAT32_ERROR, "float32") if single else (FLOAT64_ERROR, "float64")


def factorise(C: Any, *, tol: float | None = None, who: str = "rows_from_gram") -> GramFactor:
    """L of full column rank with L L' = C, for a Gram or cosine matrix; tol: how far an entry may be off.

    Refused where C is not symmetric, has an eigenvalue below 0, or eigenvalues too near its error to tell the rank.
    """
    given = checks.matrix(C, who, "C", axes=("rows", "rows"))
    G = given.astype(np.float64)
    size = max(1.0, float(np.abs(G).max(initial=0)))
    error, told = (tol, "as given") if tol is not None else stated_error(given)
    if G.shape[0] != G.shape[1] or not np.allclose(G, G.T, rtol=0, atol=4 * max(error, 1e-12) * size):
        raise GonioError(f"{who}: C has shape {G.shape}; a symmetric matrix of cosines is needed.")
    s, U = np.linalg.eigh((G + G.T) / 2)
    off = max(len(G) * error * size, 4 * max(0.0, -float(s[0])))
    if -s[0] > 0.1 * s[-1] or -s[0] > max(1e-4 * s[-1], len(G) * error * size):
        raise GonioError(f"{who}: C has the eigenvalue {s[0]:.3g}; cosines of real vectors have none below 0.")
    keep = s > off
    least = float(s[keep].min(initial=np.inf))
    row_error = 2 * off * np.sqrt(float(s[-1])) / (least * np.sqrt(size)) if keep.any() else 0.0
    if not ERRORS_APART * row_error < 0.1:
        raise GonioError(
            f"{who}: the cosines are good to {error:.1g} ({told}), so eigenvalues up to {off:.1g} may be 0; the next "
            f"is {least:.2g}, too near to tell the rank. Give them with more digits, or the head itself."
        )
    return GramFactor(U[:, keep][:, ::-1] * np.sqrt(s[keep][::-1]), error, told, row_error)


def rows_from_gram(C: Any, *, tol: float | None = None) -> Float[np.ndarray, "rows rank"]:
    """The rows L of `factorise`: L L' = C."""
    return factorise(C, tol=tol).rows
