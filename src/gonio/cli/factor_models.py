"""Commands about factor models: experiments on rescaling, the figure, MovieLens, the audit of a pair of tables."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import click

from gonio.cli.output import json_option, tell
from gonio.cli.paths import Command, Reads, Writes
from gonio.cli.text import array_of
from gonio.core.progress import Bar


class _Group(click.Group):
    command_class = Command


@click.group(cls=_Group)
def factors() -> None:
    """Try on data what rescaling does to the cosines of a factor model."""


def _data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The interactions: a file, or the simulation of the paper at a size that takes seconds."""

    @click.option(
        "--data", metavar="FILE", type=Reads(), help="Your interactions, users x items: .npz (scipy.sparse) or .npy."
    )
    @click.option("--simulated-users", type=int, default=5_000, show_default=True, help="How many, without --data.")
    @click.option("--simulated-items", type=int, default=500, show_default=True, help="How many, without --data.")
    @click.option("--seed", type=int, default=0, show_default=True, help="Of the simulation and of random rescalings.")
    @json_option
    @functools.wraps(command)
    def wrapped(data, simulated_users, simulated_items, **rest: Any) -> Any:
        with plainly():
            return command(_interactions(data, simulated_users, simulated_items, rest["seed"]), **rest)

    return wrapped


class plainly(warnings.catch_warnings):  # noqa: N801  reads as a word where it is used
    """Warnings as one line on standard error, not as Python shows them."""

    def __init__(self) -> None:
        super().__init__(record=False)

    def __enter__(self) -> Any:
        out = super().__enter__()
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: click.echo(f"note: {message}", err=True)
        return out


def _interactions(data: str | None, users: int, items: int, seed: int) -> Any:
    if data is None:
        from gonio.papers.simulated_interactions import simulate

        return simulate(users, items, seed=seed).X
    if data.endswith(".npy"):
        return array_of(data, "factors")
    from gonio.files.read.sparse import read_sparse

    return read_sparse(data, "factors")


def _tell(result: Any, text: Callable[[Any], str], json_to: str | None) -> bool:
    return tell(lambda: text(result), result.to_dict, json_to)


@factors.command()
@_data_options
@click.option("--rank", type=int, default=20, show_default=True)
@click.option("--rate", type=float, default=0.5, show_default=True, help="The share of inputs that are dropped.")
def dropout(X, rank, rate, seed, json_to) -> None:
    """Dropout against weight decay on the same data: scores agree, cosines differ."""
    from gonio.papers import factor_text as text
    from gonio.papers.factor_experiments import dropout_against_decay

    _tell(dropout_against_decay(X, rank, rate, seed=seed), text.experiment, json_to)


@factors.command()
@_data_options
@click.option("--rank", type=int, default=20, show_default=True)
@click.option("--lam-product", type=float, default=10_000.0, show_default=True, help="Penalty on the product.")
@click.option("--lam-factors", type=float, default=100.0, show_default=True, help="Penalty on each factor.")
def rescale(X, rank, lam_product, lam_factors, seed, json_to) -> None:
    """The training objective under rescaling: unchanged, while cosines move."""
    from gonio.papers import factor_text as text
    from gonio.papers.factor_experiments import rescaling

    found = rescaling(X, rank, lam_product=lam_product, lam_factors=lam_factors, seed=seed)
    _tell(found, text.experiment, json_to)


@factors.command()
@_data_options
@click.option("--rank", type=int, default=20, show_default=True)
@click.option("--lam", type=float, default=10_000.0, show_default=True, help="Penalty on the product.")
def project(X, rank, lam, seed, json_to) -> None:
    """Projecting back: its cosines are the same for every answer of the training."""
    from gonio.papers import factor_text as text
    from gonio.papers.factor_experiments import projecting

    _tell(projecting(X, rank, lam=lam, seed=seed), text.experiment, json_to)


