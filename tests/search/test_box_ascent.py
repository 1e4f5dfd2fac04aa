"""Climbing in a box: programs are the judges, and every win and every mean of rivals is looked at again in another way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import gonio
from gonio.core.blas_pool import BlasPool
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.proofs.bulk import verify_all
from gonio.search import propose
from gonio.search.box_ascent import CAREFUL, Climbed, Climbers, climb
from gonio.search.proposals import STAGE
from gonio.search.scaled_box import ScaledBox


def posed(W, b, low, high):
    return gonio.Box(low, high).reduce(np.asarray(W, np.float32), np.asarray(b, np.float64), differences=True)


def best_lead(problem, i) -> float:
    """The largest lead of label i in the box, by a linear program."""
    V, c = problem.V.astype(np.float64), np.asarray(problem.c, np.float64)
    others = np.delete(np.arange(len(V)), i)
    A = np.column_stack([V[others] - V[i], np.ones(len(others))])
    bounds = [*zip(problem.low, problem.high, strict=True), (None, None)]
    ran = linprog(np.append(np.zeros(V.shape[1]), -1.0), A, c[i] - c[others], bounds=bounds, method="highs")
    return float(-ran.fun)


def made(seed, n=120, d=10):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 0.7, (n, 1)))
    return posed(W, rng.normal(0, 1, n), rng.uniform(-2, -0.5, d), rng.uniform(0.2, 2, d))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pool", [20, 3000])
def test_what_it_settles_is_what_programs_say(seed, pool):
    # A small pool: rows that beat a label have to join.
    schedule = CAREFUL._replace(stages=tuple((last, pool) for last, _ in CAREFUL.stages))
    problem = made(seed)
    found = _climbed(problem, schedule)
    assert len(found.won) + len(found.never) >= (100 if pool > 20 else 60)
    assert np.array_equal(np.sort(np.concatenate([found.won, found.never, found.left.labels])), np.arange(120))
    assert len(found.never) >= 5
    assert not set(found.won.tolist()) & set(found.never.tolist())
    for i, margin in zip(found.won, found.margins, strict=True):
        assert 0 < margin <= best_lead(problem, i) + 1e-7
    assert max(best_lead(problem, i) for i in found.never) < 0


def test_each_input_and_each_mean_holds_in_whole_numbers():
    problem = made(9, 60, 6)
    found = _climbed(problem)
    V = [[Fraction(float(x)) for x in row] for row in problem.V]
    c = [Fraction(float(x)) for x in problem.c]
    low, high = ([Fraction(float(x)) for x in side] for side in (problem.low, problem.high))
    assert len(found.won)
    assert len(found.never)
    for i, z, margin in zip(found.won.tolist(), found.inputs, found.margins, strict=True):
        x = [Fraction(float(v)) for v in z]
        assert all(a <= v <= b for a, v, b in zip(low, x, high, strict=True))
        scores = [sum(a * v for a, v in zip(row, x, strict=True)) + e for row, e in zip(V, c, strict=True)]
        assert scores[i] - max(s for j, s in enumerate(scores) if j != i) >= Fraction(float(margin))
    for i, (rivals, weights) in zip(found.never.tolist(), found.means, strict=True):
        w = [Fraction(float(x)) for x in weights]
        assert i not in rivals
        assert min(w) > 0
        away = [sum(p * (V[j][k] - V[i][k]) for p, j in zip(w, rivals, strict=True)) for k in range(len(low))]
        least = sum(min(a * lo, a * hi) for a, lo, hi in zip(away, low, high, strict=True))
        assert sum(p * (c[j] - c[i]) for p, j in zip(w, rivals, strict=True)) + least > 0


def _climbed(problem, schedule=CAREFUL):
    box = ScaledBox(problem)
    with BlasPool() as workers:
        return climb(box, Climbers.below(box, np.arange(len(problem.V))), workers, schedule)


def test_the_example_of_the_page():
    found = _climbed(posed([[1.0], [-1.0], [0.0]], [0, 0, -1], -1, 1))
    assert found.won.tolist() == [0, 1]
    assert found.never.tolist() == [2]
    rivals, weights = found.means[0]
    assert rivals.tolist() == [0, 1]
    assert weights == pytest.approx([0.5, 0.5], abs=0.3)


def test_only_boxes_and_numbers_that_fit():
    V = np.ones((3, 200), np.float32)
    b = np.zeros(3)
    assert ScaledBox.possible(posed(V, b, -1, 1))
    assert ScaledBox.possible(posed(V[:, :3], b, -1, np.inf))
    assert not ScaledBox.possible(posed(V * np.float32(1e25), b, -1, 1))
    assert not ScaledBox.possible(gonio.AllInputs().reduce(V, b, differences=True))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("inputs", [gonio.Nonnegative(), gonio.Box(-0.3, np.inf), gonio.Box(-np.inf, 0.5)])
def test_with_infinite_sides_it_finds_winners_and_says_nothing_of_others(inputs, biased):
    rng = np.random.default_rng(11)
    W = rng.standard_normal((120, 10)) * np.exp(rng.normal(0, 0.7, (120, 1)))
    problem = inputs.reduce(W.astype(np.float32), rng.normal(0, 2, 120) * biased, differences=True)
    assert ScaledBox.possible(problem)
    found = _climbed(problem)
    assert len(found.won) >= 20
    assert not len(found.never)
    low = np.zeros(10) if problem.low is None else problem.low
    high = np.full(10, np.inf) if problem.high is None else problem.high
    V, c = problem.V.astype(np.float64), problem.c
    for i, z, margin in zip(found.won, found.inputs, found.margins, strict=True):
        assert (z >= low).all()
        assert (z <= high).all()
        scores = V @ z + c
        assert 0 < margin <= scores[i] - np.delete(scores, i).max()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("kind", ["plain", "twins", "zeros", "integers"])
def test_the_whole_search_says_the_same_with_it_and_without(kind, wide, monkeypatch):
    rng = np.random.default_rng(3)
    n, d = 300, 12
    W = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 0.7, (n, 1)))
    if kind == "twins":
        W[150:] = W[:150]
    if kind == "zeros":
        W[rng.random((n, d)) < 0.7] = 0
    if kind == "integers":
        W = np.rint(W)
    problem = posed(W, np.rint(rng.normal(0, 1, n)), -1, 1)
    monkeypatch.setattr(propose, "WIDE", 1 if wide else 1000)
    monkeypatch.setattr(propose, "FEW", 0)
    with_it = propose.propose(problem)
    assert (with_it.stage == STAGE["ascent"]).any()
    monkeypatch.setattr(ScaledBox, "possible", staticmethod(lambda problem: False))
    without = propose.propose(problem)
    both = (with_it.status != UNDECIDED) & (without.status != UNDECIDED)
    assert (with_it.status == without.status)[both].all()
    assert both.mean() > 0.9


def test_its_verdicts_are_proven_and_alike_from_one_thread_and_two(monkeypatch):
    monkeypatch.setattr(propose, "WIDE", 1)
    rng = np.random.default_rng(5)
    W = (rng.standard_normal((700, 12)) * np.exp(rng.normal(0, 0.7, (700, 1)))).astype(np.float32)
    head = gonio.Head(W, rng.normal(0, 1, 700).astype(np.float32), link="softmax", inputs=gonio.Box(-1, 1))
    two = gonio.can_win(head)
    by_climbing = [i for i, stage in zip(range(700), two.stage, strict=True) if stage == "ascent"]
    assert verify_all(head, [two.certificate(i) for i in by_climbing[::9]]).refused == {}
    monkeypatch.setattr("gonio.core.blas_pool.cores", lambda: 1)
    one = gonio.can_win(head)
    assert (one.codes == two.codes).all()
    assert one.margin.tobytes() == two.margin.tobytes()
    assert set(np.unique(two.codes)) <= {WINS, NEVER}


@pytest.mark.parametrize("pays", [True, False])
def test_in_narrow_boxes_a_part_climbs_first_and_the_others_where_it_pays(pays, monkeypatch):
    """Nobody wins in the first try here; one label in sixteen climbs, and the rest follow if most of these have won."""
    rng = np.random.default_rng(8)
    W = rng.standard_normal((640, 12)).astype(np.float32)
    problem = posed(W, rng.normal(0, 1, 640), -1, 1)
    asked = []

    def climbing(box, climbers, *rest):
        asked.append(len(climbers.labels))
        found = climb(box, climbers, *rest)
        few = 0 if not pays else len(found.won)
        return Climbed(found.won[:few], found.inputs[:few], found.margins[:few], found.never[:0], (), climbers)

    monkeypatch.setattr(propose, "climb", climbing)
    monkeypatch.setattr(propose, "_first_tries", lambda *_: None)
    found = propose.propose(problem)
    assert asked[0] == 40
    assert len(asked) == (2 if pays else 1)
    climbed = int((found.stage == STAGE["ascent"]).sum())
    assert climbed > 100 if pays else climbed == 0
    assert not (found.status == UNDECIDED).any()
