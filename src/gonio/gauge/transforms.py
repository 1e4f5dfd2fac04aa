"""The changes that may leave a model as it is, each applied to a head and to its embeddings together.

A transform acts on the rows g, the bias b and the embeddings f of a head:

| transform | g -> | b -> | f -> | logits -> |
|---|---|---|---|---|
| Translation(v) | g + v | b | f | + v.f for every label |
| Linear(M) | M g | b | M^-T f | same |
| Rotation(Q), Scaling(c), Diagonal(d) | the Linear maps Q, c I, diag(d) | | | same |
| InputShift(u) | g | b - W u | f + u | same |
| BiasShift(t) | g | b + t | f | + t for every label |
| RowScaling(s), s > 0 | s_i g_i | s_i b_i | f | times s_i |
| LayerNormShift(a) | g_i + a_i / gain | b_i - a_i sum(shift / gain) | f | same, for f after that LayerNorm |

Whether such a change leaves the predictions alone depends on the link: see `gonio.gauge.group`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.inputs import AllInputs
from gonio.core.row_table import RowTable


@dataclass(frozen=True, eq=False)
class Added:
    """Rows of `before` plus a vector for all of them, or one multiple of a direction a row, worked out when read."""

    before: RowTable
    vector: np.ndarray
    times: np.ndarray | None = None

    def __call__(self, stored: np.ndarray, which: Any) -> np.ndarray:
        rows = self.before[which].astype(np.float64)
        if self.times is None:
            return rows + self.vector
        return rows + self.times[which][:, None] * self.vector


@dataclass(frozen=True, eq=False)
class Times:
    """Rows of `before` times a matrix (from the right) or one number a row, worked out when read."""

    before: RowTable
    matrix: np.ndarray

    def __call__(self, stored: np.ndarray, which: Any) -> np.ndarray:
        rows = self.before[which].astype(np.float64)
        return rows * self.matrix[which][:, None] if self.matrix.ndim == 1 else rows @ self.matrix


def _lazily(rows: RowTable, unpack: Any, dim: int) -> RowTable:
    """A table computed from another, block by block: a dialled head of any size costs no second table."""
    return RowTable(rows.stored, dim=dim, unpack=unpack, kind="float64", derived=True)


class Transform:
    """A change of a head and its embeddings. `a.then(b)` is first a, then b; `a.inverse()` undoes a."""

    name = "transform"

    def apply(self, head: Head) -> Head:
        """The changed head."""
        raise NotImplementedError

    def embeddings(self, F: Any) -> np.ndarray:
        """The embeddings that go with the changed head."""
        return checks.wide(checks.array(F, self.name, "F")).astype(np.float64)

    def inverse(self) -> Transform:
        """The change that undoes this one."""
        raise NotImplementedError

    def then(self, other: Transform) -> Chain:
        """This change, followed by another."""
        mine = self.steps if isinstance(self, Chain) else (self,)
        more = other.steps if isinstance(other, Chain) else (other,)
        return Chain((*mine, *more))

    def to_dict(self) -> dict[str, Any]:
        """The transform in plain values."""
        parts = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}
        return {"transform": self.name, **parts}


def _vector(x: Any, who: str, name: str) -> np.ndarray:
    v = checks.vector(x, who, name, per="entry").astype(np.float64)
    v.flags.writeable = False
    return v


def _wide_enough(head: Head, length: int, who: str, what: str = "dimension", size: int | None = None) -> None:
    wanted = head.shape[1] if size is None else size
    if length != wanted:
        raise GonioError(f"{who}: it has {length} entries and the head {wanted} of its {what}s; they must be as many.")


@dataclass(frozen=True, eq=False)
class Chain(Transform):
    """Several changes, one after the other."""

    steps: tuple[Transform, ...]
    name = "chain"

    def apply(self, head: Head) -> Head:
        for step in self.steps:
            head = step.apply(head)
        return head

    def embeddings(self, F: Any) -> np.ndarray:
        F = Transform.embeddings(self, F)
        for step in self.steps:
            F = step.embeddings(F)
        return F

    def inverse(self) -> Chain:
        return Chain(tuple(step.inverse() for step in reversed(self.steps)))

    def to_dict(self) -> dict[str, Any]:
        return {"transform": self.name, "steps": [s.to_dict() for s in self.steps]}


@dataclass(frozen=True, eq=False)
class Translation(Transform):
    """g -> g + v for all labels: every logit moves by the same v.f, so no softmax probability changes (Lemma 3.1).

    Claims: NG26.L3.1
    """

    v: Any
    name = "translation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "v", _vector(self.v, "Translation", "v"))

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.v), "Translation")
        return head.replace(W=_lazily(head.rows, Added(head.rows, self.v), head.shape[1]))

    def inverse(self) -> Translation:
        return Translation(-self.v)


@dataclass(frozen=True, eq=False)
class Linear(Transform):
    """g -> M g, f -> M^-T f for one invertible M: no logit changes."""

    M: Any
    name = "linear"

    def __post_init__(self) -> None:
        M = checks.matrix(self.M, type(self).__name__, "M", axes=("dim", "dim")).astype(np.float64)
        checks.finite(M, type(self).__name__, "M")
        if M.shape[0] != M.shape[1]:
            raise GonioError(f"{type(self).__name__}: M has shape {M.shape}; a square matrix is needed.")
        if np.linalg.matrix_rank(M) < len(M):
            raise GonioError(f"{type(self).__name__}: M is singular; only an invertible map leaves the model as it is.")
        M.flags.writeable = False
        object.__setattr__(self, "M", M)

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.M), type(self).__name__)
        # A turned box or ellipsoid has no name here; all inputs contain it.
        inputs = head.inputs.moved_by(self.M, self.embeddings) or AllInputs()
        rows = _lazily(head.rows, Times(head.rows, np.ascontiguousarray(self.M.T)), head.shape[1])
        return head.replace(W=rows, inputs=inputs)

    def embeddings(self, F: Any) -> np.ndarray:
        return super().embeddings(F) @ np.linalg.inv(self.M)  # rows f' = (M^-T f)' = f' M^-1

    def inverse(self) -> Transform:
        return Linear(np.linalg.inv(self.M))


class Rotation(Linear):
    """g -> Q g, f -> Q f for an orthogonal Q: no logit and no cosine changes."""

    name = "rotation"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.allclose(self.M @ self.M.T, np.eye(len(self.M)), atol=1e-8):
            raise GonioError("Rotation: Q is not orthogonal (Q Q' is not the identity); use Linear for other maps.")

    def inverse(self) -> Rotation:
        return Rotation(self.M.T)


@dataclass(frozen=True, eq=False)
class Scaling(Transform):
    """g -> c g, f -> f / c for one number c != 0: no logit changes."""

    c: float
    name = "scaling"

    def __post_init__(self) -> None:
        if not np.isfinite(self.c) or self.c == 0:
            raise GonioError(f"Scaling: c is {self.c}; a number other than zero is needed.")

    def apply(self, head: Head) -> Head:
        return Linear(np.eye(head.shape[1]) * self.c).apply(head)

    def embeddings(self, F: Any) -> np.ndarray:
        return super().embeddings(F) / self.c

    def inverse(self) -> Scaling:
        return Scaling(1 / self.c)


@dataclass(frozen=True, eq=False)
class Diagonal(Transform):
    """Items b -> b / d and users a -> a * d, coordinate by coordinate: no score changes (Steck's D).

    Claims: SEK24.D
    """

    d: Any
    name = "diagonal"

    def __post_init__(self) -> None:
        d = _vector(self.d, "Diagonal", "d")
        if not (d > 0).all():
            raise GonioError(f"Diagonal: d has the entry {d.min()}; positive numbers are needed.")
        object.__setattr__(self, "d", d)

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.d), "Diagonal")
        return Linear(np.diag(1 / self.d)).apply(head)

    def embeddings(self, F: Any) -> np.ndarray:
        return super().embeddings(F) * self.d

    def inverse(self) -> Diagonal:
        return Diagonal(1 / self.d)


@dataclass(frozen=True, eq=False)
class InputShift(Transform):
    """f -> f + u, b -> b - W u: with a bias no logit changes, so cosines of embeddings are convention too."""

    u: Any
    name = "input shift"

    def __post_init__(self) -> None:
        object.__setattr__(self, "u", _vector(self.u, "InputShift", "u"))

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.u), "InputShift")
        bias = np.zeros(head.shape[0]) if head.bias is None else head.bias.astype(np.float64)
        moved = np.concatenate([block.astype(np.float64) @ self.u for _, block in head.blocks()])
        inputs = head.inputs.shifted_by(self.u) or AllInputs()
        return head.replace(bias=bias - moved, inputs=inputs)

    def embeddings(self, F: Any) -> np.ndarray:
        return super().embeddings(F) + self.u

    def inverse(self) -> InputShift:
        return InputShift(-self.u)


@dataclass(frozen=True, eq=False)
class BiasShift(Transform):
    """b -> b + t for all labels: every logit moves alike, so no softmax probability changes."""

    t: float
    name = "bias shift"

    def __post_init__(self) -> None:
        if not np.isfinite(self.t):
            raise GonioError(f"BiasShift: t is {self.t}; a finite number is needed.")

    def apply(self, head: Head) -> Head:
        bias = np.zeros(head.shape[0]) if head.bias is None else head.bias.astype(np.float64)
        return head.replace(bias=bias + self.t)

    def inverse(self) -> BiasShift:
        return BiasShift(-self.t)


@dataclass(frozen=True, eq=False)
class RowScaling(Transform):
    """g_i -> s_i g_i, b_i -> s_i b_i with s_i > 0: no sigmoid label set changes, though probabilities do."""

    s: Any
    name = "row scaling"

    def __post_init__(self) -> None:
        s = _vector(self.s, "RowScaling", "s")
        if not (s > 0).all():
            raise GonioError(f"RowScaling: s has the entry {s.min()}; positive numbers are needed.")
        object.__setattr__(self, "s", s)

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.s), "RowScaling", "label", head.shape[0])
        rows = _lazily(head.rows, Times(head.rows, self.s), head.shape[1])
        return head.replace(W=rows, bias=None if head.bias is None else head.bias * self.s)

    def inverse(self) -> RowScaling:
        return RowScaling(1 / self.s)


@dataclass(frozen=True, eq=False)
class LayerNormShift(Transform):
    """g_i -> g_i + a_i / gain, b_i -> b_i - a_i sum(shift / gain): no logit changes for f = gain z + shift, sum z = 0.

    One free number a label, for softmax and sigmoid alike. Every gain must differ from zero.

    Claims: GONIO.1.7e
    """

    a: Any
    name = "layer-norm shift"

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", _vector(self.a, "LayerNormShift", "a"))

    def apply(self, head: Head) -> Head:
        _wide_enough(head, len(self.a), "LayerNormShift", "label", head.shape[0])
        if not head.inputs.centred:
            raise GonioError(
                f"LayerNormShift: the head's inputs are {head.inputs}; it acts on heads after a LayerNorm."
            )
        gain, shift = head.inputs.gain_and_shift(head.shape[1])
        if not gain.all():
            raise GonioError(
                "LayerNormShift: a gain is zero, and rows move along 1 / gain; drop dead coordinates first."
            )
        rows = _lazily(head.rows, Added(head.rows, 1 / gain, self.a), head.shape[1])
        total = float((shift / gain).sum())
        bias = head.bias
        if total != 0 or bias is not None:
            bias = (0 if bias is None else bias.astype(np.float64)) - self.a * total
        return head.replace(W=rows, bias=bias)

    def inverse(self) -> LayerNormShift:
        return LayerNormShift(-self.a)
