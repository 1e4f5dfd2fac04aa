"""How alike labels are: similar."""

from __future__ import annotations

import click

from gonio.cli.model import LABELS, label_of, model_and
from gonio.cli.output import csv_option, json_option, tell
from gonio.cli.paths import command
from gonio.cli.text import embeddings_of, embeddings_options
from gonio.core.errors import GonioError
from gonio.core.head import Head


@command(epilog=LABELS)
@model_and("LABEL...", 1)
@click.option("--measure", "name", metavar="NAME", help="The measure (default: what the link and --embeddings allow).")
@embeddings_options
@click.option("--top", metavar="K", type=int, help="How many neighbours (default: 10, or all there are).")
@csv_option("a neighbour")
@json_option
def similar(head: Head, labels_, name, top, csv_to, json_to, **given) -> None:
    """List the nearest labels of each LABEL under a measure that fits MODEL, beside those by cosine."""
    from gonio.report.similarity import similar as text
    from gonio.similarity import for_link, measure

    head, points = embeddings_of(head, "similar", **given)
    observed = points is not None or head.inputs.points is not None
    chosen = measure(name or for_link(head.link, embeddings=observed))(head, points)
    if chosen.empty and name is None:
        raise GonioError(f"similar: {chosen.caveat} (--embeddings F.npy).")
    count = max(1, min(10, head.shape[0] - 1)) if top is None else top
    asked = [label_of(head, x) for x in labels_]
    found, plain = chosen.nearest(count, asked), measure("cosine")(head).nearest(count, asked)
    intervals = []
    if hasattr(chosen, "intervals"):
        i = [int(x) for x in found.asked.repeat(found.near.shape[1])]
        intervals = chosen.intervals(i, [int(x) for x in found.near.ravel()])  # type: ignore[attr-defined]

    def values() -> dict:
        told = {**found.to_dict(), "invariant": sorted(chosen.invariant), "caveat": chosen.caveat}
        return {"similar": told | {"intervals": [x.to_dict() for x in intervals]}, "cosine": plain.to_dict()}

    spans = [f"[{x.low:.3f}, {x.high:.3f}]" for x in intervals]
    tell(lambda: text(chosen, found, plain, spans), values, json_to, found.columns, csv_to)
