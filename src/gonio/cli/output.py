"""Where a result goes, the same for every command: text to the terminal, --json and --csv to a file or '-'."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from gonio.cli.paths import Writes, WritesProof
from gonio.core.atomic_write import whole_text
from gonio.core.errors import GonioError

json_option = click.option(
    "--json", "json_to", metavar="FILE", type=Writes(), help="Write the result as JSON; '-' prints it instead of text."
)

junit_option = click.option(
    "--junit",
    metavar="FILE",
    type=Writes(),
    help="Write the findings as JUnit XML, for CI to show; those that --fail-on names fail.",
)

explain_option = click.option("--explain", is_flag=True, help="Also print what each finding means.")

proof_option = click.option(
    "--proof",
    metavar="FILE",
    type=WritesProof(),
    help="Save the proofs (.npz), for gonio verify, and beside them the exact head.",
)


def csv_option(row: str) -> Callable[..., Any]:
    """The option --csv of a command whose result has one row `row` ("a label")."""
    words = f"Write one row {row}: CSV, or JSON or Parquet by the name's ending; '-' prints CSV instead of text."
    file = click.option("--csv", "csv_to", metavar="FILE", type=Writes(), help=words)
    raw = click.option(
        "--csv-raw",
        is_flag=True,
        expose_value=False,
        callback=_keep_raw,
        help="In CSV keep texts that begin like a formula as they are (default: with an apostrophe in front).",
    )
    return lambda command: file(raw(command))


def _keep_raw(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["gonio.csv_raw"] = value


def tell(
    text: Callable[[], str],
    values: Callable[[], Any],
    json_to: str | None,
    columns: Callable[[], dict[str, list[Any]]] | None = None,
    csv_to: str | None = None,
) -> bool:
    """Print the text, or what '-' asks for in its place, and write the files; whether the terminal is left to data."""
    name = str(click.get_current_context().info_name)
    if json_to == csv_to == "-":
        raise GonioError("--json - and --csv - both ask for the terminal; give one of them a file.")
    printed = "-" in (json_to, csv_to)
    if not printed:
        click.echo(text())
    if json_to is not None:
        # JSON has an escape for half of a surrogate pair, which no encoding has.
        written = json.dumps(values(), indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")
        if json_to == "-":
            click.echo(written)
        else:
            whole_text(json_to, written + "\n", name)
            click.echo(f"  written    {json_to}", err=printed)
    if csv_to is not None:
        from gonio.report.table import save

        assert columns is not None
        saved = save(columns(), csv_to, raw=click.get_current_context().meta["gonio.csv_raw"])
        if csv_to != "-":
            click.echo(f"  written    {saved}", err=printed)
    return printed


def save_junit(result: Any, path: str | None, keys: list[str], *, quiet: bool) -> None:
    """Write the findings of an audit or a check as JUnit XML, where a file was named."""
    if path is None:
        return
    from gonio.report.junit import junit

    text = junit(result, keys, sum(result.seconds.values()))
    if path == "-" and quiet:
        raise GonioError("--junit - and --json - or --csv - both ask for the terminal; give one of them a file.")
    if path == "-":
        click.echo(text, nl=False)
    else:
        whole_text(path, text, str(click.get_current_context().info_name))
        click.echo(f"  written    {path}", err=quiet)


def save_proofs(head: Any, path: str | None, certificates: Callable[[], Any], *, quiet: bool) -> None:
    """Save the proofs among some certificates and, beside them, the exact head, where a file was named."""
    if path is None:
        return
    from gonio.files.write.exact_head import beside, save_exact
    from gonio.proofs import proof_file
    from gonio.proofs.bulk import compact

    kept = compact(head, [c for c in certificates() if c.kind not in ("undecided", "open")])
    proof_file.save(path, kept)
    click.echo(f"  proofs     {path} ({len(kept):,}; check them with gonio verify {head.typed} {path})", err=quiet)
    alone = f"  head       {save_exact(head, beside(path))} (all that tools/check_proof.py needs beside the proofs)"
    click.echo(alone, err=quiet)
