"""The cutting planes stop where nothing more can be gained."""

from __future__ import annotations

import numpy as np

from gonio import AllInputs
from gonio.core.blas_pool import BlasPool
from gonio.search.cone import pose
from gonio.search.cuts import Cutter
from gonio.search.targets import Targets
from gonio.search.whitening import prepare


def test_a_label_that_is_a_mean_of_rivals_up_to_rounding_is_not_turned_over_for_ever(monkeypatch):
    """What is left of it is rounding: as a direction it would bring in other rivals, round after round."""
    rng = np.random.default_rng(2)
    W = rng.standard_normal((80, 6))
    W[0] = rng.dirichlet(np.ones(79)) @ W[1:]
    problem = AllInputs().reduce(W.astype(np.float32), np.zeros(80), differences=True)
    rounds, real = [], Cutter._run_round
    monkeypatch.setattr(Cutter, "_run_round", lambda self, *a, **k: (rounds.append(1), real(self, *a, **k)))
    with BlasPool() as workers, np.errstate(all="ignore"):
        space = prepare(pose(problem), workers)
        T = Targets(np.array([[0, 0]]), space.V[[0]], np.zeros((0, space.rank)))
        unreachable = -1.0
        Cutter(space, T, workers, lambda: None, None).rounds(T.points.copy(), unreachable, 2, 24, 60)
    assert len(rounds) < 6
    assert np.linalg.norm(T.points[0] - T.weights[0, : T.size[0]] @ space.V[T.columns[0, : T.size[0]]]) < 1e-12
