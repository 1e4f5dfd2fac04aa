"""Where does a common bias of models come from? Small language models that differ in one thing at a time.

Models of one text and one vocabulary, trained from two seeds, tied or untied, with weight decay or dropout
(`tiny_language_models`). For every two of them: how their stored cosines correlate, how the cosines of centred rows do,
what is left when frequency is held, and how their centred-logit correlations over the same held-out positions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gonio.core.correlations import pearson
from gonio.studies.centred_logits import correlations, logit_coordinates, sampled
from gonio.studies.common_geometry import held_out
from gonio.studies.study import Measured, StudyResult, enough
from gonio.studies.tiny_language_models import TinyModel

QUESTION = "Two small language models of one text: where does the correlation of their cosine matrices come from?"
KINDS = ("stored", "centred", "frequency held", "logits")
LABELS = 400


def common_bias(models: Sequence[TinyModel], *, labels: int = LABELS, seed: int = 0) -> StudyResult:
    """Correlations of every two models by what they have in common."""
    enough(len(models), 3, "bias", "models")
    rng = np.random.default_rng(seed)
    which = sampled(len(models[0].head), labels, rng)
    frequency = np.log2(np.maximum(models[0].counts[which], 0.5))
    views = [matrices(m, which, frequency) for m in models]
    groups: dict[str, list[dict[str, float]]] = {}
    upper = np.triu_indices(len(which), 1)
    for (a, x), (b, y) in combinations(zip(models, views, strict=True), 2):
        found = {k: pearson(x[k][upper], y[k][upper]) for k in KINDS}
        for group in groups_of(a, b):
            groups.setdefault(group, []).append(found)
    losses = [m.loss for m in models]
    out = [
        Measured("held-out loss", float(np.mean(losses)), min(losses), max(losses), "nats a word, lowest to highest")
    ]
    for group, rows in groups.items():
        for kind in KINDS:
            values = [r[kind] for r in rows]
            how = f"{len(rows)} pairs, lowest to highest"
            out.append(Measured(f"{group}: {kind}", float(np.mean(values)), min(values), max(values), how))
    numbers = {m.name: m for m in out}
    return StudyResult(
        "bias",
        QUESTION,
        f"{len(models)} models, {len(which):,} of {len(models[0].head):,} words, {len(models[0].F):,} positions",
        tuple(out),
        verdict(numbers),
        against(numbers),
        "Small models of one text; ranges are over pairs, which share models, so they are no intervals.",
        seed,
    )


def matrices(m: TinyModel, which: np.ndarray, frequency: np.ndarray) -> dict[str, np.ndarray]:
    """The four matrices of similarity of one model."""
    W = m.head.rows[which].astype(np.float64)
    stored = correlations(W)
    return {
        "stored": stored,
        "centred": correlations(W - m.head.W.astype(np.float64).mean(axis=0)),
        "frequency held": held_out(stored, [frequency]),
        "logits": correlations(logit_coordinates(m.head, m.F, which)),
    }


def groups_of(a: TinyModel, b: TinyModel) -> list[str]:
    """What two models have in common."""
    s, t = a.setting, b.setting
    tied = "both tied" if s.tied and t.tied else "both untied" if not (s.tied or t.tied) else "one tied"
    out = ["all pairs", tied]
    if s.tied == t.tied and (s.decay, s.dropout) == (t.decay, t.dropout):
        out.append("only the seed differs")
    return out


def verdict(n: dict[str, Measured]) -> str:
    """How much of it is frequency, how much goes with tying, and how it stands to the logits."""
    a, f, z = (n[f"all pairs: {k}"].value for k in ("stored", "frequency held", "logits"))
    said = f"Stored cosines correlate by {a:.2f} on average, by {f:.2f} with frequency held, logits by {z:.2f}"
    tied, free = n.get("both tied: stored"), n.get("both untied: stored")
    if tied is not None and free is not None:
        said += f"; {tied.value:.2f} where both are tied, {free.value:.2f} where both are untied"
    if a - f > 0.1:
        return f"{said}: a good part of the common bias is frequency."
    if z - a > 0.1:
        return f"{said}: frequency is little of it, and cosines show less than the models share."
    if a - z > 0.1:
        return f"{said}: frequency is little of it, and cosines show more than the models share."
    return f"{said}: frequency is little of it, and cosines and logits agree about as much."


def against(n: dict[str, Measured]) -> str:
    """Lee et al. read correlated cosines as shared geometry: said where the models share much and cosines little."""
    a, z = n["all pairs: stored"], n["all pairs: logits"]
    if a.high is not None and z.low is not None and a.high < z.low:
        return f"no pair's stored cosines ({a.high:.2f} at most) agree as any pair's logits do ({z.low:.2f} at least)."
    if a.low is not None and z.high is not None and a.low > z.high:
        return f"every pair's stored cosines agree ({a.low:.2f} at least) more than any logits ({z.high:.2f} at most)."
    return ""
