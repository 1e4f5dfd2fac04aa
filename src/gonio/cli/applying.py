"""Apply a saved remedy to a table of embeddings: apply."""

from __future__ import annotations

import click

from gonio.cli.output import json_option, tell
from gonio.cli.paths import Reads, Writes, command


@command()
@click.argument("remedy", type=Reads())
@click.argument("source", type=Reads())
@click.argument("out", type=Writes())
@click.option("--column", metavar="NAME", help="The column, field or entry that holds the embeddings.")
@click.option("--id", metavar="NAME", help="The column or field that names the rows.")
@json_option
def apply(remedy, source, out, column, id, json_to) -> None:
    """Change the embeddings of SOURCE by the saved REMEDY (.npz) and write them to OUT (.npy or .parquet).

    A remedy is saved in Python: gonio.remedies.Center().fit(X).save("center.npz").
    """
    from gonio.embeddings import apply_remedy

    count = apply_remedy(remedy, source, out, column=column, id=id)
    tell(lambda: f"  written    {out} ({count:,} rows)", lambda: {"out": out, "rows": count}, json_to)
