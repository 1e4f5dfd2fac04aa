"""What was read, and what may change while the model does not: info, dial, compare."""

from __future__ import annotations

import json

import click

from gonio.cli.model import LABELS, array_of, label_of, model_and, model_options
from gonio.core.head import KNOWN_LINKS, Head


@click.command()
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(head: Head, as_json: bool) -> None:
    """Say what was read from MODEL, and how each part was decided."""
    from gonio.core.head_summary import profile

    p = profile(head)
    if as_json:
        click.echo(json.dumps(p.to_dict(), indent=2))
        return
    from gonio.report import text

    click.echo(text.info(p))


@click.command(epilog=LABELS)
@model_and("LABEL LABEL", 2, 2)
@click.option("--cosine", type=float, required=True, help="The cosine wanted, from -1 to 1.")
@click.option("--out", metavar="DIR", help="Write the equivalent checkpoint here, in the model's own format.")
@click.option("--same-type", is_flag=True, help="Keep the head of a 16-bit model in 16 bits (default: float32).")
@click.option("--head-only", is_flag=True, help="Write the head alone, as DIR/head.safetensors.")
@click.option("--overwrite", is_flag=True, help="Replace what stands at --out.")
@click.option("--embeddings", metavar="FILE", help="Bound and measure the difference over these (.npy).")
@click.option("--radius", type=float, help="Bound it over all inputs of at most this length.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def dial(head: Head, labels_, cosine, out, same_type, head_only, overwrite, embeddings, radius, as_json) -> None:
    """Give two labels of MODEL any cosine, with every prediction left as it is."""
    from gonio.gauge import dial as dial_
    from gonio.report import text

    a, b = (label_of(head, x) for x in labels_)
    points = None if embeddings is None else array_of(embeddings)
    result = dial_(head, a, b, cosine=cosine, embeddings=points, radius=radius)
    click.echo(json.dumps(result.to_dict(), indent=2) if as_json else text.dialled(result))
    if out is None:
        return
    from gonio.files.write.checkpoint import standalone
    from gonio.gauge.export import Written, export, measure, measure_tables

    if head_only:
        path = standalone(result.head, f"{out}/head.safetensors", overwrite=overwrite)
        written = Written(path, "weight", "float32", False)
        alone = " (the rows alone)"
    else:
        written = export(result, out, precision="same" if same_type else "float32", overwrite=overwrite)
        alone = ""
    if written.second is not None:
        click.echo(text.written_tables(written, measure_tables(written, result)))
    else:
        difference = measure(written, result) if result.translation is not None and head.link == "softmax" else None
        click.echo(text.written(written, difference, alone))


@click.command()
@click.argument("models", metavar="MODEL MODEL", nargs=2)
@click.option("--link", type=click.Choice(KNOWN_LINKS), help="How scores become predictions, in both.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def compare(models, link, as_json) -> None:
    """Say whether two models are one: is one head a gauge transform of the other?

    Exit code 0: they are the same; 1: they are not; 3: it cannot be told from the heads.
    """
    from gonio.gauge import same_model
    from gonio.models.loading import load

    a, b = (load(m, link=link) for m in models)
    result = same_model(a, b)
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2))
    else:
        from gonio.report import text

        click.echo(text.compared(a, b, result))
    click.get_current_context().exit({True: 0, False: 1, None: 3}[result.same])
