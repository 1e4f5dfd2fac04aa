"""Label sets and rankings: can-label, can-rank, can-top, patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gonio.cli.model import LABELS, label_of, label_sets_of, model_and, model_options
from gonio.cli.output import csv_option, json_option, proof_option, save_proofs, tell
from gonio.cli.paths import Reads, Writes, command
from gonio.cli.workers import at_work, workers_options
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.label_names import BYTE
from gonio.core.progress import Bar

if TYPE_CHECKING:
    from gonio.ask.verdict import Verdict


class Numbers(click.ParamType):
    """What the stored numbers stand for: a word, or a tolerance."""

    name = "floats|decimals|TOLERANCE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """The tolerance as a number; any other word goes on to the library, which says what it takes."""
        try:
            return float(value)
        except ValueError:
            return value


@command("can-label", epilog=LABELS)
@model_options
@click.option("--on", "on", metavar="LABEL", multiple=True, help="A label that is to be on; may be given often.")
@click.option("--off", "off", metavar="LABEL", multiple=True, help="A label that is to be off; may be given often.")
@click.option("--rest-off", is_flag=True, help="Every label that is not named with --on is to be off.")
@click.option(
    "--sets",
    metavar="FILE",
    type=Reads(),
    help="Whole label sets, one a line: the labels that are on, separated by tabs.",
)
@csv_option("a set (with --sets)")
@proof_option
@json_option
def can_label(head: Head, on, off, rest_off, sets, csv_to, proof, json_to) -> None:
    """Say whether labels of MODEL can be on while others are off; or which label sets of a data set are impossible."""
    from gonio.ask.questions import can_label as ask
    from gonio.ask.questions import can_labels
    from gonio.report import listing as text

    if sets is None:
        if csv_to is not None:
            raise GonioError("can-label: --csv has the rows of --sets; for one question use --json or --proof.")
        rest = "rest" if rest_off else [label_of(head, x) for x in off]
        verdict = ask(head, on=[label_of(head, x) for x in on], off=rest)
        _tell_verdict(verdict, json_to, proof)
        return
    if on or off or rest_off:
        raise GonioError("can-label: give --sets, or --on and --off; not both.")
    lines = label_sets_of(sets, head, "can-label")
    with Bar("can-label") as bar:
        result = can_labels(head, lines, on_progress=bar)
    quiet = tell(lambda: text.can_label(result), result.columns, json_to, result.columns, csv_to)
    each = dict(zip(result.sets, result.certificates, strict=True))
    save_proofs(head, proof, each.values, quiet=quiet)


@command("can-rank", epilog=LABELS)
@model_and("LABEL LABEL...", 1)
@click.option("--on-top", is_flag=True, help="They are to be above all other labels too: the top k in this order.")
@proof_option
@json_option
def can_rank(head: Head, names, on_top, proof, json_to) -> None:
    """Say whether MODEL can score the labels in this order, highest first; A>B pairs give a partial order."""
    from gonio.ask.questions import can_rank as ask

    if all(">" in x and x not in head.labels and not BYTE.fullmatch(x) for x in names):
        bad = next((x for x in names if x.count(">") != 1), None)
        if bad is not None:
            raise GonioError(f"can-rank: {bad!r} is not one label > another; write each pair apart.")
        order: list = [tuple(label_of(head, part) for part in x.split(">")) for x in names]
    else:
        order = [label_of(head, x) for x in names]
    _tell_verdict(ask(head, order, top=on_top), json_to, proof)


@command("can-top", epilog=LABELS)
@model_and("LABEL...", 1)
@proof_option
@json_option
def can_top(head: Head, names, proof, json_to) -> None:
    """Say whether these labels of MODEL can be the top k, in whatever order."""
    from gonio.ask.questions import can_top as ask

    _tell_verdict(ask(head, [label_of(head, x) for x in names]), json_to, proof)


@command()
@model_options
@click.option("--top", metavar="K", type=int, default=0, help="Show the first K of them.")
@click.option(
    "--numbers",
    type=Numbers(),
    default="floats",
    help="What the stored numbers stand for: floats (the rationals they are), decimals (the short decimals they print "
    "as), or a tolerance such as 1e-9 up to which values count as zero (rows have length 1). Default: floats.",
)
@click.option("--drop", is_flag=True, help="Leave out labels that have no pattern: zero rows, second twins.")
@click.option(
    "--out",
    metavar="FILE",
    type=Writes(),
    help="Save all of them as an array (.npy): signs, or label indices winner first.",
)
@click.option("--any-size", is_flag=True, help="Go through however many there are.")
@workers_options
@json_option
def patterns(head: Head, top, numbers, drop, out, any_size, cluster, state, json_to) -> None:
    """Count, exactly, the label sets (link sigmoid) or rankings (other links) that MODEL can output."""
    from gonio.listing.label_set_list import label_sets
    from gonio.listing.pattern import LIMIT
    from gonio.listing.ranking_list import rankings
    from gonio.report import listing as text

    limit = None if any_size else LIMIT
    with at_work(cluster, state, head):
        if head.link == "sigmoid":
            found = label_sets(head, numbers=numbers, drop_zero=drop, limit=limit)
        else:
            found = rankings(head, numbers=numbers, drop_twins=drop, limit=limit)
        quiet = tell(lambda: text.patterns(found, listed=top), found.to_dict, json_to)
    if out is not None:
        from gonio.files.write.npy_rows import save_rows

        with Bar("patterns") as bar:
            save_rows(out, map(found.rows, found.blocks(on_progress=bar)), found.to_array, "patterns")
        click.echo(f"  written    {out}", err=quiet)


def _tell_verdict(verdict: Verdict, json_to: str | None, proof: str | None) -> None:
    from gonio.report import listing as text

    quiet = tell(lambda: text.verdict(verdict), verdict.to_dict, json_to)
    save_proofs(verdict.head, proof, lambda: [verdict.certificate], quiet=quiet)
