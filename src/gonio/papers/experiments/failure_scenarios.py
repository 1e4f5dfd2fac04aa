"""Three ways in which the cosine of sentence embeddings fails (You 2025), on any encoder of sentences.

    function words   two unrelated sentences made mostly of the same function words, beside two unrelated plain ones
    form over sense  a prompt beside one of the same wording with other things in it, and beside a paraphrase
    strength         a premise beside a weak and a strong hypothesis about it: "some", "may" against "all", "must"

Form over sense was told of the text side of an image-text model; any other sentence encoder stands in for it, and the
result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.diagnostics.result import Result, axes, called

Encode = Callable[[list[str]], Any]

# (first, second of the same function words and other matter, plain unrelated sentence)
FUNCTION_WORDS = (
    (
        "It is what it is because of what was in it for them.",
        "That is how it was with all of us at the time.",
        "Volcanic basalt cools slowly underwater.",
    ),
    (
        "There was one of those in the back of it, as there is.",
        "There is one of these at the end of that, as there was.",
        "Cats chase laser pointers.",
    ),
    (
        "And so it was that the tax was on top of it all.",
        "And so it is that the violin was under it all.",
        "Penguins huddle against Antarctic winds.",
    ),
    (
        "He was not at all as he had been before the war.",
        "It is not at all as it had been before the cake.",
        "Copper conducts electricity well.",
    ),
    (
        "We have had to do with it as they have had with us.",
        "You will have to do with that as we did with her.",
        "Glaciers carve deep valleys.",
    ),
    (
        "As far as it goes, that is not what the judge was for.",
        "As far as it went, this is not what the soup is for.",
        "Satellites orbit Jupiter.",
    ),
    (
        "If it were up to me, it would be off by now.",
        "If it was up to her, he would be in by then.",
        "Tomato seedlings need sunlight.",
    ),
    (
        "Of all that there was, this is the one we were after.",
        "Of all that there is, that was the one they are with.",
        "Encryption protects bank transfers.",
    ),
)
# (prompt, same wording about something else, paraphrase)
FORM = (
    (
        "a photo of a small dog sitting on a red chair",
        "a photo of a small spoon lying on a red chair",
        "picture showing a puppy seated upon a crimson seat",
    ),
    (
        "a photo of a man riding a horse on the beach",
        "a photo of a man riding a bicycle in the office",
        "seashore snapshot: some guy on horseback",
    ),
    (
        "a painting of a boat on a calm lake at night",
        "a painting of a clock on a calm wall at night",
        "nocturnal artwork showing a vessel upon still water",
    ),
    (
        "a close up of a bee on a yellow flower",
        "a close up of a ring on a yellow cloth",
        "macro shot, pollinating insect atop golden bloom",
    ),
    (
        "a photo of two children playing with a ball",
        "a photo of two lawyers arguing with a judge",
        "kids kicking a football around, captured on camera",
    ),
    (
        "a drawing of a castle on top of a green hill",
        "a drawing of a burger on top of a green plate",
        "sketch: medieval fortress crowning a grassy mound",
    ),
    (
        "a photo of a train arriving at a busy station",
        "a photo of a cake arriving at a busy table",
        "railway carriages pulling up to a crowded platform",
    ),
    (
        "a picture of an old woman reading a newspaper",
        "a picture of an old engine leaking a liquid",
        "elderly lady looks through the daily press",
    ),
)
# (premise, weak hypothesis, strong hypothesis): the premise supports the weak one and not the strong one
STRENGTH = (
    (
        "A few of the patients got better after the treatment.",
        "The treatment may help some patients.",
        "The treatment helps all patients.",
    ),
    (
        "Three of the twenty students passed the exam.",
        "Some students passed the exam.",
        "All students passed the exam.",
    ),
    ("It rained on one day last week.", "It sometimes rained last week.", "It always rained last week."),
    (
        "One witness thinks the driver was tired.",
        "The driver might have been tired.",
        "The driver was certainly tired.",
    ),
    ("Sales rose slightly in the third quarter.", "Sales went up a little.", "Sales exploded."),
    (
        "A small study hints that coffee lowers the risk.",
        "Coffee possibly lowers the risk.",
        "Coffee definitely lowers the risk.",
    ),
    ("Some of the lights in the house are on.", "At least one light is on.", "Every light is on."),
    ("The team won two of its ten games.", "The team won occasionally.", "The team won constantly."),
)


@dataclass(frozen=True)
class Scenario:
    """One failure: mean cosines of what should be alike and of what should not, and how often the wrong one is nearer.

    right, wrong   mean cosine of the pairs that ought to be nearer and of those that ought not
    fails          share of triples in which the wrong pair has the larger cosine
    centred_fails  the same after the mean of all sentences is subtracted
    """

    name: str
    right: float
    wrong: float
    fails: float
    centred_fails: float
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Scenarios(Result):
    """The three failures on one encoder."""

    rows: tuple[Scenario, ...]
    model: str

    def __getitem__(self, name: str) -> Scenario:
        return called(self.rows, name, "scenarios")

    def lines(self) -> tuple[str, str]:
        return self.model, "; ".join(f"{r.name} fails {100 * r.fails:.0f}%" for r in self.rows)

    def explain(self) -> str:
        """One paragraph in plain words."""
        return " ".join(
            f"{r.name}: what ought to be nearer has cosine {r.right:.2f} on average, what ought not {r.wrong:.2f}; the "
            f"wrong one wins in {100 * r.fails:.0f}% of cases ({100 * r.centred_fails:.0f}% after centring). {r.note}"
            for r in self.rows
        )

    def plot(self, ax: Any = None) -> Any:
        """Mean cosines of the right and the wrong pairs."""
        ax = axes(ax)
        at = np.arange(len(self.rows))
        ax.bar(at - 0.2, [r.right for r in self.rows], 0.4, label="ought to be nearer", color="#1f6f8b")
        ax.bar(at + 0.2, [r.wrong for r in self.rows], 0.4, label="ought not", color="#c0392b")
        ax.set_xticks(at, [r.name for r in self.rows])
        ax.set_ylabel("mean cosine")
        ax.legend(frameon=False)
        return ax


def scenarios(encode: Encode, *, model: str = "the encoder given") -> Scenarios:
    """You's three failures on an encoder: `encode(sentences)` gives one vector a sentence."""
    texts = [t for group in (FUNCTION_WORDS, FORM, STRENGTH) for triple in group for t in triple]
    V = checks.wide(checks.matrix(encode(list(texts)), "scenarios", "what encode gave", axes=("sentences", "dim")))
    if len(V) != len(texts):
        raise GonioError(f"scenarios: encode gave {len(V)} vectors for {len(texts)} sentences; one each is needed.")
    checks.finite(V, "scenarios", "what encode gave")
    V = V.astype(np.float64)
    raw, centred = unit(V), unit(V - V.mean(axis=0))
    sizes = np.cumsum([0, *(3 * len(g) for g in (FUNCTION_WORDS, FORM, STRENGTH))])
    parts = [slice(a, b) for a, b in pairwise(sizes)]
    return Scenarios(
        (
            _function_words(raw[parts[0]], centred[parts[0]]),
            _triples(
                "form over sense",
                raw[parts[1]],
                centred[parts[1]],
                (0, 2),
                (0, 1),
                f"Told of the text side of an image-text model; {model} stands in for it.",
            ),
            _triples(
                "strength",
                raw[parts[2]],
                centred[parts[2]],
                (0, 1),
                (0, 2),
                f"The two hypotheses have cosine {_mean(raw[parts[2]], (1, 2)):.2f} with each other.",
            ),
        ),
        model,
    )


