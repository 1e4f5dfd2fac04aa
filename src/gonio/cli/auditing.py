"""The audit and the router: audit, alike."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from gonio.cli.factor_models import factor_rows, plainly, told_training
from gonio.cli.model import (
    LABELS,
    frequencies_of,
    frequencies_option,
    head_of,
    label_of,
    label_sets_of,
    model_and,
    numbers_of,
    pairs_of,
    reading_options,
)
from gonio.cli.output import csv_option, explain_option, json_option, junit_option, save_junit, tell
from gonio.cli.paths import Reads, Writes, command
from gonio.cli.text import embeddings_of, embeddings_options, typed_again
from gonio.cli.workers import at_work, workers_options
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar
from gonio.findings.finding import Finding
from gonio.report.text import printable


@command()
@reading_options
@embeddings_options
@frequencies_option
@click.option(
    "--pairs", metavar="FILE", type=Reads(), help="Pairs of labels you care about, one a line, separated by a tab."
)
@click.option(
    "--sets",
    metavar="FILE",
    type=Reads(),
    help="Label sets of your data, one a line, labels separated by tabs (sigmoid).",
)
@click.option("--html", metavar="FILE", type=Writes(), help="Write the report as one page.")
@click.option(
    "--embed-rows",
    is_flag=True,
    help="Let the page answer for any pair: it then carries the rows' directions, which are the model's weights.",
)
@explain_option
@json_option
@junit_option
@click.option(
    "--fail-on", metavar="KEYS", help="End with code 1 if one of these findings is a warning: never-wins,... or any."
)
@click.option("--trained", type=click.Choice(["product", "factors"]), help="Factor model: what the penalty was on.")
@click.option(
    "--popularity", metavar="FILE", type=Reads(), help="Factor model: how often each item was touched (.npy)."
)
@click.option("--top", metavar="K", type=int, default=10, show_default=True, help="The length of lists.")
@csv_option("an item of a factor model")
@workers_options
def audit(
    model, link, tensor, labels, inputs, users, items, embeddings, text, split, tokens, feed, html, embed_rows, explain,
    json_to, junit, fail_on, trained, popularity, top, csv_to, cluster, state, **given
) -> None:  # fmt: skip
    """Ask everything gonio knows about MODEL: what a cosine can tell, what is possible, what to use instead."""
    from gonio.report import audit as report

    keys = [] if fail_on is None else [x.strip() for x in fail_on.split(",") if x.strip()]
    head = head_of(model, link, tensor, labels, inputs, users, items)
    if users is None and (popularity is not None or csv_to is not None or trained is not None):
        raise GonioError("audit: --popularity, --trained and --csv are about factor models; give --users and --items.")
    if trained is not None:
        head = told_training(head, trained)
    head, given["embeddings"] = embeddings_of(head, "audit", embeddings, text, split, tokens, feed)
    given["popularity"] = None if popularity is None else numbers_of(popularity, "audit")
    with plainly(), at_work(cluster, state, head):
        result = _ask(head, top, keys, **given)
    states_typed = typed_again(embeddings, text, split, tokens, feed)
    result = replace(result, states_typed=states_typed) if states_typed else result
    rows = partial(factor_rows, head, given["popularity"], top)
    if html is not None:
        result.to_html(html, embed_rows=embed_rows)
    text = partial(report.audit, result, explain=explain, page=html or "")
    quiet = tell(text, result.to_dict, json_to, rows, csv_to)
    if quiet and html is not None:
        click.echo(f"  written    {html}", err=True)
    save_junit(result, junit, keys, quiet=quiet)
    if keys:
        failing: tuple[Finding, ...] = result.failing(keys)
        for f in failing:
            click.echo(f"gonio: {f.key}: {printable(f.title)}", err=True)
        if failing:
            raise SystemExit(1)
    if result.unfinished:
        click.echo("gonio: audit: stopped before everything was answered.", err=True)
        raise SystemExit(130)


def _ask(head: Head, top: int, keys: list[str], embeddings, frequencies, pairs, sets, popularity):
    from gonio.findings import audit as ask

    with Bar("audit") as bar:
        return ask(
            head,
            embeddings=embeddings,
            frequencies=frequencies_of(frequencies, "audit"),
            pairs=pairs_of(pairs, head, "audit"),
            label_sets=None if sets is None else label_sets_of(sets, head, "audit"),
            k=top,
            popularity=popularity,
            fail_on=keys,
            on_question=bar,
        )


@command(epilog=LABELS)
@model_and("LABEL LABEL", 2, 2)
@embeddings_options
@json_option
def alike(head: Head, labels_, json_to, **given) -> None:
    """Say how alike two labels of MODEL are, as far as the model determines it."""
    from gonio.findings import alike as ask
    from gonio.report import audit as text

    head, embeddings = embeddings_of(head, "alike", **given)
    a, b = (label_of(head, x) for x in labels_)
    result = ask(head, a, b, embeddings=embeddings)
    tell(lambda: text.alike(result), result.to_dict, json_to)
