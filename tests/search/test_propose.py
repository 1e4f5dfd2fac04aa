"""What the engine proposes is true: against one linear programme a label, Qhull, planted rows, real heads."""

from __future__ import annotations

import signal
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import gonio
from gonio.core.inputs import AfterRMSNorm, AllInputs, Box, Nonnegative, Observed, Problem
from gonio.core.status import NEVER, UNDECIDED, WINS
from gonio.search.proposals import STAGE, Proposals
from gonio.search.propose import propose
from tests import real
from tests.ask.made import DEEP, MIXED, TWIN, awkward, kinds_of_inputs, realistic
from tests.search.lp import best


def assert_in_set(p: Problem, z: np.ndarray) -> None:
    assert np.isfinite(z).all()
    if p.shape == "orthant":
        assert (z >= 0).all()
    if p.shape == "box":
        assert ((z >= p.low) & (z <= p.high)).all()
    if p.shape == "ball":
        assert (z * z).sum() < p.radius**2
    if p.shape == "points":
        assert (p.points == z).all(axis=1).any()


def lead(p: Problem, i: int, z: np.ndarray) -> float:
    scores = p.V.astype(np.float64) @ z + p.c
    return scores[i] - np.delete(scores, i).max(initial=-np.inf)


def exact_lead(p: Problem, i: int, z: np.ndarray) -> Fraction:
    x = [Fraction(v) for v in z.tolist()]
    scores = [
        sum((Fraction(a) * b for a, b in zip(row, x, strict=True)), Fraction(c))
        for row, c in zip(p.V.astype(np.float64).tolist(), p.c.tolist(), strict=True)
    ]
    return scores.pop(i) - max(scores, default=Fraction(-1, 10**300))


