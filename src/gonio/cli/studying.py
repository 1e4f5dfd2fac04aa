"""The open questions, asked of one's own models: study."""

from __future__ import annotations

import click

from gonio.cli.model import frequencies_of, frequencies_option, text_of
from gonio.cli.output import json_option, tell
from gonio.cli.paths import NameAndFiles, Reads, command
from gonio.cli.text import array_of
from gonio.core.errors import GonioError
from gonio.core.progress import Bar


@command()
@click.argument("typed", metavar="NAME [MODEL ...]", nargs=-1, type=NameAndFiles())
@click.option(
    "--embeddings",
    metavar="FILE",
    type=Reads(),
    multiple=True,
    help="States that reach the head of each MODEL, in their order (.npy).",
)
@click.option("--text", metavar="FILE", type=Reads(), help="The text that a study of texts reads, a document a line.")
@frequencies_option
@click.option("--list", "listed", is_flag=True, help="Name the studies and their questions.")
@json_option
def study(typed, embeddings, text, frequencies, listed, json_to) -> None:
    """Ask one of the papers' open questions of your MODELs; without MODEL, of the packaged ones that are at hand."""
    from gonio.studies import run
    from gonio.studies.study import text as told

    if listed:
        click.echo("\n".join(f"{s.name:<12} {s.question}" for s in run.STUDIES.values()))
        return
    if not typed:
        raise GonioError(f"study: no study was named; there are {', '.join(run.STUDIES)}.")
    asked = run.asked(typed[0])
    with Bar("study") as bar:
        if len(typed) == 1 and text is None:
            found = run.on_fixtures(asked, bar)
        else:
            given = run.Given(
                models=typed[1:],
                states=tuple(array_of(x, "study") for x in embeddings),
                text=None if text is None else text_of(text),
                frequencies=frequencies_of(frequencies, "study"),
            )
            found = asked.on_models(given, bar)
    tell(lambda: told(found), lambda: [r.to_dict() for r in found], json_to)
