"""You 2025: formulas for semantic similarity beyond the cosine, and three ways it fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core.head import Head
from gonio.diagnostics import hubness
from gonio.papers.comparison import Checked, Picture, Reproduction, Result, Row, alone, holds
from gonio.papers.experiments.contrastive_training import WAYS, contrastive
from gonio.papers.experiments.failure_scenarios import scenarios
from gonio.papers.judgements import Judgements, judgements
from gonio.papers.real import minilm, sts_b
from gonio.remedies import Center, LengthAsFeature, QueryNormalizer, RemoveTopComponents, Whiten
from gonio.similarity.measures import measure

Pairs = tuple[list[str], list[str], np.ndarray]
WHERE = {"function": "gonio.similarity", "test": "tests/similarity"}
FAILURES = {"function": "gonio.papers.experiments.failure_scenarios.scenarios", "test": "tests/diagnostics"}
REMEDIED = {"function": "gonio.papers.judgements.judgements", "test": "tests/papers/test_judgements.py"}
TITLE = "You 2025, Semantics at an angle: when cosine similarity works until it doesn't"
MEASURES = ("cosine", "SCALED_SIM", "WRD as printed", "radially weighted angle", "augmented cosine")
REMEDIES = {
    "Center": Center(),
    "Whiten": Whiten(),
    "RemoveTopComponents": RemoveTopComponents(),
    "QueryNormalizer": QueryNormalizer(),
    "LengthAsFeature": LengthAsFeature(),
}
ADVICE = {
    "Center": "mean-centring",
    "Whiten": "whitening",
    "RemoveTopComponents": "removing the top principal components",
    "QueryNormalizer": "query-normalised scores",
    "LengthAsFeature": "the length as a feature of its own",
    "radially weighted angle": "a radially weighted angle (weights r/(r + median))",
    "SCALED_SIM": "SCALED_SIM",
    "WRD as printed": "WRD as printed",
}


NEAR_ONE = 0.25  # how far from 1 a mean length may be and still count as near it


def reproduce() -> Reproduction:
    """Each formula with its flaw, the three failures, and the remedies on real sentence embeddings."""
    out = [*_formulas(), *_norm_sensitive()]
    pictures: list[Picture] = []
    note = "MiniLM and STS-B need their packages, torch and transformers"
    encode = minilm()
    if encode is None:
        out.append(alone("Three failures on sentence embeddings", "not run", why=note, **FAILURES))
    else:
        s = scenarios(lambda texts: encode(texts)["mean"], model="MiniLM")
        out += [
            holds(
                f"Failure: {r.name}",
                r.fails > 0,
                f"the wrong one is nearer in {r.fails:.0%} of cases, {r.centred_fails:.0%} after centring",
                how=r.note or "sentence vectors of MiniLM",
                **FAILURES,
            )
            for r in s.rows
        ]
        caption = "Mean cosines of pairs that ought to be nearer and of those that ought not."
        pictures.append(Picture("failures", caption, lambda fig: s.plot(fig.subplots()), (7, 4)))
    told, fitted = sts_b("test"), sts_b("dev")
    if encode is None or told is None or fitted is None:
        out.append(alone("The remedies on sentence pairs", "not run", why=note, **REMEDIED))
        return Reproduction("you-2025", TITLE, tuple(out), tuple(pictures))
    texts = list(dict.fromkeys([*told[0], *told[1], *fitted[0], *fitted[1]]))
    tried = {pool: _judge(X, texts, told) for pool, X in encode(texts).items()}
    out += [c for pool, j in tried.items() for c in _compared(pool, j)]
    pictures.append(
        Picture(
            "remedies",
            "Rank correlation with people's judgements of pairs of sentences (STS-B), 95 % intervals: every remedy of "
            "the paper beside the plain cosine; blue is better, red worse, grey not told apart.",
            lambda fig: _draw(fig, tried),
            (11, 6),
        )
    )
    return Reproduction("you-2025", TITLE, tuple(out), tuple(pictures))


def _judge(X: np.ndarray, texts: list[str], told: Pairs) -> Judgements:
    """The paper's measures and remedies on judged pairs; remedies are fitted on the other texts."""
    where = {t: i for i, t in enumerate(texts)}
    pairs = np.array([[where[a], where[b]] for a, b in zip(told[0], told[1], strict=True)])
    return judgements(X, pairs, told[2], measures=MEASURES, remedies=REMEDIES, learned=False)


