"""Training on a cosine: what its gradient can and cannot do (Draganov, Vadgama and Bekkers 2024).

    grad_z cos(z, y) = (y^ - cos z^) / |z|          orthogonal to z, of norm sin(phi) / |z|

So a step never shortens z, and long vectors hardly turn: with both of length rho and a simultaneous step g, the cosine
changes by exactly

    2 a s^2 (1 - a c) / (1 + a^2 s^2),   a = g / rho^2, c = cos phi, s = sin phi
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.errors import GonioError
from gonio.diagnostics.result import Result, axes

if TYPE_CHECKING:
    from jaxtyping import Float


def cosine_gradient(z: Any, y: Any) -> Float[np.ndarray, " dim"]:
    """The gradient in z of cos(z, y): (y^ - cos z^) / |z|.

    >>> cosine_gradient([2.0, 0.0], [0.0, 1.0])
    array([0. , 0.5])

    Claims: DVB24.gradient
    """
    z, y = (np.asarray(v, np.float64) for v in (z, y))
    a, b = np.linalg.norm(z), np.linalg.norm(y)
    if a == 0 or b == 0:
        raise GonioError("cosine_gradient: a vector is zero and has no cosine; give vectors of some length.")
    u, v = z / a, y / b
    return (v - (u @ v) * u) / a


def gradient_norm(phi: float, length: float) -> float:
    """sin(phi) / |z|: nothing for vectors that point the same or the opposite way, little for long ones."""
    return float(np.sin(phi) / length)


def norm_after_step(length: float, phi: float, step: float) -> float:
    """|z'| = sqrt(|z|^2 + step^2 sin^2(phi) / |z|^2): exactly, and never shorter.

    Claims: DVB24.growth
    """
    return float(np.sqrt(length**2 + (step * np.sin(phi) / length) ** 2))


def cosine_change(phi: float, length: float, step: float) -> float:
    """What one simultaneous step does to the cosine of two vectors of one length: 2 a s^2 (1 - a c) / (1 + a^2 s^2).

    Claims: GONIO.cosine-step
    """
    a, c, s = step / length**2, np.cos(phi), np.sin(phi)
    return float(2 * a * s * s * (1 - a * c) / (1 + (a * s) ** 2))


def convergence_bound(phi: float, length: float, step: float) -> float:
    """The published bound on that change: (g sin^2 phi / rho^2)(2 - g cos phi / rho^2).

    It holds for 0 <= g cos(phi) / rho^2 <= 2; for obtuse angles a small step changes the cosine by more.

    Claims: DVB24.bound
    """
    a = step / length**2
    return float(a * np.sin(phi) ** 2 * (2 - a * np.cos(phi)))


@dataclass(frozen=True, eq=False, repr=False)
class Descent(Result):
    """Two vectors pulled together by their cosine alone, from several starting lengths.

    lengths   at the start
    steps     until the cosine wanted was reached; -1 where it was not
    grown     the length at the end over that at the start
    cosines   after each step, one row a starting length
    """

    lengths: Float[np.ndarray, " starts"]
    steps: np.ndarray
    grown: Float[np.ndarray, " starts"]
    cosines: Float[np.ndarray, "starts steps"]
    wanted: float
    step: float

    def lines(self) -> tuple[str, str]:
        told = ", ".join(
            f"length {a:g}: {s if s >= 0 else 'not reached'}" for a, s in zip(self.lengths, self.steps, strict=True)
        )
        return f"steps of {self.step:g} until cosine {self.wanted:g}", told

    def explain(self) -> str:
        """One paragraph in plain words."""
        return (
            f"Two vectors are pulled together by gradient steps of {self.step:g} on their cosine. "
            + "; ".join(
                f"from length {a:g} it takes {f'{s} steps' if s >= 0 else f'more than {self.cosines.shape[1]} steps'}"
                for a, s in zip(self.lengths, self.steps, strict=True)
            )
            + f" to reach cosine {self.wanted:g}: as the square of the length, and no step shortens a vector."
        )

    def plot(self, ax: Any = None) -> Any:
        """The cosine after each step."""
        ax = axes(ax)
        for a, c in zip(self.lengths, self.cosines, strict=True):
            ax.plot(np.arange(1, len(c) + 1), c, label=f"length {a:g}")
        ax.set_xscale("log")
        ax.set_xlabel("gradient step")
        ax.set_ylabel("cosine")
        ax.legend(frameon=False)
        return ax


def descent(
    lengths: Any = (0.5, 1.0, 2.0, 4.0, 8.0),
    *,
    phi: float = 2.0,
    step: float = 0.1,
    wanted: float = 0.99,
    most: int = 5000,
    dim: int = 16,
    seed: int = 0,
) -> Descent:
    """Pull two vectors of equal length, `phi` apart, together by gradient ascent on their cosine."""
    rng = np.random.default_rng(seed)
    starts = np.asarray(lengths, np.float64)
    if starts.ndim != 1 or not len(starts) or not (starts > 0).all():
        raise GonioError("descent: lengths are positive numbers, at least one.")
    E = np.linalg.qr(rng.standard_normal((dim, 2)))[0].T
    Z = starts[:, None] * E[0]
    Y = starts[:, None] * (np.cos(phi) * E[0] + np.sin(phi) * E[1])
    cosines = np.empty((len(starts), most))
    for t in range(most):
        a, b = (np.linalg.norm(v, axis=1, keepdims=True) for v in (Z, Y))
        u, v = Z / a, Y / b
        c = np.einsum("ij,ij->i", u, v)[:, None]
        Z, Y = Z + step * (v - c * u) / a, Y + step * (u - c * v) / b
        cosines[:, t] = np.einsum("ij,ij->i", Z, Y) / (np.linalg.norm(Z, axis=1) * np.linalg.norm(Y, axis=1))
    reached = cosines >= wanted
    steps = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, -1)
    return Descent(starts, steps, np.linalg.norm(Z, axis=1) / starts, cosines, wanted, step)
