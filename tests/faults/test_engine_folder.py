"""The folder of the metadata for other engines, when its disk is full or refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import httpx
import pytest

import windrow
from tests.support.faults.disks import nearly_full, small_disk
from tests.support.faults.refusing_disk import refusing_disk
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import EngineSettings, Settings

TABLE = "/iceberg/v1/namespaces/s/tables/events"


def settings_of(folder: Path, metadata_folder: Path) -> Settings:
    hive.write_events(folder / "events")
    return Settings(
        state_dir=folder / "state",
        allowed_locations=(str(folder),),
        engines=EngineSettings(metadata_folder=metadata_folder),
    )


def register(url: str, folder: Path) -> None:
    with windrow.connect(url) as client:
        client.register_table("s.events", str(folder / "events"))
        client.refresh("s.events")


def test_a_full_disk_is_named_and_nothing_is_left_of_what_did_not_fit(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 2**20) as disk,
        running(settings_of(tmp_path, disk)) as url,
        httpx.Client(base_url=url, verify=PLAIN) as http,
    ):
        register(url, tmp_path)
        # The folder and its mark may fit, or a first file too, but not all that is to be written.
        for pages in range(3):
            with nearly_full(disk, pages):
                for _ in range(2):
                    answer = http.get(TABLE, headers={"Accept": "application/problem+json"})
                    problem = answer.json()
                    assert answer.status_code == 503, problem
                    assert "make room on the disk" in problem["detail"]
                    assert answer.headers["Retry-After"]
                    assert http.get(TABLE).json()["error"]["code"] == 503
                assert not list(disk.rglob(".*"))
        answer = http.get(TABLE)
        assert answer.status_code == 200
        assert Path(answer.json()["metadata-location"].removeprefix("file://")).exists()
        assert not list(disk.rglob(".*"))


@pytest.mark.parametrize(
    ("operation", "number", "reason"),
    [
        ("create", errno.EACCES, "the right to write there"),
        ("mkdir", errno.EROFS, "mount its file system for writing"),
        ("rename", errno.EIO, "check the disk"),
        ("write", errno.EDQUOT, "raise the quota"),
    ],
)
def test_a_refusal_of_the_system_is_named(
    tmp_path: Path, operation: str, number: int, reason: str
) -> None:
    with refusing_disk(tmp_path / "fuse") as disk:
        settings = settings_of(tmp_path, disk.folder / "engines")
        with running(settings) as url, httpx.Client(base_url=url, verify=PLAIN) as http:
            register(url, tmp_path)
            with disk.refusing(operation, ".*", number):
                answer = http.get(TABLE, headers={"Accept": "application/problem+json"})
            problem = answer.json()
            assert answer.status_code == 503, problem
            assert reason in problem["detail"]
            assert not list(disk.behind.rglob(".*"))
            assert http.get(TABLE).status_code == 200
