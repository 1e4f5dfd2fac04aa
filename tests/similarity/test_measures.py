"""Each measure against a second writing of it, its declared invariances as laws, its neighbours against a plain sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gonio import GonioError, Head
from gonio.similarity import MEASURES, Measure, for_link, measure
from tests.laws.test_invariance import changes
from tests.similarity.heads import FIGURE1, F, W, naive, options
from tests.strategies import heads

PLAIN = [name for name in MEASURES if name not in ("cosine of differences", "judged")]


def made(name: str, head: Head, F=F) -> Measure:
    return measure(name)(head, F, **options(name))


def every_pair(m: Measure) -> np.ndarray:
    n = m.head.shape[0]
    i, j = (x.ravel() for x in np.indices((n, n)))
    if m.name == "cosine of differences":
        two = np.array([(x, y) for x in range(n) for y in range(x)])
        a, b = (x.ravel() for x in np.indices((len(two), len(two))))
        return m.pairs(two[a], two[b])
    return m.pairs(i, j)


@pytest.mark.parametrize("name", PLAIN)
def test_a_measure_is_its_formula(name):
    table = made(name, Head(W, link="softmax")).pairs(*(x.ravel() for x in np.indices((7, 7)))).reshape(7, 7)
    off = ~np.eye(7, dtype=bool)
    assert np.allclose(table[off], naive(name, W, F)[off], atol=1e-10)


def test_the_cosine_of_differences_is_its_formula():
    m = measure("cosine of differences")(Head(W, link="softmax"))
    a, b = W[0] - W[1], W[2] - W[5]
    assert m((0, 1), (2, 5)) == pytest.approx(a @ b / np.sqrt((a @ a) * (b @ b)))
    assert np.isnan(m((0, 0), (2, 5)))


@pytest.mark.theorem("GONIO.clc")
@pytest.mark.parametrize("group", "TMSRP")
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_stays_under_the_groups_it_declares_and_moves_under_the_others(name, group):
    rng = np.random.default_rng(3)
    most = 0.0
    for change in changes(group, rng, 7, 3, 4):
        head = Head(rng.standard_normal((7, 3)) + 0.3, link="softmax")
        before = every_pair(made(name, head))
        after = every_pair(made(name, change.apply(head), change.embeddings(F)))
        size = np.nanmax(np.abs(before))
        most = max(most, float(np.nanmax(np.abs(after - before))) / size)
    if group in MEASURES[name].invariant:
        assert most < 1e-7, f"{name} is declared to stay under {group} and moved by {most:.2g}"
    else:
        assert most > 0.01, f"{name} is declared to move under {group} and did not"


@pytest.mark.parametrize("name", [n for n in MEASURES if n != "cosine of differences"])
def test_neighbours_are_the_first_of_a_plain_sort(name):
    rng = np.random.default_rng(5)
    head = Head(rng.standard_normal((40, 3)) + 0.5, link="softmax", labels=[f"l{i}" for i in range(40)])
    m = made(name, head, rng.standard_normal((30, 3)))
    found = m.nearest(5)
    for i in (0, 7, 39):
        others = np.delete(np.arange(40), i)
        values = m.pairs(np.full(39, i), others)
        order = np.lexsort((others, np.round(-m.nearer * values, 12)))[:5]
        assert found.near[i].tolist() == others[order].tolist()
        assert np.allclose(found.values[i], values[order])
    one = m.nearest(5, "l7")
    assert one.near[0].tolist() == found.near[7].tolist()
    assert len(one.columns()["near"]) == 5
    assert str(one).startswith("Neighbours(1 labels, 5 each")


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "dot", "cosine"])
@pytest.mark.parametrize("softcap", [None, 1.5])
def test_logit_measures_follow_the_head_s_own_logits(link, softcap):
    bias = None if link == "cosine" else np.linspace(-1, 1, 7)
    head = Head(W, bias, link=link, softcap=softcap)
    z = head.logits(F)
    for name, logits in (("logit correlation", z), ("centred-logit correlation", z - z.mean(axis=1, keepdims=True))):
        m = measure(name)(head, F)
        expected = np.corrcoef(logits.T)
        assert np.allclose(every_pair(m).reshape(7, 7), expected, atol=1e-9)
        near = m.nearest(2).near[3]
        assert near.tolist() == np.argsort(-np.where(np.arange(7) == 3, -2, expected[3]))[:2].tolist()
        assert np.allclose(np.corrcoef(m.logits([1, 4]).T)[0, 1], expected[1, 4])


@pytest.mark.parametrize("biased", [False, True])
def test_projecting_back_is_the_cosine_of_the_columns_of_scores(biased):
    head = Head(W, np.linspace(-1, 1, 7) if biased else None, link="dot")
    m = measure("projected-back cosine")(head, F)
    z = head.logits(F)
    unit = z / np.linalg.norm(z, axis=0)
    assert np.allclose(every_pair(m).reshape(7, 7), unit.T @ unit, atol=1e-12)
    found = m.intervals([0], [1])[0]
    assert found.low <= found.value <= found.high


def test_behaviour_follows_the_head_s_own_probabilities():
    for link in ("softmax", "sigmoid"):
        for softcap in (None, 2.0):
            head = Head(W, np.linspace(-1, 1, 7), link=link, softcap=softcap)
            log_p = np.log(head.probabilities(F))
            m = measure("log-probability correlation")(head, F)
            assert np.allclose(every_pair(m).reshape(7, 7), np.corrcoef(log_p.T), atol=1e-8)
            apart = measure("expected log-ratio")(head, F)(0, 1)
            assert apart == pytest.approx(np.abs(log_p[:, 0] - log_p[:, 1]).mean())
    with pytest.raises(GonioError, match="no probabilities"):
        measure("which inputs")(Head(W, link="dot"), F)


def test_the_first_figure_of_the_paper():
    m = measure("centred cosine")(FIGURE1)
    assert m(0, 1) == pytest.approx(0.777278, abs=5e-7)
    assert measure("cosine")(FIGURE1)(0, 1) == pytest.approx(0.8)


@pytest.mark.theorem("GONIO.clc2")
@settings(max_examples=25, deadline=None)
@given(heads(links=("softmax",)))
def test_with_two_labels_centred_logits_are_opposite(head):
    two = Head(head.W[:2], link="softmax")
    F = np.random.default_rng(0).standard_normal((20, two.shape[1]))
    m = measure("centred-logit correlation")(two, F)
    assert "two labels" in m.caveat
    value = m(0, 1)
    assert np.isnan(value) if np.array_equal(two.W[0], two.W[1]) else value == pytest.approx(-1)


@pytest.mark.theorem("GONIO.degenerate")
def test_the_whitened_cosine_is_empty_at_full_rank_and_says_so():
    rng = np.random.default_rng(0)
    for n, d in ((3, 2), (5, 8), (9, 8)):
        m = measure("whitened-centred cosine")(Head(rng.standard_normal((n, d)), link="softmax"))
        assert m.rank == n - 1
        assert np.allclose(every_pair(m).reshape(n, n)[~np.eye(n, dtype=bool)], -1 / (n - 1))
        assert "says nothing" in m.caveat
    assert not measure("whitened-centred cosine")(Head(rng.standard_normal((30, 4)), link="softmax")).caveat


@settings(max_examples=40, deadline=None)
@given(heads())
def test_degenerate_heads_have_defined_answers(head):
    F = np.random.default_rng(1).standard_normal((12, head.shape[1]))
    for name in MEASURES:
        if name in ("soft cosine", "judged"):
            continue
        try:
            m = measure(name)(head, F)
            values = every_pair(m)
            if name != "cosine of differences":
                near = m.nearest(1)
                assert (near.near[:, 0] != np.arange(head.shape[0])).all()
        except GonioError as e:
            assert "\n" not in str(e)
            continue
        assert not np.isinf(values).any() or name == "NICDM"
        assert (np.nanmax(np.abs(values), initial=0) < 1e6) or name == "NICDM"


def test_zero_rows_have_no_cosine_and_are_nobody_s_neighbour():
    head = Head([[0, 0], [1, 0], [0.9, 0.1], [0, 1]], link="cosine")
    for name in ("cosine", "CSLS", "NICDM", "local scaling", "mutual proximity", "query-normalised"):
        m = measure(name)(head)
        assert np.isnan(m(0, 1)), name
        assert 0 not in m.nearest(2).near[1:], name


def test_inputs_that_span_too_little_are_named():
    rng = np.random.default_rng(0)
    head = Head(rng.standard_normal((9, 6)), link="softmax")
    m = measure("centred-logit correlation")(head, rng.standard_normal((4, 6)))
    assert "4 inputs span at most 3 of 6 directions" in m.caveat
    assert "more than 6 inputs" in repr(m)
    still = measure("logit correlation")(head, np.ones((5, 6)))
    assert np.isnan(still(0, 1))
    assert "no logit varies" in still.caveat


def test_observed_inputs_of_the_head_are_used():
    from gonio import Observed

    plain = Head(W, link="softmax")
    given_ = measure("centred-logit correlation")(plain, F)(0, 1)
    assert measure("centred-logit correlation")(plain.replace(inputs=Observed(F)))(0, 1) == pytest.approx(given_)


def test_the_measure_for_a_link():
    assert for_link("softmax", embeddings=True) == "centred-logit correlation"
    assert {for_link(x, embeddings=e) for x in ("softmax", "sigmoid", "dot", "cosine") for e in (True, False)} <= set(
        MEASURES
    )


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda h: measure("cosin"), "did you mean 'cosine'"),
        (lambda h: measure("cosine")(W), "a Head is needed"),
        (lambda h: measure("cosine")(h).nearest(7), "1 to 6 can be given"),
        (lambda h: measure("cosine")(h).nearest(0), "1 to 6 can be given"),
        (lambda h: measure("cosine")(Head([[1.0]], link="dot")).nearest(1), "one label has none"),
        (lambda h: measure("cosine")(h).pairs([0, 1], [2]), "as many of each"),
        (lambda h: measure("cosine")(h).pairs([], []), "no label was named"),
        (lambda h: measure("cosine")(h)(0, 9), "out of range"),
        (lambda h: measure("cosine")(h).pairs(np.array([0, 9]), np.array([1, 2])), "out of range"),
        (lambda h: measure("cosine")(h).pairs(3.5, [1]), "names or numbers"),
        (lambda h: measure("logit correlation")(h), "none were given"),
        (lambda h: measure("logit correlation")(h, F[:, :2]), "width 3"),
        (lambda h: measure("logit correlation")(h, F[:1]), "at least 2"),
        (lambda h: measure("logit correlation")(h.replace(link="cosine"), 0 * F), "has no cosine"),
        (lambda h: measure("logit correlation")(h, F).intervals([0], [1], level=2), "between 0 and 1"),
        (lambda h: measure("logit correlation")(h, F).intervals([0], [1], resamples=1), "at least 20"),
        (lambda h: measure("logit correlation")(h, F).intervals([0], [1, 2]), "as many of each"),
        (lambda h: measure("cosine of differences")(h).nearest(2), "no neighbours"),
        (lambda h: measure("cosine of differences")(h).pairs([0], [1]), "of two labels"),
        (lambda h: measure("CSLS")(h, k=7), "k from 1 to 6"),
        (lambda h: measure("CSLS")(h, k=0), "from 1 up"),
        (lambda h: measure("CSLS")(Head([[1.0]], link="dot")), "one label"),
        (lambda h: measure("local scaling")(h, distance="far"), "choose one of"),
        (lambda h: measure("SCALED_SIM")(h, alpha=2), "from 0 to 1"),
        (lambda h: measure("WRD as printed")(h, weight=-1), "from 0 up"),
        (lambda h: measure("augmented cosine")(Head([[0.0], [0]], link="dot")), "all rows are zero"),
        (lambda h: measure("whitened cosine")(Head([[0.0], [0]], link="dot")), "nothing is left"),
        (lambda h: measure("soft cosine")(h), "no similarity of features"),
        (lambda h: measure("soft cosine")(h, features=np.eye(2)), "(3, 3)"),
        (lambda h: measure("soft cosine")(h, features=np.triu(np.ones((3, 3)))), "not symmetric"),
        (lambda h: measure("soft cosine")(h, features=-np.eye(3)), "not positive semidefinite"),
        (lambda h: measure("judged")(h), "judged pairs are needed"),
    ],
)
def test_bad_questions_get_one_sentence(ask, said):
    import re

    with pytest.raises(GonioError, match=re.escape(said)) as e:
        ask(Head(W, link="softmax"))
    assert "\n" not in str(e.value)


def test_the_printed_table_of_measures_is_the_one_in_the_code():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
    for name, cls in MEASURES.items():
        assert f"| {name} | " + " | ".join("yes" if g in cls.invariant else "no" for g in "TMSRP") + " |" in page
