"""What the commands share: MODEL with the options that say how to read it, labels and files as typed."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from gonio.cli.paths import Reads, ReadsInputs, Words
from gonio.core.errors import GonioError, LabelError
from gonio.core.head import KNOWN_LINKS, Head
from gonio.core.readable_label import printable, quoted

LABELS = (
    "A LABEL is a row's name, or #12 for row 12. A token is found as its tokenizer writes it ('Ġdog', '▁dog', "
    "'<0x0A>') and as people write it (' dog', or dog where no label is called that); what was taken is said. With "
    "--users and --items there is no MODEL."
)


frequencies_option = click.option(
    "--frequencies",
    metavar="FILE",
    type=Reads(),
    help="How often each label occurs: one number a line, or label TAB number.",
)

FORMAT = (
    click.option("--link", type=click.Choice(KNOWN_LINKS), help="What the rows are: how scores become predictions."),
    click.option("--tensor", metavar="NAME", help="The table of label rows, where the guess is wrong."),
    click.option("--labels", metavar="FILE", type=Reads(), help="Names of the rows: one a line, or JSON."),
    click.option(
        "--inputs",
        metavar="KIND",
        type=ReadsInputs(),
        help="What can reach the head: all, nonnegative, box:LOW,HIGH, observed:FILE.npy.",
    ),
)
FACTORS = (
    click.option(
        "--users", metavar="FILE", type=Reads(), help="Factor model: the users' vectors (.npy), with --items."
    ),
    click.option(
        "--items", metavar="FILE", type=Reads(), help="Factor model: the items' vectors (.npy), with --users."
    ),
)


def format_options(command: Callable[..., Any], more: tuple[Callable[..., Any], ...] = ()) -> Callable[..., Any]:
    """The options that say how to read a model."""
    for option in reversed((*FORMAT, *more)):
        command = option(command)
    return command


def _reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those, and the tables of a factor model in place of MODEL."""
    return format_options(command, FACTORS)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL and the options that say how to read it, as they were typed."""
    return click.argument("model", required=False, type=Reads())(_reading(command))


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL and the options that say how to read it; the command gets the Head."""

    @reading_options
    @functools.wraps(command)
    def wrapped(model, link, tensor, labels, inputs, users, items, **rest: Any) -> Any:
        return command(head_of(model, link, tensor, labels, inputs, users, items), **rest)

    return wrapped


def model_and(words: str, least: int, most: int | None = None, *, files: bool = False) -> Callable[..., Any]:
    """MODEL with its options, and further words, or files, behind it; with --users and --items all words are such.

    The command gets the Head and the words as they were typed, between `least` and `most` of them.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("typed", metavar=f"[MODEL] {words}", nargs=-1, type=Words(files=files))
        @functools.wraps(command)
        def wrapped(typed, link, tensor, labels, inputs, users, items, **rest: Any) -> Any:
            model, given = (None, typed) if users is not None or items is not None else (typed[:1], typed[1:])
            if model is not None and not model:
                raise GonioError(f"{_name()}: no model was named; give {words} behind a file, a folder or a name.")
            if len(given) < least or (most is not None and len(given) > most):
                wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
                raise GonioError(f"{_name()}: {len(given)} given behind the model ({words}); {wanted} are needed.")
            head = head_of(model[0] if model else None, link, tensor, labels, inputs, users, items)
            return command(head, tuple(given), **rest)

        return _reading(wrapped)

    return decorate


def _name() -> str:
    return str(click.get_current_context().info_name)


def head_of(model, link, tensor, labels, inputs, users, items) -> Head:
    """The head that the options name."""
    from gonio.models.loading import load

    if (users is None) != (items is None):
        raise GonioError("a factor model needs both --users and --items.")
    if (model is None) == (users is None):
        raise GonioError("give one model: a file, a folder, a name, or --users with --items.")
    head = load(model if users is None else (users, items), link=link, tensor=tensor, labels=labels, inputs=inputs)
    options = {"users": users, "items": items, "link": link, "tensor": tensor, "labels": labels, "inputs": inputs}
    typed = [*([model] if model is not None else []), *(x for k, v in options.items() if v for x in (f"--{k}", v))]
    assert head.source is not None  # whatever is loaded says where it came from
    return head.replace(source=replace(head.source, typed=shlex.join(typed)))


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise GonioError(f"{path} cannot be read as text ({e}).") from None


def frequencies_of(path: str | None, who: str) -> list[float] | dict[str, float] | None:
    """How often each label occurs: one number a line, or a label, a tab and a number."""
    if path is None:
        return None
    lines = [x for x in text_of(path).splitlines() if x.strip()]
    try:
        if any("\t" in x for x in lines):
            return {k: float(v) for k, v in (x.rsplit("\t", 1) for x in lines)}
        return [float(x) for x in lines]
    except ValueError:
        raise GonioError(f"{who}: {path} has not one number a line, nor a label, a tab and a number.") from None


MOST_SAID = 20  # names of one command that are told: a file of label sets may hold any number


def label_of(head: Head, text: str) -> int:
    """The row of a label as typed: its number (#12), its name, or its text in another spelling.

    What was taken is said where it is not the very name, or where other labels are the same text.
    """
    found = head.names.find(text)
    told = head.names.told
    if not found.exact:
        _say_once(f"{printable(text)} -> {told([found.row])}")
    elif found.others:
        _say_once(f"{printable(text)} -> {told([found.row])}, not {told(found.others)}")
    return found.row


SEPARATORS = {",": "commas", ";": "semicolons", "|": "bars", " ": "blanks"}  # what people write instead of tabs


def label_sets_of(path: str, head: Head, who: str) -> list[list[int]]:
    """The label sets of a file, one a line, labels separated by tabs."""
    return [
        _label_set(head, line, f"{who}: line {k} of {printable(path)}")
        for k, line in enumerate(text_of(path).splitlines(), 1)
        if line.strip()
    ]


def _label_set(head: Head, line: str, where: str) -> list[int]:
    try:
        return [label_of(head, x) for x in line.split("\t") if x]
    except LabelError as e:
        written = next((words for mark, words in SEPARATORS.items() if mark in line.strip()), None)
        if "\t" in line or written is None:
            raise GonioError(f"{where}: {e}") from None
        raise GonioError(
            f"{where} has no tab and is no label: {quoted(line)}; the labels of a set are separated by tabs, so write "
            f"tabs in the place of its {written}."
        ) from None


def _say_once(line: str) -> None:
    """A line on the terminal's error stream, once a command, and only so many of them."""
    said = click.get_current_context().meta.setdefault("gonio.labels", set())
    if line not in said and len(said) <= MOST_SAID:
        click.echo(line if len(said) < MOST_SAID else "(how further names were taken is not told)", err=True)
        said.add(line)


def numbers_of(path: str, who: str) -> Any:
    """The numbers of a .npy file."""
    from gonio.core.npy_file import read_npy

    return read_npy(path, who)


def pairs_of(path: str | None, head: Head, who: str) -> list[tuple[int, ...]] | None:
    """Pairs of labels from a file: one a line, separated by a tab."""
    if path is None:
        return None
    lines = [x.split("\t") for x in text_of(path).splitlines() if x.strip()]
    bad = next((k for k, x in enumerate(lines, 1) if len(x) != 2), None)
    if bad is not None:
        raise GonioError(f"{who}: line {bad} of {path} is not two labels separated by a tab.")
    return [tuple(label_of(head, x) for x in pair) for pair in lines]