def _pairs(U: np.ndarray, which: Sequence[int]) -> np.ndarray:
    return np.einsum("ij,ij->i", U[which[0] :: 3], U[which[1] :: 3])


def _mean(U: np.ndarray, which: Sequence[int]) -> float:
    return float(_pairs(U, which).mean())


def _triples(name: str, raw, centred, right, wrong, note: str) -> Scenario:
    return Scenario(
        name,
        _mean(raw, right),
        _mean(raw, wrong),
        float((_pairs(raw, wrong) > _pairs(raw, right)).mean()),
        float((_pairs(centred, wrong) > _pairs(centred, right)).mean()),
        note,
    )


def _function_words(raw: np.ndarray, centred: np.ndarray) -> Scenario:
    """Unrelated sentences ought to be equally far whatever words join them: those of shared function words are not."""

    def plain(U: np.ndarray) -> np.ndarray:
        P = U[2::3]
        return (P @ P.T)[np.triu_indices(len(P), 1)]

    def fails(U: np.ndarray) -> float:
        return float((_pairs(U, (0, 1)) > np.quantile(plain(U), 0.95)).mean())

    return Scenario(
        "function words",
        float(plain(raw).mean()),
        _mean(raw, (0, 1)),
        fails(raw),
        fails(centred),
        "A case fails where the cosine of two unrelated sentences of function words exceeds that of 95% of plain "
        "unrelated ones.",
    )
