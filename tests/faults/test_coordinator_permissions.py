"""Files that the coordinator may not read are named."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support import hive
from tests.support.problems import problem_of
from tests.support.servers import running
from windrow_service.settings import Settings

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an ordinary user, who runs the test: root may read everything."""
    with tempfile.TemporaryDirectory() as name:
        user = os.geteuid()
        if user == 0:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            os.seteuid(user)


@pytest.mark.parametrize("entry", ["", "ds=2026-11-01", "ds=2026-11-01/part-00000.parquet"])
def test_what_may_not_be_read_is_named_and_allowing_it_is_enough(folder: Path, entry: str) -> None:
    location = hive.write_events(folder / "events")
    closed = location / entry
    mode = closed.stat().st_mode
    settings = Settings(state_dir=folder / "state", allowed_locations=(str(folder),))

    with running(settings) as url, httpx.Client(base_url=url) as http:
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        closed.chmod(0)
        refused = http.post("/tables/events/refresh")
        closed.chmod(mode)
        mended = http.post("/tables/events/refresh")

    slug = "unreadable-file" if entry.endswith(".parquet") else "location-unreadable"
    assert entry in problem_of(refused, 409, slug)["detail"]
    assert mended.json()["snapshot"]["file_count"] == 6
