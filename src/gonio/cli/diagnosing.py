"""What is wrong with the space: diagnose."""

from __future__ import annotations

import click

from gonio.cli.model import frequencies_of, frequencies_option, model_options, text_of
from gonio.cli.output import json_option, tell
from gonio.cli.paths import Reads, WritesInto, command
from gonio.cli.text import embeddings_of, embeddings_options
from gonio.cli.workers import at_work, workers_options
from gonio.core.atomic_write import make_folder, whole
from gonio.core.head import Head


@command()
@model_options
@embeddings_options
@frequencies_option
@click.option("--unused", metavar="FILE", type=Reads(), help="Labels known never to occur, one a line.")
@click.option("--top", metavar="K", type=int, help="Neighbours of each label (default: 10, or all there are).")
@click.option(
    "--orbit/--no-orbit", default=True, show_default=True, help="Follow neighbour lists along the gauge and remedies."
)
@click.option("--plots", metavar="DIR", type=WritesInto(), help="Write a picture of each diagnosis here (.png).")
@workers_options
@json_option
def diagnose(head: Head, frequencies, unused, top, orbit, plots, cluster, state, json_to, **given) -> None:
    """Say what is odd about the space of MODEL: hubs, anisotropy, lengths, frequency, untrained rows."""
    from gonio.diagnostics.examine import examine
    from gonio.report import diagnostics as text

    head, embeddings = embeddings_of(head, "diagnose", **given)
    with at_work(cluster, state, head):
        found = examine(
            head,
            embeddings=embeddings,
            frequencies=frequencies_of(frequencies, "diagnose"),
            unused=None if unused is None else [x for x in text_of(unused).splitlines() if x],
            k=top,
            orbit=orbit,
        )
    quiet = tell(lambda: text.diagnoses(found), lambda: {name: r.to_dict() for name, r in found.items()}, json_to)
    if plots is not None:
        for path in _draw(found, plots):
            click.echo(f"  written    {path}", err=quiet)


def _draw(found, folder: str):
    at = make_folder(folder, "diagnose")
    for name, r in found.items():
        path = at / f"{name.replace(' ', '-')}.png"
        with whole(path, "diagnose") as temporary:
            r.plot().figure.savefig(temporary, dpi=110)
        yield path
