"""The doctor for tables of embeddings: check."""

from __future__ import annotations

import click

from gonio.cli.model import frequencies_of, frequencies_option
from gonio.cli.output import explain_option, json_option, junit_option, save_junit, tell
from gonio.cli.paths import Reads, Writes, command
from gonio.cli.workers import at_work, workers_options
from gonio.core.progress import Bar
from gonio.report.text import printable


@command()
@click.argument("corpus", type=Reads())
@click.option("--queries", metavar="FILE", type=Reads(), help="Embeddings of queries, of the same model.")
@click.option("--was", metavar="FILE", type=Reads(), help="The same documents under the old model: what changed?")
@click.option("--was-queries", metavar="FILE", type=Reads(), help="The same queries under the old model.")
@click.option("--judged", metavar="FILE", type=Reads(), help="Judged pairs: lines of query, document and judgement.")
@click.option(
    "--qrels", metavar="FILE", type=Reads(), help="Graded judgements: lines of query, document and grade, or of TREC."
)
@click.option(
    "--relevant", metavar="GRADE", type=float, help="Judgement from which a judged pair is a match (default: above 0)."
)
@click.option(
    "--precision", metavar="P", type=float, default=0.9, show_default=True, help="Wanted precision of the threshold."
)
@click.option(
    "--gains",
    type=click.Choice(["linear", "exponential"]),
    default="linear",
    show_default=True,
    help="Of nDCG: grade, or 2^grade - 1.",
)
@click.option("--cheaper", is_flag=True, help="Also: what truncated, int8 and binary copies would cost.")
@frequencies_option
@click.option("--column", metavar="NAME", help="The column, field or entry that holds the embeddings.")
@click.option("--id", metavar="NAME", help="The column or field that names the rows.")
@click.option(
    "--metric",
    type=click.Choice(["cosine", "dot", "l2"]),
    default="cosine",
    show_default=True,
    help="How documents are ordered.",
)
@click.option(
    "--threshold", metavar="T", type=float, help="A score in use (for l2 a distance): what does it let through?"
)
@click.option(
    "--false-alarms",
    metavar="RATE",
    type=float,
    default=0.01,
    show_default=True,
    help="The share of random pairs that a threshold may let through.",
)
@click.option("--sample", metavar="M", type=int, help="At most M queries (or rows) ask; findings are then estimates.")
@click.option("--top", metavar="K", type=int, default=10, show_default=True, help="The length of lists.")
@click.option("--html", metavar="FILE", type=Writes(), help="Write the report as one page.")
@workers_options
@explain_option
@json_option
@junit_option
@click.option(
    "--fail-on",
    metavar="KEYS",
    help="End with code 1 if one of these findings is a warning: hubs,threshold,... or any.",
)
def check(corpus, queries, top, html, cluster, state, explain, json_to, junit, fail_on, frequencies, **options) -> None:
    """Check a table of embeddings: wrong rows, what a score means, hubs, and, given judgements, what helps.

    CORPUS is a .npy, .npz, .parquet, .arrow, .csv, .jsonl or .safetensors file, word vectors, a faiss index, or a
    folder or glob of parquet files.
    """
    from gonio.findings import check as ask
    from gonio.report import checked as report

    keys = [] if fail_on is None else [x.strip() for x in fail_on.split(",") if x.strip()]
    options["frequencies"] = frequencies_of(frequencies, "check")
    with at_work(cluster, state, corpus), Bar("check") as bar:
        result = ask(corpus, queries, k=top, fail_on=keys, on_block=bar, **options)
    if html is not None:
        result.to_html(html)
    quiet = tell(lambda: report.check(result, explain=explain, page=html or ""), result.to_dict, json_to)
    if quiet and html is not None:
        click.echo(f"  written    {html}", err=True)
    save_junit(result, junit, keys, quiet=quiet)
    failing = result.failing(keys)
    for f in failing:
        click.echo(f"gonio: {f.key}: {printable(f.title)}", err=True)
    if failing:
        raise SystemExit(1)
