"""The command `gonio`: parse, call, print, exit code; no mathematics.

Exit codes: 0 fine, 1 a finding that was asked to fail or a proof refused, 2 bad input, in one sentence.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args

import click

from gonio.errors import GonioError
from gonio.head import Head, Link
from gonio.progress import Bar

Precision = Literal["bf16", "fp16", "fp8", "int8"]


class _Gonio(click.Group):
    """A group whose commands end with one sentence and exit code 2 where gonio complains."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GonioError as e:
            from gonio.report.text import printable

            click.echo(f"gonio: {printable(str(e))}", err=True)
            ctx.exit(2)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; there is nobody left to tell
            ctx.exit(0)


@click.group(cls=_Gonio, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="gonio", message="gonio %(version)s")
def main() -> None:
    """What the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL and the options that say how to read it; the command gets the Head."""

    @click.argument("model", required=False)
    @click.option("--link", type=click.Choice(get_args(Link)), help="How scores become predictions.")
    @click.option("--tensor", metavar="NAME", help="The table of label rows, where the guess is wrong.")
    @click.option("--labels", metavar="FILE", help="Names of the rows: one a line, or JSON.")
    @click.option(
        "--inputs", metavar="KIND", help="What can reach the head: all, nonnegative, box:LOW,HIGH, observed:FILE.npy."
    )
    @click.option("--users", metavar="FILE", help="Factor model: the users' vectors (.npy), with --items.")
    @click.option("--items", metavar="FILE", help="Factor model: the items' vectors (.npy), with --users.")
    @functools.wraps(command)
    def wrapped(model, link, tensor, labels, inputs, users, items, **rest: Any) -> Any:
        return command(_head(model, link, tensor, labels, inputs, users, items), **rest)

    return wrapped


def _head(model, link, tensor, labels, inputs, users, items) -> Head:
    from gonio.load import load

    if (users is None) != (items is None):
        raise GonioError("a factor model needs both --users and --items.")
    if (model is None) == (users is None):
        raise GonioError("give one model: a file, a folder, a name, or --users with --items.")
    return load(model if users is None else (users, items), link=link, tensor=tensor, labels=labels, inputs=inputs)


@main.command()
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(head: Head, as_json: bool) -> None:
    """Say what was read from MODEL, and how each part was decided."""
    from gonio.profile import profile

    p = profile(head)
    if as_json:
        import json

        click.echo(json.dumps(p.to_dict(), indent=2))
        return
    from gonio.report import text

    click.echo(text.info(p))


@main.command()
@model_options
@click.argument("labels_", metavar="LABEL LABEL", nargs=2)
@click.option("--cosine", type=float, required=True, help="The cosine wanted, from -1 to 1.")
@click.option("--out", metavar="DIR", help="Write the equivalent checkpoint here, in the model's own format.")
@click.option("--same-type", is_flag=True, help="Keep the head of a 16-bit model in 16 bits (default: float32).")
@click.option("--head-only", is_flag=True, help="Write the head alone, as DIR/head.safetensors.")
@click.option("--overwrite", is_flag=True, help="Replace what stands at --out.")
@click.option("--embeddings", metavar="FILE", help="Bound and measure the difference over these (.npy).")
@click.option("--radius", type=float, help="Bound it over all inputs of at most this length.")
def dial(head: Head, labels_, cosine, out, same_type, head_only, overwrite, embeddings, radius) -> None:
    """Give two labels of MODEL any cosine, with every prediction left as it is."""
    from gonio.gauge import dial as dial_
    from gonio.report import text

    a, b = (_label(head, x) for x in labels_)
    points = None if embeddings is None else _array(embeddings)
    result = dial_(head, a, b, cosine=cosine, embeddings=points, radius=radius)
    click.echo(text.dialled(result))
    if out is None:
        return
    from gonio.gauge.export import export, measure, standalone

    if head_only:
        path = standalone(result.head, f"{out}/head.safetensors", overwrite=overwrite)
        click.echo(f"  written    {path} (the head alone)")
        return
    written = export(result, out, precision="same" if same_type else "float32", overwrite=overwrite)
    click.echo(text.written(written, measure(written, result)))


