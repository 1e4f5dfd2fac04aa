"""The cutting planes of one batch of labels as a task: what it needs of the space, and what it comes to as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.blas_pool import BlasPool
from gonio.core.parallel import spans
from gonio.core.status import NEVER, WINS
from gonio.search.cuts import Cutter
from gonio.search.inscribed import Ball
from gonio.search.positive_means import Spread, upwards
from gonio.search.proposals import STAGE
from gonio.search.targets import Targets
from gonio.search.whitening import WhitenedRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NEAR = 0.1  # of the squared distance from the centre: what counts as one cluster
Outcome = dict[str, np.ndarray]


def nothing(_: Targets) -> None:
    """Tell nobody how far a batch is."""


@dataclass(eq=False)
class CutGround:
    """What all batches share. `said` and `stopped` are for this process only.

    leaders   what a first batch has come to: those near one of it begin with its columns
    said      called with the targets of a batch as they are decided
    stopped   the batch that an interrupt broke off, and what it had come to
    """

    space: WhitenedRows
    ball: Ball
    pool: Int[np.ndarray, " pool"]
    long_rows: Int[np.ndarray, " long"] | None
    leaders: Outcome | None = None
    said: Callable[[Targets], None] = nothing
    stopped: list[tuple[np.ndarray, Outcome]] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"said": nothing, "stopped": []}


def cut_batch(ground: CutGround, batch: Int[np.ndarray, " labels"]) -> Outcome:
    """Stages 3 to 5 for some labels."""
    space, ball, rank = ground.space, ground.ball, ground.space.rank
    T = Targets(np.column_stack([batch, batch]), space.V[batch], np.zeros((0, rank)))
    # Where the cone is curved, the rays are numbered batch by batch, and columns cannot be handed on.
    if ground.leaders is not None and not space.cone.curved:
        _start_from_neighbours(T, ground.leaders, space, ball.centre)
    with BlasPool() as workers, np.errstate(all="ignore"):
        cutter = Cutter(space, T, workers, lambda: ground.said(T), ground.long_rows)
        try:
            for tau, stage, width, most in _schedule(rank):
                cutter.rounds(ball.aim(T.points, tau), ball.tolerance(tau), STAGE[stage], width, most)
        except KeyboardInterrupt:
            ground.stopped.append((batch, outcome(T)))
            raise
    return outcome(T)


def _schedule(rank: int) -> tuple[tuple[float, str, int, int], ...]:
    """Push-out, stage, rivals taken in a round, rounds."""
    return (0.02, "cuts", 24, 30), (1e-6, "fine", rank + 64, 60), (1e-9, "knife edge", rank + 64, 60)


def outcome(T: Targets) -> Outcome:
    """What a batch of targets has come to; of the winners the inputs, of the others the columns with their weights."""
    won = np.array(sorted(T.inputs), np.int64)
    lost = np.flatnonzero(T.status != WINS)
    width = int(T.size[lost].max(initial=0))
    return {
        "status": T.status, "stage": T.stage, "margin": T.margin, "hull_distance": T.hull_distance, "size": T.size,
        "lost": lost, "columns": T.columns[lost, :width], "weights": T.weights[lost, :width],
        "residuals": T.directions[lost],
        "won": won, "inputs": np.stack([T.inputs[int(k)] for k in won]) if len(won) else np.zeros((0, 0)),
    }  # fmt: skip


def combinations(found: Outcome, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rivals and weights (sum 1) of each target that did not win, without rays (columns from n on)."""
    columns, size = found["columns"], found["size"][found["lost"]]
    rows = (np.arange(columns.shape[1]) < size[:, None]) & (columns < n)
    order = np.argsort(~rows, axis=1, kind="stable")  # the rivals first
    columns = np.take_along_axis(columns, order, axis=1).astype(np.int64)
    weights = np.take_along_axis(np.where(rows, found["weights"], 0.0), order, axis=1)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return [(c[:m], w[:m]) for c, w, m in zip(columns, weights, rows.sum(axis=1).tolist(), strict=True)]


def spread_of(space: WhitenedRows, ball: Ball, found: Outcome, batch: np.ndarray) -> list[Spread]:
    """How the labels of a batch that never win are combinations of their columns and of the ball's rows.

    With p the combination that came near to the aim of v, the rest of  v = (1 - tau) p + tau b  is in the ball.
    """
    out: list[Spread] = []
    at, mean = found["lost"], ball.mean
    if mean is None:
        return out
    for tau, name, *_ in _schedule(space.rank):
        which = np.flatnonzero((found["status"][at] == NEVER) & (found["stage"][at] == STAGE[name]))
        if not len(which):
            continue
        labels, columns, size = batch[at[which]], found["columns"][which], found["size"][at[which]]
        is_row = (np.arange(columns.shape[1]) < size[:, None]) & (columns < len(space.V))
        own = np.where(is_row, columns, labels[:, None]).astype(np.int64)  # where none is: itself, of weight 0
        lam = np.where(is_row, found["weights"][which], 0.0)
        on_rows = lam.sum(axis=1, keepdims=True)
        points = space.V[labels]
        near = (ball.aim(points, tau) - found["residuals"][which]) / on_rows
        targets = mean.targets(points + upwards(space)) - (1 - tau) * mean.targets(near)
        order = np.argsort(~is_row, axis=1, kind="stable")[:, : int(is_row.sum(axis=1).max())]  # the rivals first
        own, lam = np.take_along_axis(own, order, axis=1), np.take_along_axis(lam, order, axis=1)
        scale, bent = np.full(len(labels), tau), np.zeros(targets.shape)
        out.append(Spread(mean, labels, targets, bent, scale, own, (1 - tau) * lam / on_rows))
    return out


def _start_from_neighbours(T: Targets, leaders: Outcome, space: WhitenedRows, centre: np.ndarray) -> None:
    """Give each target near a decided one that never wins the columns and weights of that one to begin with."""
    at = leaders["lost"]
    used = (leaders["status"][at] == NEVER) & (leaders["size"][at] > 0)
    if not used.any():
        return
    size, columns, weights = leaders["size"][at][used], leaders["columns"][used], leaders["weights"][used]
    points: Float[np.ndarray, "leaders rank"] = space.V[leaders["labels"][at][used]]
    from_centre = T.points - centre
    square = np.einsum("ij,ij->i", from_centre, from_centre)
    nearest, distance = _nearest(from_centre, square, points - centre)
    close = np.flatnonzero(distance < NEAR * square)
    source = nearest[close]
    # A label cannot be a column of its own combination: one that is among its neighbour's columns begins with none.
    in_use = np.arange(columns.shape[1]) < size[source][:, None]
    foreign = ~((columns[source] == T.labels[close, :1]) & in_use).any(axis=1)
    close, source = close[foreign], source[foreign]
    width = columns.shape[1]
    T.columns[close, :width], T.weights[close, :width] = columns[source], weights[source]
    T.size[close] = size[source]


def _nearest(A: np.ndarray, squares: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row of A, of squared length `squares`, the nearest row of B and its squared distance."""
    nearest, distance = np.empty(len(A), np.int64), np.empty(len(A))
    for s in spans(len(A), 256):  # fresh memory would cost more than the products
        part = slice(*s)
        away = np.einsum("ij,ij->i", B, B) - 2 * (A[part] @ B.T)
        nearest[part] = away.argmin(axis=1)
        distance[part] = away[np.arange(len(away)), nearest[part]] + squares[part]
    return nearest, distance
