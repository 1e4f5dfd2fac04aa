"""Mikolov et al. 2013: skip-gram with negative sampling, read as a sigmoid classifier."""

from __future__ import annotations

from gonio.papers.comparison import Picture, Reproduction, alone, holds
from gonio.papers.experiments.word2vec import read_corpus, word_models
from gonio.papers.real import inside

WHERE = {"function": "gonio.papers.experiments.word2vec.word_models", "test": "tests/diagnostics"}
TITLE = "Mikolov et al. 2013, Distributed representations of words and phrases and their compositionality"


def reproduce() -> Reproduction:
    """SGNS trained here on a small news corpus, beside a softmax model of the same text."""
    text = inside("gensim-*.whl", "gensim/test/test_data/lee_background.cor")
    if text is None:
        note = "the corpus comes inside a package that is not here"
        return Reproduction("mikolov-2013", TITLE, (alone("SGNS on a text", "not run", why=note, **WHERE),))
    m = word_models(read_corpus(text, least=8, most=1200))
    return Reproduction(
        "mikolov-2013",
        TITLE,
        (
            holds(
                "Sets of two words that stand together are possible for the sigmoid head",
                m.possible > 0.9,
                f"{m.possible:.0%}, of random pairs {m.possible_random:.0%}",
                **WHERE,
            ),
            holds(
                "The score goes with co-occurrence better than the cosine of the two rows does",
                m.sgns.score > m.sgns.cosine,
                {"score": round(m.sgns.score, 3), "cosine": round(m.sgns.cosine, 3)},
                how="Spearman with the log of how often two words stand together",
                **WHERE,
            ),
            holds(
                "In equivalent heads the cosine's agreement with co-occurrence is another",
                m.sgns.forms[1] - m.sgns.forms[0] > 0.01 or abs(m.sgns.forms[0] - m.sgns.cosine) > 0.01,
                [round(m.sgns.cosine, 3), [round(x, 3) for x in m.sgns.forms]],
                **WHERE,
            ),
            alone(
                "Analogy accuracy on Google News vectors",
                "not run",
                why="the corpus and the vectors are not to be had offline",
                **WHERE,
            ),
        ),
        (
            Picture(
                "cosine-and-co-occurrence",
                "How cosines and scores go with co-occurrence.",
                lambda fig: m.plot(fig.subplots()),
                (7, 4),
            ),
        ),
    )
