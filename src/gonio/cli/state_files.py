"""What reaches the head: states."""

from __future__ import annotations

import click

from gonio.cli.model import model_options
from gonio.cli.output import json_option, tell
from gonio.cli.paths import Reads, Writes, command
from gonio.cli.text import captured
from gonio.core.errors import GonioError
from gonio.core.head import Head


class WritesStates(Writes):
    """A file of states, and beside it what is known of them."""

    def paths(self, value: str, given):
        from gonio.files.read.states_file import sidecar

        return [value, str(sidecar(value))]


@command()
@model_options
@click.option(
    "--text", metavar="FILE", type=Reads(), help="The text that MODEL reads, a document a line; 'self': its own."
)
@click.option("--split", metavar="TEXT", help="What stands between two documents, such as '\\n\\n'.")
@click.option("--feed", metavar="FILE", type=Reads(), help="Arrays that MODEL reads in place of text (.npz).")
@click.option("--out", metavar="FILE", type=WritesStates(), required=True, help="Where the states go (.npy).")
@click.option("--tokens", metavar="N", type=click.IntRange(1), default=20_000, show_default=True, help="States taken.")
@click.option(
    "--layer", metavar="L", default="final", show_default=True, help="'final', what enters the head, or a hidden layer."
)
@json_option
def states(head: Head, text, split, feed, out, tokens, layer, json_to) -> None:
    """Run MODEL on a text and keep what enters its head, for --embeddings of the other commands."""
    from gonio.files.write.states_file import save_sidecar
    from gonio.report.states import told

    if (text is None) == (feed is None):
        raise GonioError("states: give the text that the model reads (--text FILE), or its arrays (--feed FILE).")
    if not out.lower().endswith(".npy"):
        raise GonioError(f"states: {out} is to hold an array; give a name that ends in .npy.")
    found = captured(head, "states", text, split, tokens, feed, layer=layer, out=out, keep_part=True)
    save_sidecar(found, out)
    about = dict(found.about)
    tell(
        lambda: told(found, out),
        lambda: {"states": out, "shape": list(found.shape), "head": found.head} | about,
        json_to,
    )
    if found.about.get("stopped"):
        click.echo(f"gonio: states: stopped; the {len(found):,} states captured so far were kept.", err=True)
        raise SystemExit(130)
