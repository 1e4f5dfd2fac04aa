"""Rows that are wrong: not finite, empty, constant, copies, near-copies, lengths of two pipelines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gonio.embeddings.row_survey import unit
from gonio.embeddings.sampling_intervals import share_interval
from gonio.embeddings.two_parts import two_parts
from gonio.findings.finding import Finding, counted
from gonio.findings.table_subject import TableSubject, found

NEAR_COPY = 0.999  # cosine from which two rows are called nearly equal
UNIT = 1e-3  # a length this near to 1 is 1, in float16 too


def rows(s: TableSubject) -> Iterator[Finding]:
    """Every row, looked at once."""
    n = len(s.corpus)
    yield from _wrong(s, n)
    yield from _copies(s, n)
    if s.several:
        yield from _near_copies(s)
    yield from _two_pipelines(s, n)
    yield from _two_groups(s)


def _wrong(s: TableSubject, n: int) -> Iterator[Finding]:
    kinds = (
        (
            "not-finite",
            s.survey.not_finite,
            "not finite",
            "a NaN or an infinity in a row leaves it no similarity at all",
        ),
        ("empty-rows", s.survey.empty, "empty", "a row of zeros has no cosine, and no query finds it by one"),
        (
            "constant-rows",
            np.flatnonzero(s.survey.constant),
            "constant",
            "one number in every dimension is what a placeholder looks like",
        ),
    )
    bad = {key: where for key, where, _, _ in kinds if len(where)}
    for key, where, word, says in kinds:
        if len(where):
            do = f'X = np.delete(X, found["{key}"].data["rows"], axis=0)'
            title = f"{counted(len(where), 'row')} of {n:,} {'is' if len(where) == 1 else 'are'} {word}"
            names = ", ".join(s.named(where[:5]))
            yield found(
                key,
                "rows",
                title,
                "warning",
                len(where),
                f"{'Row' if len(where) == 1 else 'Rows'} {names}{' and more' if len(where) > 5 else ''}: {says}.",
                do,
                rows=where.tolist(),
                ids=s.named(where),
            )
    if not bad:
        says = "All rows are finite, none is empty, none holds one number only."
        title = "the one row holds numbers" if n == 1 else f"all {n:,} rows hold numbers"
        yield found("rows", "rows", title, "fine", 0, says, s.again())


def _copies(s: TableSubject, n: int) -> Iterator[Finding]:
    copies = s.survey.copies
    spare, groups = len(copies.spare), copies.largest
    if not spare:
        says = "Every row was compared with every other by two 64-bit hashes of its float32 numbers."
        title = "no two rows are equal" if s.survey.live == n else "no two rows are equal of those with a direction"
        yield found("duplicates", "rows", title, "fine", 0, says, s.again())
        return
    most = groups[0]
    if len(most) == n:
        title = f"all {n:,} rows are equal"
    else:
        title = f"{counted(spare, 'row')} of {n:,} {'is a copy' if spare == 1 else 'are copies'} of another"
    yield found(
        "duplicates",
        "rows",
        title,
        "warning",
        spare,
        f"{counted(copies.groups, 'group')} of equal rows, the largest of {len(most):,} ({', '.join(s.named(most[:3]))}"
        f"{', ...' if len(most) > 3 else ''}). Copies fill the lists of queries with one document.",
        'X = np.delete(X, found["duplicates"].data["spare"], axis=0)',
        spare=copies.spare.tolist(),
        groups=[s.named(g) for g in groups],
    )


def _near_copies(s: TableSubject) -> Iterator[Finding]:
    which, lists = s.row_lists
    near = lists.scores[:, 0] >= NEAR_COPY
    whole = len(which) == s.survey.live
    share = share_interval(int(near.sum()), len(which))
    pairs = [s.named((which[r], lists.near[r, 0])) for r in np.flatnonzero(near)[:20]]
    said = f"{share.value:.1%}" if whole else f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}, estimated)"
    title = f"{said} of the rows have another at a cosine of {NEAR_COPY} or more"
    looked = f"{'All' if whole else 'Random'} {len(which):,} rows that have a direction were compared with all others."
    yield found(
        "near-duplicates",
        "rows",
        title,
        "fact",
        share.value,
        looked + " Copies that are equal are among them.",
        'found["near-duplicates"].data["pairs"]',
        pairs=pairs,
        interval=share.to_dict(),
    )


def _two_pipelines(s: TableSubject, n: int) -> Iterator[Finding]:
    norms = s.survey.norms[s.survey.norms > 0]
    units = float((np.abs(norms - 1) < UNIT).mean())
    parts = two_parts(np.log(norms))
    mixed = 0.01 <= units <= 0.99 and len(norms) >= 20
    if mixed or (parts is not None and parts.found):
        if mixed:
            title = f"{units:.1%} of the rows have length 1 and the rest have not"
            cut = "np.abs(np.linalg.norm(X, axis=1) - 1) < 0.001"
        else:
            assert parts is not None
            title = f"the lengths fall into two parts, about {np.exp(parts.low):.3g} and {np.exp(parts.high):.3g}"
            cut = f"np.linalg.norm(X, axis=1) < {np.exp(parts.cut):.6g}"
        yield found(
            "mixed-lengths",
            "rows",
            title,
            "warning",
            units if mixed else (parts.share if parts else 0.0),
            "That is what two pipelines in one table look like, one of which normalises. By dot product or l2 the "
            "two parts "
            "compete on length; by cosine they do not.",
            f"part = {cut}",
            share_of_length_one=units,
        )
    else:
        says = "The lengths of the rows do not fall into two parts."
        yield found("mixed-lengths", "rows", "one kind of lengths", "fine", units, says, "np.linalg.norm(X, axis=1)")


def _two_groups(s: TableSubject) -> Iterator[Finding]:
    """Do the directions of the sampled rows fall into two parts along their first principal direction?"""
    U = unit(s.survey.rows).astype(np.float64)
    U -= U.mean(axis=0)
    if len(U) < 20:
        return
    some = U[:: max(1, len(U) // 1000)]
    along = U @ np.linalg.svd(some, full_matrices=False)[2][0]
    parts = two_parts(along)
    if parts is None or not parts.found:
        return
    yield found(
        "two-groups",
        "rows",
        f"the rows form two groups along one direction, the smaller with {parts.share:.1%} of them",
        "fact",
        parts.share,
        f"Seen in {len(U):,} rows; the groups are {f'{parts.apart:.1f}' if parts.apart < 1000 else 'over 1,000'} "
        f"spreads apart. Two models or prompts in one "
        f"table look like "
        f"this, and so do two languages or two topics.",
        "part = X @ np.linalg.svd(X[:2000] - X[:2000].mean(axis=0))[2][0]",
        apart=parts.apart,
    )
