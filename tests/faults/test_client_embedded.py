"""A coordinator in the caller's process is private, can be restarted, and leaves nothing behind."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import windrow
from tests.support.tables import hive
from windrow.embedding import EmbeddedCoordinator, EmbeddedStartError
from windrow_calls.errors import WindrowError


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "events")


def test_an_embedded_coordinators_socket_is_in_a_folder_private_to_its_user(tmp_path: Path) -> None:
    coordinator = EmbeddedCoordinator(tmp_path / "state", ("/",))
    try:
        folder = coordinator.socket.parent
        assert coordinator.socket.is_socket()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        coordinator.stop()

    assert not folder.exists()


def test_the_state_of_an_embedded_coordinator_persists(tmp_path: Path, location: Path) -> None:
    with windrow.embedded(tmp_path / "state") as client:
        client.register_table("events", str(location))
        client.refresh("events")

    with windrow.embedded(tmp_path / "state") as client:
        assert client.table("events").current_snapshot is not None
        assert client.plan("events").summary.files_planned == 6


def test_two_embedded_coordinators_work_side_by_side(tmp_path: Path, location: Path) -> None:
    with (
        windrow.embedded(tmp_path / "a") as one,
        windrow.embedded(tmp_path / "b") as two,
    ):
        one.register_table("events", str(location))

        assert [table.name for table in one.tables()] == ["events"]
        assert list(two.tables()) == []


def test_closing_an_embedded_coordinator_leaves_nothing_running(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    client = windrow.embedded(tmp_path / "state")
    client.close()

    assert {t.name for t in set(threading.enumerate()) - threads} == set()
    with pytest.raises(RuntimeError, match="closed"):
        client.config()


def test_an_embedded_coordinator_reads_nothing_outside_the_allowed_locations(
    tmp_path: Path, location: Path
) -> None:
    with (
        windrow.embedded(tmp_path / "state", allowed_locations=(str(tmp_path / "x"),)) as client,
        pytest.raises(WindrowError, match="not under an allowed prefix"),
    ):
        client.register_table("events", str(location))


def test_a_host_setting_in_the_environment_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_HOST", "0.0.0.0")
    monkeypatch.setenv("WINDROW_PORT", "80")

    with windrow.embedded(tmp_path / "state") as client:
        assert client.config().strategies


def test_an_unusable_state_folder_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    with pytest.raises(EmbeddedStartError, match="file"):
        windrow.embedded(tmp_path / "file" / "state")

    assert list(scratch.iterdir()) == []


def test_a_process_that_never_closes_its_embedded_coordinator_still_ends(tmp_path: Path) -> None:
    code = f"import windrow; print(windrow.embedded({str(tmp_path)!r}).config().version)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout.strip()) == (0, windrow.__version__)
