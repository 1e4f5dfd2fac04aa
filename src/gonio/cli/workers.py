"""The options of long work: where it is done, and where what is finished is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from gonio.cli.paths import WritesInto
from gonio.cluster.connecting import connected
from gonio.core.run_state import resumable

# What changes neither the work nor its results.
BESIDE = (
    "cluster", "state", "json_to", "csv_to", "html", "proof", "out", "formats", "embed_rows", "explain", "fail_on",
    "model",
)  # fmt: skip


def workers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--cluster and --state; the command does its work inside of `at_work`."""
    cluster = click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Let a dask cluster do the heavy work: its scheduler's address, or local:N for N processes here.",
    )
    state = click.option(
        "--state",
        metavar="DIR",
        type=WritesInto(),
        help="Keep what is finished in DIR: the same command, stopped by whatever, goes on from there.",
    )
    return cluster(state(command))


@contextmanager
def at_work(cluster: str | None, state: str | None, *data: Any) -> Iterator[None]:
    """A context in which the work of this command goes to a cluster and what is finished is kept.

    data : heads, or the names of files, that the work is about
    """
    ctx = click.get_current_context()
    asked = {k: v for k, v in sorted(ctx.params.items()) if k not in BESIDE and v not in (None, (), False)}
    if "typed" in asked:  # the model and words behind it
        asked["typed"] = asked["typed"][1:] or None
    question = " ".join([str(ctx.info_name), *(f"{k}={v}" for k, v in asked.items() if v is not None)])
    with connected(cluster), resumable(state, *map(_known_by, data), question=question):
        yield


def _known_by(data: Any) -> Any:
    """A head by itself, a file by its name, size and last change."""
    if isinstance(data, (str, os.PathLike)) and os.path.exists(data):
        about = os.stat(data)
        return f"{os.path.abspath(data)} {about.st_size} {about.st_mtime_ns}"
    return data
