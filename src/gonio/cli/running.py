"""What takes the model itself, run on a text: canonicalise, direction, alike-inputs, undertrained."""

from __future__ import annotations

import click
import numpy as np

from gonio.cli.model import model_and, model_options, numbers_of
from gonio.cli.output import csv_option, json_option, tell
from gonio.cli.paths import Reads, WritesFolder, command
from gonio.cli.text import embeddings_of, embeddings_options
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar


@command()
@model_options
@embeddings_options
@click.option("--out", metavar="DIR", type=WritesFolder(), required=True, help="A new folder for what is written.")
@click.option("--checkpoint", is_flag=True, help="Write the whole model, rewritten (Llama, Mistral, Qwen).")
@click.option("--overwrite", is_flag=True, help="Replace what gonio wrote at --out before.")
@json_option
def canonicalise(head: Head, out, checkpoint, overwrite, json_to, **given) -> None:
    """Write the equivalent head of MODEL whose plain cosine is the logit correlation over these states."""
    from gonio.files.write.canonical_head import write_canonical_head
    from gonio.gauge import canonicalise as ask
    from gonio.report import running as text

    head, points = embeddings_of(head, "canonicalise", **given)
    if points is None:
        raise GonioError("canonicalise: it is about the states of a text; give --text FILE or --embeddings F.npy.")
    result = ask(head, points)
    if checkpoint:
        from gonio.models.canonical_checkpoint import write_canonical

        if head.source is None:
            raise GonioError("canonicalise: a head alone has no model around it; leave out --checkpoint.")
        path, off = write_canonical(head.source.place, np.asarray(points), out, overwrite=overwrite)
        said = text.canonicalised(result, f"{path} (the whole model)", off)
        tell(lambda: said, lambda: result.to_dict() | {"written": str(path), "largest_difference": off}, json_to)
        return
    path = write_canonical_head(result, out, overwrite=overwrite)
    tell(
        lambda: text.canonicalised(result, str(path), None), lambda: result.to_dict() | {"written": str(path)}, json_to
    )


@command()
@model_and("VECTOR", 1, 1, files=True)
@embeddings_options
@click.option(
    "--use", type=click.Choice(["steering", "probe"]), default="steering", show_default=True,
    help="'steering' is added to states, 'probe' reads them.",
)  # fmt: skip
@click.option("--top", metavar="K", type=click.IntRange(1), default=10, show_default=True, help="The length of lists.")
@csv_option("a label")
@json_option
def direction(head: Head, files, use, top, csv_to, json_to, **given) -> None:
    """Say what a direction (VECTOR, a .npy file) does to the labels of MODEL, beside its cosine with their rows."""
    from gonio.report import running as text
    from gonio.similarity.directions import direction as ask

    v = np.asarray(numbers_of(files[0], "direction"))
    head, points = embeddings_of(head, "direction", **given)
    result = ask(head, v, points, use=use)
    tell(lambda: text.direction(result, top), result.to_dict, json_to, result.columns, csv_to)


@command(name="alike-inputs")
@model_options
@embeddings_options
@click.option("--top", metavar="K", type=click.IntRange(1), default=10, show_default=True, help="The length of lists.")
@csv_option("a pair")
@json_option
def alike_inputs(head: Head, top, csv_to, json_to, **given) -> None:
    """Say how alike documents are to MODEL, by what it predicts after each, beside the cosine of their states."""
    from gonio.core.states import States
    from gonio.report import running as text
    from gonio.similarity.input_pairs import inputs_alike, last_of_each

    head, points = embeddings_of(head, "alike-inputs", **given)
    if points is None:
        raise GonioError("alike-inputs: it is about inputs; give --text FILE or --embeddings F.npy.")
    if isinstance(points, States):
        F, numbers = last_of_each(points)
    else:
        F, numbers = np.asarray(points), np.arange(len(points))
    if len(F) > 200:
        F, numbers = F[:200], numbers[:200]
    if len(F) < 2:
        raise GonioError("alike-inputs: two documents at least are needed to compare.")
    result = inputs_alike(head, F)
    tell(lambda: text.inputs_alike(result, numbers, top), result.to_dict, json_to, result.columns, csv_to)


@command()
@model_options
@click.option(
    "--top", metavar="K", type=click.IntRange(1), default=200, show_default=True, help="Candidates asked for."
)
@click.option("--unused", metavar="FILE", type=Reads(), help="Labels known never to occur, one a line.")
@csv_option("a candidate")
@json_option
def undertrained(head: Head, top, unused, csv_to, json_to) -> None:
    """Find rows of MODEL that look untrained, and ask the model to repeat each: which can it not?"""
    from gonio.cli.model import text_of
    from gonio.diagnostics.undertrained_rows import undertrained as ask
    from gonio.models.opening import open_model
    from gonio.models.repetition import never_written, repeat
    from gonio.report import running as text

    if head.source is None:
        raise GonioError("undertrained: a head alone cannot be asked; give the model.")
    known = None if unused is None else [x for x in text_of(unused).splitlines() if x]
    found = ask(head, known)
    with Bar("undertrained") as bar:
        bar(0, 1, "opening the model")
        opened = open_model(head.source.place, "undertrained")
        if opened.tokenizer is None:
            raise GonioError(f"undertrained: {head.source.place} has no tokenizer to ask with.")
        never = never_written(opened.tokenizer, head.shape[0])
        asked = [int(i) for i in found.candidates if int(i) not in set(never.tolist())][:top]
        result = repeat(opened.model, opened.tokenizer, asked, bar)
    said = lambda: text.undertrained(head, found, result, never)  # noqa: E731
    tell(said, lambda: text.undertrained_values(head, found, result, never), json_to,
         lambda: text.undertrained_columns(head, result), csv_to)  # fmt: skip
