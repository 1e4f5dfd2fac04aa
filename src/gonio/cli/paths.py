"""What a command reads and what it writes; no output may be an input, nor two outputs one file.

Every option and argument that names a file or a folder has one of these types, and every command is a `Command`, which
compares them before it does any work: by device and inode, so through links of either kind. tests/contracts/
test_paths.py finds an option without such a type and a command of another class.
"""

from __future__ import annotations

import functools
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from gonio.core.atomic_write import is_stream
from gonio.core.errors import GonioError
from gonio.files.write.exact_head import beside

# What is read beside a weights file, by name.
SIDECARS = (
    "added_tokens.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
# What stands in a model's folder and is never part of the model: reports of an earlier run may be replaced there.
REPORTS = (".html", ".csv", ".parquet", ".png", ".svg", ".pdf")

Given = Mapping[str, Any]  # the options as given, by parameter name


class Reads(click.ParamType):
    """A file or folder that is read."""

    name = "text"

    def paths(self, value: str, given: Given) -> Iterable[str]:
        return [value]


class ReadsInputs(Reads):
    """What can reach the head, which may name a file: observed:FILE.npy."""

    def paths(self, value: str, given: Given) -> Iterable[str]:
        kind, _, rest = value.strip().partition(":")
        return [rest] if kind == "observed" and rest else []


class Words(Reads):
    """MODEL, unless --users and --items stand for it, and words behind it: labels, or with files=True files."""

    def __init__(self, *, files: bool = False) -> None:
        self.files = files

    def words(self, values: tuple[str, ...], given: Given) -> Iterable[str]:
        first = 0 if given.get("users") is not None or given.get("items") is not None else 1
        return [*values[:first], *(values[first:] if self.files else ())]


class NameAndFiles(Words):
    """A name, and files that are read behind it; a name that is a file is kept too."""

    def words(self, values: tuple[str, ...], given: Given) -> Iterable[str]:
        return values


class Writes(click.ParamType):
    """A file that is written; '-' is the terminal."""

    name = "text"

    def paths(self, value: str, given: Given) -> Iterable[str]:
        return [] if value == "-" else [value]


class WritesProof(Writes):
    """A proof file, and beside it the exact head."""

    def paths(self, value: str, given: Given) -> Iterable[str]:
        return [value, str(beside(value))]


class WritesFolder(click.ParamType):
    """A folder that is written whole, in place of what stands there; with --head-only one file in it."""

    name = "text"

    def files(self, value: str, given: Given) -> Iterable[str]:
        return [os.path.join(value, "head.safetensors")] if given.get("head_only") else []


class WritesInto(click.ParamType):
    """A folder into which files with names of gonio's own are written, beside what is there."""

    name = "text"


class Command(click.Command):
    """A command that refuses, before any work, to write over what it reads."""

    def invoke(self, ctx: click.Context) -> Any:
        keep_inputs(str(ctx.info_name), self.params, ctx.params)
        return super().invoke(ctx)


command: Callable[..., Callable[..., Command]] = functools.partial(click.command, cls=Command)


def keep_inputs(who: str, params: Iterable[click.Parameter], given: Given) -> None:
    """Raise where an output is an input, or two outputs are one."""
    inputs = [x for x in _inputs(params, given) if os.path.exists(x)]
    files, folders = _outputs(params, given)
    for out in files:
        for read in inputs:
            if _is_part_of(out, read):
                raise GonioError(f"{who}: {out} is {_called(out, read)}, and never written over; {ELSEWHERE}")
    for folder in folders:
        _keep_apart(who, folder, inputs)
    _must_differ(who, files, folders)


ELSEWHERE = "choose another name for the output."


def _inputs(params: Iterable[click.Parameter], given: Given) -> Iterator[str]:
    for param, value in _values(params, given):
        if isinstance(param.type, Words):
            yield from param.type.words(value, given)
        elif isinstance(param.type, Reads):
            for one in value if isinstance(value, tuple) else (value,):
                yield from param.type.paths(one, given)


def _outputs(params: Iterable[click.Parameter], given: Given) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    for param, value in _values(params, given):
        if isinstance(param.type, Writes):
            files += param.type.paths(value, given)
        elif isinstance(param.type, WritesFolder):
            alone = list(param.type.files(value, given))
            files += alone
            folders += [] if alone else [value]
    return [x for x in files if not is_stream(Path(x))], folders


def _values(params: Iterable[click.Parameter], given: Given) -> Iterator[tuple[click.Parameter, Any]]:
    for param in params:
        value = given.get(str(param.name))
        if value is not None:
            yield param, value


def _is_part_of(out: str, read: str) -> bool:
    """Whether an output is the file that is read, or one that is read with it."""
    if not os.path.exists(out):
        return False
    if os.path.isdir(read):
        inside = _inside(out, read) and not out.lower().endswith(REPORTS)
        return inside or any(_same(out, p) for p in Path(read).iterdir() if p.is_file() and p.suffix not in REPORTS)
    beside_it = [Path(read).with_name(name) for name in SIDECARS]
    return _same(out, read) or any(_same(out, p) for p in beside_it if p.is_file()) or _is_named_in(out, read)


def _is_named_in(out: str, model: str) -> bool:
    """Whether an ONNX model, which keeps its tensors in files beside it, holds the name of this one."""
    folders = {os.path.realpath(os.path.dirname(model) or "."), os.path.dirname(os.path.realpath(model))}
    if not model.lower().endswith(".onnx") or not any(_inside(out, x) for x in folders) or not os.path.getsize(model):
        return False
    with open(model, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        return raw.find(os.fsencode(os.path.basename(out))) >= 0


def _keep_apart(who: str, folder: str, inputs: list[str]) -> None:
    """Raise where a folder that is replaced holds something that is read, or lies inside of it."""
    for read in inputs:
        if os.path.isdir(read) and _inside(folder, read):
            raise GonioError(f"{who}: {folder} lies inside {read}, which is read; {ELSEWHERE}")
        if _inside(read, folder):
            raise GonioError(f"{who}: {folder} holds {read}, which is read and never written over; {ELSEWHERE}")


def _must_differ(who: str, files: list[str], folders: list[str]) -> None:
    for k, out in enumerate(files):
        other = next((x for x in files[:k] if _same(x, out)), None)
        if other is not None:
            raise GonioError(f"{who}: two outputs would go to one file, {other} and {out}; name two.")
        holder = next((x for x in folders if _inside(out, x)), None)
        if holder is not None:
            raise GonioError(f"{who}: {out} lies inside {holder}, which is replaced as a whole; {ELSEWHERE}")


def _same(a: str | Path, b: str | Path) -> bool:
    """Whether two paths are one file: the same device and inode; of files that are not there yet, the same place."""
    try:
        return os.path.samestat(os.stat(a), os.stat(b))
    except (OSError, ValueError):
        return os.path.realpath(a) == os.path.realpath(b)


def _inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies inside of it, links followed."""
    place = Path(os.path.realpath(path))
    return any(_same(p, folder) for p in (place, *place.parents))


def _called(out: str, read: str) -> str:
    """How an output is called as part of what is read."""
    if _same(out, read):
        return "read by this command" if out == read else f"the same file as {read}, which is read"
    return f"one of the files of {read}" if os.path.isdir(read) else f"read together with {read}"
