"""The embeddings that a question is about: a file of them, or the states of a text that is run through MODEL."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gonio.cli.paths import Reads
from gonio.core.errors import GonioError
from gonio.core.head import Head
from gonio.core.progress import Bar

if TYPE_CHECKING:
    from gonio.core.states import States

TEXT = (
    click.option("--embeddings", metavar="FILE", type=Reads(), help="States that reach the head, one a row (.npy)."),
    click.option(
        "--text",
        metavar="FILE",
        type=Reads(),
        help="Run MODEL on this text, a document a line, and use the states that reach its head; 'self': on its own.",
    ),
    click.option("--split", metavar="TEXT", help="What stands between two documents of the text, such as '\\n\\n'."),
    click.option(
        "--tokens", metavar="N", type=click.IntRange(1), default=20_000, show_default=True, help="States taken."
    ),
    click.option("--feed", metavar="FILE", type=Reads(), help="Arrays that MODEL reads in place of text (.npz)."),
)


def embeddings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--embeddings, or --text with its options."""
    for option in reversed(TEXT):
        command = option(command)
    return command


def embeddings_of(
    head: Head, who: str, embeddings: str | None, text: str | None, split: str | None, tokens: int, feed: str | None
) -> tuple[Head, Any]:
    """(head, embeddings or None): the head as it was read; of a sentence model, the texts as rows."""
    given = [k for k, v in {"--embeddings": embeddings, "--text": text, "--feed": feed}.items() if v is not None]
    if len(given) > 1:
        raise GonioError(f"{who}: {' and '.join(given)} both say what reaches the head; give one of them.")
    if split is not None and text is None:
        raise GonioError(f"{who}: --split is about --text; give a text.")
    if embeddings is not None:
        return head, array_of(embeddings, who, head)
    if text is None and feed is None:
        return head, None
    if head.source is not None and (Path(head.source.place) / "modules.json").is_file():
        return _sentences(head.source.place, who, text, split, tokens), None
    return head, captured(head, who, text, split, tokens, feed)


def typed_again(embeddings: str | None, text: str | None, split: str | None, tokens: int, feed: str | None) -> str:
    """The options as they would be typed to give the same embeddings again; empty where none were given."""
    given = {"--embeddings": embeddings, "--text": text, "--split": split, "--feed": feed}
    if text is not None or feed is not None:
        given["--tokens"] = str(tokens)
    return " ".join(f"{name} {shlex.quote(value)}" for name, value in given.items() if value is not None)


def captured(
    head: Head,
    who: str,
    text: str | None,
    split: str | None,
    tokens: int,
    feed: str | None,
    *,
    layer: str = "final",
    out: str | None = None,
    keep_part: bool = False,
) -> States:
    """The states of a text, or of arrays, that reach the head of the model it was read from."""
    from gonio.models.opening import open_model
    from gonio.models.state_capture import states

    if head.source is None or not head.source.place:
        raise GonioError(f"{who}: a head alone cannot be run; give the model.")
    place = head.source.place
    if place.lower().endswith(".onnx"):
        from gonio.models.onnx_states import states_of_onnx

        if feed is None:
            raise GonioError(f"{who}: an ONNX model reads arrays, not text; give them with --feed inputs.npz.")
        with Bar("states") as bar:
            return states_of_onnx(place, head, arrays_of(feed, who), most=tokens, out=out, on_batch=bar)
    with Bar("states") as bar:
        bar(0, 1, "opening the model")
        opened = open_model(place, who)
        what: Any = None if text is None else "self" if text == "self" else _documents(text, split, who)
        found = states(
            opened.model,
            opened.tokenizer,
            what,
            feed=None if feed is None else arrays_of(feed, who),
            head=head if head.link != "input" else None,
            tokens=tokens,
            layer=layer,
            out=out,
            on_batch=bar,
        )
    if found.about.get("stopped") and not keep_part:
        raise KeyboardInterrupt
    return found


def array_of(path: str, who: str, head: Head | None = None) -> Any:
    """A table of numbers, one point a row, from a .npy file; with the states' own file beside it, States."""
    from gonio.core.inputs import Observed
    from gonio.core.states import States, must_fit
    from gonio.files.read.states_file import read_states

    found = read_states(path, who)
    if isinstance(found, States):
        if head is not None:
            must_fit(found, head, who)
        return found
    return Observed(found).F


def arrays_of(path: str, who: str) -> dict[str, Any]:
    """The arrays of a .npz file by name, read as carefully as a model."""
    from gonio.core.npz_archive import NpzArchive

    if not path.lower().endswith(".npz"):
        raise GonioError(f"{who}: {path} is not a .npz file; save the model's inputs with np.savez(FILE, name=array).")
    archive = NpzArchive(Path(path))
    return {name: archive.read(name) for name in archive.entries}


def _documents(text: str, split: str | None, who: str) -> list[str]:
    from gonio.models.documents import read_documents, separator

    return read_documents(text, separator(split), who)


def _sentences(place: str, who: str, text: str | None, split: str | None, tokens: int) -> Head:
    from gonio.models.opening import open_model
    from gonio.models.sentences import head_of_sentences

    if text is None or text == "self":
        raise GonioError(f"{who}: {place} embeds texts; give them with --text FILE, one a line.")
    documents = _documents(text, split, who)
    with Bar("texts") as bar:
        bar(0, 1, "opening the model")
        opened = open_model(place, who)
        return head_of_sentences(opened.model, documents, tokens)
