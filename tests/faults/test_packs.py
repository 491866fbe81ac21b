"""Packs that are damaged, half made or made twice: never other rows, and nothing wrong is published."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.faults.disks import PAGE_BYTES, nearly_full, small_disk
from tests.support.servers import embedded
from tests.support.servers.s3 import s3_server
from tests.support.tables.packs import publish_new_packs, write_small_files
from windrow_calls.errors import WindrowError
from windrow_core.files.packs import pack_name
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.usecases.packs.ports import PackRun
from windrow_tables.executor.errors import StaleFileError
from windrow_tables.packs.making import make_packs, remove_pack
from windrow_tables.packs.packing import job_of, pack_table

_LONG_AGO_S = 1_700_000_000


def write_file(path: Path, ids: list[int], texts: list[str]) -> None:
    """Write a file that nobody has changed lately."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids, "x": texts}), path)
    os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[windrow.Client]:
    # Otherwise the coordinator may withdraw a damaged pack before a reader meets it.
    monkeypatch.setattr("windrow_service.wiring.packs._KEEP_EVERY_S", 3_600.0)
    with embedded.client(tmp_path / "state", [str(tmp_path)]) as client:
        yield client


def table_at(client: windrow.Client, location: Path) -> str:
    client.register_table("s.t", str(location))
    client.refresh("s.t")
    return "s.t"


def rows_of(client: windrow.Client, table: str) -> pa.Table:
    scan = client.scan(table)
    assert scan.plan.packs
    return scan.to_table().sort_by("id")


def test_a_table_that_trusts_folders_since_is_read_from_its_files(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = tmp_path / "t"
    write_small_files(location)
    table = table_at(client, location)
    publish_new_packs(client, table)
    assert client.scan(table).plan.packs
    client.register_table(table, str(location), trust_folder_times=True, replace=True)
    client.refresh(table)

    # A refresh would not see that a file was replaced, and its rows would be those of the pack for ever.
    assert not client.scan(table).plan.packs
    write_file(location / "k=0" / "0.parquet", [-1], ["new"])
    client.refresh(table)
    with pytest.raises(StaleFileError):
        client.scan(table).to_table()


def test_a_pack_with_a_flipped_bit_is_never_other_rows(
    client: windrow.Client, tmp_path: Path
) -> None:
    write_small_files(tmp_path / "t")
    table = table_at(client, tmp_path / "t")
    expected = client.scan(table).to_table().sort_by("id")
    (pack,), _ = publish_new_packs(client, table)
    path, numbers = Path(pack.path), random.Random(2)
    content = path.read_bytes()
    path.chmod(0o600)
    for place in [
        *range(0, len(content), len(content) // 60),
        *range(len(content) - 8, len(content)),
    ]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << numbers.randrange(8)
        path.write_bytes(damaged)
        assert rows_of(client, table).equals(expected), place


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_what_is_read_of_a_pack_before_its_damage_is_not_read_again(
    share: float, client: windrow.Client, tmp_path: Path
) -> None:
    # More than a row group.
    write_small_files(tmp_path / "t", rows=1_000)
    table = table_at(client, tmp_path / "t")
    expected = client.scan(table).to_table().sort_by("id")
    (pack,), _ = publish_new_packs(client, table)
    path = Path(pack.path)
    assert pq.read_metadata(path).num_row_groups > 1
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)

    assert rows_of(client, table).equals(expected)


def test_a_pack_that_is_cut_off_or_lost_is_not_read(client: windrow.Client, tmp_path: Path) -> None:
    write_small_files(tmp_path / "t")
    table = table_at(client, tmp_path / "t")
    expected = client.scan(table).to_table().sort_by("id")
    (pack,), _ = publish_new_packs(client, table)
    path = Path(pack.path)
    content = path.read_bytes()
    path.chmod(0o600)
    for length in (0, 4, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert rows_of(client, table).equals(expected)
    path.unlink()
    assert rows_of(client, table).equals(expected)


class _Between:
    """A coordinator that something happens to after packing was planned."""

    def __init__(self, client: windrow.Client, happens: Callable[[], None]) -> None:
        self._client = client
        self._happens = happens

    def packing_files(self, table: str, **options: Any) -> Any:
        planned = self._client.packing_files(table, **options)
        self._happens()
        return planned

    def renew_packing_run(self, *arguments: Any) -> None:
        self._client.renew_packing_run(*arguments)

    def publish_pack(self, *arguments: Any) -> Any:
        return self._client.publish_pack(*arguments)


def left_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "ballast"]


def test_no_rows_stay_in_the_folder_of_packs_if_they_cannot_be_published(
    client: windrow.Client, tmp_path: Path
) -> None:
    write_small_files(tmp_path / "t")
    table = table_at(client, tmp_path / "t")
    between: Any = _Between(client, lambda: client.delete_table(table))

    with pytest.raises(WindrowError, match=r"s\.t"):
        # Several packs, of which the first is refused.
        pack_table(between, table, processes=2, min_files=2)

    assert left_in(tmp_path / "state" / "packs") == []


def test_a_full_disk_is_named_and_no_rows_stay_there(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 2**20) as disk,
        embedded.client(disk.parent / "state", [str(tmp_path)]) as client,
    ):
        write_small_files(tmp_path / "t")
        for path in (tmp_path / "t" / "k=3").iterdir():
            pq.write_table(pq.ParquetFile(path).read(["id"]), path)
            os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))
        table = table_at(client, tmp_path / "t")
        plan, files = client.packing_files(table, min_files=2)
        job = replace(job_of(plan, files, "0" * 16, 2), folder=str(disk))
        # There is room for one of two packs, whose columns are not the same.
        packs, _ = make_packs(job, files)
        pages = max(-(-pack.size_bytes // PAGE_BYTES) for pack in packs)
        assert len(packs) == 2
        for pack in packs:
            remove_pack(job, pack)
        for pages_left in (0, 2, pages):
            with nearly_full(disk, pages_left), pytest.raises(OSError, match=str(disk)) as error:
                make_packs(job, files)
            assert error.value.errno == errno.ENOSPC
            assert left_in(disk) == []


def test_what_a_packer_has_left_in_an_object_store_is_removed_and_nothing_else() -> None:
    home, run_id = "00000000-0000-4000-8000-000000000000", "1" * 16
    run = PackRun(run_id=run_id, table_id=1, home=home, lease_until=datetime.now(timezone.utc))
    published, left = (f"{home}/{pack_name(run_id, digit * 64)}" for digit in "ab")
    others = [
        f"{home}/{pack_name('2' * 16, 'b' * 64)}",
        f"{home}/{pack_name(run_id, 'b' * 64)}.bak",
        f"{home}/below/{pack_name(run_id, 'b' * 64)}",
        f"{home.replace('8', '9')}/{pack_name(run_id, 'b' * 64)}",
    ]
    with s3_server() as s3:
        s3.client.create_bucket(Bucket="packs")
        for name in (published, left, *others):
            s3.client.put_object(Bucket="packs", Key=f"all/{name}", Body=b"rows")
        folder = DiskOrStoreFolder("s3://packs/all/")

        assert folder.remove_left(run, {f"s3://packs/all/{published}"}) == [
            f"s3://packs/all/{left}"
        ]

        assert not folder.remove_left(run, {f"s3://packs/all/{published}"})
        names = {one["Key"] for one in s3.client.list_objects_v2(Bucket="packs")["Contents"]}
        assert names == {f"all/{name}" for name in (published, *others)}
