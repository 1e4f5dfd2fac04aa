"""What was read, and what may change while the model does not: info, dial, compare."""

from __future__ import annotations

import click

from gonio.cli.model import LABELS, array_of, format_options, label_of, model_and, model_options
from gonio.cli.output import json_option, tell
from gonio.cli.paths import Reads, WritesFolder, command
from gonio.core.head import Head


@command()
@model_options
@json_option
def info(head: Head, json_to) -> None:
    """Say what was read from MODEL, and how each part was decided."""
    from gonio.core.head_summary import profile
    from gonio.report import text

    p = profile(head)
    tell(lambda: text.info(p), p.to_dict, json_to)


@command(epilog=LABELS)
@model_and("LABEL LABEL", 2, 2)
@click.option("--cosine", type=float, required=True, help="The cosine wanted, from -1 to 1.")
@click.option(
    "--out", metavar="DIR", type=WritesFolder(), help="Write the equivalent checkpoint here, in the model's own format."
)
@click.option("--same-type", is_flag=True, help="Keep the head of a 16-bit model in 16 bits (default: float32).")
@click.option("--head-only", is_flag=True, help="Write the head alone, as DIR/head.safetensors.")
@click.option("--overwrite", is_flag=True, help="Replace what gonio wrote at --out before.")
@click.option("--embeddings", metavar="FILE", type=Reads(), help="Bound and measure the difference over these (.npy).")
@click.option("--radius", type=float, help="Bound it over all inputs of at most this length.")
@json_option
def dial(head: Head, labels_, cosine, out, same_type, head_only, overwrite, embeddings, radius, json_to) -> None:
    """Give two labels of MODEL any cosine, with every prediction left as it is."""
    from gonio.gauge import dial as dial_
    from gonio.report import text

    a, b = (label_of(head, x) for x in labels_)
    points = None if embeddings is None else array_of(embeddings)
    result = dial_(head, a, b, cosine=cosine, embeddings=points, radius=radius)
    quiet = tell(lambda: text.dialled(result), result.to_dict, json_to)
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
        click.echo(text.written_tables(written, measure_tables(written, result)), err=quiet)
    else:
        difference = measure(written, result) if result.translation is not None and head.link == "softmax" else None
        click.echo(text.written(written, difference, alone), err=quiet)


@command()
@click.argument("models", metavar="MODEL MODEL", nargs=2, type=Reads())
@format_options
@json_option
def compare(models, link, tensor, labels, inputs, json_to) -> None:
    """Say whether two models are one: is one head a gauge transform of the other?

    What says how to read a model is said of both. Exit code 0: they are the same; 1: they are not; 3: it cannot be
    told from the heads.
    """
    from gonio.gauge import same_model
    from gonio.models.loading import load
    from gonio.report import text

    a, b = (load(m, link=link, tensor=tensor, labels=labels, inputs=inputs) for m in models)
    result = same_model(a, b)
    tell(lambda: text.compared(a, b, result), result.to_dict, json_to)
    click.get_current_context().exit({True: 0, False: 1, None: 3}[result.same])
