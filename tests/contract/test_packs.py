"""Packs over HTTP: what is worth one, which ones are refused, and when they are withdrawn."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.servers.coordinators import PLAIN, running, wait_until
from tests.support.tables import hive
from tests.support.tables.packs import unpublished_pack
from windrow_core.files.packs import pack_name
from windrow_service.settings import PackSettings, Settings

_LONG_AGO_S = 1_700_000_000


# A listing tells nothing of files that had changed just before it.
_MARGIN_S = 2.1


@pytest.fixture(scope="module")
def old_tables(tables_folder: Path) -> Iterator[Path]:
    """Locations of six small files in three partitions, to which nobody has written lately."""
    locations = [tables_folder / f"packable-{number}" for number in range(20)]
    for location in locations:
        hive.write_events(location)
        for file in location.rglob("*.parquet"):
            os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))
    time.sleep(_MARGIN_S)
    return iter(locations)


@pytest.fixture
def location(old_tables: Iterator[Path]) -> Path:
    return next(old_tables)


def register(http: httpx.Client, table: str, location: Path) -> None:
    body = {"location": str(location), "partition_columns": [{"name": "ds", "type": "date"}]}
    http.put(f"/tables/{table}", json=body).raise_for_status()
    http.post(f"/tables/{table}/refresh").raise_for_status()


@pytest.fixture
def packable(http: httpx.Client, name: str, location: Path) -> str:
    """A refreshed table of six small files in three partitions."""
    register(http, name, location)
    return name


def publish(http: httpx.Client, table: str, pack: dict[str, Any]) -> httpx.Response:
    return http.post(f"/tables/{table}/packs", json=pack)


def splits(http: httpx.Client, table: str, **request: Any) -> list[dict[str, Any]]:
    plan = http.post("/plans", json={"table": table, **request}).raise_for_status().json()
    return [split for group in plan["groups"] for split in group["splits"]]


def test_a_plan_counts_the_files_and_says_why_others_are_left(
    http: httpx.Client, packable: str
) -> None:
    plan = http.post(f"/tables/{packable}/packing-plans", json={"min_files": 2}).json()

    assert (plan["files"], plan["pieces"], plan["left_alone"]) == (6, 1, [])
    few = http.post(f"/tables/{packable}/packing-plans", json={}).json()
    assert (few["files"], few["left_alone"]) == (0, [{"reason": "few", "files": 6}])
    large = {"min_files": 2, "max_file_size": 10}
    left = http.post(f"/tables/{packable}/packing-plans", json=large).json()["left_alone"]
    assert left == [{"reason": "large", "files": 6}]


def test_a_table_with_a_null_partition_keeps_its_files(
    http: httpx.Client, packable: str, location: Path
) -> None:
    hive.write_file(location / "ds=__HIVE_DEFAULT_PARTITION__" / "a.parquet", range(3))
    http.post(f"/tables/{packable}/refresh").raise_for_status()

    plan = http.post(f"/tables/{packable}/packing-plans", json={"min_files": 2}).json()

    assert plan["left_alone"] == [{"reason": "null_partition", "files": 1}]


def test_only_plans_that_accept_packs_name_them(http: httpx.Client, packable: str) -> None:
    pack = unpublished_pack(http, packable)
    assert publish(http, packable, pack).status_code == 201

    assert all("pack" not in split for split in splits(http, packable))
    # Six files are too few for a pack to pay off.
    assert all(not split.get("pack") for split in splits(http, packable, accept=["packs"]))


def test_files_in_packs_are_not_packed_again(http: httpx.Client, packable: str) -> None:
    publish(http, packable, unpublished_pack(http, packable)).raise_for_status()

    plan = http.post(f"/tables/{packable}/packing-plans", json={"min_files": 2}).json()

    assert (plan["files"], plan["left_alone"]) == (0, [{"reason": "packed", "files": 6}])


def test_the_same_pack_again_changes_nothing(http: httpx.Client, packable: str) -> None:
    pack = unpublished_pack(http, packable)

    first, second = publish(http, packable, pack), publish(http, packable, pack)

    assert first.json() == second.json()
    assert len(http.get(f"/tables/{packable}/packs").json()["packs"]) == 1


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    detail: str = answer.json()["detail"]
    return detail


def test_a_pack_that_is_not_what_it_says_is_refused(
    http: httpx.Client, packable: str, location: Path
) -> None:
    pack = unpublished_pack(http, packable)
    sources = pack["sources"]

    def refused(**changes: Any) -> str:
        return refusal(publish(http, packable, pack | changes))

    assert "are not the table's" in refused(definition="0" * 64)
    assert "another number of rows" in refused(row_count=pack["row_count"] + 1)
    assert "a file twice" in refused(sources=[sources[0]] * len(sources))
    assert "belongs at" in refused(path=str(location / "ds=2026-11-01" / "part-0.parquet"))
    others = [one | {"mtime_ns": 1} for one in sources]
    assert "none of its files is in the current snapshot" in refused(sources=others)
    Path(pack["path"]).chmod(0o600)
    with Path(pack["path"]).open("ab") as file:
        file.write(b"x")
    assert "not those that were described" in refused()
    Path(pack["path"]).unlink()
    assert "cannot be read" in refused()
    assert http.get(f"/tables/{packable}/packs").json() == {"packs": []}


def test_no_path_outside_of_the_folder_of_packs_is_taken(
    http: httpx.Client, packable: str, location: Path
) -> None:
    pack = unpublished_pack(http, packable)
    target = next(location.rglob("*.parquet"))
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    home = Path(pack["path"]).parent

    other_run = Path(pack["path"]).with_name(pack_name("0" * 16, pack["digest"]))
    Path(pack["path"]).rename(other_run)
    answer = publish(http, packable, pack | {"path": str(other_run)})
    assert answer.status_code == 409, "that run has not begun"
    for path in (str(target), os.path.relpath(target, home), f"{home}/../x/pack.parquet"):
        planted = {"path": path, "digest": digest, "size_bytes": target.stat().st_size}
        assert "belongs at" in refusal(publish(http, packable, pack | planted))
    assert target.exists()


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"format": "csv", "columns": [{"name": "a", "type": "string"}]}, "made of csv files"),
        ({"format": "delta"}, "compact it with Delta"),
    ],
)
def test_other_tables_are_refused_by_name(
    http: httpx.Client, name: str, tables_folder: Path, definition: dict[str, Any], reason: str
) -> None:
    location = tables_folder / name
    location.mkdir()
    if definition["format"] == "csv":
        (location / "a.csv").write_text("1\n")
    else:
        _write_delta(location)
    body = {"location": str(location), **definition}
    http.put(f"/tables/{name}", json=body).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()

    answer = http.post(f"/tables/{name}/packing-plans", json={})

    assert answer.status_code == 409
    assert reason in answer.json()["detail"]


def _write_delta(location: Path) -> None:
    from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol

    DeltaLog(location).commit(protocol(1), metadata([column("id", "long")], []))


@pytest.fixture
def erasing(tables_folder: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    """A coordinator whose packs lose rows of files that are gone at once."""
    settings = Settings(
        state_dir=tmp_path / "state",
        allowed_locations=(str(tables_folder),),
        packs=PackSettings(erase_within="PT0S"),
    )
    with (
        running(settings) as url,
        httpx.Client(base_url=url, timeout=60, verify=PLAIN) as client,
    ):
        yield client


@pytest.mark.slow
def test_rows_of_a_file_that_is_gone_leave_the_disk_in_time(
    erasing: httpx.Client, name: str, location: Path
) -> None:
    register(erasing, name, location)
    pack = unpublished_pack(erasing, name)
    publish(erasing, name, pack).raise_for_status()
    next(location.rglob("*.parquet")).unlink()
    erasing.post(f"/tables/{name}/refresh").raise_for_status()

    def state() -> dict[str, Any]:
        (one,) = erasing.get(f"/tables/{name}/packs").json()["packs"]
        return dict(one)

    wait_until(lambda: state()["state"] == "removed")

    assert not Path(pack["path"]).exists()
    assert state()["removed_at"] is not None
    assert "are gone" in state()["withdrawn_because"]


@pytest.mark.slow
def test_a_pack_that_cannot_be_removed_keeps_no_rows_of_others_on_the_disk(
    erasing: httpx.Client, name: str, location: Path
) -> None:
    register(erasing, name, location)
    older = unpublished_pack(erasing, name)
    publish(erasing, name, older).raise_for_status()
    packed_file = next(location.rglob("*.parquet"))
    for file in list(location.rglob("*.parquet")):
        shutil.copy2(file, file.with_name(f"new-{file.name}"))
    erasing.post(f"/tables/{name}/refresh").raise_for_status()
    newer = unpublished_pack(erasing, name)
    publish(erasing, name, newer).raise_for_status()
    # A folder stands where the newer one was, and is not removed as a file is.
    Path(newer["path"]).unlink()
    Path(newer["path"]).mkdir()

    def states() -> list[str]:
        packs = erasing.get(f"/tables/{name}/packs").json()["packs"]
        return [one["state"] for one in packs]

    wait_until(lambda: states()[0] == "withdrawn")
    packed_file.unlink()
    erasing.post(f"/tables/{name}/refresh").raise_for_status()
    wait_until(lambda: states()[1] == "removed")

    assert states() == ["withdrawn", "removed"]
    assert not Path(older["path"]).exists()


@pytest.mark.slow
def test_a_pack_that_is_lost_is_withdrawn(
    http: httpx.Client, client: windrow.Client, packable: str
) -> None:
    pack = unpublished_pack(http, packable)
    publish(http, packable, pack).raise_for_status()
    Path(pack["path"]).unlink()

    wait_until(lambda: client.list_packs(packable)[0].state != "published")

    assert client.list_packs(packable)[0].withdrawn_because == "it is lost, or damaged"


def test_a_file_that_was_replaced_with_equal_size_and_time_is_read_by_itself(
    http: httpx.Client, packable: str, location: Path
) -> None:
    publish(http, packable, unpublished_pack(http, packable)).raise_for_status()
    file = next(location.rglob("*.parquet"))
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))

    http.post(f"/tables/{packable}/refresh").raise_for_status()

    plan = http.post(f"/tables/{packable}/packing-plans", json={"min_files": 2}).json()
    assert plan["left_alone"] == [{"reason": "packed", "files": 5}, {"reason": "few", "files": 1}]


@pytest.mark.slow
def test_a_replacement_that_no_refresh_sees_withdraws_the_pack(
    http: httpx.Client, client: windrow.Client, packable: str, location: Path
) -> None:
    pack = unpublished_pack(http, packable)
    file = next(location.rglob("*.parquet"))
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    # The file itself, with other bytes.
    with file.open("r+b") as same:
        same.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    publish(http, packable, pack).raise_for_status()

    wait_until(lambda: client.list_packs(packable)[0].state != "published")

    assert client.list_packs(packable)[0].withdrawn_because == (
        f"{file.relative_to(location)} was replaced by a file of equal size and time, which no "
        "refresh has seen"
    )


@pytest.mark.slow
def test_a_pack_whose_bytes_have_changed_is_withdrawn(
    http: httpx.Client, client: windrow.Client, packable: str
) -> None:
    pack = unpublished_pack(http, packable)
    path = Path(pack["path"])
    content = bytearray(path.read_bytes())
    publish(http, packable, pack).raise_for_status()
    content[len(content) // 3] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)

    wait_until(lambda: client.list_packs(packable)[0].state != "published")

    assert client.list_packs(packable)[0].withdrawn_because == "it is lost, or damaged"


def test_a_table_whose_partitions_a_catalog_lists_uses_no_packs(
    http: httpx.Client, packable: str, location: Path
) -> None:
    publish(http, packable, unpublished_pack(http, packable)).raise_for_status()
    list_partitions(http, packable, location)
    http.post(f"/tables/{packable}/refresh").raise_for_status()

    answer = http.post(f"/tables/{packable}/packing-plans", json={"min_files": 2})

    assert answer.status_code == 409
    assert "a catalog lists its partitions" in answer.json()["detail"]
    assert all(not split.get("pack") for split in splits(http, packable, accept=["packs"]))


def list_partitions(http: httpx.Client, table: str, location: Path) -> None:
    folder = str(location / "ds=2026-11-01")
    listed = {"partitions": [{"values": ["2020-01-01"], "location": folder}]}
    http.put(f"/tables/{table}/partitions", json=listed).raise_for_status()


def trust_folders(http: httpx.Client, table: str, location: Path) -> None:
    columns = [{"name": "ds", "type": "date"}]
    body = {"location": str(location), "partition_columns": columns, "trust_folder_times": True}
    http.put(f"/tables/{table}", json=body).raise_for_status()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (list_partitions, "a catalog lists its partitions"),
        (trust_folders, "its refreshes go by the times of folders"),
    ],
)
def test_packs_that_a_table_uses_no_more_are_withdrawn(
    http: httpx.Client,
    client: windrow.Client,
    packable: str,
    location: Path,
    change: Callable[[httpx.Client, str, Path], None],
    reason: str,
) -> None:
    publish(http, packable, unpublished_pack(http, packable)).raise_for_status()
    change(http, packable, location)
    http.post(f"/tables/{packable}/refresh").raise_for_status()

    # Nobody would notice any more which of its rows are to be forgotten.
    wait_until(lambda: client.list_packs(packable)[0].state != "published")

    because = client.list_packs(packable)[0].withdrawn_because
    assert because is not None
    assert because.startswith(reason)


def test_withdrawing_names_the_pack(http: httpx.Client, packable: str) -> None:
    pack = unpublished_pack(http, packable)
    publish(http, packable, pack).raise_for_status()

    assert http.delete(f"/tables/{packable}/packs/{'0' * 64}").status_code == 404
    assert http.delete(f"/tables/{packable}/packs/{pack['digest']}").status_code == 204
    (one,) = http.get(f"/tables/{packable}/packs").json()["packs"]
    assert (one["state"], one["withdrawn_because"]) == ("withdrawn", "somebody withdrew it")
    # It stays on the disk for those who have been told of it.
    assert Path(pack["path"]).exists()


def test_the_page_of_a_table_lists_its_packs_if_there_are_any(
    http: httpx.Client, packable: str
) -> None:
    page = f"/dashboard/tables/{packable}/files"
    assert "This table has no packs." in http.get(page).text
    pack = unpublished_pack(http, packable)
    publish(http, packable, pack).raise_for_status()

    text = http.get(page).text

    assert "This table has no packs." not in text
    assert pack["digest"][:8] in text
