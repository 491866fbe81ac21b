"""Delta tables are described to engines as their log has them, whatever their files are called."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.rest import RestCatalog

import windrow
from tests.programs import delta_writer
from tests.support.engines.answers import load, refusal
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol

ROWS = pa.table({"id": [1, 2, 3]})
NUMBER = column("id", "long")


def plan(http: httpx.Client, name: str, predicate: dict[str, Any]) -> httpx.Response:
    path = f"/iceberg/v1/namespaces/default/tables/{name}/plan"
    return http.post(path, json={"filter": predicate})


@pytest.fixture
def log(client: windrow.Client, name: str, location: Path) -> DeltaLog:
    """The log of a registered table of one file."""
    log = DeltaLog(location)
    first = log.write_file("one", ROWS)
    stats = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}}
    first["add"]["stats"] = json.dumps(stats | {"nullCount": {"id": 0}})
    log.commit(protocol(), metadata([NUMBER]), first)
    client.register_table(name, str(location), "delta")
    client.refresh(name)
    return log


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_snapshot_has_the_rows_of_its_version(
    client: windrow.Client, url: str, name: str, location: Path
) -> None:
    rows_by_snapshot = {}
    for first, end in ((0, 2), (12, 13), (19, 20)):
        delta_writer.write(location, end, first)
        DeltaTable(location).delete(f"id = {first * 10}")
        client.register_table(name, str(location), "delta")
        snapshot = client.refresh(name).snapshot
        assert snapshot is not None
        rows_by_snapshot[snapshot.snapshot_id] = rows_of(DeltaTable(location).to_pyarrow_table())
    files = set(location.rglob("*"))
    catalog = RestCatalog("w", uri=f"{url}/iceberg")
    table = catalog.load_table(("default", name))

    for snapshot_id, rows in rows_by_snapshot.items():
        scan = pl.scan_iceberg(table, snapshot_id=snapshot_id)
        assert rows_of(scan.collect().to_arrow()) == rows

    part = catalog.load_table(("default", f"{name}$part LIKE 'p 1%'"))
    assert set(pl.scan_iceberg(part).collect()["part"]) == {"p 1/é"}
    assert set(location.rglob("*")) == files
    catalog.close()


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.select(["id", "part", "text"]).to_pylist()))


def test_scans_are_planned_by_the_statistics_of_the_log(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    log.commit(log.write_file("two", ROWS))
    client.refresh(name)

    files = {
        value: [
            task["data-file"]["file-path"]
            for task in plan(http, name, predicate).json()["file-scan-tasks"]
        ]
        for value in (2, 9)
        for predicate in [{"type": "eq", "term": "id", "value": value}]
    }

    one, two = str(log.folder / "one"), str(log.folder / "two")
    assert files == {2: [one, two], 9: [two]}


def test_a_plan_is_refused_if_the_log_does_not_say_how_many_rows_files_have(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    more = log.write_file("two", ROWS)
    del more["add"]["stats"]
    log.commit(more)
    client.refresh(name)

    answer = plan(http, name, {"type": "true"})

    assert "how many rows its files have: let the engine plan" in refusal(answer)
    assert load(http, name).json()["config"] == {}


@pytest.mark.parametrize("harm", ["gone", "longer", "empty"])
def test_files_that_are_not_those_of_the_log_refuse_the_table_by_name(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog, harm: str
) -> None:
    file = log.write_file("two", ROWS)
    path = log.folder / "two"
    if harm == "gone":
        path.unlink()
    elif harm == "longer":
        path.write_bytes(path.read_bytes() + b"PAR1")
    else:
        path.write_bytes(b"")
        file["add"]["size"] = 0
    log.commit(file)
    client.refresh(name)

    assert "'two'" in refusal(load(http, name))


def test_times_that_a_copy_of_the_table_does_not_keep_do_not_matter(
    http: httpx.Client, name: str, log: DeltaLog
) -> None:
    os.utime(log.folder / "one", (1, 1))

    assert load(http, name).status_code == 200
