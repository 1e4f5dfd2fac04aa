"""The papers' experiments with factor models as plain text for the terminal."""

from __future__ import annotations

import textwrap

import numpy as np

from gonio.papers.factor_experiments import Experiment
from gonio.papers.movielens import GenreAgreement
from gonio.papers.movielens_retrieval import HeldOut
from gonio.papers.steck_figure1 import EXPECTED, Figure1
from gonio.report.text import WIDTH, printable
from gonio.similarity.bootstrap import Interval

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


def held_out(h: HeldOut) -> str:
    """What `gonio factors movielens --leave-last-out` prints."""
    lines = [
        f"{h.users:,} users, the last film of each held out of {h.films:,}: who finds it?",
        f"  rank {h.rank}, lam {h.lam_product:g} on the product, {h.lam_factors:g} on each factor; 95 % intervals over "
        f"users",
    ]
    tables = [(f"{t.vectors}; {t.asks} ask", t.rows) for t in h.tables]
    for title, rows in (*tables, ("cosines of each answer; films ask", h.answers)):
        lines += ["", f"  {title}", f"    {'':<26}{'nDCG@10':>24}{'recall@10':>24}{f'beside {rows[0].name}':>28}"]
        for r in rows:
            beside = "" if r.difference is None else f"{_span(r.difference, '+')}  {r.verdict}"
            lines.append(f"    {r.name:<26}{_span(r.ndcg):>24}{_span(r.recall):>24}    {beside}")
    says = "better and worse are corrected (Holm) for all ways of one table; the rest is not shown to differ"
    return "\n".join([*lines, "", *_says(says)])


def _span(x: Interval, sign: str = "") -> str:
    return f"{x.value:{sign}.3f} ({x.low:{sign}.3f} to {x.high:{sign}.3f})"
