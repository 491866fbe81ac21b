"""Tab completion: the shell is detected, and the scripts work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command

_INSTALLED = {
    "bash": ".bash_completions/windrow.sh",
    "zsh": ".zfunc/_windrow",
    "fish": ".config/fish/completions/windrow.fish",
}


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A `windrow` script: completion works only for the bare name of the command."""
    script = tmp_path / "bin" / "windrow"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m windrow_cli "$@"\n')
    script.chmod(0o755)
    return script


def _run(
    command: Path, *words: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    home = command.parents[1]
    path = f"{command.parent}:{os.environ['PATH']}"
    return subprocess.run(
        words,
        env={**os.environ, "HOME": str(home), "PATH": path, **(environment or {})},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _shell(folder: Path, name: str) -> Path:
    """Return a shell of this name. Any POSIX shell will do, as only its name is looked at."""
    shell = folder / name
    shell.symlink_to("/bin/sh")
    return shell


@pytest.mark.parametrize("name", _INSTALLED)
def test_completion_is_shown_and_installed_for_the_calling_shell(
    command: Path, tmp_path: Path, name: str
) -> None:
    shell = _shell(tmp_path, name)

    shown = _run(command, shell, "-c", "windrow --show-completion; true")
    installed = _run(command, shell, "-c", "windrow --install-completion; true")

    script = tmp_path / _INSTALLED[name]
    assert (shown.stderr, installed.stderr) == ("", "")
    assert f"complete_{name}" in shown.stdout
    assert f"{name} completion installed in {script}" in installed.stdout
    assert script.read_text().strip() == shown.stdout.strip()


def test_a_shell_without_completion_is_refused_in_one_line(command: Path, tmp_path: Path) -> None:
    shell = _shell(tmp_path, "dash")

    done = _run(command, shell, "-c", "windrow --show-completion; true")

    assert done.stderr == "Shell dash not supported.\n"


@pytest.mark.slow
def test_the_script_completes_a_command_in_bash(command: Path) -> None:
    typed = (
        'eval "$(windrow --show-completion)"; COMP_WORDS=(windrow table re); COMP_CWORD=2; '
        '_windrow_completion windrow; echo "${COMPREPLY[@]}"'
    )

    done = _run(command, "bash", "-c", typed)

    assert (done.stdout.split(), done.stderr) == (["register", "refresh"], "")


@pytest.mark.slow
def test_names_of_tables_and_rules_are_completed_by_asking_the_coordinator(
    command: Path, windrow: Command, coordinator_url: str, sales: Path
) -> None:
    for name in ("completed.events", "completed.orders"):
        windrow("table", "register", name, str(sales), "--partition", "ds:date")
    windrow("table", "refresh", "completed.events")
    windrow(*("cache", "add", "completed.events", "--where", "ds > '2026-11-01'"), "--name", "new")

    def offered(typed: str, url: str = coordinator_url) -> str:
        asked = {
            "_WINDROW_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_ARGS": typed,
            "WINDROW_URL": url,
        }
        done = _run(command, command, environment=asked)
        assert done.stderr == ""
        return done.stdout

    names = offered("windrow table refresh completed.e")
    assert "completed.events" in names
    assert "completed.orders" not in names
    assert "new" in offered("windrow cache drop completed.events n")
    assert "openlookeng" in offered("windrow plan completed.events --strategy open")
    assert offered("windrow table refresh completed.e", "http://127.0.0.1:9").strip() == ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_gets_possible_completions(command: Path, shell: str) -> None:
    asked = {
        "_WINDROW_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": "windrow table re",
    }

    done = _run(command, command, environment=asked)

    assert "register" in done.stdout
    assert "refresh" in done.stdout
    assert "expire" not in done.stdout
