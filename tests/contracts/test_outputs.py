"""Every output goes through the one writer, and no command can write over what it reads."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main
from gonio.cli.paths import SIDECARS, Command, Reads, Words, Writes, WritesFolder, WritesInto

SRC = Path(__file__).parents[2] / "src" / "gonio"
WRITING = {
    "write_text",
    "write_bytes",
    "savefig",
    "savez",
    "savez_compressed",
    "tofile",
    "write_table",
    "copy2",
    "copyfile",
}
# Functions that are handed the temporary, or a folder of their own, by one that made it.
HANDED = {
    ("core/block_file.py", "to_bytes"),  # into memory
    ("core/shared_files.py", None),  # a folder of its own, removed after the work
    ("core/atomic_write.py", "_sent"),
    ("core/whole_folder.py", "_finish"),
    ("files/write/exact_head.py", "_write"),
    ("files/write/growing_npy.py", "growing"),
    ("files/write/tensors.py", None),
    ("files/write/checkpoint.py", None),
    ("papers/real.py", None),  # TemporaryDirectory
    ("studies/fixture_heads.py", "extracted"),  # TemporaryDirectory
    ("studies/packaged_small_heads.py", "_laid"),  # TemporaryDirectory
    ("report/table.py", "_csv"),
    ("report/table.py", "_json"),
    ("report/table.py", "_parquet"),
}


def writes(node: ast.AST) -> bool:
    """Whether a call writes to a path."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in WRITING:
        return True
    if name == "save":  # np.save, torch.save; a method of our own saves through the writer
        return isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in ("np", "torch", "numpy")
    texts = [a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)]
    modes = [t for t in texts if isinstance(t, str) and re.fullmatch(r"[rwaxbt+]{1,3}", t)]
    return name in ("open", "ZipFile") and any(set(t) & set("wax+") for t in modes)


def unguarded(path: Path) -> list[str]:
    """The writing calls of a file that are not inside a `with whole(...)` of the same function."""
    found: list[str] = []
    text = path.read_text(encoding="utf-8")
    if not re.search(rf"open\(|ZipFile|save\(|{'|'.join(WRITING)}", text):
        return found  # quicker than to parse it

    def walk(node: ast.AST, inside: bool, function: str | None) -> None:
        if isinstance(node, ast.FunctionDef):
            function, inside = node.name, False
        if isinstance(node, ast.With):
            calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
            inside = inside or any(getattr(c.func, "id", "") in ("whole", "whole_folder") for c in calls)
        place = str(path.relative_to(SRC))
        if writes(node) and not inside and not {(place, function), (place, None)} & HANDED:
            found.append(f"{place}:{node.lineno} in {function}")  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            walk(child, inside, function)

    walk(ast.parse(text), False, None)
    return found


def test_every_output_goes_through_the_one_writer():
    assert [x for p in sorted(SRC.rglob("*.py")) for x in unguarded(p)] == []


@pytest.mark.parametrize(
    "line",
    ["open(p, 'w')", "p.open('wb')", "p.open(mode='a')", "p.write_text(t)", "np.save(p, a)", "np.savez(p, a=a)",
     "fig.savefig(p)", "zipfile.ZipFile(p, 'w')"],
)  # fmt: skip
def test_a_write_past_the_writer_is_seen(line):
    assert any(writes(n) for n in ast.walk(ast.parse(line)))


