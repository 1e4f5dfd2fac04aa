"""You 2025: formulas for semantic similarity beyond the cosine, and three ways it fails (FACTS 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.diagnostics.experiments.scenarios import scenarios
from gonio.head import Head
from gonio.papers.comparison import Comparison, Picture, Reproduction, beyond, holds, number
from gonio.papers.real import minilm_encoder
from gonio.similarity.measure import measure

WHERE = {"function": "gonio.similarity", "test": "tests/similarity"}
TITLE = "You 2025, Semantics at an angle: when cosine similarity works until it doesn't"


def reproduce() -> Reproduction:
    """Each formula with its flaw, the three failures, and the remedies on real sentence embeddings."""
    encode = minilm_encoder()
    out = _formulas()
    pictures: tuple[Picture, ...] = ()
    where = {"function": "gonio.diagnostics.experiments.scenarios.scenarios", "test": "tests/diagnostics"}
    if encode is None:
        note = "MiniLM needs its package, torch and transformers"
        out.append(beyond("Three failures on sentence embeddings", "told", "not run", note=note, **where))
    else:
        s = scenarios(encode, model="MiniLM")
        for r in s.rows:
            out.append(
                holds(
                    f"Failure: {r.name}",
                    r.fails > 0,
                    f"the wrong one is nearer in {r.fails:.0%} of cases, {r.centred_fails:.0%} after centring",
                    note=r.note,
                    **where,
                )
            )
        pictures = (
            Picture(
                "failures",
                "Mean cosines of pairs that ought to be nearer and of those that ought not.",
                lambda fig: s.plot(fig.subplots()),
                (7, 4),
            ),
        )
    return Reproduction("you-2025", TITLE, tuple(out), pictures)


def _formulas() -> list[Comparison]:
    x = np.array([0.6, 0.8])
    head = Head(np.vstack([x, x, 10 * x, -100 * x, 2 * x]), link="cosine")
    scaled = measure("SCALED_SIM")(head)
    printed = measure("WRD as printed")(head)
    note = "as printed the formula is no similarity: it is unbounded and blind to sign"
    return [
        number("SCALED_SIM(x, x), alpha = 0.5", 1.5, scaled(0, 1), within=1e-12, note=note, **WHERE),
        number("SCALED_SIM(x, 10x)", 6.0, scaled(0, 2), within=1e-12, note=note, **WHERE),
        number("SCALED_SIM(x, -100x)", 50.0, scaled(0, 3), within=1e-12, note=note, **WHERE),
        number(
            "WRD(x, 10x) as printed",
            -9.0,
            printed(0, 2),
            within=1e-6,
            note="a distance below 0, and not symmetric",
            **WHERE,
        ),
        number(
            "WRD(10x, x) as printed",
            9.0,
            printed(2, 0),
            within=1e-6,
            note="and it is not the Word Rotator's Distance",
            **WHERE,
        ),
    ]


def lengths(head: Head) -> Any:
    """The lengths of the rows: what a cosine throws away."""
    return head.norms
