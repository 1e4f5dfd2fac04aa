"""What is possible: who can win, who can tie, how many patterns there are, which of the user's label sets are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.ask.wins import CanWin, can_win
from gonio.core.progress import Bar
from gonio.core.status import Status
from gonio.findings.finding import Finding, counted, typed_label
from gonio.findings.seen_outputs import seen
from gonio.findings.subject import Subject
from gonio.gauge.group import SCORES
from gonio.listing.pattern import digits

LISTED = 200_000  # patterns that are counted exactly
TIES = 200  # pairs of nearest labels that are asked about
NAMES = 50
LARGEST = 10**12  # conceivable patterns from which a mere bound on the possible ones is not told
MANY = 20_000  # labels from which margins are not proven a second time


def possible(s: Subject) -> Iterator[Finding]:
    """Winning, tying, being on, patterns, label sets."""
    h = s.head
    if h.link not in SCORES:
        return
    if h.link in ("softmax", "dot") and h.shape[0] > 1:
        with Bar("  who can win") as bar:
            wins = can_win(h, on_progress=bar)
        s.kept["wins"] = wins
        yield from _winning(s, wins)
        yield from seen(s, wins)
        if wins.interrupted:  # what was decided is told; the rest of the audit stops as well
            raise KeyboardInterrupt
        if h.inputs.points is None:  # at given points a tie is a coincidence of two numbers
            yield from _tying(s, wins)
    if h.link == "sigmoid":
        yield from _on_and_off(s)
    if h.inputs.points is None:
        yield from _patterns(s)
    if s.label_sets is not None and h.link == "sigmoid":
        yield from _sets(s)


def _word(s: Subject) -> str:
    return "label" if s.head.link == "softmax" else "item"


def _winning(s: Subject, wins: CanWin) -> Iterator[Finding]:
    h, n, word = s.head, len(wins.labels), _word(s)
    never = wins.never
    decided = not len(wins.undecided)
    shared = ""
    if len(wins.shared):
        shared = f"; {len(wins.shared):,} more share their row with another {word}"
    where = _where(s)
    if len(never):
        title = (
            f"{len(never):,} of {n:,} {word}s {'are on top at none of' if where else 'can never win'}{where}{shared}"
        )
    elif decided:
        every = "is on top at one of" + where if where else "can be on top" if len(wins.shared) else "can win"
        title = f"Every {word} {every}{shared.replace(' more', '')}"
    else:
        title = f"No {word} is proven unable to win{shared}"
    yield Finding(
        "never-wins",
        "possible",
        title,
        "warning" if len(never) else "fine",
        len(never),
        _why_never(s) if len(never) else _why_wins(s, wins),
        threshold=1,
        theorem="GRIV22.argmax",
        verify=f"gonio can-win {h.typed} --proof proof.npz; gonio verify {h.typed} proof.npz",
        data={
            "labels": [h.labels[i] for i in never[:NAMES]],
            "indices": never[:1000].tolist(),
            "wins": len(wins.wins),
            "shared": len(wins.shared),
            "interrupted": wins.interrupted,
            "smallest_margin": float(_margins(wins)[wins.status == Status.WINS].min()) if len(wins.wins) else None,
            "margins": _histogram(wins),
        },
    )
    if len(wins.shared):
        groups = [g for g in wins.twins if g.can_be_top == "yes"]
        yield Finding(
            "shared-top",
            "possible",
            f"{len(wins.shared):,} {word}s in {counted(len(groups), 'group')} of equal rows can be on top, none alone",
            "fact",
            len(wins.shared),
            "Which of a group is returned there is up to how ties are broken.",
            data={"groups": [[h.labels[i] for i in g.labels[:8]] for g in groups[:20]]},
        )
    yield from _inside(s, wins)
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
    yield from _padding(s, wins)


def _where(s: Subject) -> str:
    """The inputs in words where they are given ones; empty where they are a set that any input may come from."""
    return f" the {len(s.head.inputs.points):,} {s.inputs_word}s given" if s.head.inputs.points is not None else ""


def _why_never(s: Subject) -> str:
    h, word = s.head, _word(s)
    if h.inputs.points is not None:
        return (
            f"At each of these {s.inputs_word}s another {word} scores at least as high. Others, such as means of "
            "these, may still put it first."
        )
    hull = h.bias is None and h.inputs.shape == "space"
    return (
        f"Whatever the input, another {word} scores at least as high: at every input some mean of the others is not "
        "below it" + (", so it lies inside their hull." if hull else ".")
    )


def _why_wins(s: Subject, wins: CanWin) -> str:
    alone = f"For each of {len(wins.wins):,} {_word(s)}s there is an input at which it is strictly above all others"
    return alone + ("." if not len(wins.shared) else ", for the others one at which they are with their equals.")


def _inside(s: Subject, wins: CanWin) -> Iterator[Finding]:
    """After a norm: labels that were not found to win where real states lie."""
    surface = wins.surface
    few = surface.not_reached
    if not len(few):
        return
    h = s.head
    at = np.searchsorted(surface.labels, few)
    inside = surface.only_inside
    bound = surface.at_most[np.searchsorted(surface.labels, inside)].max(initial=0.0)
    yield Finding(
        "inside-norm",
        "possible",
        f"{len(few):,} of them were found to win only inside the norm's ellipsoid, out to "
        f"{surface.found[at].max():.2f} of its radius at most",
        "open",
        len(few),
        "States after a norm lie near its surface; a label that wins only well inside may never be seen to win. "
        + (
            f"{len(inside):,} of them provably cannot win beyond {bound:.2f} of it."
            if len(inside)
            else "That they cannot win further out is not proven."
        ),
        data={
            "labels": [h.labels[i] for i in few[:NAMES]],
            "found": surface.found[at][:NAMES].tolist(),
            "proven_at_most": surface.at_most[at][:NAMES].tolist(),
        },
    )


def _padding(s: Subject, wins: CanWin) -> Iterator[Finding]:
    h = s.head
    if not len(h.padded):
        return
    able = np.intersect1d(h.padded, wins.tops)
    unclear = np.intersect1d(h.padded, wins.undecided)
    yield Finding(
        "padded-wins",
        "possible",
        f"{len(able):,} of {len(h.padded):,} padded rows can be on top"
        + (f"; undecided: {len(unclear):,}" if len(unclear) else ""),
        "warning" if len(able) else "open" if len(unclear) else "fine",
        len(able),
        "A padded row on top, alone or tied with rows equal to it, is a prediction without a label; gonio pad writes "
        "rows that provably never are."
        if len(able)
        else "Of the undecided ones neither is proven."
        if len(unclear)
        else "No padded row can be on top.",
        threshold=1,
        verify=f"gonio can-win {h.typed}",
        data={"labels": [h.labels[i] for i in able[:NAMES]]},
    )


def _margins(wins: CanWin) -> np.ndarray:
    """Proven margins: of very many labels as the search left them, for a second look is one more product of all."""
    return wins.margin if len(wins.labels) <= MANY else wins.least_margin


def _histogram(wins: CanWin) -> dict[str, list[float]] | None:
    won = _margins(wins)[np.isin(wins.labels, wins.tops)]
    won = won[np.isfinite(won) & (won > 0)]
    if not len(won):
        return None
    size = np.log10(won)
    counts, edges = np.histogram(size, bins=40, range=(float(size.min()) - 0.05, float(size.max()) + 0.05))
    return {"counts": counts.tolist(), "log10_edges": edges.tolist()}


def _tying(s: Subject, wins: CanWin) -> Iterator[Finding]:
    from gonio.ask.ties import can_tie

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
    open_ = sum(a == "undecided" for a in ties.answers)
    no = [pairs[k] for k, a in enumerate(ties.answers) if a == "no"]
    if not no and not open_:  # true of nearly every head: nothing to say
        return
    yield Finding(
        "ties",
        "possible",
        f"{yes:,} of {len(pairs):,} pairs of nearest labels by cosine can share the top"
        + (f"; undecided: {open_:,}" if open_ else ""),
        "fact",
        yes,
        "Where two cannot, a third is never below them at the inputs at which the two are equal.",
        theorem="NG26.edge",
        verify=f"gonio can-tie {h.typed} {typed_label(h, pairs[0][0])} {typed_label(h, pairs[0][1])}",
        data={"cannot": [[h.labels[a], h.labels[b]] for a, b in no[:20]], "asked": len(pairs), "undecided": open_},
    )


def _on_and_off(s: Subject) -> Iterator[Finding]:
    from gonio.ask.switching_on import can_be_on

    h = s.head
    found = s.kept["on"] = can_be_on(h)
    over = f"over {h.inputs}"
    for key, which, word in (("never-on", found.never_on, "on"), ("never-off", found.never_off, "off")):
        names = [h.labels[i] for i in which[:NAMES]]
        side = "above" if word == "on" else "below"
        yield Finding(
            key,
            "possible",
            f"{len(which):,} of {h.shape[0]:,} labels can never be {word}"
            if len(which)
            else f"Every label can be {word}",
            "warning" if len(which) else "fine",
            len(which),
            f"Their logits are {side} 0 at no input, {over}: the {'largest' if word == 'on' else 'smallest'} value "
            "that each can have is known in closed form."
            if len(which)
            else f"Each has an input, {over}, at which its logit is {side} 0.",
            threshold=1,
            verify=f"gonio audit {h.typed} --json -",
            data={"labels": names, "indices": which[:1000].tolist()},
        )


def _patterns(s: Subject) -> Iterator[Finding]:
    from gonio.listing.label_set_list import label_sets
    from gonio.listing.ranking_list import rankings

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
    if not exact and p.conceivable >= LARGEST:  # a bound that no one reads, as 10^108 of 10^108
        return
    free = h.inputs.shape == "space"
    near = p.near_degenerate if exact else None
    yield Finding(
        "patterns",
        "possible",
        f"{_large(count)} of {_large(p.conceivable)} {kind} are possible{'' if exact and free else ' at most'}"
        + (f": a share of {share:.2g}" if few and share > 1e-6 else ""),
        "fact",
        share,
        (
            "Counted exactly, each one proven"
            + (f", the numbers taken as they are stored; {near}, there are {near.count:,}" if near else "")
            if exact
            else "The closed form for general position; no head of this shape has more"
        )
        + ("." if free else f", over all inputs; {h.inputs} may allow fewer.")
        + (f" The rest can never be output, since {h.shape[1]} dimensions are too few." if few else ""),
        theorem="COV65.signs" if sets else "COV67.rankings",
        verify=f"gonio patterns {h.typed} --drop",
        data={"count": _large(count), "conceivable": _large(p.conceivable), "exact": exact, "notes": list(p.notes)},
    )


def _quotient(count: int, of: int) -> float:
    """count / of as a float, 0 where it is too small for one."""
    return 1.0 if count >= of else count / of if digits(of) - digits(count) < 300 else 0.0


def _large(x: int) -> str:
    return f"{x:,}" if x < 10**12 else f"about 10^{digits(x) - 1}"


def _sets(s: Subject) -> Iterator[Finding]:
    from gonio.ask.questions import can_labels

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
        else "Every label set of the data can be output."
        if not len(r.undecided)
        else f"{len(r.undecided):,} are undecided, the others can be output.",
        threshold=1,
        theorem="GRIV24.feasible",
        verify=f"gonio can-label {s.head.typed} --sets FILE --proof proof.npz",
        data={"sets": [[s.head.labels[i] for i in x] for x in bad[:20]], "undecided": len(r.undecided)},
    )
