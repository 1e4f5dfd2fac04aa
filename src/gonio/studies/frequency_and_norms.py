"""Frequency and norms on real models (Zhou et al. 2022, You 2025): what goes with what, and which of it survives.

    norm               length of a row as stored: any equivalent form may give another
    centred norm       length of a row minus the mean row: a translation leaves it, an invertible map does not
    logit spread       how much the label's centred logit varies over states: no equivalent form moves it

each against log2 frequency and informativeness (mean tf-idf), by Spearman's correlation over words; and for judged
pairs of words the slope of a similarity (in its standard deviations) on log2 frequency with people's judgement held,
and in every tenth of the pairs by frequency how far it lies from what people's judgement predicts, and how well it
agrees with them (`frequency_tenths`).
Labels that share pairs are not independent: p and intervals of the pairs come from frequencies dealt anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gonio.core.correlations import spearman
from gonio.core.directions import cosines_of
from gonio.core.head import Head
from gonio.diagnostics.permutation import permutation_p
from gonio.gauge import gauge_of
from gonio.gauge.transforms import Translation
from gonio.studies.centred_logits import logit_coordinates
from gonio.studies.frequency_tenths import TENTHS, beyond_people_words, by_tenths
from gonio.studies.study import Measured, StudyResult, enough

QUESTION = "Which relations of norms and cosines with frequency are facts of this model, and which of its coordinates?"
RESAMPLES, DEALS, FORMS = 300, 499, 5


def frequency_and_norms(
    head: Head,
    rows: Mapping[str, int],
    frequency: Mapping[str, float],
    *,
    states: Any = None,
    judged: Sequence[tuple[str, str, float]] = (),
    informative: Mapping[str, float] | None = None,
    name: str = "the table given",
    what: str = "words",
    seed: int = 0,
) -> StudyResult:
    """Norms, spreads and cosines against frequency, people's judgements held, with what equivalent forms make of it.

    Parameters
    ----------
    rows : words to their rows
    frequency : words to log2 of how often they occur
    states : what reaches the head; without them nothing that no form moves can be told
    judged : pairs of words with people's judgement of them (larger: more alike)
    informative : words to how much they tell (tf-idf)
    what : what the rows stand for, in words
    """
    rng = np.random.default_rng(seed)
    words = [w for w in rows if w in frequency]
    enough(len(words), 30, "frequency", "words with a row and a frequency")
    at = np.array([rows[w] for w in words])
    f = np.array([frequency[w] for w in words])
    sizes = _sizes(head, at, states)
    found: list[Measured] = []
    for kind, size in sizes.items():
        found.append(_rank(f"{kind} and frequency", size, f, rng))
    if informative is not None:
        t = np.array([informative.get(w, np.nan) for w in words])
        found += [_rank(f"{kind} and informativeness", size, t, rng) for kind, size in sizes.items()]
    forms = _norms_in_forms(head, at, f, rng)
    if forms:
        how = f"{len(forms)} equivalent forms, lowest to highest"
        name_of = "norm and frequency in equivalent forms"
        found.append(Measured(name_of, float(np.mean(forms)), min(forms), max(forms), how))
    found += _judged(head, rows, frequency, judged, states, seed)
    if states is not None:
        found += _confidence(head, states, rng)
    numbers = {m.name: m for m in found}
    return StudyResult(
        "frequency",
        QUESTION,
        f"{name}: {len(words):,} {what}",
        tuple(found),
        verdict(numbers),
        against(numbers),
        "Rows of whole words or texts only. Zhou et al. measured contextual vectors of BERT, this a table of rows.",
        seed,
    )


def verdict(n: dict[str, Measured]) -> str:
    """Does the norm go with frequency, does it in what no form moves, and which tenths of judged pairs stand out?"""
    return " ".join(x for x in (_norm_verdict(n), beyond_people_words(n)) if x)


def _norm_verdict(n: dict[str, Measured]) -> str:
    stored = n["norm and frequency"]
    said = f"The stored norm goes with frequency by {stored.words(2)}"
    forms = n.get("norm and frequency in equivalent forms")
    if forms is not None and forms.low is not None and forms.high is not None:
        span = f"{forms.low:.2f} to {forms.high:.2f}"
        said += f", in equivalent forms by {span}" + (": a convention" if forms.low < 0 < forms.high else "")
    spread = n.get("logit spread and frequency")
    if spread is None:
        return f"{said}; without states nothing that no form moves can be told."
    if spread.above(0) or spread.below(0):
        return f"{said}. What survives: how much a label's logit varies goes with frequency by {spread.words(2)}."
    return f"{said}. Of it nothing is shown to survive: how much a label's logit varies has {spread.words(2)}."


def against(n: dict[str, Measured]) -> str:
    """Zhou et al.: cosines fall with frequency (slope below 0), norms rise with it; said where it is the other way."""
    out = []
    stored, slope = n["norm and frequency"], n.get("slope of cosine on frequency")
    if stored.below(0):
        out.append(f"longer rows are rarer here ({stored.words(2)}); Zhou et al. found norms rise with frequency")
    if slope is not None and slope.above(0):
        out.append(f"the cosine rises with frequency ({slope.words()}); Zhou et al. found it to fall")
    return "; ".join(out) + "." if out else ""


def _sizes(head: Head, at: np.ndarray, states: Any) -> dict[str, np.ndarray]:
    W = head.rows[at].astype(np.float64)
    mean = np.zeros(head.shape[1])
    for s in range(0, head.shape[0], 4096):
        mean += head.rows[s : s + 4096].astype(np.float64).sum(axis=0)
    out = {"norm": np.linalg.norm(W, axis=1), "centred norm": np.linalg.norm(W - mean / head.shape[0], axis=1)}
    if states is not None:
        out["logit spread"] = np.linalg.norm(logit_coordinates(head, states), axis=1)[at]
    return out


def _rank(name: str, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Measured:
    """Spearman's correlation with a bootstrap interval over words."""
    ok = np.isfinite(x) & np.isfinite(y)
    x, y = x[ok], y[ok]
    draws = rng.integers(0, len(x), (RESAMPLES, len(x)))
    values = [spearman(x[d], y[d]) for d in draws]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Measured(name, spearman(x, y), float(low), float(high), f"{len(x):,} words or states")


