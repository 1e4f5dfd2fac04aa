"""What a single cosine of two rows can tell: one verdict a kind of table, true of this very head."""

from __future__ import annotations

from dataclasses import dataclass

from gonio.core.head import Head
from gonio.findings.finding import State

READINGS = {
    "softmax": "a classifier's or language model's head: a single cosine says nothing, every value describes the model",
    "sigmoid": "a multi-label head: a single cosine says nothing unless it is exactly 1 or -1",
    "dot": "item factors: arbitrary, or unique but dependent on the penalty, as the training was (--users, --items)",
    "vectors": "word vectors (word2vec, fastText, GloVe): not fixed by training, useful as far as judged pairs show",
    "cosine": "unit vectors trained on their cosine: the cosine is what was trained",
    "input": "a model's input embeddings: no prediction reads them directly",
}


@dataclass(frozen=True)
class CosineVerdict:
    """In words, whether the cosine of two rows says anything, why, and the theorem behind it."""

    state: State
    title: str
    why: str
    theorem: str = ""


def verdict_of(head: Head) -> CosineVerdict:
    """The verdict for this head: its link, soft-cap, width, training, and whether it is tied or only assumed."""
    found = _by_link(head)
    if head.source is not None and "link" in head.source.assumed:
        return CosineVerdict(
            found.state, f"{found.title}, if the link is {head.link} as assumed", found.why, found.theorem
        )
    return found


def _by_link(head: Head) -> CosineVerdict:
    if head.link == "softmax":
        return _softmax(head)
    if head.link == "dot":
        return _factors(head)
    if head.link == "sigmoid":
        return CosineVerdict(
            "convention",
            "A single cosine of two rows says nothing unless it is exactly 1 or -1",
            "An invertible map of rows and embeddings changes no probability and gives two rows that are no multiples "
            "of each other any cosine between -1 and 1; only "
            + (
                "all cosines together fix which label sets are possible."
                if head.bias is None
                else "the cosines of all rows (w, b) and of (0, 1) together fix which label sets are possible."
            ),
            "NG26.L5.3",
        )
    if head.link == "cosine":
        return CosineVerdict(
            "fact",
            "Cosines are what was trained",
            "Only rotations and the lengths of vectors are open, and a cosine sees neither. It orders neighbours; a "
            "threshold found for another model does not transfer.",
        )
    if head.link == "vectors":
        return _vectors(head)
    if head.link == "input":
        return _input(head)
    return CosineVerdict(
        "open",
        "What a cosine means here depends on what the rows are, and nothing says it",
        "Say it with --link; the possible readings follow.",
    )


def _softmax(head: Head) -> CosineVerdict:
    title = "A single cosine of two rows says nothing"
    once = ", once the head is untied from the input embeddings," if head.source and head.source.tied else ""
    if head.softcap is not None:
        why = (
            f"An invertible map of rows and embeddings{once} changes no probability and gives two rows that are no "
            "multiples of each other any cosine between -1 and 1. (Adding one vector to all rows would change "
            "probabilities: the logits are soft-capped.)"
        )
        return CosineVerdict("convention", title + " unless it is exactly 1 or -1", why, "GONIO.1.6")
    if head.shape[1] == 1:  # a line has two directions: nothing lies between them
        what, reach = "number", "the cosine 1 or -1, as one likes"
    else:
        what, reach = "vector", "any cosine from -1 to 1"
    why = f"One {what} added to all rows{once} changes no probability and gives two different rows {reach}."
    return CosineVerdict("convention", title, why, "NG26.T3.4")


def _factors(head: Head) -> CosineVerdict:
    if head.trained == "factors":
        return CosineVerdict(
            "fact",
            "Item-item cosines are unique, and depend on the penalty's strength",
            "A penalty on each factor leaves only rotations open, which change no cosine; another strength gives other "
            "cosines.",
            "SEK24.unique",
        )
    return CosineVerdict(
        "convention",
        "Item-item cosines are arbitrary",
        "The training penalty (on the product, dropout, none, or unknown) leaves every invertible map of the two "
        "factors open: scores stay, cosines move.",
        "SEK24.invariant",
    )


def _vectors(head: Head) -> CosineVerdict:
    moved = (
        "a vector added to all rows is taken up by the biases"
        if head.offset_in is not None
        else "an invertible map of this table is undone by the inverse map of the other"
    )
    which = "GloVe" if head.offset_in is not None else "word2vec and fastText"
    return CosineVerdict(
        "convention",
        "Cosines of word vectors are not fixed by training",
        "They are trained by dot products of two tables, and the file has one. "
        f"In {which}, as this file looks, {moved}. "
        "What the optimiser left may be useful; judged pairs tell how far.",
    )


def _input(head: Head) -> CosineVerdict:
    if head.offset_in is None:
        return CosineVerdict(
            "open",
            "Cosines of these input embeddings are unexplained: no prediction reads them",
            "The model reads the rows as its input. No change of the table alone is known that leaves its outputs as "
            "they are, and none of its outputs is a function of a cosine: ask its outputs.",
        )
    return CosineVerdict(
        "convention",
        "A single cosine of two input embeddings says nothing",
        f"The model adds {head.offset_in} to every row: one vector added to all rows and taken from that table changes "
        "no output and gives two different rows any cosine from -1 to 1.",
        "NG26.T3.4",
    )
