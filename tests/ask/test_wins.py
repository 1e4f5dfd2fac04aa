"""can_win: verdicts with proofs, for one label, some, or all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog, minimize

from gonio import AfterLayerNorm, AfterRMSNorm, AllInputs, Box, GonioError, Head, Nonnegative, Observed, can_win
from gonio.core.status import Status
from gonio.proofs.bulk import verify_all
from gonio.proofs.certificates import NeverWins, Undecided, Wins
from tests import real
from tests.strategies import heads


def best_margin(head: Head, i: int) -> float:
    """The largest margin of label i over |x|_inf <= 1e3 of its inputs, by one LP (polyhedral inputs only)."""
    W, d = head.W.astype(float), head.shape[1]
    b = np.zeros(len(W)) if head.bias is None else head.bias
    same = (W[i] == W).all(axis=1) & (b == b[i])
    others = np.flatnonzero(~same)
    if not len(others):
        return 1.0
    A = np.column_stack([W[others] - W[i], np.ones(len(others))])
    low, high = -1e3, 1e3
    if isinstance(head.inputs, Nonnegative):
        low = 0.0
    elif isinstance(head.inputs, Box):
        low, high = max(low, float(head.inputs.low)), min(high, float(head.inputs.high))
    found = linprog(np.r_[np.zeros(d), -1.0], A_ub=A, b_ub=(b[i] - b)[others], bounds=[(low, high)] * d + [(None, 1)])
    return float(found.x[-1])


@given(heads(links=("softmax",), inputs=True))
@settings(max_examples=120, deadline=None)
def test_verdicts_agree_with_one_lp_a_label_and_every_proof_holds(head):
    result = can_win(head)
    assert not verify_all(head, list(result.certificates(undecided=False))).refused
    assert sorted([*result.wins, *result.shared, *result.never, *result.undecided]) == list(range(head.shape[0]))
    assert sorted(result.shared) == sorted(i for g in result.twins if g.can_be_top == "yes" for i in g.labels)
    for i in range(head.shape[0]):
        kind = {"WINS": Wins, "NEVER": NeverWins, "SHARED": Wins, "UNDECIDED": Undecided}[result.status[i].name]
        assert isinstance(result.certificate(i), kind)
        if isinstance(head.inputs, (AllInputs, Nonnegative, Box)) and head.shape[0] > 1:
            margin = best_margin(head, i)
            if margin > 1e-6:
                assert result.status[i] is not Status.NEVER
            elif margin < -1e-9:
                assert result.status[i] not in (Status.WINS, Status.SHARED)


@pytest.mark.theorem("GRIV22.argmax")
def test_figure_3_a_label_loses_its_region_when_it_is_shortened():
    angles = np.radians([0, 45, 90, 135, 180, 225, 315])
    W = 5 * np.column_stack([np.cos(angles), np.sin(angles)])
    assert len(can_win(Head(W, link="softmax")).wins) == 7
    W[2] *= 2 / 5
    result = can_win(Head(W, link="softmax"))
    assert result.never.tolist() == [2]
    for length, wins in ((3.53, False), (3.54, True)):  # the edge is at 5 cos 45 = 3.5355
        W[2] = [0, length]
        assert (2 in can_win(Head(W, link="softmax")).wins) == wins


def test_the_answer_for_one_label_carries_its_proof():
    square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0.2]], link="softmax", labels=list("abcde"))
    yes, no = can_win(square, "a"), can_win(square, "e")
    assert (yes.answer, no.answer) == ("yes", "no")
    assert yes.certificate.verify(square) == pytest.approx(yes.margin)
    assert no.certificate.verify(square) <= 0
    assert "can 'e' win? no" in repr(no)
    assert no.to_dict()["proof"]["kind"] == "never wins"
    some = can_win(square, ["e", "b"])
    assert some.never.tolist() == [4]
    assert some.wins.tolist() == [1]


def test_twins_are_one_candidate_and_are_named():
    head = Head([[1, 0], [0, 1], [1, 0], [-1, -1]], link="softmax", labels=["x", "y", "z", "w"])
    result = can_win(head)
    assert [(g.labels.tolist(), g.can_be_top) for g in result.twins] == [([0, 2], "yes")]
    assert result.shared.tolist() == [0, 2]
    assert result.wins.tolist() == [1, 3]
    assert not len(result.never)
    assert result.reason("x") == "only together with 'z', whose scores are equal everywhere"
    proof = result.certificate("x")
    assert proof.equals.tolist() == [2]
    assert proof.verify(head) == pytest.approx(result.margin[0])
    one = can_win(head, "z")
    assert (one.answer, one.note) == ("yes", "only together with 'x', whose scores are equal everywhere")
    lower = can_win(head.replace(bias=[0, 0, -1, 0]))
    assert lower.never.tolist() == [2]
    assert "with a lower bias" in lower.reason("z")


def test_twins_inside_the_hull_never_reach_the_top():
    W = [[4, 4], [4, -4], [-4, 4], [-4, -4], [1, 0], [1, 0], [0, 0.5]]
    result = can_win(Head(W, link="softmax"))
    assert result.never.tolist() == [4, 5, 6]
    assert [(g.labels.tolist(), g.can_be_top) for g in result.twins] == [([4, 5], "no")]
    assert not set(result.certificate(4).rivals) & {4, 5}


def test_eight_zero_rows_after_a_norm_are_the_argmax_where_every_real_logit_is_negative():
    rng = np.random.default_rng(0)
    W = np.vstack([rng.standard_normal((32, 8)) + 2, np.zeros((8, 8))])
    head = Head(W, link="softmax", inputs=AfterRMSNorm(np.ones(8)))
    assert (W[:32] @ -np.ones(8) < 0).all()  # at z = -1, on the sphere, the zero rows are on top
    result = can_win(head)
    assert result.shared.tolist() == list(range(32, 40))
    assert (result.surface.found == 1).all()


def test_labels_that_a_norm_cannot_tell_apart_are_one_candidate():
    after = AfterLayerNorm(np.ones(4), np.array([0.0, 1, 0, 0]))
    W = np.array([[1.0, 2, 3, 0], [2, 3, 4, 1], [0, 1, 0, 3], [5, 0, 0, 0]])
    head = Head(W, [1, 0, 0, 0], link="softmax", inputs=after)  # row 1 is row 0 plus ones: its score is 1 higher
    assert [g.tolist() for g in head.twins] == [[0, 1]]
    assert can_win(head).shared.tolist() == [0, 1]
    assert not head.replace(bias=None).twins
    dead = AfterRMSNorm(np.array([1.0, 1, 1, 0]))
    W = np.array([[1.0, 2, 3, 0], [1, 2, 3, 9], [0, 1, 0, 3], [-5, 0, 0, 0]])
    result = can_win(Head(W, link="softmax", inputs=dead))
    assert [g.labels.tolist() for g in result.twins] == [[0, 1]]
    assert result.shared.tolist() == [0, 1]
    assert not len(Head(W, link="softmax", inputs=AfterRMSNorm(np.ones(4))).twins)


def test_a_label_that_wins_only_far_inside_a_norm_is_told_apart():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((200, 4))
    W[39] = 0
    b = np.zeros(200)
    b[39] = 0.1
    surface = can_win(Head(W, b, link="softmax", inputs=AfterRMSNorm(np.ones(4)))).surface
    z = rng.standard_normal((20000, 4))
    z *= 2 / np.linalg.norm(z, axis=1, keepdims=True)
    brute = (0.1 / np.maximum(np.delete(z @ W.T, 39, axis=1), 1e-12)).min(axis=1).max()
    at = int(np.flatnonzero(surface.labels == 39)[0])
    assert 0.5 * brute < surface.found[at] <= brute * 1.2
    assert surface.found[at] <= surface.at_most[at] < 0.6
    assert surface.not_reached.tolist() == surface.only_inside.tolist() == [39]
    # On the sphere of real states it never wins, as the bound says.
    assert 39 not in (z @ W.T + b).argmax(axis=1)


@pytest.mark.parametrize(
    ("W", "wins", "never"),
    [
        ([[2.0, 1.0]], [0], []),  # one label always wins
        ([[1.0], [2.0]], [0, 1], []),
        ([[1.0], [1.0]], [], []),
        ([[1.0], [2.0], [3.0]], [0, 2], [1]),
        ([[0.0, 0.0], [0.0, 0.0]], [], []),
        ([[0.0], [0.0], [1.0]], [2], []),
        (np.zeros((1, 3)), [0], []),
        (np.outer([1, 2, 3, 4], [1, 1, 1]), [0, 3], [1, 2]),
        (np.outer([1, 2, 3, 4], [1, 1, 1]) * 1e150, [0, 3], [1, 2]),
        (np.outer([1, 2, 3, 4], [1, 1, 1]) * 1e-150, [0, 3], [1, 2]),
    ],
)
def test_degenerate_heads_have_defined_answers(W, wins, never):
    result = can_win(Head(W, link="softmax"))
    assert result.wins.tolist() == wins
    assert result.never.tolist() == never
    assert not len(result.undecided)


def test_observed_inputs_tell_who_ever_wins_and_how_near_the_others_came():
    rng = np.random.default_rng(0)
    W, F = rng.standard_normal((30, 4)), rng.standard_normal((50, 4))
    head = Head(W, link="softmax", inputs=Observed(F))
    result = can_win(head)
    assert set(result.wins) == set((F @ W.T).argmax(axis=1))
    assert not verify_all(head, list(result.certificates())).refused


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_sixteen_bit_heads_are_judged_as_the_numbers_they_are(kind):
    rng = np.random.default_rng(1)
    W = rng.standard_normal((200, 6)).astype(kind)
    W[:40] = (W[:40] * kind(0.05)).astype(kind)
    result = can_win(Head(W, link="softmax"))
    wide = can_win(Head(W.astype(np.float64), link="softmax"))
    assert np.array_equal(result.status, wide.status)
    assert len(result.never) >= 30
    assert not len(result.undecided)


def test_permuting_rows_permutes_verdicts():
    rng = np.random.default_rng(2)
    W, b, order = rng.standard_normal((300, 5)), rng.standard_normal(300), rng.permutation(300)
    for inputs in (
        AllInputs(),
        Nonnegative(),
        Box(-1, 1),
        AfterRMSNorm(np.ones(5)),
        AfterLayerNorm(np.ones(5), np.arange(5.0)),
    ):
        head = Head(W, b, link="softmax", inputs=inputs)
        moved = Head(W[order], b[order], link="softmax", inputs=inputs)
        assert np.array_equal(can_win(head).status[order], can_win(moved).status)


def test_exact_gauge_transforms_leave_every_verdict():
    from gonio.gauge import Linear, Translation

    rng = np.random.default_rng(3)
    head = Head(rng.integers(-40, 40, (200, 4)).astype(float), link="softmax")
    M = np.array([[2, 1, 0, 0], [0, 1, 0, 4], [0, 0, -0.5, 0], [1, 0, 0, 1]])  # dyadic: every product is exact
    moved = Translation([8.0, -3, 0.5, 1]).apply(Linear(M).apply(head))
    assert np.array_equal(can_win(head).status, can_win(moved.replace(W=moved.W)).status)


def test_g2pm_can_never_choose_225_of_its_876_readings():
    import gonio.papers.g2pm as g2pm

    head = g2pm.head(real.wheel("g2pM-0.1.2.5"))
    for inputs, count in ((AllInputs(), 225), (Nonnegative(), 229)):
        result = can_win(head.replace(inputs=inputs))
        assert len(result.never) == count
        assert not len(result.undecided)
        assert not verify_all(result.head, list(result.certificates())).refused


def best_in_ball(head: Head, i: int) -> float:
    """The largest margin of label i over the head's ellipsoid, by a convex solve (scipy's SLSQP)."""
    p = head.inputs.reduce(head.W.astype(float), head.bias)
    others = np.delete(np.arange(len(p.V)), i)
    D, g = p.V[i] - p.V[others], p.c[i] - p.c[others]
    rows = np.column_stack([D, -np.ones(len(D))])
    inside = [
        {"type": "ineq", "fun": lambda x: D @ x[:-1] + g - x[-1], "jac": lambda x: rows},
        {"type": "ineq", "fun": lambda x: p.radius**2 - x[:-1] @ x[:-1], "jac": lambda x: np.r_[-2 * x[:-1], 0.0]},
    ]
    start = np.r_[np.zeros(D.shape[1]), g.min()]
    down = np.r_[np.zeros(D.shape[1]), -1.0]
    found = minimize(
        lambda x: -x[-1], start, jac=lambda x: down, constraints=inside, method="SLSQP", options={"maxiter": 300}
    )
    return float(found.x[-1])


def test_rxnmapper_after_its_layer_norm_against_a_convex_solve(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed; make test installs it")
    import gonio

    folder = real.extract("rxnmapper", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k", tmp_path)
    head = gonio.load(folder)
    assert len(can_win(head).wins) == 591  # every token can win
    harder = head.replace(bias=head.bias * 8)  # biases that the ellipsoid cannot outweigh for every token
    result = can_win(harder)
    assert not verify_all(harder, list(result.certificates(undecided=False))).refused
    assert len(result.undecided) <= 18  # 3 %: a ball with biases is where most stays open
    assert len(result.never) > 10
    assert len(can_win(harder.replace(inputs=None)).never) == 0  # over all inputs they could
    low = result.wins[np.argsort(result.margin[result.status == Status.WINS])][:5]
    for i in [*result.never[:5], *low]:
        best = best_in_ball(harder, int(i))
        assert (best > 0) == (i in result.wins) or abs(best) < 1e-6


def test_pp_ocr_v3_as_loaded_against_one_lp_a_label(tmp_path):
    import gonio

    member = "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx"
    head = gonio.load(real.extract("rapidocr_onnxruntime-1.2.3", member, tmp_path))
    assert isinstance(head.inputs, Box)
    some = np.random.default_rng(0).permutation(6625)[:6]
    result = can_win(head, [int(i) for i in some])
    assert not len(result.undecided)
    for i, status in zip(result.labels, result.status, strict=True):
        assert (best_margin(head, int(i)) > 1e-9) == (status is Status.WINS)


def test_columns_and_plain_values_are_complete():
    head = Head([[1, 1], [1, -1], [-1, 0], [0, 0]], link="softmax", labels=list("abcd"))
    result = can_win(head)
    columns = result.columns()
    assert {len(v) for v in columns.values()} == {4}
    assert columns["can_win"] == ["yes", "yes", "yes", "no"]
    assert result.to_dict()["never"] == [3]
    assert repr(result).splitlines()[1].strip() == "3 can win, 1 never win, 0 undecided"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda h: can_win(h, "nobody"), "no label is called"),
        (lambda h: can_win(h, 9), "out of range"),
        (lambda h: can_win(h, []), "no label was named"),
        (lambda h: can_win(h, [0, 0]), "named twice"),
        (lambda h: can_win(h.replace(link="cosine")), "link is cosine"),
    ],
)
def test_bad_questions_get_one_sentence(ask, said):
    with pytest.raises(GonioError, match=said):
        ask(Head(np.eye(3), link="softmax"))


def test_an_interrupt_keeps_what_is_decided():
    rng = np.random.default_rng(4)
    W = rng.standard_normal((3000, 12))
    W[:300] *= 0.05
    seen = []

    def stop(done, total, doing):
        seen.append(done)
        if done > 1000:
            raise KeyboardInterrupt

    result = can_win(Head(W, link="softmax"), on_progress=stop)
    assert result.interrupted
    assert len(result.wins) > 500
    assert len(result.wins) + len(result.never) + len(result.undecided) == 3000
    assert seen


@pytest.mark.parametrize("inputs", [AllInputs(), Nonnegative(), Box(-1, 2)])
def test_what_the_search_leaves_open_one_program_each_settles(inputs, monkeypatch):
    """Verdicts, margins, stages and proofs of labels that the search has not touched."""
    rng = np.random.default_rng(3)
    head = Head(rng.integers(-3, 4, (14, 3)).astype(float), rng.integers(-2, 3, 14).astype(float), link="softmax")
    head = head.replace(inputs=inputs)
    by_search = can_win(head)
    monkeypatch.setattr("gonio.search.propose._decide", lambda *_: None)
    late = can_win(head)
    assert "program" in late.stage
    assert (late.codes == by_search.codes).all()
    assert (late.margin[late.codes == 1] > 0).all()
    assert (late.margin[late.codes == 2] <= 0).all()
    assert not verify_all(head, list(late.certificates())).refused


def test_a_win_within_the_tolerance_of_programs_is_proven_by_the_input_they_end_at(monkeypatch):
    """A label and its copy but for 2e-13: the best margin is of that size, and the solver calls it 0."""
    monkeypatch.setattr("gonio.search.propose._decide", lambda *_: None)
    W = np.random.default_rng(5).normal(size=(12, 3))
    W[1] = W[0] + [2e-13, 0, -1e-13]
    result = can_win(Head(W, link="softmax", inputs=Box(-1, 1)))
    first = can_win(Head(np.delete(W, 1, axis=0), link="softmax", inputs=Box(-1, 1))).codes[0]
    assert (result.codes[:2] == first).all()
    assert first == 1
