"""What rounding a head does to who can win.

Rows that differ by less than the grid of a narrow type become twins, and a row just outside the hull of the others may
fall inside it. Nothing is trained anew: only the head's numbers are rounded, the inputs stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import ml_dtypes
import numpy as np

from gonio.ask.wins import can_win
from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.row_table import Affine8, RowTable
from gonio.core.status import Status

if TYPE_CHECKING:
    from jaxtyping import Int

Precision = Literal["bf16", "fp16", "fp8", "int8", "int4"]
LEVELS = {"int8": 127, "int4": 7}
TYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp8": ml_dtypes.float8_e4m3fn}
LARGEST = {k: float(ml_dtypes.finfo(v).max) for k, v in TYPES.items()}

Decide = Callable[[Head], np.ndarray]


def cast(head: Head, kind: Precision) -> Head:
    """The head with its rows rounded to a narrow type; it is widened again where it is used.

    bf16, fp16  rows and bias, to nearest; a number beyond fp16's largest (65504) is refused, for it becomes infinite
    fp8         rows, e4m3fn to nearest; beyond 448 the type has no numbers, so entries saturate; bias as it is
    int8, int4  rows, q = round(127 w / max|w|), or 7 in place of 127, with one scale a row; bias as it is
    """
    checks.one_of(kind, get_args(Precision), "cast", "kind")
    n, d = head.shape
    if kind in LEVELS:
        levels = LEVELS[kind]
        q, scale = np.empty((n, d), np.int8), np.ones(n, np.float32)
        for start, block in head.blocks():
            part = slice(start, start + len(block))
            top = np.abs(block).max(axis=1).astype(np.float64) / levels
            with np.errstate(all="ignore"):
                scale[part] = np.where(top > 0, top, 1)
                q[part] = np.clip(
                    np.rint(block.astype(np.float64) / scale[part, None].astype(np.float64)), -levels, levels
                )
            if not (np.isfinite(scale[part]).all() and (scale[part] > 0).all()):
                raise GonioError(f"cast: a row of W is too large or small for the float32 scale of {kind}; rescale it.")
        rows = RowTable(q, dim=d, unpack=Affine8(scale, np.zeros((), np.int8)), kind=f"{kind} (per-row absmax)")
        return head.replace(W=rows, source=None)
    W = np.empty((n, d), TYPES[kind])
    for start, block in head.blocks():
        W[start : start + len(block)] = narrowed(block, kind, f"W[{start}...]")
    bias = head.bias
    if bias is not None and kind != "fp8":
        bias = checks.wide(narrowed(bias, kind, "bias"))
    return head.replace(W=W, bias=bias, source=None)


def narrowed(a: np.ndarray, kind: str, name: str) -> np.ndarray:
    """`a` rounded to the nearest numbers of a type; fp8 saturates."""
    top = float(np.abs(a).max(initial=0))
    if kind == "fp8":
        a = np.clip(a, -LARGEST[kind], LARGEST[kind])
    with np.errstate(all="ignore"):
        out = a.astype(TYPES[kind])
    if not np.isfinite(out.astype(np.float64)).all():
        raise GonioError(
            f"cast: {name} holds a number of size {top:.4g} and the largest of {kind} is {LARGEST[kind]:.6g}; "
            f"rescale the head or choose a wider type."
        )
    return out


@dataclass(frozen=True, eq=False)
class PrecisionAudit:
    """Labels whose standing a cast changes.

    lost       could reach the top, and cannot after it
    tied       could win alone, and after it only together with labels that have become equal to it
    gained     could not reach the top, and can after it
    unclear    undecided before or after
    saturated  entries of W beyond the largest number of fp8
    """

    kind: str
    head: Head
    lost: Int[np.ndarray, " lost"]
    tied: Int[np.ndarray, " tied"]
    gained: Int[np.ndarray, " gained"]
    unclear: Int[np.ndarray, " unclear"]
    before: np.ndarray
    after: np.ndarray
    saturated: int

    def __post_init__(self) -> None:
        for name in ("lost", "tied", "gained", "unclear", "before", "after"):
            getattr(self, name).flags.writeable = False

    def to_dict(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        lists = {k: getattr(self, k).tolist() for k in ("lost", "tied", "gained", "unclear")}
        return {"kind": self.kind, "head": self.head.digest, "saturated": self.saturated} | lists

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, k)):,} {k}" for k in ("lost", "tied", "gained", "unclear"))
        over = f"; {self.saturated:,} entries saturated" if self.saturated else ""
        return f"PrecisionAudit({self.kind}, {len(self.before):,} labels)\n  {parts}{over}"


def precision_audit(head: Head, kind: Precision, decide: Decide | None = None) -> PrecisionAudit:
    """Which labels become unable to win, tied, or newly able when the head is rounded.

    `decide(head)` gives the `Status` of each label; `can_win` does by default.
    """
    decide = decide or (lambda h: can_win(h).status)
    small = cast(head, kind)
    before, after = (np.asarray(decide(h), dtype=object) for h in (head, small))
    could, can = ((status == Status.WINS) | (status == Status.SHARED) for status in (before, after))
    saturated = sum(int((np.abs(b) > LARGEST["fp8"]).sum()) for _, b in head.blocks()) if kind == "fp8" else 0
    return PrecisionAudit(
        kind,
        small,
        lost=np.flatnonzero(could & (after == Status.NEVER)),
        tied=np.flatnonzero((before == Status.WINS) & (after == Status.SHARED)),
        gained=np.flatnonzero((before == Status.NEVER) & can),
        unclear=np.flatnonzero((before == Status.UNDECIDED) | (after == Status.UNDECIDED)),
        before=before,
        after=after,
        saturated=saturated,
    )
