"""What was read, and what may change while the model does not: info, dial, compare."""

from __future__ import annotations

import click

from gonio.cli.model import LABELS, format_options, label_of, model_and, model_options
from gonio.cli.output import csv_option, json_option, tell
from gonio.cli.paths import Reads, WritesFolder, command
from gonio.cli.text import array_of, captured, embeddings_of, embeddings_options
from gonio.core.errors import GonioError
from gonio.core.head import Head


@command()
@model_options
@embeddings_options
@json_option
def info(head: Head, json_to, **given) -> None:
    """Say what was read from MODEL, and how each part was decided.

    With --text MODEL is run, and what the head gives is held against the model's own output.
    """
    from gonio.core.head_summary import profile
    from gonio.core.states import States
    from gonio.report import text

    head, points = embeddings_of(head, "info", **given)
    p = profile(head)
    states = points if isinstance(points, States) else None
    tell(lambda: text.info(p, states), lambda: p.to_dict() | text.checked_values(states), json_to)


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
    points = None if embeddings is None else array_of(embeddings, "dial", head)
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
@click.option(
    "--text", metavar="FILE", type=Reads(), help="Run both on this text and compare their logits, label by label."
)
@click.option("--split", metavar="TEXT", help="What stands between two documents of the text, such as '\\n\\n'.")
@click.option("--tokens", metavar="N", type=click.IntRange(1), default=20_000, show_default=True, help="States taken.")
@csv_option("a label")
@json_option
def compare(models, link, tensor, labels, inputs, text, split, tokens, csv_to, json_to) -> None:
    """Say whether two models are one: is one head a gauge transform of the other?

    What says how to read a model is said of both. With --text both read the same tokens, and the difference of each
    label's (centred) logit is told, which no change of convention moves. Exit code 0: they are the same; 1: they are
    not; 3: it cannot be told from the heads.
    """
    from gonio.gauge import same_model
    from gonio.models.loading import load
    from gonio.report import running
    from gonio.report import text as told

    a, b = (load(m, link=link, tensor=tensor, labels=labels, inputs=inputs) for m in models)
    result = same_model(a, b)
    if text is None and csv_to is not None:
        raise GonioError("compare: --csv has one row a label of the differences on a text; give --text FILE.")
    apart = None if text is None else _on_text(a, b, text, split, tokens)
    tell(
        lambda: told.compared(a, b, result) + ("" if apart is None else "\n" + running.differences(apart)),
        lambda: result.to_dict() | ({} if apart is None else {"on_text": apart.to_dict()}),
        json_to,
        None if apart is None else apart.columns,
        csv_to,
    )
    click.get_current_context().exit({True: 0, False: 1, None: 3}[result.same])


def _on_text(a: Head, b: Head, text: str, split: str | None, tokens: int):
    from gonio.diagnostics.logits_apart import logit_differences

    F, G = (captured(h, "compare", text, split, tokens, None) for h in (a, b))
    return logit_differences(a, F, b, G)
