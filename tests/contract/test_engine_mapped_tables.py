"""Delta tables with column mapping reach engines by the ids and the names that their files have."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

import windrow
from tests.programs import mapped_delta_on_spark
from tests.support.engines.answers import load, refusal
from tests.support.processes.environments import skipped_without
from tests.support.servers.maven import jar_of
from tests.support.spark.older_spark import python_with_spark
from tests.support.tables.delta_tables import (
    Action,
    DeltaLog,
    column,
    metadata,
    protocol,
    remove,
)

_ID = "PARQUET:field_id"
MAPPED = {"delta.columnMapping.mode": "name"}


def mapped(name: str, number: int, physical: str, type_: Any = "long") -> dict[str, Any]:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return column(name, type_, **keys)


def field(name: str, number: int | None = None, type_: pa.DataType | None = None) -> pa.Field:
    ids = None if number is None else {_ID: str(number)}
    return pa.field(name, type_ or pa.int64(), metadata=ids)


def file_of(
    log: DeltaLog, path: str, fields: Sequence[pa.Field], values: Sequence[list[Any]]
) -> Action:
    """Write a file with the statistics of its columns, by the names that it has for them."""
    file = log.write_file(path, pa.table(values, pa.schema(fields)))
    numbers = {
        one.name: some for one, some in zip(fields, values, strict=True) if one.type == pa.int64()
    }
    stats = {
        "numRecords": len(values[0]),
        "minValues": {name: min(some) for name, some in numbers.items()},
        "maxValues": {name: max(some) for name, some in numbers.items()},
        "nullCount": dict.fromkeys(numbers, 0),
    }
    file["add"]["stats"] = json.dumps(stats)
    return file


@pytest.fixture
def log(client: windrow.Client, name: str, location: Path) -> DeltaLog:
    """The log of a registered table with two columns, which got their mapping later."""
    log = DeltaLog(location)
    columns = [column("a", "long"), column("b", "long")]
    log.commit(protocol(), metadata(columns), file_of(log, "0", fields_of(), [[1, 2], [10, 20]]))
    client.register_table(name, str(location), "delta")
    client.refresh(name)
    log.commit(
        protocol(2),
        metadata([mapped("a", 1, "a"), mapped("b", 2, "b")], (), MAPPED),
        file_of(log, "1", fields_of(1, 2), [[3, 4], [30, 40]]),
    )
    client.refresh(name)
    return log


def fields_of(*ids: int) -> list[pa.Field]:
    return [field("a", *ids[:1]), field("b", *ids[1:])]


@pytest.fixture
def catalog(url: str) -> Iterable[RestCatalog]:
    made = RestCatalog("w", uri=f"{url}/iceberg")
    yield made
    made.close()


def rows(table: Table, snapshot_id: int | None = None, **more: Any) -> list[Mapping[str, Any]]:
    """Return the rows that PyIceberg reads, and, without a filter, Polars too."""
    by_pyiceberg = table.scan(snapshot_id=snapshot_id, **more).to_arrow().to_pylist()
    if not more:
        by_polars = pl.scan_iceberg(table, snapshot_id=snapshot_id).collect().to_dicts()
        assert sorted(map(repr, by_pyiceberg)) == sorted(map(repr, by_polars))
    return sorted(by_pyiceberg, key=repr)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_snapshot_has_its_own_names_and_those_before_the_mapping_are_left_out(
    client: windrow.Client, catalog: RestCatalog, name: str, log: DeltaLog
) -> None:
    # `a` and `b` swap names, and then `a`, which was `b`, is dropped and added anew.
    log.commit(metadata([mapped("b", 1, "a"), mapped("a", 2, "b")], (), MAPPED))
    client.refresh(name)
    log.commit(
        metadata([mapped("b", 1, "a"), mapped("a", 3, "col-3")], (), MAPPED),
        file_of(log, "2", [field("a", 1), field("col-3", 3)], [[5], [50]]),
    )
    client.refresh(name)

    table = catalog.load_table(("default", name))

    first, second, third = (one.snapshot_id for one in table.snapshots())
    assert rows(table, first) == [{"a": one, "b": 10 * one} for one in (1, 2, 3, 4)]
    assert rows(table, second) == [{"b": one, "a": 10 * one} for one in (1, 2, 3, 4)]
    now = [*({"b": one, "a": None} for one in (1, 2, 3, 4)), {"b": 5, "a": 50}]
    assert rows(table, third) == rows(table) == now
    assert rows(table, row_filter="a = 50") == now[-1:]
    assert rows(table, row_filter="b > 3") == now[3:]


@pytest.mark.slow
def test_files_are_ruled_out_by_the_statistics_of_their_columns(
    client: windrow.Client, url: str, name: str, log: DeltaLog
) -> None:
    log.commit(metadata([mapped("b", 1, "a"), mapped("a", 2, "b")], (), MAPPED))
    client.refresh(name)

    for mode in ("client", "server"):
        with_mode = RestCatalog("w", uri=f"{url}/iceberg", **{"scan-planning-mode": mode})
        table = with_mode.load_table(("default", name))
        for condition, files in (
            ("a = 10", ["0"]),
            ("b = 3", ["1"]),
            ("a = 3", []),
            ("b = 10 or a = 5", []),
            ("b < 10", ["0", "1"]),
        ):
            tasks = table.scan(row_filter=condition).plan_files()
            assert sorted(Path(task.file.file_path).name for task in tasks) == files
        with_mode.close()


def test_filters_rule_nothing_out_of_older_snapshots_whose_names_the_engine_may_not_mean(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    older = load(http, name).json()["metadata"]["current-snapshot-id"]
    log.commit(metadata([mapped("b", 1, "a"), mapped("a", 2, "b")], (), MAPPED))
    client.refresh(name)
    body = {"filter": {"type": "eq", "term": "a", "value": 10}}

    plans = [
        http.post(f"/iceberg/v1/namespaces/default/tables/{name}/plan", json={**body, **more})
        for more in ({}, {"snapshot-id": older})
    ]

    assert [len(plan.json()["file-scan-tasks"]) for plan in plans] == [1, 2]


def test_a_snapshot_before_the_mapping_is_no_longer_planned(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    (first, _) = sorted(one.snapshot_id for one in client.snapshots(name))
    path = f"/iceberg/v1/namespaces/default/tables/{name}/plan"

    assert http.post(path, json={"snapshot-id": first}).status_code == 404


STRUCT = pa.struct([field("x", 3)])
LIST = pa.list_(pa.int64())
HARMS: Mapping[str, list[pa.Field]] = {
    "other id": [field("a", 7), field("b", 2)],
    "swapped ids": [field("a", 2), field("b", 1)],
    "an id of another one": [field("a", 1), field("c", 2)],
    "ids of some": [field("a", 1), field("b")],
    "an id deep in another one": [field("a", 1), field("c", 9, pa.struct([field("x", 2)]))],
    "spelled otherwise": [field("A", 1), field("b", 2)],
}


@pytest.mark.parametrize("harm", HARMS)
def test_files_whose_ids_and_names_disagree_refuse_the_table_by_name(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog, harm: str
) -> None:
    fields = HARMS[harm]
    values = [[{"x": 1}] if pa.types.is_struct(one.type) else [1] for one in fields]
    log.commit(file_of(log, "harmed", fields, values))
    client.refresh(name)

    message = refusal(load(http, name))

    assert "'harmed'" in message
    assert "Delta's column mapping" in message


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lists_and_maps_whose_elements_have_no_ids_are_refused_only_in_files_with_ids(
    client: windrow.Client, http: httpx.Client, catalog: RestCatalog, name: str, log: DeltaLog
) -> None:
    elements = {"type": "array", "elementType": "long", "containsNull": True}
    log.commit(
        remove("0"),
        remove("1"),
        metadata([mapped("l", 1, "a", elements)], (), MAPPED),
        file_of(log, "2", [field("a", None, LIST)], [[[1, 2]]]),
    )
    client.refresh(name)
    assert rows(catalog.load_table(("default", name))) == [{"l": [1, 2]}]

    log.commit(file_of(log, "3", [field("a", 1, LIST)], [[[3]]]))
    client.refresh(name)

    message = refusal(load(http, name))
    assert "'3'" in message
    assert "whose elements have no field ids" in message


def test_snapshots_with_other_fields_in_a_struct_are_left_out(
    client: windrow.Client, http: httpx.Client, name: str, log: DeltaLog
) -> None:
    def struct(*fields: dict[str, Any]) -> dict[str, Any]:
        return mapped("s", 5, "s", {"type": "struct", "fields": list(fields)})

    first, second = mapped("x", 3, "x"), mapped("y", 4, "y")
    in_file = pa.struct([field("x", 3)])
    log.commit(
        remove("0"),
        remove("1"),
        metadata([struct(first)], (), MAPPED),
        file_of(log, "2", [field("s", 5, in_file)], [[{"x": 1}]]),
    )
    client.refresh(name)
    before = load(http, name).json()["metadata"]
    in_file = pa.struct([field("x", 3), field("y", 4)])
    log.commit(
        remove("2"),
        metadata([struct(first, second)], (), MAPPED),
        file_of(log, "3", [field("s", 5, in_file)], [[{"x": 1, "y": 2}]]),
    )
    client.refresh(name)
    after = load(http, name).json()["metadata"]

    (mapped_first, left_out), others = (
        [one["snapshot-id"] for one in metadata["snapshots"]] for metadata in (before, after)
    )
    assert others == [mapped_first, after["current-snapshot-id"]]
    assert left_out == before["current-snapshot-id"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_tables_that_deltas_own_runtime_has_written_have_its_rows(
    client: windrow.Client, catalog: RestCatalog, url: str, name: str, location: Path
) -> None:
    package = "io.delta:delta-spark_2.13:4.0.0"
    # Spark finds it where Maven keeps what it has fetched.
    jar_of(package)
    with skipped_without("Spark 4.0"):
        python = python_with_spark("4.0.5")
    program = mapped_delta_on_spark.__file__
    result = subprocess.run(
        [python, program, str(location), package],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    expected = json.loads(result.stdout.splitlines()[-1])

    for kind, its_rows in expected.items():
        mapped_name = f"{name}_{kind}"
        client.register_table(mapped_name, str(location / kind), "delta")
        client.refresh(mapped_name)
        table = catalog.load_table(("default", mapped_name))
        by_server = RestCatalog("w", uri=f"{url}/iceberg", **{"scan-planning-mode": "server"})

        assert len(its_rows) == 5
        assert rows(table) == sorted(its_rows, key=repr)
        planned = by_server.load_table(("default", mapped_name)).scan(row_filter="a = 'b3'")
        assert [row["id"] for row in planned.to_arrow().to_pylist()] == [3]
        by_server.close()
