"""The source papers: reproduce."""

from __future__ import annotations

import click

from gonio.cli.output import json_option, tell
from gonio.cli.paths import WritesInto, command
from gonio.cli.workers import at_work, workers_options
from gonio.core.progress import Bar


@command()
@click.argument("papers", nargs=-1)
@click.option(
    "--out",
    metavar="DIR",
    type=WritesInto(),
    help="Write the gallery here: a page a paper, its pictures, reproduction.json.",
)
@click.option(
    "--format", "formats", type=click.Choice(["png", "svg", "pdf"]), multiple=True, default=["png"], show_default=True
)
@click.option("--list", "listed", is_flag=True, help="Name the papers.")
@workers_options
@json_option
def reproduce(papers, out, formats, listed, cluster, state, json_to) -> None:
    """Draw every figure and print every table of the source PAPERS beside the papers' own numbers."""
    from gonio.papers import run

    if listed:
        click.echo("\n".join(run.PAPERS))
        return
    with at_work(cluster, state), Bar("reproduce") as bar:
        found = run.reproduce(list(papers), on_progress=bar)
    quiet = tell(lambda: run.text(found), lambda: {r.key: r.to_dict() for r in found}, json_to)
    if out is not None:
        click.echo(f"written {run.gallery(found, out, tuple(formats))}", err=quiet)
