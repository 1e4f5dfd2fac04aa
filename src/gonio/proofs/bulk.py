"""Thousands of certificates at once: all wins and ties in one product of their embeddings with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gonio.core.head import Head
from gonio.core.parallel import in_threads
from gonio.proofs.bounded_means import have_sides, most_above_means
from gonio.proofs.certificates import Certificate, CertificateError, NeverWins, Ties, Wins
from gonio.proofs.margins import POINTS, Places, least_margins
from gonio.proofs.never_below import NEAR
from gonio.proofs.observed_inputs import most_of_all
from gonio.proofs.shared_support import never_above_means

if TYPE_CHECKING:
    from jaxtyping import Float


FEW = 4  # so many labels are not worth a look at all of them


@dataclass(frozen=True, eq=False)
class Verified:
    """One entry a certificate: the margin or bound it proves, NaN where it was refused; and why, by its place."""

    bounds: Float[np.ndarray, " certificates"]
    refused: dict[int, str]

    def __repr__(self) -> str:
        good = len(self.bounds) - len(self.refused)
        first = next(iter(self.refused.values()), "none refused")
        return f"Verified({good:,} of {len(self.bounds):,} certificates)\n  {first}"


def verify_all(head: Head, certificates: Sequence[Certificate]) -> Verified:
    """What each certificate proves about the head, as its `verify` would tell; nothing is raised.

    Wins and ties are screened together in float32 with a bound on the rounding: the cost is one product of all their
    embeddings with all rows. The margins given for them are proven, and may be smaller than `verify` proves alone.
    """
    bounds = np.full(len(certificates), np.nan)
    refused: dict[int, str] = {}
    several = [k for k, c in enumerate(certificates) if isinstance(c, (Wins, Ties))]
    others = [k for k, c in enumerate(certificates) if not isinstance(c, (Wins, Ties))]

    def one(k: int) -> None:
        try:
            bounds[k] = certificates[k].verify(head)
        except CertificateError as e:
            refused[k] = str(e)

    head.digest  # noqa: B018  computed once, before threads ask for it
    others, again = _without_repeats(head, certificates, others)
    others = _without_seen_below(head, certificates, others, bounds)
    others = _without_bounded_means(head, certificates, others, bounds)
    others = _without_means(head, certificates, others, bounds)
    in_threads(one, others)  # many small matrices: a thread each
    for k, first in again.items():
        bounds[k] = bounds[first]
    in_threads(one, [k for k, first in again.items() if first in refused])  # each refused in its own words
    for start in range(0, len(several), POINTS):
        _wins_and_ties(head, certificates, several[start : start + POINTS], bounds, refused)
    bounds.flags.writeable = False
    return Verified(bounds, dict(sorted(refused.items())))


def _without_repeats(
    head: Head, certificates: Sequence[Certificate], which: list[int]
) -> tuple[list[int], dict[int, int]]:
    """Labels of equal scores with the same rivals and weights need one look: those left, and for the others the first.

    What such a certificate proves is about the scores of its label, which are its equals' at every input. So thousands
    of padded rows cost no more than one.
    """
    seen: dict[tuple[int, bytes, str, bytes], int] = {}
    left, again = [], {}
    for k in which:
        c = certificates[k]
        if isinstance(c, NeverWins) and c.is_about(head, c.label):
            same = int(head.first_equals[c.label])
            first = seen.setdefault((same, c.rivals.tobytes(), c.weights.dtype.str, c.weights.tobytes()), k)
            if first != k:
                again[k] = first
                continue
        left.append(k)
    return left, again


def _without_seen_below(
    head: Head, certificates: Sequence[Certificate], which: list[int], bounds: np.ndarray
) -> list[int]:
    """Over observed embeddings: one look at all labels settles most of those that never win. The others are left."""
    whole = [k for k in which if isinstance(c := certificates[k], NeverWins) and c.names_no_rivals]
    if head.inputs.points is None or len(whole) < FEW:
        return which
    most = most_of_all(head)
    left = set(which)
    for k in whole:
        label = certificates[k].label  # type: ignore[attr-defined]
        if certificates[k].is_about(head, label) and most[label] <= 0:
            bounds[k] = most[label]
            left.discard(k)
    return [k for k in which if k in left]


def _without_bounded_means(
    head: Head, certificates: Sequence[Certificate], which: list[int], bounds: np.ndarray
) -> list[int]:
    """Over inputs with sides: labels clearly below the means of their rivals, together. The others are left."""
    some = [k for k in which if isinstance(c := certificates[k], NeverWins) and _is_mean(head, c)]
    if len(some) < FEW or not have_sides(head):
        return which
    several: list[Any] = [certificates[k] for k in some]
    most = most_above_means(
        head, np.array([c.label for c in several]), [c.rivals for c in several], [c.weights for c in several]
    )
    good = most <= 0
    bounds[np.array(some)[good]] = most[good]
    left = set(which) - set(np.array(some)[good].tolist())
    return [k for k in which if k in left]


def _is_mean(head: Head, c: NeverWins) -> bool:
    """Whether the certificate has the form of one about this head, with weights of sum 1 for its rivals."""
    w = c.weights
    if len(c.rivals) != len(w) or not len(w) or not c.is_about_rivals(head):
        return False
    return bool(np.isfinite(w).all() and (w >= 0).all() and abs(float(w.sum()) - 1) <= NEAR)


def _without_means(head: Head, certificates: Sequence[Certificate], which: list[int], bounds: np.ndarray) -> list[int]:
    """Labels that are means of the same rivals are proven together, with one inverse. The others are left."""
    shared: dict[bytes, list[int]] = {}
    for k in which:
        c = certificates[k]
        if isinstance(c, NeverWins) and len(c.rivals) == len(c.weights) > head.shape[1] + 1:
            shared.setdefault(c.rivals.tobytes(), []).append(k)
    left = set(which)
    for group in shared.values():
        group = [k for k in group if certificates[k].is_about_rivals(head)]  # type: ignore[attr-defined]
        if len(group) < FEW or head.inputs.points is not None:
            continue
        several: list[Any] = [certificates[k] for k in group]
        weights = np.stack([c.weights for c in several])
        good = never_above_means(head, np.array([c.label for c in several]), several[0].rivals, weights)
        for k in np.array(group)[good].tolist():
            bounds[k] = 0.0
            left.discard(k)
    return [k for k in which if k in left]


def _wins_and_ties(
    head: Head, certificates: Sequence[Certificate], which: list[int], bounds: np.ndarray, refused: dict[int, str]
) -> None:
    xs: list[np.ndarray] = []
    labels: list[int] = []
    but: list[Any] = []
    spots: list[tuple[int, int]] = []  # (certificate, its first embedding)
    for k in which:
        c = certificates[k]
        try:
            if isinstance(c, Ties):
                c._check(head, c.a, c.b)
            else:
                c._check_label(head)  # type: ignore[attr-defined]
            for x in (c.x, c.y) if isinstance(c, Ties) else (c.x,):  # type: ignore[attr-defined]
                if x.shape != (head.shape[1],):
                    raise c._refuse(f"x has shape {x.shape}; the head has width {head.shape[1]}.")
        except CertificateError as e:
            refused[k] = str(e)
            continue
        spots.append((k, len(xs)))
        if isinstance(c, Ties):
            xs += [c.x, c.y]
            labels += [c.b, c.a]
            but += [(c.a,), (c.b,)]
        else:
            assert isinstance(c, Wins)
            xs.append(c.x)
            labels.append(c.label)
            but.append(c.equals)
    if not spots:
        return
    places = Places(head.inputs, np.stack(xs).astype(np.float64))
    outside = places.outside()
    margins = np.full(len(xs), np.nan)
    inside = np.delete(np.arange(len(xs)), list(outside))
    if len(inside):
        there = Places(head.inputs, places.x[inside])
        margins[inside] = least_margins(head, np.array(labels)[inside], there, [but[i] for i in inside])
    for k, at in spots:
        c = certificates[k]
        try:
            if isinstance(c, Ties):
                two = Places(head.inputs, places.x[at : at + 2])
                why = outside.get(at) or outside.get(at + 1)
                bounds[k] = c._judge(head, two, margins[at : at + 2]) if why is None else np.nan
            else:
                why = outside.get(at)
                # One alone is looked at with more care, and names who beats it.
                bounds[k] = margins[at] if why or margins[at] > 0 else c.verify(head)
            if why is not None:
                raise c._refuse(f"x is not among the inputs of the head: {why}.")
        except CertificateError as e:
            bounds[k] = np.nan
            refused[k] = str(e)


def compact(head: Head, certificates: Sequence[Certificate]) -> list[Certificate]:
    """The same certificates, with the embeddings of wins rounded to float32 wherever the rounded ones still win."""
    out = list(certificates)
    wide = [k for k, c in enumerate(out) if isinstance(c, Wins) and c.x.dtype != np.float32]
    with np.errstate(all="ignore"):
        narrow = [replace(out[k], x=out[k].x.astype(np.float32)) for k in wide]  # type: ignore[attr-defined]
    seen = verify_all(head, narrow)
    for place, (k, c) in enumerate(zip(wide, narrow, strict=True)):
        if place not in seen.refused:
            out[k] = c
    return out
