"""Iceberg tables on Spark have the rows that PyIceberg reads from the same snapshot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import a_few, is_nightly
from tests.support.tables.iceberg import (
    catalog_in,
    new_table,
    newest_metadata,
    published_table,
    table_with_odd_names,
)
from tests.support.tables.iceberg_deletes import delete_by_vector, delete_equal, delete_positions
from windrow_calls.errors import RefreshFailedError
from windrow_tables.commits.errors import UnfitLocationError

pytestmark = pytest.mark.usefixtures("interpreted")

# PyIceberg copies all metadata at each commit, so many commits are slow.
COMMITS = 200 if is_nightly() else 24
READ_VERSIONS = 20 if is_nightly() else 8
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("region", pa.string()),
        ("x", pa.float32()),
        ("at", pa.timestamp("us")),
        ("note", pa.string()),
    ]
)


def _register(client: windrow.Client, name: str, location: str | Path) -> None:
    client.register_table(name, str(location), "iceberg")
    client.refresh(name)


def _cells(rows: pa.Table) -> list[str]:
    """Return rows as texts that do not depend on the order of rows and columns."""
    names = sorted(rows.column_names)
    return sorted(repr([row[name] for name in names]) for row in rows.to_pylist())


def _same_rows(ours: pa.Table, theirs: pa.Table) -> None:
    assert sorted(ours.column_names) == sorted(theirs.column_names)
    assert _cells(ours) == _cells(theirs)


@pytest.mark.parametrize(
    "name",
    a_few(
        [
            "iceberg_alltypes_part",
            "iceberg_legacy_partition_schema_evolution",
            "iceberg_migrated_alter_test",
            "iceberg_spark_compaction_with_dangling_delete",
            "iceberg_timestamptz_part",
            "iceberg_v2_partitioned_position_deletes",
            "iceberg_v2_positional_not_all_data_files_have_delete_files",
            "iceberg_v3_default_value",
            "iceberg_v3_row_lineage",
            "test_complex_default",
            "test_default_part",
        ],
        3,
    ),
)
def test_published_tables_have_the_rows_that_pyiceberg_reads(
    name: str, client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    table = published_table(name, folder)
    _register(client, name, table)

    _same_rows(
        client.read(spark, name).toArrow(),
        StaticTable.from_metadata(str(newest_metadata(table))).scan().to_arrow(),
    )


def test_columns_whose_names_icebergs_java_writer_replaced_are_read_at_every_level(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    table, expected = table_with_odd_names(folder)
    _register(client, "odd_names", table)

    for reader in ("auto", "native", "grouped"):
        rows = client.read(spark, "odd_names", reader=reader).orderBy("id").collect()
        assert [row.asDict(recursive=True) for row in rows] == expected
    odd = client.read(spark, "odd_names").where("`2nd` is null and s.`y x` = 4 and price > 1")
    assert [row.id for row in odd.collect()] == [1]


def test_rows_deleted_by_vectors_of_a_published_table_are_gone(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    # PyIceberg ignores the deletion vectors of this table.
    name = "iceberg_v3_deletion_vectors"
    _register(client, name, published_table(name, folder))

    assert sorted(client.read(spark, name).toPandas()["i"]) == [1, 3, 5]


def _rows(number: int, table: Table) -> pa.Table:
    """Return two rows with the current columns of the table."""
    ids = [2 * number, 2 * number + 1]
    made: dict[str, Sequence[Any]] = {
        "id": ids,
        "region": [f"region {number % 3}", None],
        "x": [number / 4, None],
        "at": [datetime.fromisoformat(f"2024-01-{1 + number % 28:02}T01:02:03")] * 2,
    }
    schema = table.schema().as_arrow()
    columns = []
    for field in schema:
        text = [f"{field.name} {one}" for one in ids]
        columns.append(pa.array(made.get(field.name, text), field.type))
    return pa.table(columns, schema=schema)


def _evolve(number: int, table: Table) -> None:
    with table.update_schema() as schema:
        if number == 4:
            schema.rename_column("note", "remark")
        elif number in (6, 15):
            schema.add_column("note", StringType())
        elif number == 9:
            schema.update_column("id", LongType())
            schema.update_column("x", DoubleType())
            schema.move_first("x")
        elif number == 13:
            schema.delete_column("note")
    with table.update_spec() as spec:
        if number == 7:
            spec.add_field("region", IdentityTransform(), "by_region")
        elif number == 18:
            spec.add_field("at", DayTransform(), "by_day")
            spec.add_field("id", BucketTransform(4), "by_id")
        elif number == 22:
            spec.remove_field("by_region")


def _commit(number: int, table: Table) -> None:
    if number in (4, 6, 7, 9, 13, 15, 18, 22):
        _evolve(number, table)
    if number % 10 == 3:
        table.delete(f"id = {number}")
    elif number % 12 == 5:
        table.overwrite(_rows(number, table), overwrite_filter=f"id < {number // 2}")
    else:
        table.append(_rows(number, table))
    if number == 10:
        current = table.current_snapshot()
        assert current is not None
        with table.manage_snapshots() as refs:
            refs.create_tag(current.snapshot_id, "nightly")
            refs.create_branch(current.snapshot_id, "audit")
        table.append(_rows(1_000, table), branch="audit")


def _live(catalog: Catalog, reading: threading.Event, failures: list[BaseException]) -> None:
    """Commit, waiting now and then until a read begins."""
    try:
        table = catalog.load_table("ns.live")
        for number in range(COMMITS):
            if number % (COMMITS // 6) == 1:
                reading.wait()
                reading.clear()
            _commit(number, table)
    except BaseException as error:
        failures.append(error)


def test_a_live_table_is_read_as_of_one_snapshot_while_and_after_it_changes(
    client: windrow.Client, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, location = new_table(folder, SCHEMA, "live")
    # Only the catalog knows which metadata files are whole and committed.
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{folder}/catalog.db")
    options = {"catalog": "tests", "identifier": "ns.live"}
    client.register_table("live", location, "iceberg", format_options=options)
    failures: list[BaseException] = []
    reading = threading.Event()
    writer = threading.Thread(target=_live, args=(catalog_in(folder), reading, failures))
    writer.start()
    during: list[tuple[str, pa.Table]] = []
    while writer.is_alive():
        reading.set()
        client.refresh("live")
        snapshot = client.table("live").current_snapshot
        assert snapshot is not None
        if snapshot.table_version is not None:
            frame = client.read(spark, "live", snapshot_id=snapshot.snapshot_id)
            during.append((snapshot.table_version, frame.toArrow()))
    writer.join()
    assert not failures
    assert len({version for version, _ in during}) > 2
    table.refresh()
    for version, rows in during:
        # Other columns may have been renamed after the last row was written.
        expected = _expected(table, version).select(["id", "region", "at"])
        _same_rows(rows.select(expected.column_names), expected)

    ids = [str(one.snapshot_id) for one in table.snapshots()]
    chosen = [*ids[:: len(ids) // (READ_VERSIONS - 3)][: READ_VERSIONS - 3], ids[-1]]
    for version in (*chosen, "nightly", "audit"):
        client.refresh("live", version=version)
        rows = client.read(spark, "live", version=version).toArrow()
        if version == "audit":
            # A branch has the current columns of the table, and the current `note` is a new one.
            assert rows["note"].null_count == len(rows)
            _same_rows(rows.drop_columns("note"), _expected(table, version).drop_columns("note"))
        else:
            _same_rows(rows, _expected(table, version))


def _expected(table: Table, version: str) -> pa.Table:
    scan = table.scan()
    chosen = (
        scan.use_ref(version) if version in table.refs() else table.scan(snapshot_id=int(version))
    )
    return chosen.to_arrow()


def test_rows_deleted_by_files_of_positions_are_gone(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    table, location = new_table(folder, pa.schema([("id", pa.int64())]), "positions")
    for start in (0, 4, 8):
        table.append(pa.table({"id": range(start, start + 4)}))
    first, second, _ = sorted(task.file.file_path for task in table.scan().plan_files())
    delete_positions(table, {first: [0, 2], second: [1]})
    delete_positions(table, {second: [3, 1]})
    # A file of positions does not delete rows that are written after it.
    table.append(pa.table({"id": range(12, 16)}))
    _register(client, "positions", location)
    info = client.table("positions").current_snapshot
    assert info is not None
    assert info.log is not None

    assert info.log.delete_files == 2
    _same_rows(client.read(spark, "positions").toArrow(), table.scan().to_arrow())
    assert client.read(spark, "positions", filter="id >= 0").count() == 16 - 4


def test_rows_deleted_by_deletion_vectors_are_gone(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    table, location = new_table(folder, pa.schema([("id", pa.int64())]), "vectors")
    for start in (0, 4, 8):
        table.append(pa.table({"id": range(start, start + 4)}))
    first, second, _ = sorted(task.file.file_path for task in table.scan().plan_files())
    delete_positions(table, {first: [0]})
    delete_by_vector(table, {first: [0, 3], second: [1, 2]})
    _register(client, "vectors", location)

    _same_rows(client.read(spark, "vectors").toArrow(), table.scan().to_arrow())
    assert client.read(spark, "vectors").count() == 12 - 4


def test_a_table_with_rows_deleted_by_equality_is_refused(
    client: windrow.Client, folder: Path
) -> None:
    table, location = new_table(folder, pa.schema([("id", pa.int64())]), "equality")
    table.append(pa.table({"id": range(4)}))
    delete_equal(table, "id", pa.array([1, 2], pa.int64()))

    with pytest.raises(RefreshFailedError, match=r"deleted by equality.*rewrite_data_files"):
        _register(client, "equality", location)


def test_a_write_to_an_iceberg_table_is_refused(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    table, location = new_table(folder, pa.schema([("id", pa.int64())]), "written")
    table.append(pa.table({"id": range(4)}))
    _register(client, "written", location)

    with pytest.raises(UnfitLocationError, match="rewrite_data_files"):
        client.write(spark.range(3), "written")


def test_views_of_sql_read_iceberg_tables(
    client: windrow.Client, spark: SparkSession, folder: Path
) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    table, location = new_table(folder, schema, "viewed")
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform())
    table.append(pa.table({"id": range(6), "region": ["a", "b", "c"] * 2}, schema=schema))
    _register(client, "viewed", location)
    client.read(spark, "viewed").createOrReplaceTempView("viewed")

    found = spark.sql("SELECT region, sum(id) FROM viewed WHERE region > 'a' GROUP BY region")

    assert sorted(map(tuple, found.collect())) == [("b", 5), ("c", 7)]
