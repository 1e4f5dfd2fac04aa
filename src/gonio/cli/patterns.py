"""Label sets and rankings: can-label, can-rank, can-top, patterns."""

from __future__ import annotations

import json

import click

from gonio.cli.model import LABELS, PROOF, label_of, model_and, model_options, save_proofs, text_of
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar


@click.command("can-label", epilog=LABELS)
@model_options
@click.option("--on", "on", metavar="LABEL", multiple=True, help="A label that is to be on; may be given often.")
@click.option("--off", "off", metavar="LABEL", multiple=True, help="A label that is to be off; may be given often.")
@click.option("--rest-off", is_flag=True, help="Every label that is not named with --on is to be off.")
@click.option("--sets", metavar="FILE", help="Whole label sets, one a line: the labels that are on, separated by tabs.")
@click.option("--out", metavar="FILE", help="With --sets, save one row a set: .csv, .json or .parquet.")
@click.option("--proof", metavar="FILE", help=PROOF)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def can_label(head: Head, on, off, rest_off, sets, out, proof, as_json) -> None:
    """Say whether labels of MODEL can be on while others are off; or which label sets of a data set are impossible."""
    from gonio.ask.questions import can_label as ask
    from gonio.ask.questions import can_labels
    from gonio.report import patterns as text
    from gonio.report.table import save

    if sets is None:
        if out is not None:
            raise GonioError("can-label: --out saves the rows of --sets; for one question use --proof.")
        rest = "rest" if rest_off else [label_of(head, x) for x in off]
        verdict = ask(head, on=[label_of(head, x) for x in on], off=rest)
        click.echo(json.dumps(verdict.to_dict(), indent=2) if as_json else text.verdict(verdict))
        _proofs(head, proof, [verdict.certificate])
        return
    if on or off or rest_off:
        raise GonioError("can-label: give --sets, or --on and --off; not both.")
    lines = [[label_of(head, x) for x in line.split("\t") if x] for line in text_of(sets).splitlines() if line.strip()]
    with Bar("can-label") as bar:
        result = can_labels(head, lines, on_progress=bar)
    click.echo(json.dumps(result.columns(), indent=2) if as_json else text.can_label(result))
    if out is not None:
        click.echo(f"  saved      {save(result.columns(), out)}")
    _proofs(head, proof, list(dict(zip(result.sets, result.certificates, strict=True)).values()))


@click.command("can-rank", epilog=LABELS)
@model_and("LABEL LABEL...", 1)
@click.option("--top", is_flag=True, help="They are to be above all other labels too: the top k in this order.")
@click.option("--proof", metavar="FILE", help=PROOF)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def can_rank(head: Head, names, top, proof, as_json) -> None:
    """Say whether MODEL can score the labels in this order, highest first; A>B pairs give a partial order."""
    from gonio.ask.questions import can_rank as ask
    from gonio.report import patterns as text

    order: list = [label_of(head, x) for x in names]
    if all(">" in x and x not in head.labels for x in names):
        order = [tuple(label_of(head, part) for part in x.split(">")) for x in names]
        bad = next((x for x, pair in zip(names, order, strict=True) if len(pair) != 2), None)
        if bad is not None:
            raise GonioError(f"can-rank: {bad!r} is not one label > another; write each pair apart.")
    verdict = ask(head, order, top=top)
    click.echo(json.dumps(verdict.to_dict(), indent=2) if as_json else text.verdict(verdict))
    _proofs(head, proof, [verdict.certificate])


@click.command("can-top", epilog=LABELS)
@model_and("LABEL...", 1)
@click.option("--proof", metavar="FILE", help=PROOF)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def can_top(head: Head, names, proof, as_json) -> None:
    """Say whether these labels of MODEL can be the top k, in whatever order."""
    from gonio.ask.questions import can_top as ask
    from gonio.report import patterns as text

    verdict = ask(head, [label_of(head, x) for x in names])
    click.echo(json.dumps(verdict.to_dict(), indent=2) if as_json else text.verdict(verdict))
    _proofs(head, proof, [verdict.certificate])


@click.command()
@model_options
@click.option("--list", "listed", metavar="K", type=int, default=0, help="Show the first K of them.")
@click.option(
    "--tol", type=float, help="Take values up to this size for zero (rows have length 1), instead of exactly."
)
@click.option("--decimals", is_flag=True, help="Read each number as the short decimal it prints as, exactly.")
@click.option("--drop", is_flag=True, help="Leave out labels that have no pattern: zero rows, second twins.")
@click.option(
    "--out", metavar="FILE", help="Save all of them as an array (.npy): signs, or label indices winner first."
)
@click.option("--any-size", is_flag=True, help="Go through however many there are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def patterns(head: Head, listed, tol, decimals, drop, out, any_size, as_json) -> None:
    """Count, exactly, the label sets (link sigmoid) or rankings (other links) that MODEL can output."""
    from gonio.listing.label_set_list import label_sets
    from gonio.listing.pattern import LIMIT
    from gonio.listing.ranking_list import rankings
    from gonio.report import patterns as text

    limit = None if any_size else LIMIT
    if head.link == "sigmoid":
        found = label_sets(head, tol=tol, decimals=decimals, drop_zero=drop, limit=limit)
    else:
        found = rankings(head, tol=tol, decimals=decimals, drop_twins=drop, limit=limit)
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else text.patterns(found, listed=listed))
    if out is not None:
        import numpy as np

        with Bar("patterns") as bar:
            np.save(out, found.to_array(on_progress=bar))
        click.echo(f"  saved      {out}")


def _proofs(head: Head, path: str | None, certificates: list) -> None:
    if path is None:
        return
    kept = [c for c in certificates if c.kind != "open"]
    save_proofs(head, path, kept, f"; check them with gonio verify {head.typed} {path}")
