"""Zhou et al. 2022: frequent words look less similar than they are."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from gonio.diagnostics.frequency import frequency_bias, slope_on_frequency
from gonio.diagnostics.frequency_deciles import frequency_agreement
from gonio.papers.comparison import Picture, Reproduction, Row, alone, holds
from gonio.papers.experiments.word2vec import read_corpus, train_sgns
from gonio.papers.real import inside, minilm_words

WHERE = {"function": "gonio.diagnostics.frequency.slope_on_frequency", "test": "tests/diagnostics/test_frequency.py"}
PUBLISHED = "slope -0.0135 (t -29.9), R2 0.141; with senses -0.0092; with the same word form -0.0101; with noun -0.0099"


def planted(pairs: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cosines that fall with frequency and with the number of senses, which grows with frequency."""
    rng = np.random.default_rng(seed)
    frequency = rng.normal(20, 4, pairs)
    senses = 0.25 * frequency + rng.normal(size=pairs)
    meaning = rng.normal(size=pairs)
    cosine = 0.9 - 0.01 * frequency - 0.02 * senses + 0.05 * meaning + 0.03 * rng.normal(size=pairs)
    return cosine, frequency, senses, (meaning > 0).astype(float)


def reproduce() -> Reproduction:
    """The regression with its controls and the decile plot, on planted data and on what can be had offline."""
    cosine, frequency, senses, same = planted()
    fit = slope_on_frequency(cosine, frequency, controls={"senses": senses})
    decile = frequency_agreement(cosine, same, frequency)
    slope, controlled = fit.fits[0].slope, fit.fits[-1].slope
    return Reproduction(
        "zhou-2022",
        "Zhou et al. 2022, Problems with cosine as a measure of embedding similarity for high frequency words",
        (
            holds(
                "A planted slope of -0.015 is found, and the control brings it to -0.010",
                abs(slope + 0.015) < 0.001 and abs(controlled + 0.01) < 0.001,
                [round(slope, 4), round(controlled, 4)],
                **WHERE,
            ),
            holds(
                "One threshold calls too few frequent pairs the same and too many rare ones",
                decile.excess[-1] < 0 < decile.excess[0],
                [round(float(decile.excess[0]), 3), round(float(decile.excess[-1]), 3)],
                function="gonio.diagnostics.frequency_deciles.frequency_agreement",
                test=WHERE["test"],
            ),
            alone(
                f"BERT-base-cased on WiC: cosine on log2 frequency ({PUBLISHED})",
                "not run",
                why="its weights and the data are behind a hub; the pipeline is the one above",
                **WHERE,
            ),
            *_offline(),
        ),
        (
            Picture(
                "deciles",
                "Share called the same by one threshold on the cosine, minus the share judged the same, "
                "by decile of frequency.",
                lambda fig: decile.plot(fig.subplots()),
                (7, 4),
            ),
        ),
        "gonio.diagnostics.frequency_bias(head, frequencies, pairs=..., controls=...)",
    )


def _offline() -> list[Row]:
    out: list[Row] = []
    text = inside("gensim-*.whl", "gensim/test/test_data/lee_background.cor")
    if text is not None:
        corpus = read_corpus(text, least=8, most=1200)
        head = train_sgns(corpus, dim=32)
        b = frequency_bias(head, corpus.counts)
        out.append(
            alone(
                "The same on vectors trained here (SGNS on a news corpus)",
                _told(b),
                why="other vectors, other pairs: random ones",
                **WHERE,
            )
        )
    words, judged = minilm_words(), inside("gensim-*.whl", "gensim/test/test_data/wordsim353.tsv")
    if words is not None and judged is not None and text is not None:
        corpus = read_corpus(text, least=1, most=20_000)
        count = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
        rows = [r for r in csv.reader(io.StringIO(judged), delimiter="\t") if len(r) == 3 and not r[0].startswith("#")]
        pairs = [(a.lower(), b.lower(), float(s)) for a, b, s in rows]
        known = [
            (a, b, s)
            for a, b, s in pairs
            if a in words.labels and b in words.labels and a in count and b in count and a != b
        ]
        if len(known) > 30:
            frequencies = {w: float(c) for w, c in count.items()}
            b = frequency_bias(
                words,
                frequencies,
                pairs=[(a, c) for a, c, _ in known],
                controls={"human judgement": [s for *_, s in known]},
            )
            out.append(
                alone(
                    "MiniLM's input embeddings on judged pairs (WordSim-353), human judgement as control",
                    _told(b),
                    why=f"{b.pairs} pairs; frequencies of a small news corpus",
                    **WHERE,
                )
            )
    return out


def _told(b: Any) -> str:
    return "; ".join(str(f) for f in b.fits)
