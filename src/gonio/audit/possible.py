"""What is possible: who can win, who can tie, how many patterns there are, which of the user's label sets are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.audit.finding import Finding
from gonio.audit.subject import Subject
from gonio.inputs import AllInputs
from gonio.patterns.pattern import digits
from gonio.progress import Bar
from gonio.regions.win import CanWin, can_win

LISTED = 200_000  # patterns that are counted exactly
TIES = 200  # pairs of nearest labels that are asked about
NAMES = 50


def possible(s: Subject) -> Iterator[Finding]:
    """Winning, tying, patterns, label sets."""
    h = s.head
    if h.link == "cosine":
        return
    if h.link in ("softmax", "dot") and h.shape[0] > 1:
        with Bar("  who can win") as bar:
            wins = can_win(h, on_progress=bar)
        yield from _winning(s, wins)
        if wins.interrupted:  # what was decided is told; the rest of the audit stops as well
            raise KeyboardInterrupt
        yield from _tying(s, wins)
    yield from _patterns(s)
    if s.label_sets is not None and h.link == "sigmoid":
        yield from _sets(s)


def _winning(s: Subject, wins: CanWin) -> Iterator[Finding]:
    h, n = s.head, len(wins.labels)
    never = wins.never
    names = [h.labels[i] for i in never]
    word = "label" if h.link == "softmax" else "item"
    yield Finding(
        "never-wins",
        "possible",
        f"{len(never):,} of {n:,} {word}s can never win" if len(never) else f"Every {word} that was decided can win",
        "warning" if len(never) else "fine",
        len(never),
        f"Whatever the input, another {word} scores at least as high: some mean of the others is never below it"
        + (", so it lies inside their hull." if h.bias is None and isinstance(h.inputs, AllInputs) else ".")
        if len(never)
        else f"For each of {len(wins.wins):,} {word}s there is an input at which it is strictly above all others.",
        threshold=1,
        theorem="GRIV22.argmax",
        verify="gonio can-win MODEL --proof FILE; gonio verify MODEL FILE",
        data={
            "labels": names[:NAMES],
            "indices": never[:1000].tolist(),
            "wins": len(wins.wins),
            "interrupted": wins.interrupted,
            "smallest_margin": float(wins.margin[wins.status == 1].min()) if len(wins.wins) else None,
            "margins": _histogram(wins),
        },
    )
    if len(wins.undecided):
        yield Finding(
            "undecided",
            "open",
            f"{len(wins.undecided):,} {word}s are neither proven to win nor proven not to",
            "open",
            len(wins.undecided),
            "The search was stopped." if wins.interrupted else "They are on the edge, within what the search can tell.",
            data={"labels": [h.labels[i] for i in wins.undecided[:NAMES]]},
        )
    padded = np.intersect1d(h.padded, wins.wins)
    if len(h.padded):
        yield Finding(
            "padded-wins",
            "possible",
            f"{len(padded):,} of {len(h.padded):,} padded rows can win",
            "warning" if len(padded) else "fine",
            len(padded),
            "A padded row that can win is a prediction without a label; gonio pad writes rows that provably never do."
            if len(padded)
            else "No padded row can win.",
            threshold=1,
            verify="gonio can-win MODEL",
        )


def _histogram(wins: CanWin) -> dict[str, list[float]] | None:
    won = wins.margin[wins.status == 1]
    won = won[np.isfinite(won) & (won > 0)]
    if not len(won):
        return None
    size = np.log10(won)
    counts, edges = np.histogram(size, bins=40, range=(float(size.min()) - 0.05, float(size.max()) + 0.05))
    return {"counts": counts.tolist(), "log10_edges": edges.tolist()}


def _tying(s: Subject, wins: CanWin) -> Iterator[Finding]:
    from gonio.regions.tie import can_tie

    h = s.head
    if h.shape[0] < 3 or not len(s.asked):
        return
    near = s.cosine_neighbours[0][:, 0]
    pairs = {tuple(sorted((int(a), int(b)))) for a, b in zip(s.asked, near, strict=True)}
    able = set(wins.wins.tolist())
    pairs = [p for p in sorted(pairs) if p[0] in able and p[1] in able][:TIES]
    if not pairs:
        return
    ties = can_tie(h, pairs=pairs)
    if ties.interrupted:
        raise KeyboardInterrupt
    yes = sum(a == "yes" for a in ties.answers)
    no = [pairs[k] for k, a in enumerate(ties.answers) if a == "no"]
    yield Finding(
        "ties",
        "possible",
        f"{yes:,} of {len(pairs):,} pairs of nearest labels by cosine can share the top",
        "fact",
        yes,
        f"{ties.note[0].upper()}{ties.note[1:]}.",
        theorem="NG26.edge",
        verify="gonio can-tie MODEL LABEL LABEL",
        data={"cannot": [[h.labels[a], h.labels[b]] for a, b in no[:20]], "asked": len(pairs)},
    )


def _patterns(s: Subject) -> Iterator[Finding]:
    from gonio.patterns.label_sets import label_sets
    from gonio.patterns.rankings import rankings

    h = s.head
    if h.shape[0] > 2000:
        return
    sets = h.link == "sigmoid"
    p = label_sets(h, drop_zero=True) if sets else rankings(h, drop_twins=True)
    kind = "label sets" if sets else "rankings"
    exact = p.most <= LISTED
    count = p.count if exact else p.most
    share = _quotient(count, p.conceivable)
    few = share < 1
    near = p.near_degenerate if exact else None
    yield Finding(
        "patterns",
        "possible",
        f"{_large(count)} of {_large(p.conceivable)} {kind} are possible{'' if exact else ' at most'}"
        + (f": a share of {_share(count, p.conceivable)}" if few else ""),
        "fact",
        share,
        (
            "Counted exactly, each one proven."
            + (f" So the numbers are as stored; {near} there are {near.count:,}." if near else "")
            if exact
            else "The closed form for general position; no head of this shape has more."
        )
        + (f" The rest can never be output, since {h.shape[1]} dimensions are too few." if few else ""),
        theorem="COV65.signs" if sets else "COV67.rankings",
        verify="gonio patterns MODEL",
        data={"count": _large(count), "conceivable": _large(p.conceivable), "exact": exact, "notes": list(p.notes)},
    )


def _quotient(count: int, of: int) -> float:
    """count / of as a float, 0 where it is too small for one."""
    return 1.0 if count >= of else count / of if digits(of) - digits(count) < 300 else 0.0


def _share(count: int, of: int) -> str:
    """The quotient of two whole numbers of any size, to read."""
    share = _quotient(count, of)
    return f"{share:.2g}" if share > 1e-6 else f"about 10^{digits(count) - digits(of)}"


def _large(x: int) -> str:
    return f"{x:,}" if x < 10**12 else f"about 10^{digits(x) - 1}"


def _sets(s: Subject) -> Iterator[Finding]:
    from gonio.patterns.questions import can_labels

    assert s.label_sets is not None
    with Bar("  label sets") as bar:
        r = can_labels(s.head, s.label_sets, on_progress=bar)
    bad = list(dict.fromkeys(r.sets[k] for k in r.impossible))
    yield Finding(
        "impossible-sets",
        "possible",
        f"{len(r.impossible):,} of {len(r):,} label sets of your data can never be output",
        "warning" if len(r.impossible) else "fine",
        len(r.impossible),
        "No input gives these label sets: the head will be wrong on them whatever it learns before it."
        if len(r.impossible)
        else "Every label set of the data can be output.",
        threshold=1,
        theorem="GRIV24.feasible",
        verify="gonio can-label MODEL --sets FILE --proof FILE",
        data={"sets": [[s.head.labels[i] for i in x] for x in bad[:20]], "undecided": len(r.undecided)},
    )
