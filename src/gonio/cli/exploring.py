"""The interactive page: explore."""

from __future__ import annotations

import click

from gonio.cli.model import head_of, label_of, reading_options
from gonio.cli.paths import Reads, Writes, command
from gonio.cli.text import array_of
from gonio.core.errors import GonioError


@command()
@reading_options
@click.option("--labels-of-plane", "three", metavar="LABEL LABEL LABEL", nargs=3, help="The three labels that span it.")
@click.option(
    "--html", metavar="FILE", type=Writes(), default="explore.html", show_default=True, help="Where to write the page."
)
@click.option("--embeddings", metavar="FILE", type=Reads(), help="States that reach the head (.npy): drawn as dots.")
@click.option(
    "--every-label", "every", is_flag=True, help="Carry every label of a head of more than 7,000: 0.7 kB each."
)
@click.option("--no-open", is_flag=True, help="Do not open it in a browser.")
def explore(model, link, tensor, labels, inputs, users, items, three, html, embeddings, every, no_open) -> None:
    """Write an interactive page: cosines run through every value while no prediction moves.

    With MODEL, its own plane.
    """
    import webbrowser
    from pathlib import Path

    from gonio.explorer import page, write

    head = None
    if three and model is None and users is None and items is None:
        raise GonioError("explore: --labels-of-plane names labels of a model; name the model too.")
    if model is not None or users is not None or items is not None:
        head = head_of(model, link, tensor, labels, inputs, users, items)
    chosen = tuple(label_of(head, x) for x in three) if three and head is not None else None
    if embeddings is not None and head is None:
        raise GonioError("explore: --embeddings are states of a model; name the model too.")
    states = None if embeddings is None else array_of(embeddings, "explore", head)
    path = write(html, page(head, chosen, embeddings=states, every=every))
    click.echo(f"written {path}")
    if not no_open:
        webbrowser.open(Path(path).resolve().as_uri())