def _norms_in_forms(head: Head, at: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Spearman of norm and frequency in equivalent forms: random ones, and centred rows where these are one."""
    gauge = gauge_of(head)
    if not gauge.kinds:
        return []
    few = Head(head.rows[at].astype(np.float64), link=head.link, offset_in=head.offset_in)
    forms = [gauge_of(few).random(few, rng, size=3.0).apply(few).W for _ in range(FORMS)]
    if Translation in gauge.kinds:
        forms.append(few.W - few.W.mean(axis=0))
    return [spearman(np.linalg.norm(W, axis=1), f) for W in forms]


def _judged(
    head: Head, rows: Mapping[str, int], frequency: Mapping[str, float], judged: Any, states: Any, seed: int
) -> list[Measured]:
    """The slope of each similarity of judged pairs on frequency, people held, and the tenths."""
    both = [(a, b, s) for a, b, s in judged if a != b and all(w in rows and w in frequency for w in (a, b))]
    known = [(rows[a], rows[b], s) for a, b, s in both]
    if len(known) < 10 * TENTHS:
        return []
    pairs = np.array([(i, j) for i, j, _ in known])
    people = np.array([s for *_, s in known])
    of_row = {rows[w]: frequency[w] for w in rows if w in frequency}
    log2 = np.full(head.shape[0], np.nan)
    log2[list(of_row)] = list(of_row.values())
    W = head.rows[pairs.ravel()].astype(np.float64)
    kinds = {"cosine": cosines_of(W, np.arange(0, len(W), 2), np.arange(1, len(W), 2))}
    if states is not None:
        A = logit_coordinates(head, states)
        kinds["logit correlation"] = cosines_of(A, pairs[:, 0], pairs[:, 1])
    out = []
    for kind, values in kinds.items():
        z = (values - values.mean()) / values.std()
        out.append(slope_beside_people(kind, z, pairs, people, log2, seed))
        out += by_tenths(kind, z, pairs, people, log2, seed)
    return out


def slope_beside_people(
    kind: str, z: np.ndarray, pairs: np.ndarray, people: np.ndarray, log2: np.ndarray, seed: int
) -> Measured:
    """The slope of a similarity on the pair's mean log2 frequency with the judgement held; 95 % of it by dealt labels.

    The interval is the slope plus and minus the 95 % half-width of the slopes of frequencies dealt among labels.
    """

    def slope(f: np.ndarray) -> float:
        x = (f[pairs[:, 0]] + f[pairs[:, 1]]) / 2
        X = np.column_stack([np.ones(len(x)), x, people])
        return float(np.linalg.lstsq(X, z, rcond=None)[0][1])

    seen = slope(log2)
    labels = np.unique(pairs)
    rng = np.random.default_rng(seed)
    null = []
    for _ in range(DEALS):
        f = log2.copy()
        f[labels] = rng.permutation(log2[labels])
        null.append(slope(f))
    half = float(np.quantile(np.abs(null), 0.95))
    p = permutation_p(z, pairs, log2, people[:, None], seed)[-1]
    how = f"standard deviations a doubling; {len(z):,} judged pairs, {DEALS} deals; p {p:.3f}"
    return Measured(f"slope of {kind} on frequency", seen, seen - half, seen + half, how)


def _confidence(head: Head, states: Any, rng: np.random.Generator, most: int = 1500) -> list[Measured]:
    """The length of a state, and its length where states have no shape, against the largest probability there."""
    F = np.asarray(states, np.float64)[:most]
    sure = np.concatenate([head.probabilities(F[s : s + 256]).max(axis=1) for s in range(0, len(F), 256)])
    C = F - np.asarray(states, np.float64).mean(axis=0)
    S = np.cov(np.asarray(states, np.float64).T, bias=True)
    whitened = np.sqrt(np.maximum(np.einsum("ij,ij->i", C @ np.linalg.pinv(S, hermitian=True), C), 0))
    return [
        _rank("length of a state and confidence", np.linalg.norm(F, axis=1), sure, rng),
        _rank("whitened length of a state and confidence", whitened, sure, rng),
    ]
