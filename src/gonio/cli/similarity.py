"""How alike labels are: similar."""

from __future__ import annotations

import click

from gonio.cli.model import LABELS, array_of, label_of, model_and
from gonio.core.errors import GonioError
from gonio.core.head import Head


@click.command(epilog=LABELS)
@model_and("LABEL...", 1)
@click.option("--measure", "name", metavar="NAME", help="The measure (default: what the link and --embeddings allow).")
@click.option("--embeddings", metavar="FILE", help="The inputs to measure over (.npy), one a row.")
@click.option("-k", "count", type=int, help="How many neighbours (default: 10, or all there are).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def similar(head: Head, labels_, name, embeddings, count, as_json) -> None:
    """List the nearest labels of each LABEL under a measure that fits MODEL, beside those by cosine."""
    from gonio.similarity import for_link, measure

    points = None if embeddings is None else array_of(embeddings)
    given = points is not None or head.inputs.points is not None
    chosen = measure(name or for_link(head.link, embeddings=given))(head, points)
    if chosen.empty and name is None:
        raise GonioError(f"similar: {chosen.caveat} (--embeddings F.npy).")
    if count is None:
        count = max(1, min(10, head.shape[0] - 1))
    asked = [label_of(head, x) for x in labels_]
    found, plain = chosen.nearest(count, asked), measure("cosine")(head).nearest(count, asked)
    intervals = []
    if hasattr(chosen, "intervals"):
        i = [int(x) for x in found.asked.repeat(found.near.shape[1])]
        intervals = chosen.intervals(i, [int(x) for x in found.near.ravel()])  # type: ignore[attr-defined]
    if as_json:
        import json

        out = {**found.to_dict(), "invariant": sorted(chosen.invariant), "caveat": chosen.caveat}
        out["intervals"] = [x.to_dict() for x in intervals]
        click.echo(json.dumps({"similar": out, "cosine": plain.to_dict()}, indent=2))
        return
    from gonio.report.similarity import similar as text

    click.echo(text(chosen, found, plain, [f"[{x.low:.3f}, {x.high:.3f}]" for x in intervals]))
