"""A pack that a reader could not read is compared with its digest soon, and withdrawn if it differs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.coordinators import PLAIN, running, wait_until
from tests.support.tables import hive
from tests.support.tables.packs import unpublished_pack
from windrow_service.settings import Settings

_MARGIN_S = 2.1
_ROUND_S = 0.1


@pytest.fixture
def http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    monkeypatch.setattr("windrow_service.wiring.packs._KEEP_EVERY_S", _ROUND_S)
    monkeypatch.setattr(
        "windrow_service.usecases.packs.keep._CHECK_DOUBTS_EVERY", timedelta(seconds=_ROUND_S)
    )
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, httpx.Client(base_url=url, timeout=60, verify=PLAIN) as client:
        yield client


@pytest.mark.slow
def test_a_pack_that_a_reader_could_not_read_is_compared_and_withdrawn(
    http: httpx.Client, tmp_path: Path
) -> None:
    hive.write_events(tmp_path / "t")
    for file in (tmp_path / "t").rglob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    time.sleep(_MARGIN_S)
    http.put("/tables/s.t", json={"location": str(tmp_path / "t")}).raise_for_status()
    http.post("/tables/s.t/refresh").raise_for_status()
    pack = unpublished_pack(http, "s.t")
    http.post("/tables/s.t/packs", json=pack).raise_for_status()

    def state() -> dict[str, Any]:
        (one,) = http.get("/tables/s.t/packs").json()["packs"]
        return dict(one)

    def report() -> None:
        plan = http.post("/plans", json={"table": "s.t", "accept": ["packs"]}).json()
        scan = {"plan_id": plan["plan_id"], "seconds": 1.0, "planning_seconds": 0.1}
        scan["unreadable_packs"] = [pack["path"]]
        http.post("/scan-reports", json={"scans": [scan]}).raise_for_status()

    report()
    time.sleep(10 * _ROUND_S)
    assert state()["state"] == "published", "its bytes are the same"
    path = Path(pack["path"])
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    time.sleep(10 * _ROUND_S)
    assert state()["state"] == "published", "nobody has looked"

    report()

    wait_until(lambda: state()["state"] != "published")
    assert "damaged" in state()["withdrawn_because"]
