"""Study 5: the rules make what they say, rates are those of loops, and the verdict comes out both ways."""

from __future__ import annotations

import numpy as np
import pytest

from gonio.core.errors import GonioError
from gonio.studies.cosine_failures import against, cosine_failures, verdict
from gonio.studies.made_roles import acting, exchanged
from gonio.studies.made_sentences import (
    Triple,
    abstract_triples,
    mostly_function_words,
    negated,
    renumbered,
    triples,
)
from gonio.studies.made_strengths import strengths
from gonio.studies.study import Measured


def test_the_rules_make_what_they_say():
    assert negated("A man is riding a horse.") == "A man is not riding a horse."
    assert negated("Dogs run.") is None
    assert negated("He is not here.") is None
    assert renumbered("Two dogs run.") == "Seven dogs run."
    assert renumbered("It cost 12 dollars.") == "It cost 43 dollars."
    assert renumbered("Dogs run.") is None
    assert exchanged("A man is riding a horse.") == "A horse is riding a man."
    assert exchanged("A man is riding a big horse.") == "A big horse is riding a man."
    assert exchanged("An ox is pulling the cart.") == "The cart is pulling an ox."
    assert strengths("Two men are fighting.") == ("Some men are fighting.", "All men are fighting.")
    assert strengths("A man is fighting.") is None
    assert (
        mostly_function_words("It is on the table with all of the old silver spoons.")
        == "It is on the with all of the spoons"
    )
    assert mostly_function_words("Dogs run fast.") is None


def test_roles_are_exchanged_and_what_no_rule_reads_is_left():
    assert exchanged("A dog pets a man in a yard.") == "A man pets a dog in a yard."
    assert exchanged("A ball is kicked by a boy.") == "A boy is kicked by a ball."
    assert exchanged("A man is eating a slice of pizza.") is None
    assert exchanged("The man and woman are sitting on a couch.") is None
    assert exchanged("A man is laughing with a woman.") is None  # the same either way
    assert exchanged("A man is peeling the potatoes.") is None  # the potatoes is
    assert acting("the effect of heat on drag is small") == (
        "the effect on drag of heat is small",
        "the effect of drag on heat is small",
    )
    assert acting("heat flows from the wall to the gas") == (
        "heat flows to the gas from the wall",
        "heat flows from the gas to the wall",
    )
    assert acting("the drag due to lift is small") == (
        "the drag caused by lift is small",
        "the lift due to the drag is small",
    )
    assert acting("the effect of yaw on transition from laminar flow") is None
    assert acting("it rose from two to three") is None


def test_strengths_of_words_and_where_they_make_no_sense():
    assert strengths("Several dogs run.") == ("Some dogs run.", "All dogs run.")
    assert strengths("it may be small") == ("it might be small", "it must be small")
    assert strengths("most of the tests failed") == ("some of the tests failed", "all of the tests failed")
    assert strengths("it is usually small") == ("it is sometimes small", "it is always small")
    assert strengths("results indicate that it is so") == (
        "results suggest that it is so",
        "results prove that it is so",
    )
    for odd in (
        "Two years ago it rained.",
        "it is not usually small",
        "the several tests",
        "in many ways",
        "Dogs run.",
    ):
        assert strengths(odd) is None, odd


def test_triples_of_abstracts_are_at_most_so_many_and_each_once():
    found = abstract_triples(
        ["the effect of heat on drag"] * 2 + [f"several x{i}s run in {i}" for i in range(9)], most=4
    )
    assert len(found["roles in abstracts"]) == 1
    assert found["strength in abstracts"] == []  # x1s is no word
    found = abstract_triples([f"it may be {x}" for x in "abcdefg"], most=4)["strength in abstracts"]
    assert len(found) == len({t.sentence for t in found}) == 4


def test_every_number_is_changed_and_no_near_copy_is_the_sentence():
    words = ["Two", "three", "TEN", "7", "100"]
    for w in words:
        assert renumbered(f"{w} dogs") != f"{w} dogs"


