"""The command `gonio`: parse, call, print, exit code; no mathematics.

Exit codes: 0 fine, 1 a finding that was asked to fail or a proof refused, 2 bad input, in one sentence.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, get_args

import click

from gonio.errors import GonioError
from gonio.head import Head, Link


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
    written = export(result.head, head, out, precision="same" if same_type else "float32", overwrite=overwrite)
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


def _label(head: Head, text: str) -> str | int:
    """A label as typed: its name, or #12 for row 12."""
    return int(text[1:]) if text.startswith("#") and text[1:].isdigit() and text not in head.labels else text


def _array(path: str):
    from gonio import inputs

    return inputs.parse(f"observed:{path}").F  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
