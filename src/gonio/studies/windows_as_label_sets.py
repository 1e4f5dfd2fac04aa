"""word2vec as a sigmoid classifier: can it answer the windows that occur, and others no better?

Skip-gram with negative sampling answers yes or no for every context word, so what it can say of a place in a text is a
label set: these words and no other. A window that occurs is such a set. It is held against sets of as many words drawn
by their frequency. At the width that people train everything is possible; this goes down in width and up in vocabulary
to where it is not, and asks there whether training made room for what occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gonio.embeddings.sampling_intervals import share_interval
from gonio.papers.experiments.word2vec import Corpus, can_answer, read_corpus, train_sgns
from gonio.studies.study import Measured, StudyResult, enough

QUESTION = "Can a word2vec model answer the windows that occur rather than random sets of as many words?"
DIMS, WORDS = (4, 8, 16, 24, 32), (60, 120, 240)
SETS = 80


def windows_as_label_sets(
    text: str,
    *,
    dims: Sequence[int] = DIMS,
    words: Sequence[int] = WORDS,
    window: int = 2,
    sets: int = SETS,
    epochs: int = 10,
    name: str = "the text given",
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> StudyResult:
    """Shares of observed and of random windows that the trained model can answer, by width and vocabulary."""
    found: list[Measured] = []
    for k, (n, d) in enumerate((n, d) for n in words for d in dims):
        if on_progress is not None:
            on_progress(k, len(words) * len(dims), f"{n} words in {d} dimensions")
        corpus = read_corpus(text, least=2, most=n)
        enough(len(corpus.words), n, "windows", "different words")
        head = train_sgns(corpus, dim=d, window=window, epochs=epochs, seed=seed)
        rng = np.random.default_rng([seed, n, d])
        seen = observed(corpus, window, sets, rng)
        enough(len(seen), 10, "windows", "windows of the vocabulary's words")
        drawn = matched(corpus, seen, rng)
        pair = [_share(f"{n} words, {d} dimensions: {kind}", head.W, some)
                for kind, some in (("observed", seen), ("random", drawn))]  # fmt: skip
        found += pair
    return StudyResult(
        "windows",
        QUESTION,
        f"{name}: vocabularies of {', '.join(map(str, words))} words, at most {sets} windows of each kind",
        tuple(found),
        verdict({m.name: m for m in found}),
        against({m.name: m for m in found}),
        f"Windows of {window} words to each side among the words of the vocabulary, which stand closer so than in the "
        "text. One seed; a set counts as possible where a linear program and its signs agree.",
        seed,
    )


def _cells(n: dict[str, Measured]) -> dict[str, tuple[Measured, Measured]]:
    names = [k.removesuffix(": observed") for k in n if k.endswith(": observed")]
    return {k: (n[f"{k}: observed"], n[f"{k}: random"]) for k in names}


def verdict(n: dict[str, Measured]) -> str:
    """Where it bites, and whether observed windows fare better there."""
    cells = _cells(n)
    free = [k for k, (a, b) in cells.items() if a.value == b.value == 1]
    bites = {k: c for k, c in cells.items() if k not in free and max(c[0].value, c[1].value) > 0}
    said = f"All windows of both kinds are possible in {len(free)} of {len(cells)} settings"
    if not bites:
        return f"{said}, and none in the others: nothing tells observed windows from random ones."
    more = [k for k, (a, b) in bites.items() if a.above(_high(b))]
    less = [k for k, (a, b) in bites.items() if a.below(_low(b))]
    said += f"; some and not all in {len(bites)}. There observed windows are clearly more often possible in {len(more)}"
    said += f" and clearly less in {len(less)}"
    if len(more) > len(less):
        widest = max(more, key=lambda k: bites[k][0].value - bites[k][1].value)
        a, b = bites[widest]
        return f"{said}: training makes room for what occurs ({widest}: {a.value:.0%} against {b.value:.0%})."
    if len(less) > len(more):
        return f"{said}: what occurs together is harder to answer alone than what does not."
    return f"{said}: that training makes room for what occurs is not shown."


def against(n: dict[str, Measured]) -> str:
    """The source reads label sets as what a sigmoid head can and cannot say; said where all can be said."""
    wide = [k for k, (a, b) in _cells(n).items() if a.value == b.value == 1]
    if not wide:
        return ""
    return (
        f"that a sigmoid head has impossible label sets says nothing of word2vec where it is wide: every window "
        f"asked, seen or random, is possible for {wide[-1]}."
    )


def _high(m: Measured) -> float:
    return m.value if m.high is None else m.high


def _low(m: Measured) -> float:
    return m.value if m.low is None else m.low


def observed(corpus: Corpus, window: int, sets: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """The words around some places of the text, each set once."""
    found: dict[tuple[int, ...], None] = {}
    for line in corpus.lines:
        for i in range(window, len(line) - window):
            around = {int(x) for x in (*line[i - window : i], *line[i + 1 : i + 1 + window])}
            found[tuple(sorted(around))] = None
    every = list(found)
    return [every[i] for i in np.sort(rng.choice(len(every), min(sets, len(every)), replace=False))]


def matched(corpus: Corpus, seen: Sequence[tuple[int, ...]], rng: np.random.Generator) -> list[tuple[int, ...]]:
    """As many sets of as many words, drawn by frequency without replacement, none of them a window that was seen."""
    share = corpus.counts / corpus.counts.sum()
    known, out = set(seen), []
    for s in seen:
        drawn = s
        for _ in range(100):
            drawn = tuple(sorted(int(x) for x in rng.choice(len(share), len(s), replace=False, p=share)))
            if drawn not in known:
                break
        out.append(drawn)
    return out


def _share(name: str, W: np.ndarray, sets: Sequence[tuple[int, ...]]) -> Measured:
    answers = [can_answer(W, list(s)) for s in sets]
    yes, unknown = sum(a is True for a in answers), sum(a is None for a in answers)
    i = share_interval(yes, len(answers))
    how = f"{yes} of {len(answers)}" + (f"; {unknown} undecided" if unknown else "")
    return Measured(name, i.value, i.low, i.high, how)