@factors.command()
@_data_options
@click.option("--rank", type=int, default=4, show_default=True)
@click.option("--starts", type=int, default=3, show_default=True, help="Random starts of each training.")
@click.option("--lam-product", type=float, default=10_000.0, show_default=True, help="Penalty on the product.")
@click.option("--lam-factors", type=float, default=100.0, show_default=True, help="Penalty on each factor.")
@click.option("--rate", type=float, default=0.5, show_default=True, help="The share of inputs that are dropped.")
def restarts(X, rank, starts, lam_product, lam_factors, rate, seed, json_to) -> None:
    """Training from several random starts: in what do the answers agree?"""
    from gonio.papers import factor_text as text
    from gonio.papers.factor_experiments import restarts as run

    with Bar("restarts") as bar:
        found = run(
            X, rank, lam_product=lam_product, lam_factors=lam_factors, rate=rate, starts=starts, on_progress=bar
        )
    _tell(found, text.experiment, json_to)


@factors.command()
@click.option("--simulated-users", type=int, default=20_000, show_default=True)
@click.option("--simulated-items", type=int, default=1_000, show_default=True)
@click.option("--rank", type=int, default=50, show_default=True)
@click.option("--lam-product", type=float, default=10_000.0, show_default=True, help="Penalty on the product.")
@click.option("--lam-factors", type=float, default=100.0, show_default=True, help="Penalty on each factor.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--remedies", is_flag=True, help="Also the remedies the paper names (some minutes at full size).")
@click.option("--out", metavar="FILE", type=Writes(), help="Draw the panels here: .png, .svg or .pdf.")
@json_option
def figure1(simulated_users, simulated_items, rank, lam_product, lam_factors, seed, remedies, out, json_to) -> None:
    """The paper's Figure 1 again: clusters, and how well each choice of the cosine tells them apart."""
    from gonio.papers import factor_text as text
    from gonio.papers.steck_figure1 import figure1 as run

    with plainly():
        found = run(
            simulated_users,
            simulated_items,
            rank=rank,
            lam_product=lam_product,
            lam_factors=lam_factors,
            seed=seed,
            remedies=remedies,
        )
    quiet = _tell(found, text.figure1, json_to)
    if out is not None:
        from gonio.papers.factor_pictures import draw

        click.echo(f"  drawn      {draw(found, out)}", err=quiet)


@factors.command()
@click.argument("path", type=Reads())
@click.option("--rank", type=int, default=50, show_default=True)
@click.option("--lam-product", type=float, default=400.0, show_default=True, help="Penalty on the product.")
@click.option("--lam-factors", type=float, help="Penalty on each factor (the root of --lam-product).")
@click.option("--least", type=int, default=20, show_default=True, help="Films with at least so many ratings.")
@click.option("--remedies", is_flag=True, help="Also the remedies the paper names.")
@click.option("--leave-last-out", is_flag=True, help="Instead: which measure and remedy finds each user's last film.")
@json_option
def movielens(path, rank, lam_product, lam_factors, least, remedies, leave_last_out, json_to) -> None:
    """Which cosine finds films of the same genre, on MovieLens-100k.

    PATH is a folder, or a wheel or zip, with the files ml-100k.inter and ml-100k.item inside.
    """
    from gonio.papers import factor_text as text
    from gonio.papers.movielens import genre_agreement, read

    data = read(path)
    if leave_last_out:
        from gonio.papers.movielens_retrieval import leave_last_out as hold_out

        _tell(hold_out(data, rank, lam_product=lam_product, lam_factors=lam_factors), text.held_out, json_to)
        return
    with plainly():
        found = genre_agreement(
            data, rank, lam_product=lam_product, lam_factors=lam_factors, least=least, remedies=remedies
        )
    _tell(found, text.genres, json_to)


def told_training(head: Any, trained: str) -> Any:
    """The head of a factor model, with what the user says of its training."""
    from dataclasses import replace

    source = head.source
    told = dict(source.decided) | {"trained": "given by the caller"}
    return head.replace(trained=trained, source=replace(source, decided=told, assumed=source.assumed - {"trained"}))


def factor_rows(head: Any, popularity: Any, top: int) -> dict[str, list[Any]]:
    """One row an item of a factor model."""
    from gonio.factors.checkup import audit as run

    with plainly(), Bar("items") as bar:
        return run(head, popularity=popularity, k=top, on_progress=bar).columns()
