"""The audit and the router: audit, alike."""

from __future__ import annotations

import json

import click

from gonio.cli.factor_models import counts_of, plainly, save_factors, told_training
from gonio.cli.model import (
    LABELS,
    array_of,
    frequencies_of,
    head_of,
    label_of,
    model_and,
    pairs_of,
    reading_options,
    text_of,
)
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar
from gonio.findings.finding import Finding
from gonio.report.text import printable


@click.command()
@reading_options
@click.option("--embeddings", metavar="FILE", help="States that reach the head, one a row (.npy).")
@click.option(
    "--frequencies", metavar="FILE", help="How often each label occurs: one number a line, or label TAB number."
)
@click.option("--pairs", metavar="FILE", help="Pairs of labels you care about, one a line, separated by a tab.")
@click.option("--sets", metavar="FILE", help="Label sets of your data, one a line, labels separated by tabs (sigmoid).")
@click.option("--html", metavar="FILE", help="Write the report as one page.")
@click.option("--json", "json_", metavar="FILE", help="Write the findings as JSON ('-' prints them).")
@click.option(
    "--fail-on", metavar="KEYS", help="End with code 1 if one of these findings is a warning: never-wins,... or any."
)
@click.option("--trained", type=click.Choice(["product", "factors"]), help="Factor model: what the penalty was on.")
@click.option("--popularity", metavar="FILE", help="Factor model: how often each item was touched (.npy).")
@click.option("--top", type=int, default=10, show_default=True, help="The length of lists.")
@click.option("--out", metavar="FILE", help="Factor model: save one row an item (.csv, .json or .parquet).")
def audit(
    model, link, tensor, labels, inputs, users, items, html, json_, fail_on, trained, popularity, top, out, **given
) -> None:
    """Ask everything gonio knows about MODEL: what a cosine can tell, what is possible, what to use instead."""
    from gonio.report import audit as text

    printed = json_ == "-"
    keys = [] if fail_on is None else [x.strip() for x in fail_on.split(",") if x.strip()]
    head = head_of(model, link, tensor, labels, inputs, users, items)
    if users is None and (popularity is not None or out is not None or trained is not None):
        raise GonioError("audit: --popularity, --trained and --out are about factor models; give --users and --items.")
    if trained is not None:
        head = told_training(head, trained)
    given["popularity"] = None if popularity is None else counts_of(popularity)
    with plainly():
        result = _ask(head, top, keys, **given)
    if printed:
        click.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(text.audit(result))
    if html is not None:
        result.to_html(html)
        click.echo(f"  written    {html}", err=printed)
    if json_ not in (None, "-"):
        result.to_json(json_)
        click.echo(f"  written    {json_}")
    if out is not None:
        save_factors(head, given["popularity"], top, out, printed)
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
            embeddings=None if embeddings is None else array_of(embeddings),
            frequencies=frequencies_of(frequencies, "audit"),
            pairs=pairs_of(pairs, head, "audit"),
            label_sets=None if sets is None else _sets(head, text_of(sets)),
            k=top,
            popularity=popularity,
            fail_on=keys,
            on_question=bar,
        )


@click.command(epilog=LABELS)
@model_and("LABEL LABEL", 2, 2)
@click.option("--embeddings", metavar="FILE", help="States that reach the head, one a row (.npy).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def alike(head: Head, labels_, embeddings, as_json) -> None:
    """Say how alike two labels of MODEL are, as far as the model determines it."""
    from gonio.findings import alike as ask
    from gonio.report import audit as text

    a, b = (label_of(head, x) for x in labels_)
    result = ask(head, a, b, embeddings=None if embeddings is None else array_of(embeddings))
    click.echo(json.dumps(result.to_dict(), indent=2) if as_json else text.alike(result))


def _sets(head: Head, text: str):
    return [[label_of(head, x) for x in line.split("\t") if x] for line in text.splitlines() if line.strip()]
