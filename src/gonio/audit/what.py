"""What this head is: link, shape, rank, bias, inputs, and the rows that need a second look."""

from __future__ import annotations

from collections.abc import Iterator

from gonio.audit.finding import Finding
from gonio.audit.subject import Subject
from gonio.gauge import gauge_of
from gonio.profile import profile

MODELS = {
    "softmax": "one winner out of many: a classifier or a language model",
    "sigmoid": "each label on or off by itself: multi-label, or word2vec's negative sampling",
    "dot": "scores are dot products: matrix factorisation, retrieval by dot product",
    "cosine": "trained on cosines of normalised vectors: contrastive training",
}


def sentence(text: str) -> str:
    """The words with a capital and a full stop.

    >>> sentence("the entry `link` of the file")
    'The entry `link` of the file.'
    """
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def what(s: Subject) -> Iterator[Finding]:
    """Link, shape, rank, inputs, twins, zero rows, padded rows."""
    h = s.head
    n, d = h.shape
    source = h.source
    decided = dict(source.decided) if source else {}
    assumed = bool(source and "link" in source.assumed)
    gauge = gauge_of(h)
    yield Finding(
        "link",
        "head",
        f"The link is {h.link}{', assumed: give link= if it is not' if assumed else ''}",
        "open" if assumed else "fact",
        h.link,
        f"{sentence(MODELS[h.link])} {sentence('why: ' + decided.get('link', 'it was given'))} "
        "Everything below rests on it.",
        data={"assumed": assumed, "gauge": str(gauge), "why": list(gauge.why)},
        verify="gonio info MODEL",
    )
    p = profile(h)
    usable = p.rank_differences if h.link == "softmax" else p.rank
    full = min(n - 1, d) if h.link == "softmax" else min(n, d)
    yield Finding(
        "shape",
        "head",
        f"{n:,} labels of width {d}, rank {usable}" + ("" if usable == full else f" (full would be {full})"),
        "fact" if usable == full else "warning",
        usable,
        "The rank says how many independent directions tell labels apart."
        + ("" if usable == full else " Some directions of the embeddings change no prediction."),
        data={"labels": n, "dim": d, "stored_as": h.rows.kind, "bias": h.bias is not None, "softcap": h.softcap},
    )
    yield Finding(
        "inputs",
        "head",
        f"Inputs: {h.inputs}",
        "fact",
        str(h.inputs),
        (sentence("why: " + decided["inputs"]) + " " if "inputs" in decided else "")
        + "They say which embeddings can reach the head; what is impossible for them stays so for any fewer.",
    )
    if len(h.twins):
        members = sum(len(g) for g in h.twins)
        yield Finding(
            "twins",
            "head",
            f"{members:,} labels in {len(h.twins):,} groups have exactly the same row and bias",
            "warning",
            members,
            "Labels of a group always have the same score: none of them can win strictly, and argmax takes the first.",
            threshold=1,
            data={"groups": [[h.labels[i] for i in g[:8]] for g in h.twins[:20]]},
        )
    if len(h.zero_rows):
        yield Finding(
            "zero-rows",
            "head",
            f"{len(h.zero_rows):,} rows are zero",
            "warning",
            len(h.zero_rows),
            "A zero row has no cosine, and its score is its bias whatever the input.",
            threshold=1,
            data={"labels": [h.labels[i] for i in h.zero_rows[:50]]},
        )
    if len(h.padded):
        yield Finding(
            "padded",
            "head",
            f"{len(h.padded):,} rows have no label: padding",
            "fact",
            len(h.padded),
            "They are rows beyond the tokenizer's size. Whether they can win is asked below.",
        )
