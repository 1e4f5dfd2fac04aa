"""The command line speaks one language: the same option, the same spelling, on every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from gonio.cli import main

FREE = {"--lam-product", "--lam-factors", "--rank", "--to"}  # strengths and sizes whose sense is the command's own


def commands(group: click.Group = main, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


COMMANDS = dict(commands())


def options(command: click.Command) -> dict[str, click.Option]:
    return {o: p for p in command.params if isinstance(p, click.Option) for o in p.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_with_a_result_writes_it_as_json(name):
    assert ("--json" in options(COMMANDS[name])) == (name != "explore")  # which writes a page and has no result


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name):
    silent = [o for o, p in options(COMMANDS[name]).items() if not p.help and o not in FREE | {"--format"}]
    assert silent in ([], ["--seed"], ["--simulated-users", "--simulated-items", "--seed"])


def test_an_option_takes_the_same_thing_everywhere():
    seen: dict[str, set[tuple[str, object, str]]] = {}
    for command in COMMANDS.values():
        for option, p in options(command).items():
            seen.setdefault(option, set()).add((p.metavar or p.type.name, p.is_flag, p.name or ""))
    assert {o: kinds for o, kinds in seen.items() if len(kinds) > 1 and o not in FREE | {"--out"}} == {}
