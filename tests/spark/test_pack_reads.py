"""Rows of packs are those of their files, in all of Spark's queries, and nothing else is ever read."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.servers import embedded
from tests.support.tables.packs import packs_for_few_files, publish_new_packs
from windrow.spark import recent_scans
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation.packed import SETTING

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_LONG_AGO_S = 1_700_000_000
_UTC = dt.timezone.utc
FILES = 60


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise the coordinator may withdraw a damaged pack before a reader meets it.
        patch.setattr("windrow_service.wiring.packs._KEEP_EVERY_S", 3_600.0)
        with (
            packs_for_few_files(),
            embedded.client(folder / "state", allowed_locations=[str(folder)]) as client,
        ):
            yield client


def write(path: Path, columns: dict[str, Any], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns).replace_schema_metadata(options.pop("keys", None))
    pq.write_table(table, path, **options)
    os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))


def columns_of(number: int) -> dict[str, Any]:
    """Return rows of a file with columns of every kind, and nulls."""
    at = dt.datetime(1890 + number, 5, 7, 11, 13, 17, number, tzinfo=_UTC)
    return {
        "id": pa.array([10 * number, 10 * number + 1, None], pa.int64()),
        "name": [f"é{number}", None, ""],
        "day": pa.array([dt.date(1500 + 10 * number, 1, 1), None, dt.date(2026, 1, 1)]),
        "at": pa.array([at, None, at], pa.timestamp("us", "UTC")),
        "money": pa.array([decimal.Decimal(number) / 4, None, None], pa.decimal128(9, 2)),
        "much": pa.array([decimal.Decimal(number) * 10**25, None, None], pa.decimal128(30, 2)),
        "share": [float("nan"), -0.0, number / 3],
        "parts": pa.array([{"a": number, "b": [1, None]}, None, {"a": None, "b": None}]),
        "words": pa.array([["x", None], None, []], pa.list_(pa.string())),
        "raw": [bytes([number]), None, b""],
    }


def packed(client: windrow.Client, location: Path, name: str, **definition: Any) -> str:
    client.register_table(name, str(location), **definition)
    client.refresh(name)
    packs, _ = publish_new_packs(client, name)
    assert packs
    return name


def flights(client: windrow.Client, location: Path, name: str) -> str:
    """Return a packed table of two partition columns."""
    for at in range(FILES):
        write(
            location / f"k={at % 7}" / f"t=a%2F{at % 3}" / f"{at}.parquet",
            {"id": list(range(40 * at, 40 * at + 40)), "x": [f"v{at}"] * 40},
        )
    return packed(client, location, name)


@pytest.fixture(scope="module")
def table(client: windrow.Client, folder: Path) -> str:
    return flights(client, folder / "plain", "packs.plain")


def rows_of(rows: DataFrame) -> list[str]:
    with plain_errors():
        return sorted(str(row) for row in rows.collect())


def make_views(spark: SparkSession, client: windrow.Client, table: str, location: Path) -> None:
    """Make views of a table: `by_packs`, and `by_spark`, whose files Spark itself lists and reads once."""
    client.create_view(spark, table, "by_packs")
    rows = spark.read.schema(client.read(spark, table).schema).parquet(str(location))
    rows.coalesce(1).cache().createOrReplaceTempView("by_spark")


def both(spark: SparkSession, ask: Callable[[], DataFrame]) -> tuple[list[str], list[str]]:
    """Return the rows of a query without packs and with them."""
    answers = []
    for value in ("false", "true"):
        spark.conf.set(SETTING, value)
        # Rows are to be read.
        spark.conf.set("spark.windrow.figures", "false")
        try:
            answers.append(rows_of(ask()))
        finally:
            spark.conf.unset(SETTING)
            spark.conf.unset("spark.windrow.figures")
    return answers[0], answers[1]


def from_packs(table: str) -> int:
    return recent_scans(table)[0].packed_files


QUERIES = (
    "SELECT * FROM {0}",
    "SELECT k, id FROM {0} WHERE id % 3 = 1",
    "SELECT t, count(*), sum(id), max(x) FROM {0} GROUP BY t",
    "SELECT count(*) FROM {0} WHERE k < 3 AND t LIKE '%/1'",
    "SELECT * FROM {0} WHERE k = 2 AND id BETWEEN 100 AND 900",
    "SELECT id, x FROM {0} WHERE x > 'v33' ORDER BY id LIMIT 7",
    "SELECT id FROM {0} ORDER BY k, id DESC LIMIT 5",
    "SELECT a.id, b.k FROM {0} a JOIN {0} b ON a.id = b.id + 40 WHERE a.k IN (1, 5)",
    "SELECT k, row_number() OVER (PARTITION BY t ORDER BY id) n FROM {0} WHERE k = 4",
    "SELECT f.id FROM {0} f JOIN (SELECT 3 AS k UNION SELECT max(k) FROM {0}) d ON f.k = d.k",
    "SELECT id FROM {0} WHERE k = (SELECT max(k) FROM {0} WHERE t = 'a/2')",
    "SELECT id FROM {0} WHERE k IN (SELECT k FROM {0} ORDER BY id DESC LIMIT 90) AND id % 7 = 0",
    "SELECT count(*), count(x) FROM (SELECT * FROM {0} WHERE id > 5 LIMIT 2000)",
    "SELECT a.k, b.t, count(*) n FROM {0} a JOIN {0} b ON a.id = b.id GROUP BY 1, 2 HAVING n > 100",
    "SELECT id, t FROM {0} WHERE k = 1 UNION ALL SELECT id + 1, t FROM {0} WHERE id < 500",
    "SELECT k, t, count(distinct x), sum(id) FROM {0} GROUP BY ROLLUP (k, t)",
    "SELECT id FROM {0} WHERE k > 2 EXCEPT SELECT id + 1 FROM {0} WHERE t = 'a/1'",
)


def test_queries_by_packs_return_the_rows_of_the_files(
    spark: SparkSession, client: windrow.Client, table: str, folder: Path
) -> None:
    make_views(spark, client, table, folder / "plain")
    for query in QUERIES:
        by_packs = rows_of(spark.sql(query.format("by_packs")))
        assert by_packs == rows_of(spark.sql(query.format("by_spark"))), query
        assert len(by_packs) > 0, query
        assert from_packs(table) > 0, query
    scan = recent_scans(table)[0]
    assert scan.read.files == scan.packed_files == scan.plan.summary.files_planned
    assert scan.read.rows == scan.plan.summary.row_count


@pytest.mark.parametrize(
    "settings",
    [
        {
            "spark.sql.parquet.enableVectorizedReader": "false",
            "spark.sql.adaptive.enabled": "false",
        },
        {
            "spark.sql.parquet.columnarReaderBatchSize": "7",
            "spark.sql.files.maxPartitionBytes": "1000",
            "spark.sql.shuffle.partitions": "9",
            "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        },
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_queries_by_packs_return_the_same_rows_however_spark_is_set(
    spark: SparkSession,
    client: windrow.Client,
    table: str,
    folder: Path,
    settings: dict[str, str],
) -> None:
    make_views(spark, client, table, folder / "plain")
    expected = [rows_of(spark.sql(query.format("by_spark"))) for query in QUERIES[-4:]]
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        by_packs = [rows_of(spark.sql(query.format("by_packs"))) for query in QUERIES[-4:]]
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert by_packs == expected
    assert from_packs(table) > 0


def test_packs_are_read_by_names_of_the_catalog_and_by_accelerated_queries(
    spark: SparkSession, client: windrow.Client, table: str, folder: Path
) -> None:
    windrow.register(spark, client)
    expected = rows_of(client.read(spark, table, reader="grouped").select("id", "x", "k", "t"))
    assert from_packs(table) == 0
    assert recent_scans(table)[0].why_files == "all files are read in groups, as asked for"

    named = spark.sql(f"SELECT id, x, k, t FROM windrow.{table}")
    assert rows_of(named) == expected
    assert from_packs(table) == FILES
    with windrow.accelerate(spark, client, max_staleness=86_400, wait_s=60):
        schema = client.read(spark, table).schema
        rows = spark.read.schema(schema).parquet(str(folder / "plain")).select("id", "x", "k", "t")
        assert rows_of(rows) == expected
    assert from_packs(table) == FILES


def test_a_cached_relation_and_the_first_rows_come_from_packs(
    spark: SparkSession, client: windrow.Client, table: str
) -> None:
    rows = client.read(spark, table).where("id >= 0").cache()
    assert rows.count() == 40 * FILES
    assert from_packs(table) == FILES
    assert rows.where("k = 1").agg(F.sum("id")).collect() == (
        client.read(spark, table, reader="grouped").where("k = 1").agg(F.sum("id")).collect()
    )
    rows.unpersist()
    assert len(client.read(spark, table).where("id % 2 = 0").take(3)) == 3
    assert from_packs(table) == FILES
    # A limit of a few files says so.
    assert len(client.read(spark, table).limit(3).collect()) == 3
    assert from_packs(table) == 0
    assert "limit" in recent_scans(table)[0].why_files


def test_columns_of_every_type_have_the_values_of_the_files(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "types"
    partitions = {"n": "smallint", "day_of": "date", "price": "decimal(7,2)", "is": "boolean"}
    for at in range(48):
        place = location / f"n={at % 5}" / f"day_of=20{at % 9 + 10}-02-03" / f"price={at % 4}.5"
        columns = columns_of(at)
        if at % 2:
            # Evolved: some columns came later, and one was narrower.
            columns = {name: columns[name] for name in ("name", "id", "day")}
        write(
            place / f"is={at % 2 == 0}".lower() / f"{at}.parquet",
            columns,
            use_deprecated_int96_timestamps=at % 4 == 0,
            # As of the old calendar, of Spark 2, and of Spark 3.
            keys={0: {}, 1: {"org.apache.spark.version": "2.4.8"}}.get(
                at % 3, {"org.apache.spark.version": "3.5.0"}
            ),
        )
    table = packed(client, location, "packs.types", partition_columns=partitions)
    client.create_view(spark, table, "packed_types")
    read = 0
    for query in (
        "SELECT * FROM {0}",
        "SELECT day, at, n, day_of FROM {0}",
        "SELECT parts.a, words FROM {0} WHERE n = 3",
        "SELECT parts.b, price, is FROM {0} WHERE id IS NOT NULL",
        "SELECT id, share, much FROM {0} WHERE is AND price > 1",
    ):
        plain, by_packs = both(spark, lambda query=query: spark.sql(query.format("packed_types")))
        assert by_packs == plain, query
        assert len(plain) > 0, query
        read += from_packs(table)
    assert read > 48


def test_old_dates_and_times_of_partitions_are_those_of_folders(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "dates"
    for at in range(48):
        day = ("0999-02-03", "2026-02-03")[at % 2]
        write(
            location / f"d={day}" / f"at=2026-01-0{at % 9 + 1} 10%3A00%3A00" / f"{at}.parquet",
            {"id": [at]},
            keys={"org.apache.spark.version": "2.4.8"},
        )
    types = {"d": "date", "at": "timestamp"}
    table = packed(client, location, "packs.dates", partition_columns=types)
    plain, by_packs = both(spark, lambda: client.read(spark, table).select("id", "d"))
    assert by_packs == plain
    assert from_packs(table) == 24
    plain, by_packs = both(spark, lambda: client.read(spark, table))
    assert by_packs == plain
    assert recent_scans(table)[0].why_files == "partition column 'at' is of type timestamp"


def test_old_dates_that_a_query_does_not_want_do_not_make_it_fail(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    for at in range(128):
        day = None if at % 4 else dt.date(999, 1, 1)
        place = ("0999-02-03", "2026-02-03")[at % 8 > 3]
        write(
            folder / "unwanted" / f"d={place}" / f"{at}.parquet",
            {"id": [at], "day": pa.array([day], pa.date32())},
        )
    table = packed(client, folder / "unwanted", "packs.unwanted", partition_columns={"d": "date"})
    # As Spark 3 reads by default.
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")
    try:
        for where in ("day IS NULL", "d > '2000-01-01' AND day IS NULL"):
            plain, by_packs = both(
                spark, lambda where=where: client.read(spark, table).where(where).select("id", "d")
            )
            assert by_packs == plain
            assert from_packs(table) == 48
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")


def test_files_are_read_where_a_query_asks_for_them(
    spark: SparkSession, client: windrow.Client, table: str, folder: Path
) -> None:
    rows = client.read(spark, table)
    names = rows.select(F.input_file_name().alias("f")).distinct().collect()
    assert len(names) == FILES
    assert from_packs(table) == 0
    sizes = rows.select("_metadata.file_path", "_metadata.file_size").distinct().collect()
    assert len(sizes) == FILES
    assert recent_scans(table)[0].why_files == "the query asks which file each row is from"
    # What a filter leaves for its reader to apply, only groups apply.
    assert client.read(spark, table, filter="x = 'v7' OR id = 3").count() == 41
    assert client.read(spark, table, strategy="tez").where("id > 0").count() == 40 * FILES - 1
    assert recent_scans(table)[0].why_files == "strategy 'tez' reads files as another system does"
    assert from_packs(table) == 0
    client.register_table("packs.sorted", str(folder / "plain"), sort_columns=["id"])
    client.refresh("packs.sorted")
    publish_new_packs(client, "packs.sorted")
    assert client.read(spark, "packs.sorted").where("id > 0").count() == 40 * FILES - 1
    assert "sort columns" in recent_scans("packs.sorted")[0].why_files


def test_rows_of_files_that_are_gone_or_replaced_are_not_read_from_packs(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "masked"
    table = flights(client, location, "packs.masked")
    files = sorted(location.rglob("*.parquet"))
    for path in files[::5]:
        path.unlink()
    for at, path in enumerate(files[1::7]):
        write(path, {"id": [-at, -at], "x": ["new", None]})
    client.refresh(table)
    plain, by_packs = both(spark, lambda: client.read(spark, table))

    assert by_packs == plain
    assert "new" in str(plain)
    used = from_packs(table)
    assert 0 < used < FILES - len(files[::5])
    assert recent_scans(table)[0].read.rows == len(plain)


def overwrite(pack: Path, content: bytes) -> None:
    pack.chmod(0o600)
    pack.write_bytes(content)


def test_a_pack_that_is_lost_cut_or_damaged_never_gives_other_rows(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = flights(client, folder / "lost", "packs.lost")
    expected = rows_of(client.read(spark, table, reader="grouped"))
    (pack,) = (Path(one.path) for one in client.list_packs(table))
    content = pack.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for place in (footer, (footer + len(content)) // 2, len(content) - 9, len(content) - 1):
        overwrite(pack, content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        assert rows_of(client.read(spark, table)) == expected, place
        assert "cannot be read" in recent_scans(table)[0].why_files
    for length in (0, 4, len(content) // 2):
        overwrite(pack, content[:length])
        assert rows_of(client.read(spark, table)) == expected
    pack.unlink()
    assert rows_of(client.read(spark, table)) == expected
    assert "it is not there" in recent_scans(table)[0].why_files
    overwrite(pack, content) if pack.exists() else pack.write_bytes(content)
    assert rows_of(client.read(spark, table)) == expected
    assert from_packs(table) == FILES

    # The checksums of pages are compared by tasks: the query fails, and the next one reads the files.
    place = content.index(b"PAR1") + footer // 2
    overwrite(pack, content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
    with pytest.raises(
        TaskFailedError, match=rf"pack '{pack}' cannot be read .*run the query again"
    ):
        rows_of(client.read(spark, table))
    assert rows_of(client.read(spark, table)) == expected
    assert from_packs(table) == 0
    assert "a task could not read it" in recent_scans(table)[0].why_files


def test_evolved_columns_and_any_partitions_have_the_values_that_spark_reads(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "evolved"
    null = "__HIVE_DEFAULT_PARTITION__"
    for at in range(96):
        number, text = ("-7", "0", "127", null)[at % 4], ("a b", "é%25", "2026", null)[at // 4 % 4]
        first = pa.array([at, None], (pa.int32(), pa.int64())[at // 24 % 2])
        rest = pa.array([{"n": at, "x": {"m": "a", "o": [at]}}, None])
        columns = {"id": first, "Word": [f"w{at}", None], "parts": rest, "more": [at / 7, None]}
        kinds = (
            columns,
            # In another order and case; without some columns; with one that the table lacks.
            {name.upper(): columns[name] for name in ("more", "Word", "id")},
            {"parts": pa.array([{"x": {"o": [at]}}, None]), "id": first},
            {"zzz": [1, 2], "Word": columns["Word"]},
        )
        place = (
            location
            / f"f={number}"
            / f"s={text}"
            / f"m={at % 3}.000"
            / f"u=2026-01-01 0{at % 3}%3A00%3A00"
        )
        write(place / f"{at}.parquet", kinds[at // 16 % 4])
    partitions = {"f": "tinyint", "s": "string", "m": "decimal(20,3)", "u": "timestamp_ntz"}
    columns = {
        "id": "bigint",
        "word": "string",
        "parts": "struct<n:bigint,x:struct<m:string,o:array<bigint>>,later:int>",
        "more": "double",
    }
    table = packed(client, location, "packs.evolved", columns=columns, partition_columns=partitions)
    make_views(spark, client, table, location)
    for query in (
        "SELECT id, word, parts, more, f, s, m FROM {0}",
        "SELECT s, parts.x.o, parts.later, M FROM {0} WHERE f > 0 OR f = 0",
        "SELECT parts.n, count(*) FROM {0} WHERE s <> 'a b' GROUP BY 1",
        "SELECT more, f FROM {0} WHERE m IN (1, 2) AND word IS NOT NULL",
        "SELECT count(*) FROM {0} WHERE f IS NULL OR s IS NULL OR m = 1",
    ):
        by_packs = rows_of(spark.sql(query.format("by_packs")))
        assert by_packs == rows_of(spark.sql(query.format("by_spark"))), query
        assert len(by_packs) > 0, query
        assert from_packs(table) > 0, query
    assert rows_of(spark.sql("SELECT * FROM by_packs")) == rows_of(
        spark.sql("SELECT * FROM by_spark")
    )
    assert recent_scans(table)[0].why_files == "partition column 'u' is of type timestamp_ntz"


def test_rows_of_many_row_groups_are_read_once_by_whichever_task(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "long"
    first = 0
    for at in range(100):
        # Some files are longer than row groups, which are longer than most files.
        count = 45_000 if at % 20 == 7 else 700
        ids = np.arange(first, first + count)
        write(location / f"k={at // 50}" / f"{at:02}.parquet", {"id": ids, "x": ids % 7})
        first += count
    table = packed(client, location, "packs.long")
    # Row groups in the middle are not wanted at all, and parts of others are not.
    for at in (3, 4, 19, *range(27, 39), 46, 47, 60, 88):
        (location / f"k={at // 50}" / f"{at:02}.parquet").unlink()
    client.refresh(table)
    ids = pq.read_table(location, columns=["id"], partitioning=None)["id"].to_numpy()
    spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "999")
    try:
        rows = client.read(spark, table)
        sums = rows.selectExpr("count(*)", "sum(id)", "sum(id * id)", "sum(x)").first()
        assert rows.rdd.getNumPartitions() > 1
    finally:
        spark.conf.unset("spark.sql.parquet.columnarReaderBatchSize")
    assert sums == (len(ids), ids.sum(), (ids * ids).sum(), (ids % 7).sum())
    assert from_packs(table) == 100 - 19
