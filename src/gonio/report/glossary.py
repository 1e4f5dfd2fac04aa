"""What is true of every model of a kind: said once, at the end of a page, and nowhere else on it."""

from __future__ import annotations

GAUGE = {
    "softmax": "For a softmax head: one vector added to all rows, and any invertible map of rows and embeddings. So "
    "the cosine of two different rows can be anything without a prediction changing (a soft-cap leaves only the map).",
    "sigmoid": "For a sigmoid head: any invertible map of rows and embeddings. One cosine says nothing unless it is "
    "exactly 1 or -1; all of them together fix which label sets are possible.",
    "dot": "For scores by dot product: any invertible map of the two tables; only rotations where each was penalised.",
    "vectors": "For word vectors: the file holds one of two tables that were trained together, so training fixes no "
    "cosine of one alone.",
    "input": "For input embeddings: whatever another table that is always added can take up.",
    "cosine": "For vectors trained on their cosine: rotations, and the length of each vector. The cosine is what was "
    "trained.",
    "unknown": "It depends on how the rows are used, which nothing says here.",
}


def glossary(link: str, word: str = "label") -> list[tuple[str, str]]:
    """The words of a report, for a head of this link."""
    out = [
        ("gauge", f"The changes to a model's numbers that change no prediction. {GAUGE[link]}"),
        ("link", "How scores become predictions: softmax, sigmoid, dot product, cosine. It decides the gauge."),
        ("convention", "A number that the gauge moves: another value describes the same model."),
        ("fact", "A number that no change inside the gauge moves."),
        ("hub", f"One of the {word}s in at least twice as many lists of nearest {word}s as the average one."),
        ("twins", f"{word.capitalize()}s with equal rows (and biases): no input tells them apart."),
    ]
    if link in ("softmax", "dot"):
        out += [
            ("can be on top", f"Some input gives the {word} a score strictly above all that are not its twins."),
            ("never", f"At every input that is meant another {word} scores at least as high; proven by a weighted mean "
             "of others that is nowhere below it, or at each of the inputs given."),
            ("margin", f"By how much, at least, the {word} wins at the input of its proof. It grows with the input's "
             "length where that is free."),
        ]  # fmt: skip
    if link == "softmax":
        out.append(
            ("undertrained", "Rows nearest to rows known or assumed to be untrained: candidates, not a verdict.")
        )
    return out


TABLE_WORDS = [
    ("false alarm", "A random pair whose score reaches the threshold."),
    ("precision", "Of the judged pairs that reach the threshold, the share that is relevant."),
    ("recall", "Of the relevant documents of the judged queries, the share that reaches the threshold."),
    ("more than chance", "In more lists than random ones would give any document (but for one table in a thousand)."),
    ("hub", "A document in more lists than chance gives, in a tenth of all and in ten times as many as on average."),
    ("interval", "95 %, from resampled queries or rows. Judgements alone tell what is better."),
]
