"""What is wrong with the space: diagnose."""

from __future__ import annotations

import click

from gonio.cli.model import array_of, frequencies_of, model_options, text_of
from gonio.core.errors import GonioError
from gonio.core.head import Head


@click.command()
@model_options
@click.option("--embeddings", metavar="FILE", help="States that reach the head, one a row (.npy).")
@click.option(
    "--frequencies", metavar="FILE", help="How often each label occurs: one number a line, or label TAB number."
)
@click.option("--unused", metavar="FILE", help="Labels known never to occur, one a line.")
@click.option("-k", type=int, help="Neighbours of each label.  [default: 10, or all if there are fewer]")
@click.option(
    "--orbit/--no-orbit", default=True, show_default=True, help="Follow neighbour lists along the gauge and remedies."
)
@click.option("--plots", metavar="DIR", help="Write a picture of each diagnosis here (.png).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def diagnose(head: Head, embeddings, frequencies, unused, k, orbit, plots, as_json) -> None:
    """Say what is odd about the space of MODEL: hubs, anisotropy, lengths, frequency, untrained rows."""
    from gonio.diagnostics.examine import examine

    found = examine(
        head,
        embeddings=None if embeddings is None else array_of(embeddings),
        frequencies=frequencies_of(frequencies, "diagnose"),
        unused=None if unused is None else [x for x in text_of(unused).splitlines() if x],
        k=k,
        orbit=orbit,
    )
    if as_json:
        import json

        click.echo(json.dumps({name: r.to_dict() for name, r in found.items()}, indent=2, ensure_ascii=False))
    else:
        from gonio.report import diagnostics as text

        click.echo(text.diagnoses(found))
    if plots is not None:
        for path in _draw(found, plots):
            click.echo(f"  written    {path}", err=as_json)


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
