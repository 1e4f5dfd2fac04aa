"""The code blocks of a page, run in order in one folder: Python in one namespace, consoles command by command.

A console block has lines `$ command`, each followed by what it prints; `...` stands for anything. A command that ends with
`|| echo "exit code $?"` prints its exit code where that is not 0, as a shell would.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = ' || echo "exit code $?"'
ROOT = Path(__file__).parents[2]


def said(command: str, folder: Path) -> str:
    """What a command prints, standard output first."""
    from gonio.cli import main

    typed = command.removesuffix(CODE)
    words = shlex.split(typed)
    if words[0] == "gonio":
        done = CliRunner().invoke(main, words[1:], prog_name="gonio")
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
        out, code = done.stdout + done.stderr, done.exit_code
    else:
        words = [sys.executable if words[0] == "python" else words[0], *words[1:]]
        run = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=os.environ | {"COLUMNS": "110"})
        out, code = run.stdout + run.stderr, run.returncode
    if code and command.endswith(CODE):
        return f"{out.rstrip()}\nexit code {code}\n"
    assert code == 0, f"{command} ended with {code}: {out}"
    return out


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what is said to be printed."""
    parts = re.split(r"^\$ (.*)\n?", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with a command: {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def agrees(want: str, got: str) -> bool:
    """Whether what is printed is what the page says, line by line, blanks apart."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(want.strip() + "\n", got.strip() + "\n", flags)


def run_page(text: str, folder: Path, names: dict[str, Any] | None = None) -> str:
    """Run the blocks of a page in a folder, which must be the current one; the page with what was really printed."""
    names = {} if names is None else names

    def once(match: re.Match[str]) -> str:
        kind, block = match[1], match[2]
        if kind == "python":
            exec(compile(block, "page", "exec"), names)
        elif kind == "console":
            lines = []
            for command, want in commands(block):
                got = said(command, folder)
                lines += [f"$ {command}", want.rstrip("\n") if agrees(want, got) else got.strip("\n")]
            return f"```console\n{chr(10).join(x for x in lines if x)}\n```"
        return match[0]

    return BLOCK.sub(once, text)


COMMAND = re.compile(r"^(?:\$ )?gonio (?!--)(.*)$", re.MULTILINE)


def commands_of(pages: Iterable[Path]) -> list[tuple[str, str]]:
    """The page and the words behind `gonio` of every command in a block; docs/cli.md is made from --help."""
    return [
        (page.name, re.split(r"\s{2,}(?=[a-z])|\s+#", line)[0].strip())
        for page in pages
        if page.name != "cli.md"
        for kind, block in BLOCK.findall(page.read_text(encoding="utf-8"))
        if kind in ("", "bash", "console")
        for line in COMMAND.findall(block.replace("\\\n", " "))
    ]