@main.command()
@click.argument("models", metavar="MODEL MODEL", nargs=2)
@click.option("--link", type=click.Choice(get_args(Link)), help="How scores become predictions, in both.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def compare(models, link, as_json) -> None:
    """Say whether two models are one: is one head a gauge transform of the other?"""
    from gonio.gauge import same_model
    from gonio.load import load

    a, b = (load(m, link=link) for m in models)
    result = same_model(a, b)
    if as_json:
        import json

        click.echo(json.dumps(result.to_dict(), indent=2))
        return
    from gonio.report import text

    click.echo(text.compared(a, b, result))


@main.command("can-win")
@model_options
@click.argument("names", metavar="[LABEL]...", nargs=-1)
@click.option("--out", metavar="FILE", help="Save one row a label: .csv, .json or .parquet.")
@click.option("--proof", metavar="FILE", help="Save the proofs (.npz), for gonio verify.")
@click.option(
    "--cast", type=click.Choice(get_args(Precision)), help="What changes if the head is rounded to this type."
)
def can_win(head: Head, names, out, proof, cast) -> None:
    """Say which labels of MODEL can ever win, with proofs; all of them, or those named."""
    from gonio.regions.win import can_win as ask
    from gonio.report import regions as text
    from gonio.report.table import save

    if cast is not None:
        from gonio.regions.precision import precision_audit

        click.echo(text.precision(precision_audit(head, cast)))
        return
    with Bar("can-win") as bar:
        result = ask(head, [_label(head, x) for x in names] or None, on_progress=bar)
    click.echo(text.can_win(result))
    _keep(result, out, proof, save, result.certificates)


@main.command("can-tie")
@model_options
@click.argument("names", metavar="[LABEL LABEL]", nargs=-1)
@click.option("--pairs", metavar="FILE", help="Pairs of labels, one a line, separated by a tab.")
@click.option("--nearest", metavar="K", type=int, help="Every label with its K nearest neighbours by cosine.")
@click.option("--out", metavar="FILE", help="Save one row a pair: .csv, .json or .parquet.")
@click.option("--proof", metavar="FILE", help="Save the proofs (.npz), for gonio verify.")
def can_tie(head: Head, names, pairs, nearest, out, proof) -> None:
    """Say whether two labels of MODEL can share the top, strictly above all others."""
    from gonio.regions.tie import can_tie as ask
    from gonio.report import regions as text
    from gonio.report.table import save

    if len(names) not in (0, 2):
        raise GonioError(f"can-tie: {len(names)} labels were named; name two, or give --pairs or --nearest.")
    given = [tuple(_label(head, x) for x in names)] if names else _pairs(pairs, head)
    with Bar("can-tie") as bar:
        result = ask(head, pairs=given, nearest=nearest, on_progress=bar)
    click.echo(text.can_tie(result))
    _keep(result, out, proof, save, lambda: (result.certificate(k) for k in range(len(result))))


def _pairs(path: str | None, head: Head):
    if path is None:
        return None
    lines = [x.split("\t") for x in _text(path).splitlines() if x.strip()]
    bad = next((k for k, x in enumerate(lines, 1) if len(x) != 2), None)
    if bad is not None:
        raise GonioError(f"can-tie: line {bad} of {path} is not two labels separated by a tab.")
    return [tuple(_label(head, x) for x in pair) for pair in lines]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise GonioError(f"{path} cannot be read as text ({e}).") from None


def _keep(result, out, proof, save, certificates) -> None:
    """Save a result's rows and proofs where they were asked for."""
    if out is not None:
        click.echo(f"  saved      {save(result.columns(), out)}")
    if proof is not None:
        from gonio.regions import proof as file
        from gonio.regions.bulk import compact

        kept = compact(result.head, [c for c in certificates() if c.kind != "undecided"])
        file.save(proof, kept)
        click.echo(
            f"  proofs     {proof} ({len(kept):,}; check them with gonio verify MODEL {proof} and the same options)"
        )


@main.command()
@model_options
@click.argument("proof")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def verify(head: Head, proof, as_json) -> None:
    """Check a saved PROOF against MODEL, without any solver; exit code 1 if anything in it is refused."""
    from gonio.regions.proof import verify_file
    from gonio.report import regions as text

    seen = verify_file(head, proof)
    if as_json:
        import json

        click.echo(json.dumps(seen.to_dict(), indent=2))
    else:
        click.echo(text.verified(seen))
    if not seen.fine:
        raise SystemExit(1)


@main.command()
@model_options
@click.option("--to", type=int, required=True, help="How many rows the head is to have.")
@click.option(
    "--out", metavar="DIR", required=True, help="Write the padded checkpoint here, in the model's own format."
)
@click.option("--proof", metavar="FILE", help="Save the proofs that the rows never win (.npz).")
@click.option("--overwrite", is_flag=True, help="Replace what stands at --out.")
def pad(head: Head, to, out, proof, overwrite) -> None:
    """Append rows to MODEL that provably never win as written, and fill its padded rows with them."""
    from gonio.regions.pad import pad as fill
    from gonio.regions.pad_export import export_padded
    from gonio.report import regions as text

    kind = head.rows.kind if head.rows.kind in ("float32", "float16", "bfloat16") else "float32"
    padded = fill(head, to, kind)
    path, again = export_padded(padded, head, out, overwrite=overwrite)
    click.echo(text.padded(padded, path, again))
    if proof is not None:
        from gonio.regions import proof as file

        file.save(proof, list(padded.certificates))
        click.echo(f"  proofs     {proof} ({len(padded.certificates):,})")


def _label(head: Head, text: str) -> str | int:
    """A label as typed: its name, or #12 for row 12."""
    return int(text[1:]) if text.startswith("#") and text[1:].isdigit() and text not in head.labels else text


def _array(path: str):
    from gonio import inputs

    return inputs.parse(f"observed:{path}").F  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
