"""What a score means in this table; what lengths and the offset do to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.stats import rankdata

from gonio.core import checks
from gonio.embeddings.embedding_table import named_rows
from gonio.embeddings.query_lists import shared_share
from gonio.embeddings.sampling_intervals import mean_interval
from gonio.embeddings.scorers import METRICS
from gonio.findings.finding import Finding
from gonio.findings.table_subject import TableSubject, found, interval_words
from gonio.findings.threshold_curve import threshold_curve
from gonio.similarity.bootstrap import Interval, correlation_intervals

CROWDED = 0.5  # mean cosine of random pairs from which common thresholds tell nothing
SIDE = {"cosine": "a cosine of", "dot": "a product of", "l2": "a distance of at most"}


def meaning(s: TableSubject) -> Iterator[Finding]:
    """The threshold of a false-alarm rate, and what the user's own threshold lets through."""
    if not s.several:
        return
    pairs = s.pairs
    if len(pairs.scores) * s.false_alarms < 5:
        has = "There is 1 pair" if len(pairs.scores) == 1 else f"There are {len(pairs.scores):,} pairs"
        says = (
            f"{has}; a rate of {s.false_alarms:.2%} is not told by so few, at least 5 of them must reach a threshold."
        )
        do = s.again(false_alarms=0.5 if len(pairs.scores) < 50 else 0.1)
        yield found("false-alarms", "open", "too few pairs for a threshold", "open", None, says, do)
        return
    kind = "query-document pairs" if s.asks is not None else "pairs of documents"
    looked = f"all {len(pairs.scores):,} {kind}" if pairs.whole else f"{len(pairs.scores):,} random {kind}, estimated"
    at = pairs.threshold_at(s.false_alarms)
    q = np.quantile(pairs.scores, [0.05, 0.5, 0.95]) * (-1 if s.metric == "l2" else 1)
    reach = pairs.share_above(at.value).value
    tied = reach > 1.1 * s.false_alarms + 1 / len(pairs.scores)
    title = f"{s.false_alarms:.2%} of random pairs reach {SIDE[s.metric]} {interval_words(at)}"
    if tied:
        title = f"{reach:.2%} of random pairs reach {SIDE[s.metric]} {interval_words(at)}: many scores are equal"
    yield found(
        "false-alarms",
        "meaning",
        title,
        "fact",
        at.value,
        f"Over {looked}: 5 % {q[0]:.3f}, median {q[1]:.3f}, 95 % {q[2]:.3f}. "
        + (f"No score is reached by just {s.false_alarms:.2%}. " if tied else "")
        + f"A threshold {'above' if s.metric == 'l2' else 'below'} that lets more pairs through that nobody chose. It "
        "says how rare a score is here, not that such pairs are alike: that takes judged pairs.",
        s.again(threshold=round(at.value, 3)),
        interval=at.to_dict(),
        rate=s.false_alarms,
        reach=reach,
        curve=threshold_curve(pairs),
    )
    if s.threshold is None:
        return
    share = pairs.share_above(s.threshold)
    high = share.low > s.false_alarms
    yield found(
        "threshold",
        "meaning",
        f"{_percent(share)} of random pairs reach {s.threshold:g}, the threshold in use",
        "warning" if high else "fine",
        share.value,
        f"Over {looked}. {'More' if high else 'Not shown to be more'} than the {s.false_alarms:.2%} that were asked "
        f"for.",
        s.again(threshold=round(at.value, 3)),
        threshold=s.false_alarms,
        interval=share.to_dict(),
        in_use=s.threshold,
    )


