"""The command `gonio`: parse, call, print, exit code; no mathematics.

Exit codes: 0 fine, 1 a finding that was asked to fail, a proof refused or two models that are not the same, 2 it could
not be done (bad input, no room, no memory), in one sentence, 3 compare cannot tell, 130 stopped by Ctrl-C, 143 by
SIGTERM.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from gonio.cli.applying import apply
from gonio.cli.auditing import alike, audit
from gonio.cli.checking import check
from gonio.cli.diagnosing import diagnose
from gonio.cli.exploring import explore
from gonio.cli.factor_models import factors
from gonio.cli.gauge import compare, dial, info
from gonio.cli.pattern_questions import can_label, can_rank, can_top, patterns
from gonio.cli.possible import can_tie, can_win, pad, verify
from gonio.cli.reproducing import reproduce
from gonio.cli.running import alike_inputs, canonicalise, direction, undertrained
from gonio.cli.similarity import similar
from gonio.cli.state_files import states
from gonio.cli.studying import study
from gonio.core.errors import GonioError
from gonio.core.unpack_limit import DEFAULT, set_unpack_limit
from gonio.core.version import __version__


class _Gonio(click.Group):
    """A group whose commands end with one sentence and exit code 2 where gonio complains."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GonioError as e:
            from gonio.report.text import printable

            click.echo(f"gonio: {printable(str(e))}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("gonio: stopped.", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; there is nobody left to tell
            ctx.exit(0)


@click.group(cls=_Gonio, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="gonio %(version)s")
@click.option(
    "--unpack-limit",
    metavar="GB",
    type=float,
    default=DEFAULT,
    show_default=True,
    help="Read compressed arrays that unpack to at most so many gigabytes.",
)
def main(unpack_limit: float) -> None:
    """What the similarity of a model's label vectors means, what it cannot mean, and what is true instead."""
    set_unpack_limit(unpack_limit)


_ASK = (
    info,
    audit,
    check,
    alike,
    similar,
    alike_inputs,
    direction,
    diagnose,
    undertrained,
    can_win,
    can_tie,
    can_rank,
    can_top,
    can_label,
    patterns,
)
_DO = (states, apply, canonicalise, dial, compare, verify, pad, factors, explore, reproduce, study)
for _command in (*_ASK, *_DO):
    main.add_command(_command)
