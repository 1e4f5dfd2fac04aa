"""Factor models as plain text for the terminal."""

from __future__ import annotations

import numpy as np

from gonio.core.readable_label import readable
from gonio.factors.checkup import FactorAudit
from gonio.factors.rescaling_survey import RescalingSurvey
from gonio.factors.similar import SimilarItems
from gonio.report.text import printable, some


def survey(s: RescalingSurvey) -> str:
    """What rescaling does to a model's cosines and lists."""
    if not s.left_open:
        return "  rescaling  none is left open by the training: cosines and lists are fixed"
    v = s.survival
    of = f" (of {len(v.asked):,} items)"
    lines = [
        f"  signs      {_share(s.signs.either)} of {s.signs.pairs:,} pairs of items can have a cosine of either sign",
        *(
            f"  lists      {x.mean():.1%} of the {s.k} nearest stay when {_named(name)}{of}"
            for name, x in s.overlap.items()
        ),
        f"  surviving  {v.proven.mean():.1%} of neighbours stay under every rescaling, {v.refuted.mean():.1%} do not"
        + (f", {v.open.mean():.1%} undecided" if v.open.mean() >= 0.0005 else "")
        + f"; {v.whole_lists:,} whole lists",
    ]
    return "\n".join(lines)


def _share(x: float) -> str:
    return "all" if x == 1 else f"{x:.1%}" if round(x, 3) < 1 else "nearly all"


def _named(name: str) -> str:
    return {"items": "items are orthonormal", "balanced": "both are balanced", "users": "users are orthonormal"}[name]


def audit(a: FactorAudit) -> str:
    """What `gonio audit` prints of a factor model."""
    t, h = a.tables, a.head
    n, p = len(t.users), len(t.items)
    how = "assumed: nothing is told of the training" if t.assumed and t.trained == "product" else ""
    how = "assumed, from the library it is made by" if t.assumed and t.trained == "factors" else how
    what = "trained on the cosine" if t.link == "cosine" else f"penalty on the {t.trained}"
    lines = [
        printable(t.place),
        "",
        f"  model      {n:,} users x {p:,} items, {t.items.shape[1]} columns, scores of rank {a.rank}"
        + (", with item biases" if t.bias is not None else ""),
        f"  trained    {what}" + (f" ({how})" if how else ""),
        f"  defined    {a.defined}",
        survey(a.survey),
    ]
    if len(a.moved):
        lines.append(
            f"  projected  {a.moved.mean():.1%} of each item's {a.k} nearest by plain cosine stay when projected back"
        )
    beside = "popularity" if a.popularity_known else "the mean score (no popularity was given)"
    if not np.isnan(a.norm_popularity):
        lines.append(f"  norms      rank correlation {a.norm_popularity:+.2f} with {beside}")
    if a.wins is not None:
        lines.append(f"  first      {_items(a.never_first)} no user vector can put first{_names(h, a.never_first)}")
        if len(a.undecided):
            lines.append(f"  undecided  {_items(a.undecided)}, first or not{_names(h, a.undecided)}")
    reach = "reaches" if len(a.never_shown) == 1 else "reach"
    lines.append(f"  shown      {_items(a.never_shown)} {reach} no user's top {a.k}{_names(h, a.never_shown)}")
    if len(a.constant):
        lines.append(
            f"  bias       column {', '.join(map(str, a.constant))} of the users is constant: a bias of the items, "
            f"which enters their cosines"
        )
    return "\n".join(lines)


def _items(which: np.ndarray) -> str:
    return f"{len(which):,} item{'' if len(which) == 1 else 's'}"


def _names(head, which: np.ndarray) -> str:
    return f": {some([head.labels[i] for i in which], 3)}" if len(which) else ""


def similar(s: SimilarItems, most: int = 20) -> str:
    """The lists of similar items, one line an item."""
    name = (lambda i: str(i)) if s.labels is None else (lambda i: s.labels[i])  # type: ignore[index]
    lines = [repr(s).splitlines()[1].strip()]
    for i, near, cosines in list(zip(s.asked, s.near, s.cosines, strict=True))[:most]:
        found = ", ".join(f"{readable(name(int(j)))} {c:.3f}" for j, c in zip(near, cosines, strict=True))
        lines.append(f"  {readable(name(int(i)))}: {found}")
    return "\n".join(lines)
