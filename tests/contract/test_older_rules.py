"""A refresh reads again what an earlier version read under other rules of what is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.servers import embedded
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from tests.support.tables.iceberg import new_table
from windrow_core.files import trust
from windrow_service.inventory.manifests import changes
from windrow_service.inventory.manifests.encoding import Manifest, cut_files

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        yield client


def parquet_at(location: Path) -> str:
    location.mkdir()
    for number in range(2):
        pq.write_table(ROWS, location / f"{number}.parquet")
    return str(location)


def delta_at(location: Path) -> str:
    log = DeltaLog(location)
    log.commit(protocol(), metadata([column("id", "long")]))
    stats = '{"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}}'
    log.commit(*(log.write_file(f"{n}.parquet", ROWS, stats=stats) for n in range(2)))
    return str(location)


def iceberg_at(location: Path) -> str:
    location.mkdir()
    made, _ = new_table(location, ROWS.schema)
    for _ in range(2):
        made.append(ROWS)
    return made.location().removeprefix("file://")


TABLES = {"parquet": parquet_at, "delta": delta_at, "iceberg": iceberg_at}


def cut_with_wrong_bounds(files: pa.Table, *more: Any) -> list[Manifest]:
    """Do what `cut_files` does, for files whose upper bounds are lost rows' ones."""
    at, field = files.schema.get_field_index("stats"), files.schema.field("stats")
    (bounds,) = files["stats"].combine_chunks().flatten()
    low, _, nulls = bounds.flatten()
    wrong = pa.StructArray.from_arrays([low, low, nulls], fields=list(bounds.type))
    stats = pa.StructArray.from_arrays([wrong], fields=list(field.type))
    return cut_files(files.set_column(at, field, stats), *more)


def planned_files(client: windrow.Client, condition: str) -> int:
    groups = client.plan("t", filter=condition).groups
    return sum(len(splits) for splits in groups["splits"].to_pylist())


@pytest.mark.parametrize("table_format", sorted(TABLES))
def test_a_table_is_read_again_once(
    client: windrow.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: Any
) -> None:
    client.register_table("t", TABLES[table_format](tmp_path / "table"), table_format)
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(trust, "RULES", trust.RULES - 1)
        earlier_version.setattr(changes, "cut_files", cut_with_wrong_bounds)
        client.refresh("t")
        assert not client.refresh("t").changed
    assert not client.plan("t", filter="id = 2").groups

    again = client.refresh("t")

    assert again.changed
    assert again.snapshot is not None
    assert again.snapshot.file_count == 2
    assert again.snapshot.row_count == 4
    assert planned_files(client, "id = 2") == 2
    assert not client.plan("t", filter="id = 3").groups
    assert not client.refresh("t").changed


def test_files_that_a_write_adds_leave_the_others_to_be_read_again(
    client: windrow.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "table"
    client.register_table("t", parquet_at(location))
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(trust, "RULES", trust.RULES - 1)
        earlier_version.setattr(changes, "cut_files", cut_with_wrong_bounds)
        client.refresh("t")
    # Enough small manifests to be merged with that of the earlier version.
    for number in range(2, 20):
        path = location / f"{number}.parquet"
        pq.write_table(ROWS, path)
        status = path.stat()
        added = {
            "path": path.name,
            "size_bytes": status.st_size,
            "mtime_ns": status.st_mtime_ns,
            "row_count": 2,
            "grouped_columns": [],
        }
        client.publish_delta("t", added=pa.Table.from_pylist([added]))

    client.refresh("t")

    assert planned_files(client, "id = 2") == 20
