"""`windrow serve --maintain`: what it needs, and how long it waits after a run that died."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Said
from windrow_cli.app import run
from windrow_cli.maintaining import MaintenanceLoop, pause_after

EVERY = timedelta(minutes=5)


class Events:
    """A log that remembers its events, and tells when there are enough of them."""

    def __init__(self, enough: int) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.is_enough = threading.Event()
        self._enough = enough

    def info(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))

    def warning(self, event: str, **fields: object) -> None:
        self.info(event, **fields)
        if len([one for one, _ in self.lines if "died" in one]) >= self._enough:
            self.is_enough.set()


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    code = run(["serve", "--maintain", *words])
    return Said(code, *capsys.readouterr())


def test_a_run_that_dies_is_followed_by_another_soon_and_then_less_and_less_soon() -> None:
    pauses = [pause_after(failures, EVERY).total_seconds() for failures in range(99)]

    assert pauses[:4] == [300, 5, 10, 20]
    assert pauses[1:] == sorted(pauses[1:])
    assert max(pauses) == 3_600


def test_a_run_that_dies_is_told_with_its_exit_code_and_its_last_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("windrow_cli.maintaining._FIRST_PAUSE", timedelta(0))
    events = Events(enough=2)
    words = [sys.executable, "-m", "tests.programs.no_such_program"]

    with MaintenanceLoop(words, EVERY, events):
        assert events.is_enough.wait(60)

    warnings = [fields for event, fields in events.lines if "died" in event]
    assert all(fields["exit_code"] == 1 for fields in warnings)
    assert "no_such_program" in str(warnings[0]["last_lines"])


def test_without_java_it_says_so_before_it_serves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    refusal = said(capsys, "--state-dir", str(tmp_path / "state"))

    assert refusal.code == 1
    assert "Spark needs Java 17 or newer" in refusal.err
    assert not (tmp_path / "state").exists()


def test_beside_replicas_and_without_a_token_where_one_is_needed_it_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WINDROW_TOKEN", raising=False)
    monkeypatch.delenv("WINDROW_TOKEN_FILE", raising=False)
    state = ("--state-dir", str(tmp_path / "state"))

    without_token = said(capsys, *state, "--require-tokens")
    monkeypatch.setenv("WINDROW_DATABASE_URL", "postgresql://db/windrow")
    beside_replicas = said(capsys, *state)

    assert "windrow token create maintenance --scope write" in without_token.err
    assert "as a CronJob" in beside_replicas.err
    assert without_token.code == beside_replicas.code == 1
