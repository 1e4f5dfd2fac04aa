"""Factor models as plain text for the terminal."""

from __future__ import annotations

import textwrap

import numpy as np

from gonio.factors.audit import FactorAudit
from gonio.factors.experiments import Experiment
from gonio.factors.figure1 import Figure1
from gonio.factors.movielens import GenreAgreement
from gonio.factors.similar import SimilarItems
from gonio.factors.survey import RescalingSurvey
from gonio.report.text import WIDTH, printable, some

TINY = 1e-3  # below it a number is told by its power of ten
SHARES = ("lists", "recommended", "projected_lists")


def experiment(e: Experiment) -> str:
    """What an experiment's command prints: a table a group, and what it says."""
    name = max(len(r.name) for r in e.rows)
    lines = [e.question, f"  on {e.on}"]
    for title, rows in e.groups:
        headings = "".join(f"{heading:>16}" for _, heading in e.columns)
        lines += ["", f"  {title:<{name}}{headings}" if len(title) <= name else f"  {title}"]
        if len(title) > name:
            lines.append(f"  {'':<{name}}{headings}")
        for r in rows:
            lines.append(f"  {r.name:<{name}}" + "".join(f"{_cell(a, getattr(r, a)):>16}" for a, _ in e.columns))
    return "\n".join([*lines, "", *_says(e.says)])


def _cell(attribute: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    if attribute in SHARES:
        return f"{value:.1%}"
    if value == 0:
        return "0"
    return f"{value:.1g}" if abs(value) < TINY else f"{value:.4g}" if abs(value) >= 10 else f"{value:.3f}"


def _says(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent="  so         ", subsequent_indent=" " * 13)


def figure1(f: Figure1) -> str:
    """What `gonio factors figure1` prints."""
    from gonio.factors.figure1 import EXPECTED

    n, p = f.data.X.shape
    wide = max(22, *(len(r.name) + 1 for r in f.rows))
    paper = (n, p, f.rank, f.lam_product, f.lam_factors) == (20_000, 1_000, 50, 10_000.0, 100.0)
    lines = [
        f"{n:,} users x {p:,} items in {len(np.unique(f.data.cluster))} clusters, {f.data.X.nnz:,} interactions, "
        f"seed {f.data.seed}",
        f"  penalty on the product, lam {f.lam_product:g}; on each factor, lam {f.lam_factors:g} "
        f"({f.survive} of {f.rank} dimensions survive); w = 1/(1 + lam/s^2)",
        "",
        f"  {'cosines of':<{wide}}{'same cluster':>14}{'different':>14}{'AUC':>10}{'   AUC expected' if paper else ''}",
    ]
    for r in f.rows:
        expected = f"{EXPECTED[r.name][2]:>15.3f}" if paper and r.name in EXPECTED else ""
        lines.append(f"  {r.name:<{wide}}{r.same:>14.3f}{r.different:>14.3f}{r.auc:>10.3f}{expected}")
    rows = {r.name: r.auc for r in f.rows}
    says = (
        f"the first four are answers of one and the same training, and tell the clusters apart with an area under ROC "
        f"from {min(rows[k] for k in list(rows)[:4]):.3f} to {max(rows[k] for k in list(rows)[:4]):.3f}"
    )
    return "\n".join([*lines, "", *_says(says)])


def genres(g: GenreAgreement) -> str:
    """What `gonio factors movielens` prints."""
    wide = max(22, *(len(r.name) + 1 for r in g.rows))
    lines = [
        f"{g.films:,} films, {g.k} neighbours each: how many share a genre?",
        f"  rank {g.rank}, lam {g.lam_product:g} on the product, {g.lam_factors:g} on each factor "
        f"({g.survive} of {g.rank} dimensions survive)",
        "",
        f"  {'cosines of':<{wide}}{'share a genre':>18}{'genre overlap':>16}{'their ratings':>16}",
    ]
    for r in (*g.rows, g.chance):
        error = f" ± {100 * r.error:.1f}" if r.error else "      "
        lines.append(f"  {r.name:<{wide}}{f'{100 * r.share:.1f} %' + error:>18}{r.jaccard:>16.3f}{r.popularity:>16.0f}")
    best, worst = (pick(g.rows, key=lambda r: r.share) for pick in (max, min))
    says = f"{best.name} finds most films of the same genre ({best.share:.1%}), {worst.name} fewest ({worst.share:.1%})"
    return "\n".join([*lines, "", *_says(says)])


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
        found = ", ".join(f"{printable(name(int(j)))} {c:.3f}" for j, c in zip(near, cosines, strict=True))
        lines.append(f"  {printable(name(int(i)))}: {found}")
    return "\n".join(lines)
