"""Transactional tables of Hive read by Spark: only current rows, whatever a query needs."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.tables.acid_tables import AcidTable, orc_bytes, random_history, written
from windrow_spark.relation.recent_scans import recent_scans

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def history(client: windrow.Client, folder: Path) -> AcidTable:
    """The table `acid`, with deletes, several buckets, original files and compacted folders."""
    table = AcidTable(folder / "acid", ["ds=1/", "ds=2/"], buckets=2)
    random_history(table, random.Random(41), 30)
    client.register_table("acid", str(table.location), "orc", transactional="full")
    client.refresh("acid", valid_write_ids=table.now().text)
    return table


def test_queries_see_the_current_rows(
    spark: SparkSession, client: windrow.Client, history: AcidTable
) -> None:
    alive = {
        row.values["id"]: row.values["name"]
        for partition in history.partitions
        for row in history.alive(partition, history.now())
    }
    rows = client.read(spark, "acid")
    client.create_view(spark, "acid")

    assert {row.id: row.name for row in rows.collect()} == alive
    assert rows.count() == len(alive)
    assert rows.columns == ["id", "name", "ds"]
    some = sorted(alive)[len(alive) // 2]
    found = spark.sql(f"SELECT sum(id), count(name) FROM acid WHERE id >= {some}").collect()[0]
    wanted = {id_: name for id_, name in alive.items() if id_ >= some}
    assert tuple(found) == (sum(wanted), sum(name is not None for name in wanted.values()))
    plan = client.plan("acid")
    assert plan.summary.delete_opens > 0
    assert sorted(r.id for r in client.read_plan(spark, plan).collect()) == sorted(alive)
    explained = client.explain(plan.info.plan_id).delete_files
    assert explained is not None
    assert explained.by_group == plan.summary.delete_opens <= explained.by_split
    assert not client.explain_read(spark, "acid").native_files


def test_each_delete_file_is_opened_once_by_each_group(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = AcidTable(folder / "opened")
    for _ in range(20):
        table.insert(table.begin(), 0, [("", 0, 3)])
    for row in table.rows[:10]:
        table.delete(table.begin(), 0, [row])
    client.register_table("opened", str(table.location), "orc", transactional="full")
    client.refresh("opened")

    rows = client.read(spark, "opened", parallelism=2)
    assert sorted(row.id for row in rows.collect()) == table.ids(table.now())

    scan = next(scan for scan in recent_scans() if scan.table == "opened")
    groups = scan.plan.summary.group_count
    assert groups <= 4
    assert scan.read.delete_files == scan.plan.summary.delete_opens == 10 * groups
    assert client.plan("opened", parallelism=2).summary.delete_opens_by_split == 200


def test_evolved_columns_and_times_are_read_as_the_table_has_them(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = AcidTable(folder / "evolved")
    moment = datetime.fromisoformat("2026-07-01 12:30")
    for write, fields, values in (
        (1, [("id", pa.int32()), ("Name", pa.string())], {"id": 1, "Name": "a"}),
        (
            2,
            [("id", pa.int64()), ("at", pa.timestamp("us")), ("name", pa.string())],
            {"id": 2**40, "at": moment, "name": "b"},
        ),
    ):
        table.begin()
        row = table.new_row("", 0, write, 0, 0)
        row.values = values
        content = written([(0, row, write)], pa.struct(fields))
        table.put(f"delta_{write:07d}_{write:07d}_0000/bucket_00000", content)
    client.register_table("evolved", str(table.location), "orc", transactional="full")
    client.refresh("evolved")

    rows = client.read(spark, "evolved")
    # The time as Spark's own reader reads it.
    plain = folder / "plain"
    plain.mkdir()
    (plain / "f").write_bytes(orc_bytes(pa.table({"at": pa.array([moment], pa.timestamp("us"))})))
    at = spark.read.orc(str(plain)).collect()[0]["at"]

    assert dict(rows.dtypes)["id"] == "bigint"
    assert {(row.id, row.name, row["at"]) for row in rows.select("id", "name", "at").collect()} == {
        (1, "a", None),
        (2**40, "b", at),
    }


def test_a_column_that_no_reader_reads_exactly_is_refused_only_if_requested(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = AcidTable(folder / "inexact")
    write = table.begin()
    row = table.new_row("", 0, write, 0, 0)
    row.values = {"id": 7, "times": [datetime.fromisoformat("2026-01-01")]}
    fields = pa.struct([("id", pa.int64()), ("times", pa.list_(pa.timestamp("us")))])
    table.put("delta_0000001_0000001_0000/bucket_00000", written([(0, row, write)], fields))
    client.register_table("inexact", str(table.location), "orc", transactional="full")
    client.refresh("inexact")

    assert client.read(spark, "inexact", columns=["id"]).collect()[0].id == 7
    with pytest.raises(PySparkException, match=r"bucket_00000.*cannot be read exactly"):
        client.read(spark, "inexact").collect()


def test_a_delete_file_that_changed_since_the_plan_fails_the_read_by_name(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = AcidTable(folder / "changed")
    table.insert(table.begin(), 0, [("", 0, 3)])
    table.delete(table.begin(), 0, table.rows[:1])
    client.register_table("changed", str(table.location), "orc", transactional="full")
    client.refresh("changed")
    plan = client.plan("changed")
    path = next(table.location.glob("delete_delta_*/bucket_00000"))
    path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(PySparkException, match="delete_delta_0000002_0000002_0000/bucket_00000"):
        client.read_plan(spark, plan).collect()


def test_insert_only_tables_are_read_in_each_format(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "inserts"
    names = ["base_0000002_v0000003", "delta_0000001_0000001_0000"]
    for at, name in enumerate([*names, "delta_0000003_0000003_0000/HIVE_UNION_SUBDIR_1"]):
        for format_ in ("parquet", "orc", "text"):
            path = location / format_ / name / "000000_0"
            path.parent.mkdir(parents=True)
            rows = pa.table({"value": [f"{at}"]})
            if format_ == "parquet":
                pq.write_table(rows, path)
            elif format_ == "orc":
                path.write_bytes(orc_bytes(rows))
            else:
                path.write_text(f"{at}\n")
    for format_ in ("parquet", "orc", "text"):
        name = f"inserts_{format_}"
        client.register_table(name, str(location / format_), format_, transactional="insert_only")
        client.refresh(name)
        for reader in ("auto", "native"):
            rows = client.read(spark, name, reader=reader).collect()
            assert sorted(row.value for row in rows) == ["0", "2"], (format_, reader)
