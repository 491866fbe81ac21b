"""Unreadable files are named, and making them readable is enough."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import Settings

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
FOLDERS = ["", "ds=2026-11-01"]
# Root may read everything, so it becomes an ordinary user for a while. Reading files starts
# interpreters, which that user may not be allowed to run, so root tests only folders.
FILES = [] if IS_ROOT else ["ds=2026-11-01/part-00000.parquet"]


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    user = os.geteuid()
    if IS_ROOT:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that ordinary users may enter; the parents of tmp_path are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("entry", FOLDERS + FILES)
def test_unreadable_files_are_named_and_making_them_readable_is_enough(
    folder: Path, entry: str
) -> None:
    location = hive.write_events(folder / "events")
    closed = location / entry
    mode = closed.stat().st_mode
    state = folder / "state"
    settings = Settings(state_dir=state, allowed_locations=(str(folder),))

    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        closed.chmod(0)
        for path in (state, *state.iterdir()):
            path.chmod(0o777)
        with as_ordinary_user():
            refused = http.post("/tables/events/refresh")
        closed.chmod(mode)
        mended = http.post("/tables/events/refresh")

    slug = "unreadable-file" if entry in FILES else "location-unreadable"
    assert entry in problem_of(refused, 409, slug)["detail"]
    assert mended.json()["snapshot"]["file_count"] == 6
