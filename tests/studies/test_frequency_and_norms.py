"""Study 4: what is planted is found and what is not is not; what no form moves stays; sentences follow numbers."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.core.correlations import spearman
from gonio.core.head import Head
from gonio.studies.frequency_and_norms import against, frequency_and_norms, slope_beside_people, verdict
from gonio.studies.frequency_tenths import beyond_people_words, by_tenths
from gonio.studies.study import Measured
from gonio.studies.words import informativeness, rows_of_words, unpack
from tests.studies.made import equivalent

WORDS = [a + b + c for a in "bcdfghjk" for b in "aeiou" for c in "lmnprst"]


def made(grow=0.0, seed=0, n=280, d=6):
    """Words whose rows are longer (and logits vary more) the more frequent they are, by `grow`."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    W = rng.normal(size=(n, d)) * np.exp(grow * f)[:, None]
    words = WORDS[:n]
    return Head(W, link="softmax", labels=words), dict(zip(words, f.tolist(), strict=True)), rng.normal(size=(400, d))


def test_planted_growth_is_found_and_stays_in_every_form_and_none_is_not():
    head, f, F = made(grow=0.5)
    r = frequency_and_norms(head, rows_of_words(head), f, states=F)
    assert r["norm and frequency"].low > 0.5
    assert "What survives" in r.verdict
    moved, G = equivalent(head, F, size=3)
    again = frequency_and_norms(moved, rows_of_words(moved), f, states=G)
    assert again["logit spread and frequency"].value == pytest.approx(r["logit spread and frequency"].value, abs=1e-6)
    assert abs(again["norm and frequency"].value - r["norm and frequency"].value) > 0.1
    head, f, F = made(grow=0.0)
    r = frequency_and_norms(head, rows_of_words(head), f, states=F)
    assert "nothing is shown to survive" in r.verdict


def test_longer_rare_words_are_told_against_the_source():
    head, f, _ = made(grow=-0.5)
    r = frequency_and_norms(head, rows_of_words(head), f)
    assert "longer rows are rarer here" in r.against
    assert "without states" in r.verdict


def judged(slope, seed=0, n=120, pairs=600):
    rng = np.random.default_rng(seed)
    log2 = rng.normal(size=n)
    p = np.array([rng.choice(n, 2, replace=False) for _ in range(pairs)])
    people = rng.normal(size=pairs)
    z = people + slope * log2[p].mean(axis=1) + 0.5 * rng.normal(size=pairs)
    return z, p, people, log2


def test_slopes_are_those_of_the_regression_and_of_chance():
    z, p, people, log2 = judged(-0.8)
    m = slope_beside_people("cosine", z, p, people, log2, 0)
    X = np.column_stack([log2[p].mean(axis=1), people, np.ones(len(z))])
    assert m.value == pytest.approx(np.linalg.solve(X.T @ X, X.T @ z)[0])
    assert m.below(0)
    assert not any(slope_beside_people("cosine", *judged(0.0, s), 0).above(0) for s in range(3))
    assert slope_beside_people("cosine", *judged(0.8), 0).above(0)


def test_tenths_are_those_of_a_sort():
    z, p, people, log2 = judged(0.0)
    z = np.where(log2[p].mean(axis=1) > 0, people, np.random.default_rng(1).normal(size=len(z)))
    n = {m.name: m for m in by_tenths("cosine", z, p, people, log2, 0)}
    assert len(n) == 21
    by = sorted(range(len(z)), key=lambda k: log2[p[k]].mean())
    first, last = spearman(z[by[:60]], people[by[:60]]), spearman(z[by[-60:]], people[by[-60:]])
    difference = n["agreement of cosine with people, most frequent minus rarest tenth"]
    assert difference.value == pytest.approx(last - first)
    assert difference.above(0)
    assert n["agreement of cosine with people, tenth 1, the rarest"].value == pytest.approx(first)
    line = np.poly1d(np.polyfit(people, z, 1))
    third = [z[k] - line(people[k]) for k in by[120:180]]
    assert n["cosine beyond people, tenth 3"].value == pytest.approx(np.mean(third))
    assert n["cosine beyond people, tenth 3"].how == "60 pairs; 499 deals"


def test_tenths_that_stand_beyond_people_are_named_and_others_are_not():
    up = {m.name: m for m in by_tenths("cosine", *judged(0.8), 0)}
    assert "the cosine lies above it in" in (said := beyond_people_words(up))
    assert said.endswith("10 and below it in " + said.split("below it in ")[1])
    assert said.split("below it in ")[1].startswith("1, ")
    wrong = sum(m.above(0) or m.below(0) for s in range(5) for m in by_tenths("cosine", *judged(0.0, s), 0)[:10])
    assert wrong <= 8  # 50 tenths of chance, one in twenty of which may stand out
    assert beyond_people_words({}) == ""


def test_sentences_follow_numbers():
    n = {"norm and frequency": Measured("norm and frequency", 0.5, 0.4, 0.6)}
    assert against(n) == ""
    n["slope of cosine on frequency"] = Measured("slope of cosine on frequency", 0.2, 0.1, 0.3)
    assert "the cosine rises with frequency" in against(n)
    n["norm and frequency in equivalent forms"] = Measured("x", 0.0, -0.5, 0.5)
    assert "a convention" in verdict(n)
    n["norm and frequency in equivalent forms"] = Measured("x", 0.4, 0.3, 0.5)
    assert "a convention" not in verdict(n)


def test_words_of_tables_and_of_files():
    assert rows_of_words(Head(np.eye(4), link="softmax", labels=["Ġdog", "dog", "ĠDog", "Ġcat"])) == {
        "dog": 0,
        "cat": 3,
    }
    assert rows_of_words(Head(np.eye(3), link="input", labels=["dog", "##ed", "a1"])) == {"dog": 0}
    assert unpack(b"\x92\x81\xa1a\x05\x92\xa2hi\xd9\x01x") == ([{"a": 5}, ["hi", "x"]], 12)
    with pytest.raises(ValueError, match="0xc0"):
        unpack(b"\xc0")
    told = informativeness(["a b b", "a c"], ["a", "b", "c", "d"])
    assert told == {"a": 0.0, "b": pytest.approx(2 / 3 * np.log(2)), "c": pytest.approx(np.log(2) / 2)}
