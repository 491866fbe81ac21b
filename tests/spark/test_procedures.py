"""`CALL windrow.system.…` does what the client does, and answers with a row."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.tables import hive
from tests.support.tables.packs import settle, write_small_files
from windrow.procedures import PROCEDURES
from windrow_core.models.erasures import ErasureReceipt

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession, client: windrow.Client) -> None:
    windrow.register(spark, client)


@pytest.fixture
def location(folder: Path) -> Path:
    return hive.write_events(folder / f"called{next(_numbers)}")


@pytest.fixture
def table(client: windrow.Client, location: Path) -> str:
    """A table of sixty rows in six files."""
    name = f"called.{location.name}"
    client.register_table(name, str(location))
    client.refresh(name)
    return name


def call(spark: SparkSession, text: str) -> dict[str, Any]:
    """Return the only row of a call."""
    (row,) = spark.sql(f"CALL windrow.system.{text}").collect()
    return dict(row.asDict())


def test_procedures_are_listed_and_described(spark: SparkSession) -> None:
    rows = spark.sql("SHOW PROCEDURES IN windrow.system").collect()

    assert [row.procedure_name for row in rows] == [one.name for one in PROCEDURES]
    for one in PROCEDURES:
        described = spark.sql(f"DESCRIBE PROCEDURE windrow.system.{one.name}").collect()
        assert one.description in described[1][0]


def test_a_refresh_finds_new_files(spark: SparkSession, table: str, location: Path) -> None:
    rows = spark.table(f"windrow.{table}")
    new = pa.table({"id": pa.array([60], pa.int64()), "name": ["new"]})
    pq.write_table(new, location / "ds=2026-11-01" / "new.parquet")

    row = call(spark, f"refresh(table => '{table}', full => true)")

    assert (row["table"], row["changed"], row["files_added"]) == (table, True, 1)
    assert (row["file_count"], row["row_count"]) == (7, 61)
    assert rows.count() == 61


def test_erasures_are_looked_at_and_made(
    spark: SparkSession, client: windrow.Client, table: str, location: Path
) -> None:
    before = {path: path.stat().st_ino for path in location.rglob("*.parquet")}
    spark.sql(f"CACHE TABLE windrow.{table}")
    spark.table(f"windrow.{table}").count()

    dry = call(spark, f"erase(table => '{table}', where => 'id IN (3, 25)', dry_run => true)")
    by_key = client.erase(table, key="id", values=[3, 25], dry_run=True)

    assert {path: path.stat().st_ino for path in location.rglob("*.parquet")} == before
    assert (dry["is_dry"], dry["receipt"], dry["snapshot_id"]) == (True, None, None)
    figures = ("rows_removed", "files_total", "files_read", "files_rewritten", "files_removed")
    assert [dry[name] for name in figures] == [getattr(by_key, name) for name in figures]

    done = call(spark, f"erase('{table}', key => 'id', values => array(3, 25))")

    assert [done[name] for name in figures] == [dry[name] for name in figures]
    assert (done["is_dry"], done["rows_left"]) == (False, 0)
    receipt = ErasureReceipt.model_validate_json(done["receipt"])
    assert client.verify_receipt(receipt)
    left = spark.table(f"windrow.{table}")
    assert left.storageLevel.useMemory
    assert sorted(row.id for row in left.collect()) == [n for n in range(60) if n not in (3, 25)]
    spark.sql(f"UNCACHE TABLE windrow.{table}")


def test_small_files_are_compacted(spark: SparkSession, table: str, location: Path) -> None:
    rows = sorted(spark.table(f"windrow.{table}").collect())

    row = call(spark, f"compact(table => '{table}', filter => \"ds < '2026-11-03'\")")

    assert (row["partitions"], row["files_before"], row["files_after"]) == (2, 4, 2)
    assert row["rows"] == 40
    assert len([*location.rglob("*.parquet")]) == 4
    assert sorted(spark.table(f"windrow.{table}").collect()) == rows


def test_small_files_are_packed_and_maintained(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "small"
    write_small_files(location)
    client.register_table("called.small", str(location))
    client.refresh("called.small")
    settle()

    packed = call(spark, "pack('called.small')")
    maintained = call(spark, "maintain(tables => 'called.small')")

    assert (packed["files_packed"], packed["packs"] >= 1, packed["files_left"]) == (60, True, 0)
    assert len(client.list_packs("called.small")) == packed["packs"]
    # Without a policy, no work is due.
    assert (maintained["done"], maintained["failed"], maintained["reason"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vacuum('T')", r"there is no procedure 'system\.vacuum': call one of system\.refresh"),
        ("refresh()", "table"),
        ("refresh(tabel => 'T')", "tabel"),
        ("refresh('called.nothing')", r"no table 'called\.nothing'"),
        ("erase('T')", "give either a key with its values, or a condition"),
        ("erase('T', where => 'id = ')", "filter"),
        ("erase('T', where => 'id = 1', dry_run => NULL)", "'dry_run' is NULL"),
        ("erase('T', where => 'id = 1', values => array('1'))", "values need a key"),
        ("erase('T', key => 'id')", "give at least one"),
        ("compact('T', target_file_size => 'much')", "'much' is not a size"),
    ],
)
def test_a_call_that_cannot_be_carried_out_says_why(
    spark: SparkSession, table: str, text: str, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        call(spark, text.replace("'T'", f"'{table}'"))