def commands(group: click.Group = main, path: tuple[str, ...] = ()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_path_of_every_command_is_declared_as_read_or_written(path):
    command = COMMANDS[path]
    assert isinstance(command, Command)
    for p in command.params:
        typed = isinstance(p.type, Reads | Writes | WritesFolder | WritesInto)
        if isinstance(p, click.Option):
            names_path = p.metavar in ("FILE", "DIR") or "FILE" in (p.metavar or "") or p.name == "inputs"
            assert typed == names_path, p.name
            if p.opts[0] in ("--out", "--html", "--json", "--csv", "--proof", "--plots"):
                assert isinstance(p.type, Writes | WritesFolder | WritesInto)
        else:
            assert typed or p.name == "papers"


def pairs():
    for path, command in COMMANDS.items():
        ins = [p for p in command.params if isinstance(p.type, Reads)]
        outs = [p for p in command.params if isinstance(p.type, Writes | WritesFolder)]
        yield from ((path, i, o) for i in ins for o in outs)


PAIRS = list(pairs())


def given(command: click.Command, read: click.Parameter, out: click.Parameter, model: str, to: str) -> list[str]:
    """A command line in which `read` names the model and `out` names `to`."""
    line = []
    for p in command.params:
        if p is read:
            text = f"observed:{model}" if p.name == "inputs" else model
        elif p is out:
            text = to
        elif p.required:
            text = {
                "cosine": "0",
                "to": "9",
                "models": "a",
                "corpus": "a",
                "remedy": "a",
                "source": "a",
                "out": str(Path(model).parent / "another"),
            }[str(p.name)]
        else:
            continue
        if isinstance(p, click.Argument):
            line += [text, *(["b"] if p.nargs == 2 else ["b", "c"] if isinstance(p.type, Words) else [])]
        else:
            line += [p.opts[0], text]
    return line


@pytest.mark.parametrize(("path", "read", "out"), PAIRS, ids=[f"{' '.join(p)} {i.name} {o.name}" for p, i, o in PAIRS])
def test_no_output_of_any_command_is_one_of_its_inputs(path, read, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    model = folder / "m.npz"
    np.savez(model, W=np.eye(3))
    before = model.read_bytes()
    os.link(model, tmp_path / "hard.npz")
    (tmp_path / "soft.npz").symlink_to(model)
    places = [folder] if isinstance(out.type, WritesFolder) else [model, tmp_path / "hard.npz", tmp_path / "soft.npz"]
    for to in [*places, os.path.relpath(places[0])]:
        done = CliRunner().invoke(main, [*path, *given(COMMANDS[path], read, out, str(model), str(to))])
        assert done.exit_code == 2, done.output
        assert "never written over" in done.output
        assert model.read_bytes() == before


def test_what_readers_open_beside_a_model_is_known_to_the_guard():
    sources = "".join(p.read_text() for p in (SRC / "files" / "read").rglob("*.py"))
    named = set(re.findall(r'"([a-z_]+\.(?:json|txt))"', sources))
    assert named <= set(SIDECARS)


def test_a_file_of_a_model_folder_or_beside_a_model_is_not_written_over(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(3))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "merges.txt").write_text("a b")
    (tmp_path / "in" / "old.html").write_text("a report of an earlier run")
    (tmp_path / "link.json").symlink_to(tmp_path / "in" / "merges.txt")
    (tmp_path / "m.onnx").write_bytes(b"..weights.data..")
    (tmp_path / "weights.data").write_text("tensors")
    for model, to, why in (
        ("m.npz", "config.json", "read together with"),
        ("in", "in/merges.txt", "one of the files of"),
        ("in", "link.json", "one of the files of"),
        ("m.onnx", "weights.data", "read together with"),
        ("in", "in/old.html", None),
        ("in", "in/new.json", None),
    ):
        done = CliRunner().invoke(main, ["audit", str(tmp_path / model), "--html", str(tmp_path / to)])
        assert (why or "load:") in done.output
        assert ("never written over" in done.output) == (why is not None)


def test_two_outputs_of_one_command_are_two_files(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(3))
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    for outs, why in (
        (("--json", "a.json", "--csv", "b.json"), "one file"),
        (("--json", "new.json", "--csv", "./new.json"), "one file"),
        (("--proof", "p.npz", "--csv", "p.head.npz"), "one file"),
    ):
        line = [str(tmp_path / x) if not x.startswith("--") else x for x in outs]
        done = CliRunner().invoke(main, ["can-win", str(tmp_path / "m.npz"), *line])
        assert done.exit_code == 2
        assert why in done.output
    line = ["dial", str(tmp_path / "m.npz"), "0", "1", "--cosine", "0", "--out", str(tmp_path / "d")]
    done = CliRunner().invoke(main, [*line, "--json", str(tmp_path / "d" / "x.json")])
    assert done.exit_code == 2
    assert "replaced as a whole" in done.output