def test_triples_are_of_paraphrases_only():
    first = ["A man is riding a horse.", "Two men are fighting."]
    second = ["A man rides a horse.", "Men are in a fight."]
    found = triples(first, second, [4.5, 1.0])
    assert found["negation"] == [Triple(first[0], second[0], "A man is not riding a horse.")]
    assert found["numbers"] == []  # its pair is no paraphrase
    assert found["strength"] == [Triple(first[1], "Some men are fighting.", "All men are fighting.")]


CASES = {
    "roles": [Triple(f"s{i}", f"r{i}", f"w{i}") for i in range(60)],
    "strength": [Triple(f"S{i}", f"R{i}", f"W{i}") for i in range(60)],
}
BACKGROUND = [f"it is on the {x} with {y} and all of {z} things" for x in "abcdefgh" for y in "ijklmn" for z in "xyz"]


def encoder(nearer: str):
    """Vectors in which the wrong or the right one of each triple is nearer, others at random."""

    def encode(texts):
        rng = np.random.default_rng(0)
        base = {}
        out = rng.normal(size=(len(texts), 8))
        for k, t in enumerate(texts):
            if t[1:].isdigit():
                b = base.setdefault((t[0].isupper(), t[1:]), rng.normal(size=8))
                out[k] = b + (0.1 if t[0].lower() == nearer else 0.6) * rng.normal(size=8) * (t[0].lower() != "s")
        return out

    return encode


def test_a_model_that_prefers_near_copies_fails_and_one_that_prefers_paraphrases_does_not():
    bad = cosine_failures(encoder("w"), CASES, BACKGROUND)
    assert bad["roles, cosine"].low > 0.5
    assert "there the source agrees" in bad.verdict
    good = cosine_failures(encoder("r"), CASES, BACKGROUND)
    assert good["roles, cosine"].high < 0.5
    assert "It fails in less than half of roles" in good.verdict
    assert good.against.startswith("You 2025 names these")


def test_rates_against_loops():
    encode = encoder("w")
    r = cosine_failures(encode, CASES, BACKGROUND, remedies={})
    used = sorted({x for ts in CASES.values() for t in ts for x in (t.sentence, t.right, t.wrong)})
    short = [t for t in (mostly_function_words(b) for b in BACKGROUND) if t]
    texts = list(dict.fromkeys([*used, *BACKGROUND, *short]))
    V = dict(zip(texts, encode(texts), strict=True))
    cos = lambda a, b: V[a] @ V[b] / np.linalg.norm(V[a]) / np.linalg.norm(V[b])  # noqa: E731
    fails = sum(cos(t.sentence, t.wrong) > cos(t.sentence, t.right) for t in CASES["roles"])
    assert r["roles, cosine"].value == pytest.approx(fails / 60)
    assert r["roles, cosine"].how == f"{fails} of 60"


def test_the_sentences_follow_the_numbers():
    n = {m.name: m for m in (
        Measured("a, cosine", 0.9, 0.8, 0.95), Measured("b, cosine", 0.5, 0.4, 0.6), Measured("a, Center", 0.3, 0.2, 0.4),
        Measured("b, Center", 0.1, 0.05, 0.2),
    )}  # fmt: skip
    assert "a 90%: there the source agrees" in verdict(n)
    assert "Not told from a coin: b" in verdict(n)
    assert "Clearly fewer failures with Center for a." in verdict(n)
    assert against(n) == ""
    n["a, Center"] = Measured("a, Center", 0.85, 0.7, 0.9)
    assert "No remedy clearly lowers a failure" in verdict(n)


def test_an_encoder_that_gives_too_few_vectors_is_refused():
    with pytest.raises(GonioError, match="one each is needed"):
        cosine_failures(lambda t: np.ones((3, 2)), CASES, BACKGROUND)
