"""You's failure scenarios at scale: how often does the cosine of sentences prefer what it should not?

Triples made by rule from judged sentences (`made_sentences`): a sentence, a paraphrase that people graded 4 or more of
5, and a near-copy of other meaning. A case fails where the near-copy is nearer than the paraphrase. For strength the
weak hypothesis ought to be nearer than the strong one. For function words two unrelated sentences are reduced to
their function words and one content word each; a case fails where that brings them nearer. A coin would fail in half of
the cases; "agrees with the source" is said only where the interval lies above that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.directions import unit
from gonio.core.errors import GonioError
from gonio.embeddings.sampling_intervals import share_interval
from gonio.remedies import Center, LengthAsFeature, RemoveTopComponents, Whiten
from gonio.remedies.remedy import Remedy
from gonio.studies.made_sentences import Triple, mostly_function_words
from gonio.studies.study import Measured, StudyResult, enough

QUESTION = "How often does a sentence model put a near-copy of other meaning nearer than a paraphrase, and what helps?"
REMEDIES: dict[str, Remedy] = {
    "Center": Center(),
    "Whiten": Whiten(),
    "RemoveTopComponents": RemoveTopComponents(),
    "LengthAsFeature": LengthAsFeature(),
}
CHANCE = 0.5
Encode = Callable[[list[str]], Any]


def cosine_failures(
    encode: Encode,
    cases: Mapping[str, Sequence[Triple]],
    background: Sequence[str],
    *,
    name: str = "the encoder given",
    remedies: Mapping[str, Remedy] | None = None,
    most: int = 300,
    seed: int = 0,
) -> StudyResult:
    """Rates of failure with intervals, for the plain cosine and after each remedy.

    Parameters
    ----------
    encode : from sentences to vectors, one a row
    cases : triples by kind
    background : other sentences: remedies are fitted on them, and unrelated pairs of them are reduced to function words
    """
    remedies = REMEDIES if remedies is None else remedies
    used = {x for some in cases.values() for t in some for x in (t.sentence, t.right, t.wrong)}
    background = [s for s in dict.fromkeys(background) if s not in used]
    enough(len(background), 50, "failures", "background sentences that no case uses")
    short = {s: t for s in background if (t := mostly_function_words(s)) is not None}
    texts = list(dict.fromkeys([*sorted(used), *background, *short.values()]))
    V = checks.wide(checks.matrix(encode(texts), "study failures", "what encode gave", axes=("sentences", "dim")))
    if len(V) != len(texts):
        raise GonioError(
            f"study failures: encode gave {len(V)} vectors for {len(texts)} sentences; one each is needed."
        )
    V = V.astype(np.float64)
    at = {t: i for i, t in enumerate(texts)}
    fit = V[[at[t] for t in background]]
    pairs = _unrelated(list(short), np.random.default_rng(seed), most)
    found, plain = [], {}
    for remedy in ("cosine", *remedies):
        U = V if remedy == "cosine" else type(remedies[remedy])(**remedies[remedy].get_params()).fit(fit).transform(V)
        U = unit(U)
        for kind, fails in _fails(U, at, cases, short, pairs).items():
            found.append(_rate(f"{kind}, {remedy}", fails))
            if remedy == "cosine":
                plain[kind] = fails
    numbers = {m.name: m for m in found}
    return StudyResult(
        "failures",
        QUESTION,
        f"{name}: {', '.join(f'{k} {len(v)}' for k, v in plain.items())} cases",
        tuple(found),
        verdict(numbers),
        against(numbers),
        "Made by rule: some near-copies read oddly, and a paraphrase that people graded 4 of 5 may differ in detail. "
        f"Remedies are fitted on {len(background):,} sentences that no triple uses.",
        seed,
    )


def kinds_of(n: dict[str, Measured]) -> list[str]:
    return [k.removesuffix(", cosine") for k in n if k.endswith(", cosine")]


def verdict(n: dict[str, Measured]) -> str:
    """Which failures are clear of chance, and which remedies change that clearly."""
    bad = [k for k in kinds_of(n) if n[f"{k}, cosine"].above(CHANCE)]
    good = [k for k in kinds_of(n) if n[f"{k}, cosine"].below(CHANCE)]
    said = []
    if bad:
        rates = ", ".join(f"{k} {n[f'{k}, cosine'].value:.0%}" for k in bad)
        said.append(f"The cosine fails in more than half of the cases of {rates}: there the source agrees.")
    if good:
        rates = ", ".join(f"{k} {n[f'{k}, cosine'].value:.0%}" for k in good)
        said.append(f"It fails in less than half of {rates}.")
    unclear = [k for k in kinds_of(n) if k not in bad + good]
    if unclear:
        said.append(f"Not told from a coin: {', '.join(unclear)}.")
    helps = [f"{r} for {k}" for k in bad for r in _remedies(n) if n[f"{k}, {r}"].below(_low(n[f"{k}, cosine"]))]
    said.append(f"Clearly fewer failures with {', '.join(helps)}." if helps else "No remedy clearly lowers a failure.")
    return " ".join(said)


def against(n: dict[str, Measured]) -> str:
    """Failures that You names and that are clearly rarer than chance here."""
    rare = [k for k in kinds_of(n) if n[f"{k}, cosine"].below(CHANCE)]
    if not rare:
        return ""
    told = ", ".join(f"{k} fails in {n[f'{k}, cosine'].value:.0%} of the cases" for k in rare)
    return f"You 2025 names these as failures; here the cosine is mostly right: {told}."


def _remedies(n: dict[str, Measured]) -> list[str]:
    kind = kinds_of(n)[0]
    return [k.removeprefix(f"{kind}, ") for k in n if k.startswith(f"{kind}, ") and not k.endswith(", cosine")]


def _low(m: Measured) -> float:
    return m.value if m.low is None else m.low


def _rate(name: str, fails: np.ndarray) -> Measured:
    i = share_interval(int(fails.sum()), len(fails))
    return Measured(name, i.value, i.low, i.high, f"{int(fails.sum())} of {len(fails)}")


def _unrelated(sentences: list[str], rng: np.random.Generator, most: int) -> list[tuple[str, str]]:
    """Pairs of different sentences, each sentence in one pair."""
    order = rng.permutation(len(sentences))
    half = len(order) // 2
    return [(sentences[i], sentences[j]) for i, j in zip(order[:half], order[half : 2 * half], strict=True)][:most]


def _fails(U: np.ndarray, at: dict[str, int], cases: Any, short: dict[str, str], pairs: Any) -> dict[str, np.ndarray]:
    out = {}
    for kind, some in cases.items():
        if some:
            s, r, w = (U[[at[getattr(t, part)] for t in some]] for part in ("sentence", "right", "wrong"))
            out[kind] = (s * w).sum(axis=1) > (s * r).sum(axis=1)
    if pairs:
        whole = np.array([U[at[a]] @ U[at[b]] for a, b in pairs])
        reduced = np.array([U[at[short[a]]] @ U[at[short[b]]] for a, b in pairs])
        out["function words"] = reduced > whole
    return out