def shortfall(p: Problem, i: int, rivals: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """By how much (combination - label) falls below 0 somewhere on the set; and the size that rounding is relative to."""
    V = p.V.astype(np.float64)
    r, e = weights @ V[rivals] - V[i], weights @ p.c[rivals] - p.c[i]
    size, high = float(np.abs(V).max()), np.abs(p.c).max()
    if p.shape == "space":
        return max(np.abs(r).max() / (size or 1), -e / (high or 1)), 1.0
    if p.shape == "orthant":
        return max((-r).max() / (size or 1), -e / (high or 1)), 1.0
    if p.shape == "box":
        low, up = p.low, p.high
        loose = np.where(np.isinf(up), np.minimum(r, 0), 0) + np.where(np.isinf(low), np.maximum(r, 0), 0)
        assert np.abs(loose).max() <= 1e-7 * size
        r = r - loose
        with np.errstate(invalid="ignore"):
            at = np.where(r == 0, 0, np.minimum(np.nan_to_num(r * low), np.nan_to_num(r * up)))
        bound = np.where(np.isfinite(low), np.abs(low), 0) + np.where(np.isfinite(up), np.abs(up), 0)
        return -(at.sum() + e), float(size * bound.sum() + high)
    return -(e - p.radius * np.linalg.norm(r)), float(size * p.radius + high)


def assert_proposals_hold(p: Problem, found: Proposals, exactly: int = 0, tol: float = 1e-8) -> None:
    for k in np.flatnonzero(found.status == WINS):
        i = int(found.labels[k])
        z = found.direction(i)
        assert_in_set(p, z)
        assert found.margin[k] > 0
        assert lead(p, i, z) > 0
        if k < exactly and len(p.V) > 1:
            assert exact_lead(p, i, z) > 0
            assert found.margin[k] == np.inf or exact_lead(p, i, z) >= Fraction(float(found.margin[k]))
    for k in np.flatnonzero(found.status == NEVER):
        i = int(found.labels[k])
        rivals, weights = found.support(i)
        if p.shape == "points":
            continue
        assert i not in rivals
        assert len(set(rivals.tolist())) == len(rivals) <= p.V.shape[1] + 2
        assert (weights > 0).all()
        assert abs(weights.sum() - 1) < 1e-12
        low, scale = shortfall(p, i, rivals, weights)
        assert low <= tol * scale


@pytest.mark.parametrize("part", range(4))
def test_small_awkward_heads_agree_with_one_lp_a_label(part):
    for seed in range(40 * part, 40 * part + 40):
        rng = np.random.default_rng(seed)
        W, b = awkward(rng)
        inputs = kinds_of_inputs(W.shape[1], rng)[seed % 8]
        p = inputs.reduce(W, b)
        found = propose(p)
        assert_proposals_hold(p, found, exactly=3)
        for i in range(len(W)):
            most, said = best(p, (i,)), found.status[i]
            assert said != NEVER or most < 1e-7, (seed, i, str(inputs), most)
            assert said != WINS or most > -1e-9, (seed, i, str(inputs), most)
            assert said != UNDECIDED or most < 1e-5, (seed, i, str(inputs), most)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_winners_over_all_inputs_are_the_vertices_that_qhull_finds(d):
    rng = np.random.default_rng(d)
    W = rng.standard_normal((400, d))
    found = propose(AllInputs().reduce(W))
    assert set(found.labels[found.status == WINS]) == set(ConvexHull(W).vertices)
    assert (found.status != UNDECIDED).all()


@pytest.mark.parametrize(("n", "d"), [(900, 12), (3000, 64), (1500, 220)])
def test_planted_rows_are_always_found(n, d):
    W, kind = realistic(n, d, seed=d)
    p = AllInputs().reduce(W)
    found = propose(p)
    assert (found.status[kind == DEEP] == NEVER).all()
    assert (found.status[kind == TWIN] == NEVER).all()
    assert n < 8 * d or (found.status[kind == MIXED] == NEVER).all()
    assert (found.status == UNDECIDED).sum() <= 1
    assert_proposals_hold(p, found)
    full = [len(found.support(int(i))[0]) for i in np.flatnonzero(kind == DEEP)]
    assert full == [d + 1] * len(full)  # inside a full simplex, as the proof wants it


def test_a_cluster_of_untrained_labels_is_found_and_nobody_leans_on_himself():
    rng = np.random.default_rng(7)
    W = rng.standard_normal((1200, 24)) * np.exp(0.3 * rng.standard_normal((1200, 1)))
    cluster = rng.permutation(1200)[:200]
    W[cluster] = 0.3 * W[cluster[0]] + 0.05 * rng.standard_normal((200, 24))
    p = AllInputs().reduce(W.astype(np.float32))
    found = propose(p)
    assert (found.status[cluster] == NEVER).mean() > 0.9
    assert all(i not in rivals for i, (rivals, _) in found.combined.items())
    assert_proposals_hold(p, found)


def test_permuting_the_rows_permutes_the_verdicts():
    W, _ = realistic(700, 20, seed=1)
    b = np.random.default_rng(0).standard_normal(700)
    order = np.random.default_rng(1).permutation(700)
    for inputs in (AllInputs(), Nonnegative(), Box(-1, 1), AfterRMSNorm(np.ones(20))):
        one, two = propose(inputs.reduce(W, b)), propose(inputs.reduce(W[order], b[order]))
        assert np.array_equal(one.status[order], two.status)


def test_scaling_rows_by_powers_of_two_changes_no_verdict():
    W, _ = realistic(500, 10, seed=2)
    W = W.astype(np.float64)
    b = np.random.default_rng(0).standard_normal(500)
    expected = propose(AllInputs().reduce(W, b)).status
    for power in (-900, -300, 300, 900):
        p = AllInputs().reduce(np.ldexp(W, power), np.ldexp(b, power))
        found = propose(p)
        assert np.array_equal(found.status, expected)


def test_a_question_about_some_labels_has_the_answers_of_the_whole():
    W, _ = realistic(800, 16, seed=3)
    p = AllInputs().reduce(W)
    whole = propose(p)
    some = np.array([5, 700, 31, 32])
    part = propose(p, labels=some)
    assert np.array_equal(part.labels, some)
    assert np.array_equal(part.status, whole.status[some])
    assert_proposals_hold(p, part, exactly=4)
    with pytest.raises(gonio.GonioError, match="not asked"):
        part.direction(0)


def test_equal_rows_never_win_and_name_each_other():
    W = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [-1, -1], [-0.0, -3], [0.0, -3]])
    b = np.array([0, 0, 0, -1.0, 0, 0, 0])
    found = propose(AllInputs().reduce(W, b))
    assert [list(g) for g in found.twins] == [[0, 1], [5, 6]]
    assert found.status.tolist() == [NEVER, NEVER, WINS, NEVER, WINS, NEVER, NEVER]
    assert found.stage[[0, 3]].tolist() == [STAGE["twin"], STAGE["dominated"]]
    assert found.support(0)[0].tolist() == [1]
    assert found.support(3)[0].tolist() == [2]
    assert found.support(3)[1].tolist() == [1.0]


