"""What is wrong with the space: diagnose."""

from __future__ import annotations

import click

from gonio.cli.model import array_of, frequencies_of, model_options, text_of
from gonio.cli.output import json_option, tell
from gonio.core.errors import GonioError
from gonio.core.head import Head


@click.command()
@model_options
@click.option("--embeddings", metavar="FILE", help="States that reach the head, one a row (.npy).")
@click.option(
    "--frequencies", metavar="FILE", help="How often each label occurs: one number a line, or label TAB number."
)
@click.option("--unused", metavar="FILE", help="Labels known never to occur, one a line.")
@click.option("--top", metavar="K", type=int, help="Neighbours of each label (default: 10, or all there are).")
@click.option(
    "--orbit/--no-orbit", default=True, show_default=True, help="Follow neighbour lists along the gauge and remedies."
)
@click.option("--plots", metavar="DIR", help="Write a picture of each diagnosis here (.png).")
@json_option
def diagnose(head: Head, embeddings, frequencies, unused, top, orbit, plots, json_to) -> None:
    """Say what is odd about the space of MODEL: hubs, anisotropy, lengths, frequency, untrained rows."""
    from gonio.diagnostics.examine import examine
    from gonio.report import diagnostics as text

    found = examine(
        head,
        embeddings=None if embeddings is None else array_of(embeddings),
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
    from pathlib import Path

    at = Path(folder)
    try:
        at.mkdir(parents=True, exist_ok=True)
        for name, r in found.items():
            path = at / f"{name.replace(' ', '-')}.png"
            r.plot().figure.savefig(path, dpi=110)
            yield path
    except OSError as e:
        raise GonioError(f"diagnose: {folder} cannot be written ({e.strerror}).") from None
