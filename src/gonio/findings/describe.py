"""What this head is: link, shape, rank, bias, inputs, and the rows that need a second look."""

from __future__ import annotations

from collections.abc import Iterator

from gonio.core.head import Head
from gonio.core.head_summary import profile
from gonio.findings.finding import Finding, counted, sentence
from gonio.findings.subject import Subject, is_factor_model
from gonio.gauge import gauge_of
from gonio.gauge.group import SCORES

MODELS = {
    "softmax": "one winner out of many: a classifier or a language model",
    "sigmoid": "each label on or off by itself: multi-label, or word2vec's negative sampling",
    "dot": "scores are dot products: matrix factorisation, retrieval by dot product",
    "cosine": "trained on cosines of normalised vectors: contrastive training",
    "vectors": "word vectors: one of the two tables that were trained together",
    "input": "input embeddings: what a token becomes first, before any prediction",
    "unknown": "nothing says what these rows are",
}


def what(s: Subject) -> Iterator[Finding]:
    """Link, shape, rank, inputs, twins, zero rows, padded rows."""
    h = s.head
    n, d = h.shape
    source = h.source
    decided = dict(source.decided) if source else {}
    assumed = bool(source and "link" in source.assumed)
    known = h.link != "unknown"
    gauge = gauge_of(h) if known else None
    title = f"The link is {h.link}{', assumed: give --link if it is not' if assumed else ''}"
    yield Finding(
        "link",
        "head",
        title if known else "What these rows are is not known: give --link",
        "open" if assumed or not known else "fact",
        h.link,
        f"{sentence(MODELS[h.link])} {sentence('why: ' + decided.get('link', 'it was given'))} "
        + ("Everything below rests on it." if known else "What follows holds whatever they are."),
        data={"assumed": assumed, "gauge": str(gauge), "why": list(gauge.why) if gauge else []},
        verify=f"gonio info {h.typed}",
    )
    p = profile(h)
    usable = p.rank_differences if h.link == "softmax" else p.rank
    full = min(n - 1, d) if h.link == "softmax" else min(n, d)
    yield Finding(
        "shape",
        "head",
        f"{n:,} {s.word}s of width {d}, {'differences of rank' if h.link == 'softmax' else 'rank'} {usable}"
        + ("" if usable == full else f" (full would be {full})"),
        "fact" if usable == full else "warning",
        usable,
        "The rank says how many independent directions tell rows apart."
        + (
            "" if usable == full or h.link not in SCORES else " Some directions of the embeddings change no prediction."
        ),
        data={"labels": n, "dim": d, "stored_as": h.rows.kind, "bias": h.bias is not None, "softcap": h.softcap},
    )
    if h.link not in SCORES:
        yield from _rows(s)
        return
    unsure = bool(source and "inputs" in source.assumed)
    yield Finding(
        "inputs",
        "head",
        f"Inputs: {_inputs(h)}" + (", assumed" if unsure else ""),
        "open" if unsure else "fact",
        str(h.inputs),
        (sentence("why: " + decided["inputs"]) + " " if "inputs" in decided else "")
        + f"They say which {s.inputs_word}s can reach the head; what is impossible for them stays so for any fewer.",
    )
    yield from _rows(s)


def _inputs(h: Head) -> str:
    return f"the {len(h.inputs.points):,} users given" if is_factor_model(h) else str(h.inputs)  # type: ignore[arg-type]


def _rows(s: Subject) -> Iterator[Finding]:
    """Rows that need a second look: equal ones, zero ones, padding."""
    h = s.head
    if len(h.twins):
        members = sum(len(g) for g in h.twins)
        yield Finding(
            "twins",
            "head",
            f"{members:,} {s.word}s share their row with another, in {counted(len(h.twins), 'group')}",
            "warning",
            members,
            f"The {s.word}s of a group have the same score at every input: a prediction cannot tell them apart."
            if h.link in SCORES
            else f"No measure of the rows can tell the {s.word}s of a group apart.",
            threshold=1,
            data={"groups": [[h.labels[i] for i in g[:8]] for g in h.twins[:20]]},
        )
    if len(h.zero_rows):
        yield Finding(
            "zero-rows",
            "head",
            f"{len(h.zero_rows):,} {'row is' if len(h.zero_rows) == 1 else 'rows are'} zero",
            "warning",
            len(h.zero_rows),
            "A zero row has no cosine"
            + (", and its score is its bias whatever the input." if h.link in SCORES else "."),
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
            "No token of the tokenizer has these rows."
            + (" Whether they can be on top is asked below." if h.link in ("softmax", "dot") else ""),
        )
