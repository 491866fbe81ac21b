"""The help of every command: written for people, and cut nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from windrow_cli.app import app, run

# Kinds of values that say nothing to a person, such as `<int range>`.
_KIND = re.compile(r"^  -.*<(?!\w+\|)[a-z \[\]]+>", re.MULTILINE)


def _commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands((*path, name), inner)


def test_every_group_lists_its_commands_without_cutting_what_they_do(capsys: Any) -> None:
    for path, command in _commands((), get_command(app)):
        if hasattr(command, "commands"):
            assert run([*path, "--help"]) == 0
            assert "..." not in capsys.readouterr().out.partition("Commands:")[2], path


def test_every_option_says_in_a_sentence_what_it_does_and_names_its_value(capsys: Any) -> None:
    for path, command in _commands((), get_command(app)):
        assert run([*path, "--help"]) == 0
        assert not _KIND.findall(capsys.readouterr().out), path
        for parameter in command.params:
            assert re.fullmatch(r"[A-Z].*[.]|\".*\.", parameter.help or "", re.DOTALL), (
                path,
                parameter.name,
            )
