"""What is possible: can-win, can-tie, verify, pad."""

from __future__ import annotations

from typing import Literal, get_args

import click

from gonio.cli.model import LABELS, label_of, model_and, model_options, pairs_of
from gonio.cli.output import csv_option, json_option, proof_option, save_proofs, tell
from gonio.cli.paths import Reads, WritesFolder, command
from gonio.cli.text import embeddings_of, embeddings_options
from gonio.cli.workers import at_work, workers_options
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar

Precision = Literal["bf16", "fp16", "fp8", "int8", "int4"]


@command("can-win", epilog=LABELS)
@model_and("[LABEL]...", 0)
@csv_option("a label")
@proof_option
@click.option(
    "--cast", type=click.Choice(get_args(Precision)), help="What changes if the head is rounded to this type."
)
@embeddings_options
@workers_options
@json_option
def can_win(head: Head, names, csv_to, proof, cast, cluster, state, json_to, **given) -> None:
    """Say which labels of MODEL can ever win, with proofs; all of them, or those named."""
    from gonio.ask.wins import can_win as ask
    from gonio.report import possible as text

    if cast is not None:
        _rounded(head, cast, json_to, given)
        return
    if any(given[k] is not None for k in ("embeddings", "text", "feed")):
        raise GonioError("can-win: states are asked about with --cast; who can win hangs on all inputs (--inputs).")
    with at_work(cluster, state, head):
        with Bar("can-win") as bar:
            result = ask(head, [label_of(head, x) for x in names] or None, on_progress=bar)
        quiet = tell(lambda: text.can_win(result), result.to_dict, json_to, result.columns, csv_to)
        save_proofs(head, proof, result.certificates, quiet=quiet)
        if result.interrupted:
            raise SystemExit(130)


def _rounded(head: Head, cast: Precision, json_to: str | None, given: dict) -> None:
    """What rounding does to who can win, and on a text to who does."""
    from gonio.ask.precision import precision_audit
    from gonio.diagnostics.rounding_on_text import cast_on_text
    from gonio.report import possible as text
    from gonio.report import running

    head, points = embeddings_of(head, "can-win", **given)
    found = precision_audit(head, cast)
    on_text = None if points is None else cast_on_text(head, cast, points)
    tell(
        lambda: text.precision(found) + ("" if on_text is None else "\n" + running.cast_on_text(on_text)),
        lambda: found.to_dict() | ({} if on_text is None else {"on_text": on_text.to_dict()}),
        json_to,
    )


@command("can-tie", epilog=LABELS)
@model_and("[LABEL LABEL]", 0, 2)
@click.option("--pairs", metavar="FILE", type=Reads(), help="Pairs of labels, one a line, separated by a tab.")
@click.option("--nearest", metavar="K", type=int, help="Every label with its K nearest neighbours by cosine.")
@csv_option("a pair")
@proof_option
@workers_options
@json_option
def can_tie(head: Head, names, pairs, nearest, csv_to, proof, cluster, state, json_to) -> None:
    """Say whether two labels of MODEL can share the top, strictly above all others."""
    from gonio.ask.ties import can_tie as ask
    from gonio.report import possible as text

    if len(names) not in (0, 2):
        raise GonioError(f"can-tie: {len(names)} labels were named; name two, or give --pairs or --nearest.")
    given = [tuple(label_of(head, x) for x in names)] if names else pairs_of(pairs, head, "can-tie")
    with at_work(cluster, state, head):
        with Bar("can-tie") as bar:
            result = ask(head, pairs=given, nearest=nearest, on_progress=bar)
        quiet = tell(lambda: text.can_tie(result), result.columns, json_to, result.columns, csv_to)
        save_proofs(head, proof, lambda: (result.certificate(k) for k in range(len(result))), quiet=quiet)


@command()
@model_and("PROOF", 1, 1, files=True)
@json_option
def verify(head: Head, files, json_to) -> None:
    """Check a saved PROOF against MODEL, without any solver; exit code 1 if anything in it is refused."""
    from gonio.proofs.proof_file import verify_file
    from gonio.report import possible as text

    seen = verify_file(head, files[0])
    tell(lambda: text.verified(seen, head), seen.to_dict, json_to)
    if not seen.fine:
        raise SystemExit(1)


@command()
@model_options
@click.option("--to", type=int, required=True, help="How many rows the head is to have.")
@click.option(
    "--out",
    metavar="DIR",
    type=WritesFolder(),
    required=True,
    help="Write the padded checkpoint here, in the model's own format.",
)
@proof_option
@click.option("--overwrite", is_flag=True, help="Replace what gonio wrote at --out before.")
@json_option
def pad(head: Head, to, out, proof, overwrite, json_to) -> None:
    """Append rows to MODEL that provably never win as written, and fill its padded rows with them."""
    from gonio.ask.pad_export import export_padded
    from gonio.ask.padding import pad as fill
    from gonio.report import possible as text

    kind = head.rows.kind if head.rows.kind in ("float32", "float16", "bfloat16") else "float32"
    padded = fill(head, to, kind)
    path, again = export_padded(padded, head, out, overwrite=overwrite)
    quiet = tell(lambda: text.padded(padded, path, again), padded.to_dict, json_to)
    save_proofs(padded.head, proof, lambda: padded.certificates, quiet=quiet)
