"""Studies 6 and 9: windows are those of the text, means and concentrations are those of definitions; both verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ive

from gonio.papers.experiments.word2vec import read_corpus
from gonio.studies.sphere import against as sphere_against
from gonio.studies.sphere import bessel_ratio, concentration, evenness, geodesic_mean, sphere
from gonio.studies.study import Measured
from gonio.studies.windows_as_label_sets import against, matched, observed, verdict, windows_as_label_sets

TEXT = "\n".join(" ".join(np.random.default_rng(s).choice(list("abcdefghijkl"), 30)) for s in range(20))


def test_windows_are_those_of_the_text_and_random_ones_are_not():
    corpus = read_corpus("a b c d e\nf g a b c", least=1)
    at = {w: i for i, w in enumerate(corpus.words)}
    rng = np.random.default_rng(0)
    seen = observed(corpus, 2, 10, rng)
    wanted = [set("abde"), set("fgbc")]
    assert [set(s) for s in seen] == [{at[x] for x in w} for w in wanted]
    drawn = matched(corpus, seen, rng)
    assert [len(s) for s in drawn] == [4, 4]
    assert not set(drawn) & set(seen)


def test_where_it_is_wide_everything_is_possible_and_where_narrow_not():
    r = windows_as_label_sets(TEXT, dims=(2, 12), words=(12,), sets=15, epochs=3)
    assert r["12 words, 12 dimensions: random"].value == 1
    assert r["12 words, 2 dimensions: random"].value < 0.5
    assert "every window asked, seen or random, is possible for 12 words, 12 dimensions" in r.against


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [(0.9, 0.3, "training makes room"), (0.3, 0.9, "harder to answer"), (0.5, 0.55, "is not shown"), (0.0, 0.0, "nothing tells")],
)  # fmt: skip
def test_the_verdict_on_windows_follows_the_numbers(a, b, said):
    n = {f"9 words, 4 dimensions: {k}": Measured("x", v, v - 0.1, v + 0.1) for k, v in (("observed", a), ("random", b))}
    assert said in verdict(n)
    assert against(n) == ""


def test_the_ratio_of_bessel_functions_and_the_concentration():
    for d, k in ((3, 2.0), (10, 5.0), (50, 120.0)):
        assert bessel_ratio(k, d) == pytest.approx(ive(d / 2, k) / ive(d / 2 - 1, k), rel=1e-9)
        assert concentration(bessel_ratio(k, d), d) == pytest.approx(k, rel=1e-6)
    assert concentration(1 / np.tanh(4) - 1 / 4, 3) == pytest.approx(4)  # the closed form of the sphere in space
    assert concentration(0, 5) == 0
    assert concentration(1, 5) == np.inf


def test_the_geodesic_mean_is_the_least_mean_squared_angle():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(80, 3)) + np.array([2, 0, 0])
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    m = geodesic_mean(U)
    cost = lambda x: np.mean(np.arccos(np.clip(U @ (x / np.linalg.norm(x)), -1, 1)) ** 2)  # noqa: E731
    assert all(cost(m) <= cost(m + 1e-3 * rng.normal(size=3)) for _ in range(30))


def even(n=4000, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 3 * np.eye(d)[0]


def test_an_even_spread_of_equal_lengths_is_called_so_and_lengths_that_matter_too():
    U = even() / np.linalg.norm(even(), axis=1, keepdims=True)
    r = sphere(U * np.exp(0.3 * np.random.default_rng(3).normal(size=(len(U), 1))))
    assert "nearly even" in r.verdict
    assert "Lengths hardly matter" in r.verdict
    assert r.against == ""
    long = U * np.where(U[:, 1:2] > 0, 6.0, 0.2)  # those on one side are long
    r = sphere(long)
    assert "Lengths matter" in r.verdict
    r = sphere(U * np.where(U[:, :1] > np.median(U[:, 0]), 5.0, 1.0))
    assert "towards the mean" in r.against
    far = sphere(np.column_stack([U[:, 0], 20 * U[:, 1], U[:, 2:]]))
    assert "far from even" in far.verdict


def test_a_rotation_changes_no_statistic_of_the_sphere():
    V = even(400)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    for a, b in zip(sphere(V).measured, sphere(V @ Q.T).measured, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-6), a.name


def test_a_translation_of_all_rows_moves_the_concentration_at_will():
    V = np.random.default_rng(0).normal(size=(300, 5))
    near, far = (sphere(V + s)["concentration"].value for s in (0.0, 20.0))
    assert near < 1 < 100 < far
    assert evenness(V / np.linalg.norm(V, axis=1, keepdims=True), np.eye(5)[0]) > 0.7
    assert sphere_against({"length and cosine to the mean": Measured("x", 0.1, -0.1, 0.3)}) == ""