def shape(s: TableSubject) -> Iterator[Finding]:
    """Lengths, what they change, and how far the rows point one way."""
    norms = s.survey.norms[s.survey.norms > 0]
    low, middle, high = np.quantile(norms, [0.05, 0.5, 0.95])
    unit = bool((np.abs(norms - 1) < 1e-3).all())
    title = (
        "all rows have length 1, to a thousandth"
        if unit
        else f"lengths {low:.3g} to {high:.3g} (5 % to 95 %), median {middle:.3g}"
    )
    says = (
        "Cosine and dot product of these rows agree to about that."
        if unit
        else "Cosine ignores these lengths, the dot product multiplies by them, l2 takes off their squares."
    )
    yield found(
        "lengths",
        "shape",
        title,
        "fact",
        float(middle),
        says,
        "X = gonio.remedies.Normalize().fit_transform(X)",
        quantiles=[float(low), float(middle), float(high)],
        unit=unit,
    )
    if s.frequencies is not None:
        yield _frequency(s)
    if not s.several:
        return
    base = s.lists["cosine"].near[s.few]
    kept = {m: mean_interval(shared_share(base, s.lists[f"few {m}"].near), bounds=(0, 1)) for m in METRICS[1:]}
    who = "queries" if s.asks is not None else "rows"
    asked = f"{len(base):,} {who}{' drawn at random, estimated' if s.estimated or len(base) < len(s.asked) else ''}"
    dot, l2 = (interval_words(kept[m]) for m in METRICS[1:])
    title = f"of the top {s.size} by cosine, dot product keeps {dot} and l2 {l2}"
    says = f"Mean share over {asked}. Which of them finds what users want, only judgements can tell (--qrels)."
    other = next(m for m in METRICS if m != s.metric)
    yield found(
        "metric",
        "shape",
        title,
        "fact",
        kept["dot"].value,
        says,
        s.again(metric=other),
        kept={m: x.to_dict() for m, x in kept.items()},
    )
    mean, rank = s.survey.mean_cosine, s.survey.effective_rank
    crowded = mean >= CROWDED
    yield found(
        "offset",
        "shape",
        f"the mean cosine of all pairs of documents is {_zero(mean)}; if their directions cancelled out it would be "
        f"{_zero(-1 / (s.survey.live - 1))}",
        "warning" if crowded else "fine",
        mean,
        _directions(rank, s.corpus.shape[1])
        + ("The rows share a direction: a cosine that is high elsewhere is ordinary here. " if crowded else "")
        + "Whether centring helps or hurts, only judgements can tell.",
        "X0 = gonio.remedies.Center().fit_transform(X)",
        threshold=CROWDED,
        effective_rank=rank,
    )


def _frequency(s: TableSubject) -> Finding:
    """Do lengths carry how often a document occurs, or how long its text is?"""
    given = s.frequencies
    if isinstance(given, Mapping):
        rows = named_rows(s.corpus, [str(x) for x in given], "frequencies")
        numbers = checks.vector(list(given.values()), "check", "frequencies", per="row")
    else:
        rows, numbers = np.arange(len(s.corpus)), checks.vector(given, "check", "frequencies", len(s.corpus), per="row")
    norms = s.survey.norms[rows]
    known = norms > 0
    x, y = rankdata(norms[known]), rankdata(numbers[known])
    if len(x) < 10 or np.ptp(x) == 0 or np.ptp(y) == 0:
        says = "Ten rows or more with lengths and numbers that differ are needed."
        return found("length-frequency", "open", "lengths and numbers were not compared", "open", None, says, s.again())
    low, high = correlation_intervals(x[:, None], y[:, None], seed=s.seed)
    r = Interval(float(np.corrcoef(x, y)[0, 1]), float(low[0]), float(high[0]))
    return found(
        "length-frequency",
        "shape",
        f"Spearman's correlation of lengths with the numbers given is {interval_words(r)}",
        "fact",
        r.value,
        f"Measured over {len(x):,} rows, which were resampled. By dot product, rows that are longer win more often.",
        "X = gonio.remedies.Normalize().fit_transform(X)",
        interval=r.to_dict(),
    )


def _directions(rank: float, width: int) -> str:
    if rank < 1:
        return "Around their mean the rows do not vary. "
    said = f"Around their mean the rows use {rank:.1f} of {width} directions (effective rank)"
    return f"{said}; cosines of random directions among that many have mean 0 and spread by {1 / np.sqrt(rank):.3f}. "


def _zero(x: float) -> str:
    return f"{x if abs(x) > 5e-4 else 0:.3f}"


def _percent(share) -> str:
    if share.low == share.high:
        return f"{share.value:.2%}"
    return f"{share.value:.2%} ({share.low:.2%} to {share.high:.2%})"
