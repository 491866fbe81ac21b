"""Deletion vectors of Delta tables reach engines as those of Iceberg's version 3."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

import windrow
from tests.support.engines.answers import load, refusal
from tests.support.tables.delta_tables import (
    Action,
    DeltaLog,
    column,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_vectors,
)

ROWS = pa.table({"id": [1, 2, 3]})
COLUMNS = [column("id", "long"), column("p", "string")]


def file_of(log: DeltaLog, name: str, p: str, vector: dict[str, Any] | None = None) -> Action:
    file = log.write_file(name, ROWS, partitionValues={"p": p})
    file["add"]["stats"] = json.dumps({"numRecords": 3})
    if vector is not None:
        file["add"]["deletionVector"] = vector
    return file


@pytest.fixture
def log(client: windrow.Client, name: str, location: Path) -> DeltaLog:
    """The log of a registered table of two files, of each of which a row is deleted."""
    log = DeltaLog(location)
    one, two = write_vectors(location, [[0], [1]])
    log.commit(
        protocol(3, "deletionVectors"),
        metadata(COLUMNS, ["p"]),
        file_of(log, "one", "a", one),
        file_of(log, "two", "b", two),
    )
    client.register_table(name, str(location), "delta")
    client.refresh(name)
    return log


@pytest.fixture
def catalog(url: str) -> Iterable[RestCatalog]:
    made = RestCatalog("w", uri=f"{url}/iceberg")
    yield made
    made.close()


def ids(table: Table, snapshot_id: int | None = None) -> list[int]:
    by_pyiceberg = table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist()
    by_polars = pl.scan_iceberg(table, snapshot_id=snapshot_id).collect()["id"].to_list()
    assert sorted(by_pyiceberg) == sorted(by_polars)
    return sorted(by_pyiceberg)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_snapshot_and_each_part_has_its_own_vectors(
    client: windrow.Client, catalog: RestCatalog, name: str, log: DeltaLog
) -> None:
    files = set(log.folder.rglob("*"))
    first = catalog.load_table(("default", name)).current_snapshot()
    assert first is not None
    assert set(log.folder.rglob("*")) == files
    again = file_of(log, "one", "a", inline_vector([0, 2]))
    log.commit(remove("one"), again, file_of(log, "three", "c"))
    client.refresh(name)

    table = catalog.load_table(("default", name))

    assert table.format_version == 3
    assert ids(table) == [1, 1, 2, 2, 3, 3]
    assert ids(table, first.snapshot_id) == [1, 2, 3, 3]
    assert table.scan().count() == 6
    assert pl.scan_iceberg(table).select(pl.len()).collect().item() == 6
    rows_of_parts = {"p='a'": [2], "p='b'": [1, 3], "p > 'b'": [1, 2, 3], "p < 'c'": [1, 2, 3]}
    for condition, rows in rows_of_parts.items():
        assert ids(catalog.load_table(("default", f"{name}${condition}"))) == rows
    without = catalog.load_table(("default", f"{name}$p='c'"))
    assert without.format_version == 2


def test_tables_whose_vectors_are_gone_are_what_engines_know_longest(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    load(http, name)
    log.commit(remove("one"), remove("two"), file_of(log, "three", "c"))
    client.refresh(name)

    newest = load(http, name).json()["metadata"]
    assert [one["summary"]["total-delete-files"] for one in newest["snapshots"]] == ["2", "0"]
    # Older snapshots still have them.
    assert newest["format-version"] == 3


def test_each_snapshot_is_planned_with_its_own_vectors(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    first = load(http, name).json()
    again = file_of(log, "one", "a", inline_vector([0, 2]))
    log.commit(remove("one"), remove("two"), again, file_of(log, "three", "c"))
    client.refresh(name)

    assert first["config"] == {}
    assert deleted_by_file(http, name) == {"one": 2, "three": 0}
    snapshot_id = first["metadata"]["current-snapshot-id"]
    assert deleted_by_file(http, name, snapshot_id) == {"one": 1, "two": 1}


def deleted_by_file(
    http: httpx.Client, name: str, snapshot_id: int | None = None
) -> dict[str, int]:
    body = {} if snapshot_id is None else {"snapshot-id": snapshot_id}
    path = f"/iceberg/v1/namespaces/default/tables/{name}/plan"
    plan = http.post(path, json=body).json()
    return {
        Path(task["data-file"]["file-path"]).name: sum(
            plan["delete-files"][at]["record-count"]
            for at in task.get("delete-file-references", ())
        )
        for task in plan["file-scan-tasks"]
    }


@pytest.mark.parametrize("harm", ["gone", "short", "other", "checksum", "uncounted", "inline"])
def test_vectors_that_cannot_be_read_refuse_the_table_by_name(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog, harm: str
) -> None:
    (path,) = log.folder.glob("deletion_vector_*.bin")
    content = bytearray(path.read_bytes())
    words = f"{path.name!r} has a deletion vector that is not valid"
    if harm == "gone":
        path.unlink()
        words = f"{path.name!r}, which cannot be read"
    elif harm == "short":
        path.write_bytes(content[:-1])
    elif harm == "other":
        content[-5] ^= 1
        path.write_bytes(content)
    elif harm == "checksum":
        content[-1] ^= 1
        path.write_bytes(content)
    else:
        vector = inline_vector([1])
        if harm == "uncounted":
            del vector["cardinality"]
            words = "file 'three': the log does not say how many rows"
        else:
            # It begins as the vectors of an early version did.
            vector["pathOrInlineDv"] = "00000" + vector["pathOrInlineDv"][5:]
            words = "its log has a deletion vector that is not valid"
        log.commit(file_of(log, "three", "c", vector))
        client.refresh(name)

    assert words in refusal(load(http, name))


def test_vectors_are_made_again_if_a_part_of_them_has_gone(
    client: windrow.Client,
    http: httpx.Client,
    catalog: RestCatalog,
    name: str,
    log: DeltaLog,
    location: Path,
) -> None:
    folder = Path(load(http, name).json()["metadata-location"]).parent
    (puffin,) = folder.glob("*.puffin")
    os.unlink(puffin)
    # A new snapshot of the same files.
    log.commit(metadata([*COLUMNS], ["p"], {"a": "b"}), file_of(log, "three", "c"))
    client.refresh(name)

    assert sorted(catalog.load_table(("default", name)).scan().to_arrow()["id"].to_pylist()) == [
        1, 1, 2, 2, 3, 3, 3,
    ]  # fmt: skip
