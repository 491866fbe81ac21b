"""A refresh of wide files can be cancelled at any step."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files.listings import list_files
from tests.unit.inventory.files import take_inline, write
from windrow_core.files.chunks import ChunkFooters
from windrow_service.inventory.errors import InventoryCancelledError
from windrow_service.inventory.footers.chunked import in_chunks
from windrow_service.inventory.footers.isolation import IsolatedExecutor, LostProcessError
from windrow_service.inventory.manifests.encoding import cut_files

WIDE = {f"c{n}": [n] for n in range(300)}
STEPS = 300


class StoppedError(Exception):
    """Raised by the caller's check to stop the work."""


def stopping_after(calls: int) -> Callable[[], None]:
    """Return a check that raises after this number of calls."""
    left = calls

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise StoppedError

    return check


@pytest.mark.parametrize("calls", [0, 1, STEPS - 1, 2 * STEPS, 3 * STEPS])
def test_cutting_manifests_stops_between_any_two_columns(tmp_path: Path, calls: int) -> None:
    write(tmp_path, "wide", WIDE)
    files = take_inline(str(tmp_path)).files

    with pytest.raises(StoppedError):
        cut_files(files, check=stopping_after(calls))


def test_cancelling_stops_combining_footers_that_were_read(
    tmp_path: Path,
) -> None:
    write(tmp_path, "wide", WIDE)
    asked = 0

    class Told(threading.Event):
        """An event that is set after half of the columns."""

        def is_set(self) -> bool:
            nonlocal asked
            asked += 1
            return asked > STEPS // 2

    with pytest.raises(InventoryCancelledError):
        take_inline(str(tmp_path), cancelled=Told())

    assert asked == STEPS // 2 + 1


def test_cancelling_does_not_wait_for_slow_files(tmp_path: Path) -> None:
    write(tmp_path, "long")
    files = list_files(str(tmp_path)).files

    # `_never` would sleep for ever.
    with pytest.raises(StoppedError):
        in_chunks(files, _never, lambda _: ChunkFooters(), lambda _: None, None, stopping_after(1))


def test_killed_processes_lose_their_tasks(tmp_path: Path) -> None:
    with IsolatedExecutor(1) as executor:
        started = tmp_path / "started"
        sleeping = executor.submit(_sleep_in, os.fspath(started))
        while not started.exists():
            time.sleep(0.01)

        executor.kill()

        with pytest.raises(LostProcessError):
            sleeping.result()


def _never(*_: object) -> ChunkFooters:
    threading.Event().wait()
    raise AssertionError


def _sleep_in(started: str) -> None:
    Path(started).touch()
    threading.Event().wait()