def _compared(pool: str, j: Judgements) -> list[Row]:
    """What the paper recommends, on one way of making a sentence vector: it helps, hurts, or cannot be told."""
    results: dict[str, Result] = {"better": "holds", "worse": "does not hold", "the same": "cannot be told"}
    said = {"better": "it helps", "worse": "it hurts", "the same": "not told apart from the plain cosine"}
    out = []
    for name, advice in ADVICE.items():
        r = j[name]
        ours = {"cosine": round(j["cosine"].rho, 3), name: round(r.rho, 3)}
        note = f"rank correlation with {j.pairs:,} judgements of STS-B: {said[r.beside_cosine]}"
        note += "; shown the judgements, the remedy abstains" if r.abstains else ""
        claim = f"Remedy: {advice} helps, on MiniLM's {pool} vectors"
        out.append(Checked(claim, note, ours, results[r.beside_cosine], **REMEDIED))
    return out


def _norm_sensitive() -> list[Row]:
    """A contrastive loss with a penalty on the lengths, on handwritten digits."""
    where = {"function": "gonio.papers.experiments.contrastive_training.contrastive", "test": "tests/diagnostics"}
    c = contrastive(WAYS[:4])
    out = []
    for sim, (free, held) in {"dot product": c.runs[:2], "cosine": c.runs[2:]}.items():
        ours = {
            "length": [round(free.norm_end, 2), round(held.norm_end, 2)],
            "nearest 10 of the same digit": [f"{free.same:.1%}", f"{held.same:.1%}"],
        }
        claim = f"Norm-sensitive training over the {sim} holds lengths near 1"
        how = (
            f"mean length within {NEAR_ONE:g} of 1 at the end; without and with a penalty gamma (|z| - 1)^2, which the "
            "paper leaves open; InfoNCE on digits"
        )
        out.append(holds(claim, abs(held.norm_end - 1) <= NEAR_ONE, ours, how=how, **where))
    return out


def _draw(fig: Any, tried: dict[str, Judgements]) -> None:
    for ax, (pool, j) in zip(fig.subplots(1, len(tried), sharey=True, squeeze=False)[0], tried.items(), strict=True):
        j.plot(ax)
        ax.set_title(f"MiniLM, {pool}", fontsize=9)


def _formulas() -> list[Row]:
    x = np.array([0.6, 0.8])
    head = Head(np.vstack([x, x, 10 * x, -100 * x, 2 * x]), link="cosine")
    scaled = measure("SCALED_SIM")(head)
    printed = measure("WRD as printed")(head)
    flaw = "as printed it is no similarity: unbounded and blind to sign"
    lists = hubness(Head(np.random.default_rng(0).normal(size=(200, 8)), link="cosine"), 10).counts
    as_printed = {
        "SCALED_SIM(x, x), alpha = 0.5": (1.5, scaled(0, 1), flaw),
        "SCALED_SIM(x, 10x)": (6.0, scaled(0, 2), flaw),
        "SCALED_SIM(x, -100x)": (50.0, scaled(0, 3), flaw),
        "WRD(x, 10x)": (-9.0, printed(0, 2), "a distance below 0, and not symmetric"),
        "WRD(10x, x)": (9.0, printed(2, 0), "and it is not the Word Rotator's Distance"),
    }
    return [
        holds(
            "Hubs are told by N(v, k) >> (1/|V|) sum N(u, k)",
            abs(float(lists.mean()) - 10) < 1e-12,
            float(lists.mean()),
            how="the mean is k whatever the vectors (200 random ones, k = 10), so the criterion compares with k itself",
            function="gonio.diagnostics.hubness",
            test="tests/diagnostics",
        ),
        *(
            holds(
                f"{name} by the formula as printed is {by_hand:g}",
                abs(found - by_hand) < 1e-6,
                float(found),
                how=f"worked out by hand from the printed formula; {why}",
                **WHERE,
            )
            for name, (by_hand, found, why) in as_printed.items()
        ),
    ]
