"""can_tie: which pairs share the top."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from gonio import AfterLayerNorm, AfterRMSNorm, Box, GonioError, Head, Nonnegative, Observed, can_tie
from gonio.proofs.bulk import verify_all
from gonio.similarity.nearest import nearest_by_cosine
from tests.small_heads import CLEAR, KINDS, small_head, tie_margin

S = np.sqrt(1 - 0.95**2)
FIGURES = {
    "Fig. 1": ([[1, 0.5], [0.5, 1], [-1, 0.4], [-0.8, -0.8], [0.9, -1.2]], [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]),
    "Fig. 2 left": (
        [[1.4, -1], [1.4, 1], [-0.9, 0.3], [-1, 0], [-0.9, -0.3]],
        [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)],
    ),
    "Fig. 2 right": (
        [[0.95, S], [-0.95, S], [-1, 0], [-0.95, -S], [0.95, -S], [1, 0]],
        [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)],
    ),
}


def ties(head):
    result = can_tie(head, pairs=list(combinations(range(head.shape[0]), 2)))
    certificates = [result.certificate(k) for k in range(len(result)) if result.answers[k] != "undecided"]
    assert not verify_all(head, certificates).refused
    return {tuple(map(int, p)) for p, s in zip(result.pairs, result.answers, strict=True) if s == "yes"}, result


@pytest.mark.theorem("NG26.edge")
@pytest.mark.parametrize("name", FIGURES)
def test_the_ties_of_the_papers_figures(name):
    W, wanted = FIGURES[name]
    found, result = ties(Head(W, link="softmax"))
    assert found == set(wanted)
    assert "undecided" not in result.answers


@pytest.mark.parametrize("d", [2, 3])
def test_ties_are_the_edges_of_the_hull(d):
    rng = np.random.default_rng(d)
    W = rng.standard_normal((40, d))
    hull = ConvexHull(W)
    edges = {tuple(sorted(map(int, e))) for f in hull.simplices for e in combinations(f, 2)}
    assert ties(Head(W, link="softmax"))[0] == edges


def test_the_share_of_pairs_that_can_tie_grows_with_the_width():
    rng = np.random.default_rng(0)
    shares = []
    for d in (2, 3, 5, 8, 12):
        result = can_tie(Head(rng.standard_normal((60, d)), link="softmax"), pairs=list(combinations(range(60), 2)))
        shares.append(result.share)
    # FACTS 1.7: .00, .03, .21, .70, .97 in one draw
    assert np.allclose(shares, [0, 0.03, 0.2, 0.68, 0.97], atol=0.08)
    assert "almost every two labels" in result.note
    assert "real restriction" in can_tie(Head(rng.standard_normal((60, 2)), link="softmax"), 0, 1).note


def test_one_pair_is_answered_with_its_proof():
    square = Head([[1, 1], [1, -1], [-1, 1], [-1, -1]], link="softmax", labels=list("abcd"))
    yes, no = can_tie(square, "a", "b"), can_tie(square, "a", "d")
    assert (yes.answer, no.answer) == ("yes", "no")
    assert yes.certificate.verify(square) > 0
    assert no.certificate.verify(square) <= 0


@pytest.mark.parametrize("inputs", [Nonnegative(), Box(-1, 1), AfterLayerNorm(np.ones(4), np.arange(4.0))], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_no_tie_is_claimed_that_the_inputs_forbid(inputs, biased):
    rng = np.random.default_rng(7)
    b = rng.standard_normal(12) if biased else None
    head = Head(rng.standard_normal((12, 4)), b, link="softmax", inputs=inputs)
    found, result = ties(head)
    wide, _ = ties(head.replace(inputs=None))
    assert found <= wide  # fewer inputs, fewer ties
    assert "undecided" not in result.answers


def test_neighbours_by_cosine_are_found_as_naively():
    rng = np.random.default_rng(1)
    W = rng.standard_normal((1500, 7)).astype(np.float32)
    W[5] = 0
    head = Head(W, link="softmax")
    near, cosines = nearest_by_cosine(head.rows, 4)
    unit = W.astype(float) / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-30)
    C = unit @ unit.T
    np.fill_diagonal(C, -np.inf)
    C[:, 5] = -np.inf
    naive = np.argsort(-C, axis=1)[:, :4]
    rows = np.delete(np.arange(1500), 5)
    assert np.mean(near[rows] == naive[rows]) > 0.999  # float32 may swap near-equals
    assert np.allclose(cosines[rows], np.take_along_axis(C, near, 1)[rows], atol=1e-5)
    result = can_tie(Head(W[:60], link="softmax"), nearest=3)
    assert 90 <= len(result) <= 180
    assert len({tuple(p) for p in result.pairs.tolist()}) == len(result)


def judged(kind, count, seed):
    """Every pair of some small heads: decided as the judge decides, open only where the margin is rounding."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for _ in range(count):
        head = small_head(rng, kind)
        _, result = ties(head)
        for pair, answer in zip(result.pairs.tolist(), result.answers, strict=True):
            margin = tie_margin(head, *pair)
            wanted = {"yes"} if margin > CLEAR else {"no"} if margin < -CLEAR else {"no", "undecided"}
            assert answer in wanted, (head.W, head.bias, head.inputs, pair, margin)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_small_heads_are_decided_rightly(kind):
    judged(kind, count=4, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_many_small_heads_are_decided_rightly(kind):
    judged(kind, count=15, seed=1)


def test_a_bias_after_a_norm_leaves_no_clear_pair_open():
    head = Head(np.eye(3, 4), [1.0, 0, 0], link="softmax", inputs=AfterRMSNorm(np.ones(4)))
    verdict = can_tie(head, 0, 1)  # x = (0, 1, 0, 0) gives 1, 1, 0
    assert verdict.answer == "yes"
    assert verdict.margin > 0.5


@pytest.mark.parametrize(
    "inputs", [None, Nonnegative(), Box(-1, 1), AfterRMSNorm(np.ones(2)), AfterLayerNorm(np.ones(2))]
)
def test_two_labels_tie_where_they_are_equal_somewhere(inputs):
    def answer(bias):
        verdict = can_tie(Head([[2.0, 1.0], [0.0, 0.0]], [bias, 0.0], link="softmax", inputs=inputs), 0, 1)
        verdict.certificate.verify(verdict.head)
        return verdict.answer

    assert answer(-0.25) == "yes"
    assert answer(10.0) == ("yes" if inputs is None else "no")


def test_labels_that_are_equal_only_on_the_surface_of_an_open_ball_never_tie():
    # |z| < 1 in width 1, and the scores z + 1 and 0 are equal at z = -1 only.
    head = Head([[1.0], [0.0]], [1.0, 0.0], link="softmax", inputs=AfterRMSNorm(np.ones(1)))
    verdict = can_tie(head, 0, 1)
    assert verdict.answer == "no"
    assert verdict.certificate.verify(head) == 0
    below = np.nextafter(1.0, 0)
    assert can_tie(head.replace(bias=np.array([below, 0.0])), 0, 1).answer != "no"


def test_observed_embeddings_at_which_two_labels_are_equal_on_top_are_found():
    F = np.array([[0.0, 0], [1, 0], [1, 1], [2, -1]])
    found, result = ties(Head([[1.0, 0], [0, 1], [-1, -1]], link="softmax", inputs=Observed(F)))
    assert found == {(0, 1)}
    assert "undecided" not in result.answers


def test_wide_heads_with_a_shifted_norm_are_decided():
    rng = np.random.default_rng(0)
    inputs = AfterLayerNorm(rng.random(32) + 0.5, 0.3 * rng.standard_normal(32))
    head = Head(
        rng.standard_normal((400, 32)).astype(np.float32), rng.standard_normal(400), link="softmax", inputs=inputs
    )
    result = can_tie(head, pairs=rng.permutation(400)[:60].reshape(30, 2).tolist())
    assert "undecided" not in result.answers
    assert "program" in result.stage


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda h: can_tie(h, 0, 0), "is one label"),
        (lambda h: can_tie(h), "one of the three"),
        (lambda h: can_tie(h, 0), "one of the three"),
        (lambda h: can_tie(h, 0, 1, nearest=2), "one of the three"),
        (lambda h: can_tie(h, pairs=[]), "no pair"),
        (lambda h: can_tie(h, pairs=[(0, 1, 2)]), "not a pair"),
        (lambda h: can_tie(h, nearest=3), "from 1 to 2"),
        (lambda h: can_tie(h.replace(link="cosine"), 0, 1), "link is cosine"),
        (lambda h: can_tie(Head([[1.0, 2]], link="softmax"), nearest=1), "one label"),
    ],
)
def test_bad_questions_get_one_sentence(ask, said):
    with pytest.raises(GonioError, match=said):
        ask(Head(np.eye(3), link="softmax"))