@pytest.mark.parametrize("shape", ["space", "orthant", "box", "ball", "points"])
def test_degenerate_heads_have_defined_answers(shape):
    def ask(W, b=None):
        W = np.asarray(W, float)
        d = W.shape[1]
        sets = {
            "space": AllInputs(), "orthant": Nonnegative(), "box": Box(-1, 2),
            "ball": AfterRMSNorm(np.ones(d)), "points": Observed(np.vstack([np.eye(d), -np.eye(d)])),
        }  # fmt: skip
        p = sets[shape].reduce(W, None if b is None else np.asarray(b, float))
        found = propose(p)
        assert_proposals_hold(p, found, exactly=9)
        return found.status.tolist()

    assert ask([[3.0, 4.0]]) == [WINS]
    assert ask([[0.0]]) == [WINS]
    assert ask([[1.0, 2], [1, 2], [1, 2]]) == [NEVER] * 3
    assert ask([[0.0, 0], [0, 0]], [0, 1]) == [NEVER, WINS]
    assert ask([[1.0], [1]], [5, 1]) == [WINS, NEVER]
    assert ask([[1.0], [2], [3]])[1] == NEVER
    if shape != "orthant":
        assert ask([[1.0], [-1]]) == [WINS, WINS]
        assert ask([[2.0, 0], [-1, 0], [0, 0]], [0, 0, 0])[:2] == [WINS, WINS]


def test_points_are_decided_exactly():
    W = np.array([[1.0, 0], [0, 1], [0.5, 0.5], [0.4, 0.4]])
    found = propose(Observed(np.array([[1.0, 1.0], [2.0, 1.0], [0.0, 0.0]])).reduce(W))
    assert found.status.tolist() == [WINS, NEVER, NEVER, NEVER]
    assert found.margin[0] == pytest.approx(0.5)
    assert found.margin[1] == 0  # it ties at (1, 1) and at 0, and is highest nowhere
    assert found.margin[3] == 0
    assert found.direction(0).tolist() == [2.0, 1.0]


def test_a_bias_that_is_a_linear_function_of_the_rows_changes_no_verdict():
    W, _ = realistic(400, 8, seed=4)
    W = W.astype(np.float64)
    plain = propose(AllInputs().reduce(W))
    p = AllInputs().reduce(W, W @ np.arange(8.0))
    shifted = propose(p)
    assert np.array_equal(plain.status, shifted.status)
    assert_proposals_hold(p, shifted)


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal; a runner in the background of a script ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_what_is_decided():
    W, _ = realistic(6000, 40, seed=5)
    calls = []

    def watch(done, total, doing):
        calls.append((done, total, doing))
        if doing == "cuts" and done < total:
            signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    found = propose(AllInputs().reduce(W), on_progress=watch)
    assert found.interrupted
    assert (found.status == UNDECIDED).sum() < len(W)  # on a busy machine the rest may be done before it is heard
    assert_proposals_hold(AllInputs().reduce(W), found)
    assert calls[0][2] == "preparing"
    assert threading.active_count() == before  # no worker is left behind


def test_progress_never_falls_and_ends_with_all_labels():
    W, _ = realistic(3000, 30, seed=6)
    seen = []
    propose(AllInputs().reduce(W), on_progress=lambda done, total, doing: seen.append((done, total, doing)))
    assert {t for _, t, _ in seen} == {3000}
    assert {s for _, _, s in seen} >= {"preparing", "own direction", "cuts", "done"}
    assert seen[-1][0] >= 2999


def test_g2pm_has_225_labels_that_never_win_and_229_for_non_negative_inputs():
    from gonio.papers.g2pm import head

    h = head(real.wheel("g2pM"))
    for inputs, count in ((AllInputs(), 225), (Nonnegative(), 229)):
        p = inputs.reduce(h.W, h.bias)
        found = propose(p)
        assert (found.status == NEVER).sum() == count
        assert (found.status == WINS).sum() == len(h) - count
        assert_proposals_hold(p, found, exactly=3, tol=1e-11)


@pytest.mark.parametrize(
    ("version", "member", "never"),
    [("1.4.4", "ch_PP-OCRv4_rec_infer.onnx", 202), ("1.2.3", "ch_PP-OCRv3_rec_infer.onnx", 549)],
)
def test_pp_ocr_heads_have_labels_that_never_win(version, member, never, tmp_path):
    path = tmp_path / member
    path.write_bytes(real.read(f"rapidocr_onnxruntime-{version}", f"rapidocr_onnxruntime/models/{member}"))
    h = gonio.load(path)
    for bias in (None, h.bias):
        p = AllInputs().reduce(h.W, bias)
        found = propose(p)
        assert (found.status == NEVER).sum() == never
        assert (found.status == UNDECIDED).sum() == 0
        some = np.random.default_rng(0).permutation(len(h))[:200]
        for i in some:
            if found.status[i] == WINS:
                assert lead(p, int(i), found.direction(int(i))) > 0
        for i in np.flatnonzero(found.status == NEVER)[:10]:
            assert shortfall(p, int(i), *found.support(int(i)))[0] < 1e-12
