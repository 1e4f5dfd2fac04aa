"""The one place that judges shapes, dtypes and numbers.

Every complaint reads: who, what was found, what was wanted, what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype holds floating-point numbers, the 16-bit and 8-bit types of ml_dtypes included."""
    if dtype.kind == "f":
        return True
    return dtype.kind == "V" and dtype.fields is None and dtype.name.startswith(("bfloat", "float"))


def array(x: Any, who: str, name: str) -> np.ndarray:
    """`x` as an array of real floating-point numbers of the type it has; integers and booleans become float64."""
    if hasattr(x, "toarray") and hasattr(x, "nnz"):  # any scipy.sparse kind
        x = x.toarray()
    try:
        a = np.asarray(x)
    except Exception as e:
        raise GonioError(f"{who}: {name} is not an array of numbers ({e}); give a rectangular array.") from None
    if a.dtype.kind in "biu":
        a = a.astype(np.float64)
    if not is_float(a.dtype):
        raise GonioError(
            f"{who}: {name} has dtype {a.dtype}; real numbers are needed, so give a float array"
            f"{' (objects are never unpickled)' if a.dtype.kind == 'O' else ''}."
        )
    if a.dtype.kind == "f" and a.dtype.itemsize > 8:
        raise GonioError(f"{who}: {name} has dtype {a.dtype}; at most 64 bits are handled, so cast it to float64.")
    return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))


def matrix(x: Any, who: str, name: str, *, axes: tuple[str, str] = ("labels", "dim")) -> np.ndarray:
    """`x` as a non-empty two-dimensional array of floating-point numbers (not checked for NaN)."""
    a = array(x, who, name)
    if a.ndim != 2:
        raise GonioError(
            f"{who}: {name} has shape {a.shape}; two axes ({axes[0]}, {axes[1]}) are needed"
            f"{', so pass it as one row: x[None, :]' if a.ndim == 1 else ''}."
        )
    if 0 in a.shape:
        raise GonioError(
            f"{who}: {name} has shape {a.shape} and so is empty; at least one {axes[a.shape.index(0)]} entry is needed."
        )
    return a


def vector(x: Any, who: str, name: str, length: int | None = None, per: str = "label") -> np.ndarray:
    """`x` as a finite one-dimensional float array of the wanted length; shapes (1, n) and (n, 1) are flattened."""
    a = array(x, who, name)
    if a.ndim == 2 and 1 in a.shape:
        a = a.reshape(-1)
    if a.ndim != 1:
        raise GonioError(f"{who}: {name} has shape {a.shape}; one axis is needed, one entry per {per}.")
    if length is not None and len(a) != length:
        raise GonioError(f"{who}: {name} has shape {a.shape}; one entry per {per} is needed, so shape ({length},).")
    a = wide(a)
    finite(a, who, name)
    return a


def finite(a: np.ndarray, who: str, name: str) -> None:
    """Complain about the first NaN or infinity of `a`, naming its place."""
    ok = np.isfinite(a)
    if not ok.all():
        at = tuple(int(i) for i in np.argwhere(~ok)[0])
        raise GonioError(
            f"{who}: {name}{list(at)} is {a[at]}; every entry must be a finite number, so mend or drop it."
        )


def wide(a: np.ndarray) -> np.ndarray:
    """`a` in float32 or float64: as it is where it is one of them, otherwise in float32, exactly."""
    if a.dtype in (np.float32, np.float64):
        return a
    if a.dtype.name == "bfloat16":  # the upper half of a float32: a shift is far quicker than a cast
        return (np.ascontiguousarray(a).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if a.dtype.itemsize == 1:  # an 8-bit float has 256 values: look them up
        values = np.arange(256, dtype=np.uint8).view(a.dtype).astype(np.float32)
        return values[np.ascontiguousarray(a).view(np.uint8)]
    return a.astype(np.float32)


def judged(
    pairs: Any, judgements: Any, n: int, who: str, least: int
) -> tuple[Int[np.ndarray, "pairs 2"], Float[np.ndarray, " pairs"]]:
    """Pairs of n rows and one judgement each: at least so many, within the rows, not all judged alike."""
    if pairs is None or judgements is None:
        raise GonioError(f"{who}: judged pairs are needed; give both, pairs of shape (count, 2) and their judgements.")
    p = np.asarray(pairs)
    if p.ndim != 2 or p.shape[1] != 2 or p.dtype.kind not in "iu":
        raise GonioError(f"{who}: pairs has shape {p.shape} of {p.dtype}; whole numbers, shape (count, 2), are needed.")
    y = vector(judgements, who, "judgements", len(p), per="pair").astype(np.float64)
    if len(p) < least:
        raise GonioError(f"{who}: {len(p)} judged pairs were given; at least {least} are needed to hold some out.")
    if p.min() < 0 or p.max() >= n:
        raise GonioError(f"{who}: pairs names row {p.min() if p.min() < 0 else p.max()}; there are rows 0 to {n - 1}.")
    if np.ptp(y) == 0:
        raise GonioError(f"{who}: all judgements are {y[0] + 0:g}; some must differ.")
    return p.astype(np.int64), y


def embeddings(F: Any, dim: int, who: str) -> Float[np.ndarray, "points dim"]:
    """`F` as finite rows of the head's width; one vector counts as one row."""
    a = array(F, who, "F")
    if a.ndim == 1:
        a = a[None, :]
    a = wide(matrix(a, who, "F", axes=("points", "dim")))
    if a.shape[1] != dim:
        raise GonioError(f"{who}: F has shape {a.shape} and the head has width {dim}; F needs shape (points, {dim}).")
    finite(a, who, "F")
    return a


def names(labels: Any, count: int, who: str) -> tuple[str, ...]:
    """`labels` as one string a row."""
    if isinstance(labels, str):
        raise GonioError(f"{who}: labels is the text {labels[:40]!r}; a sequence of {count} names is needed.")
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise GonioError(f"{who}: labels has shape {labels.shape}; one axis of {count} names is needed.")
    try:
        out = tuple(x if isinstance(x, str) else str(x) for x in labels)
    except TypeError:
        raise GonioError(
            f"{who}: labels is a {type(labels).__name__}; a sequence of {count} names is needed."
        ) from None
    if len(out) != count:
        raise GonioError(f"{who}: {len(out)} labels were given for {count} rows; one label per row is needed.")
    return out


def listed(x: Any, who: str, of: str) -> list[Any]:
    """What was given as a list."""
    try:
        return list(x.tolist() if isinstance(x, np.ndarray) else x)
    except TypeError:
        raise GonioError(f"{who}: a list of {of} is needed, not a {type(x).__name__}.") from None


def positive(x: Any, who: str, name: str, otherwise: str = "") -> float:
    """A finite number above 0, as a float; anything else is an error that shows it.

    >>> positive(30, "Head", "softcap")
    30.0
    """
    try:
        number = float(x) if isinstance(x, Real) and not isinstance(x, bool) else None
    except OverflowError:  # a whole number beyond floats
        number = np.inf
    if number is None or not (np.isfinite(number) and number > 0):
        shown = repr(x)[:60] if number is None else number
        raise GonioError(f"{who}: {name} is {shown}; a positive number is needed{otherwise}.")
    return number


def one_of(value: Any, choices: Sequence[str], who: str, name: str) -> str:
    """`value` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise GonioError(f"{who}: {name} is {value!r}; choose one of {', '.join(map(repr, choices))}.")
    return value
