"""`windrow_jobs.compact`: fewer files with the same rows, while others may write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.queries.compactions import differences_after_compaction
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.transport import Transport
from windrow_core.models import WriteRecord, WriteUpdate
from windrow_demo.flights import flights_table
from windrow_jobs.compact import Compaction, compact, run
from windrow_service.settings import Settings
from windrow_spark.writing.counting import RowSums, sum_rows

pytestmark = pytest.mark.usefixtures("interpreted")

KIB = 2**10
EVERYTHING = {"worth_reads": 10**9, "min_files": 2}


@pytest.fixture(scope="module")
def tables_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def coordinator(tables_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a coordinator."""
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"), allowed_locations=(str(tables_root),)
    )
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(coordinator: str) -> Iterator[Client]:
    with windrow.connect(coordinator) as client:
        yield client


def write_flights(location: Path, days: int) -> None:
    """Write one file for each hour and airport into a folder for each day."""
    table = flights_table(days)
    keys = table.group_by(["month", "day", "origin", "hour"], use_threads=False).aggregate([])
    for key in keys.to_pylist():
        same = [pc.equal(table[name], value) for name, value in key.items()]
        rows = table.filter(pc.and_(pc.and_(same[0], same[1]), pc.and_(same[2], same[3])))
        # Zero-padded, which Spark itself would not write.
        folder = location / f"month={key['month']:02d}" / f"day={key['day']:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            rows.drop_columns(["month", "day"]), folder / f"{key['origin']}-{key['hour']}.parquet"
        )


def registered(client: Client, name: str, location: Path, **definition: Any) -> str:
    client.register_table(name, str(location), **definition)
    client.refresh(name)
    return name


def rows_of(spark: SparkSession, location: Path) -> DataFrame:
    return spark.read.parquet(str(location))


def sums(rows: DataFrame) -> RowSums:
    return sum_rows(rows, [])


def compacted(spark: SparkSession, client: Client, table: str, **options: Any) -> Compaction:
    return compact(lambda: spark, client, table, **{**EVERYTHING, **options})


def test_flights_are_compacted_near_the_target_with_the_same_rows_and_folders(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "flights"
    write_flights(location, 2)
    table = registered(client, "demo.flights", location)
    before = sums(rows_of(spark, location))
    files_before = hive.data_files(location)
    target = 20 * KIB
    told: list[str] = []

    done = compacted(spark, client, table, target_file_size=target, on_progress=told.append)

    files_after = hive.data_files(location)
    assert sums(rows_of(spark, location)) == before
    assert (done.files_before, done.files_after) == (len(files_before), len(files_after))
    assert (done.batches, done.partitions, done.rows, done.left) == (1, 2, before.rows, {})
    assert {path.rpartition("/")[0] for path in files_after} == {
        path.rpartition("/")[0] for path in files_before
    }
    # Small files are mostly footers, so the size of their rows is known only after writing them.
    assert done.bytes_before > 2 * done.bytes_after
    sizes = [(location / path).stat().st_size for path in files_after]
    assert len(sizes) > 2
    assert sum(2 * size < target for size in sizes) == 0
    assert max(sizes) < 1.6 * target
    assert any(f"rewritten as {len(sizes)} files" in text for text in told)
    snapshot = client.table(table).current_snapshot
    assert snapshot is not None
    assert (snapshot.file_count, snapshot.row_count) == (len(sizes), before.rows)
    assert client.read(spark, table).count() == before.rows
    assert client.refresh(table).changed is False
    assert list(location.glob("_windrow/writes/*")) == []

    def no_spark() -> SparkSession:
        raise AssertionError("there is nothing to do")

    again = compact(no_spark, client, table, target_file_size=target, **EVERYTHING)
    assert (again.batches, again.files_before) == (0, 0)


def test_batches_are_bounded_and_committed_one_by_one(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "batches", files_per_day=6)
    table = registered(client, "demo.batches", location)
    ids = sorted(row["id"] for row in rows_of(spark, location).collect())

    done = compacted(spark, client, table, max_partitions=2)

    assert (done.batches, done.partitions, done.files_after) == (2, 3, 3)
    assert sorted(row["id"] for row in rows_of(spark, location).collect()) == ids
    snapshot = client.table(table).current_snapshot
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.file_count) == (3, 3)
    kinds = [one.kind for one in client.writes(table)]
    assert kinds == ["compaction", "compaction"]


def test_a_filter_selects_partitions_and_large_files_are_left_alone(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "some", files_per_day=6)
    large = hive.write_file(location / "ds=2026-11-02" / "large.parquet", range(50_000))
    table = registered(client, "demo.some", location)
    untouched = [path for path in hive.data_files(location) if "ds=2026-11-02" not in path]

    compacted(spark, client, table, filter="ds = '2026-11-02'", target_file_size=256 * KIB)

    files = hive.data_files(location)
    assert [path for path in files if "ds=2026-11-02" not in path] == untouched
    assert len(files) == len(untouched) + 2
    assert large.relative_to(location).as_posix() in files


def test_files_keep_the_order_of_the_table(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "sorted"
    for number in range(8):
        ids = range(number, 800, 8)
        hive.write_file(location / "ds=__HIVE_DEFAULT_PARTITION__" / f"{number}.parquet", ids)
        hive.write_file(location / "ds=a%3Ab" / f"{number}.parquet", ids)
    table = registered(client, "demo.sorted", location, sort_columns=["id"])

    done = compacted(spark, client, table)

    assert (done.partitions, done.files_after) == (2, 2)
    for path in hive.data_files(location):
        assert pq.read_table(location / path)["id"].to_pylist() == list(range(800))
    assert sorted({path.rpartition("/")[0] for path in hive.data_files(location)}) == [
        "ds=__HIVE_DEFAULT_PARTITION__",
        "ds=a%3Ab",
    ]


def test_buckets_are_not_mixed_and_files_keep_spark_bucket_names(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "bucketed"
    spark.sql("DROP TABLE IF EXISTS bucketed")
    for number in range(5):
        rows = spark.range(number * 100, number * 100 + 100).selectExpr("id", "id % 7 AS amount")
        writer = rows.coalesce(1).write.mode("append").bucketBy(4, "id").sortBy("id")
        writer.option("path", str(location)).saveAsTable("bucketed")
    spec = {"columns": ["id"], "count": 4}
    table = registered(client, "demo.bucketed", location, bucket_spec=spec, sort_columns=["id"])
    buckets = spark.read.table("bucketed").groupBy("id").count()
    assert buckets.count() == 500

    done = compacted(spark, client, table)

    assert (done.partitions, done.files_before, done.files_after) == (4, 20, 4)
    spark.catalog.refreshTable("bucketed")
    assert spark.read.table("bucketed").groupBy("id").count().filter("count = 1").count() == 500
    plan = client.plan(table)
    assert sorted(plan.groups["bucket"].to_pylist()) == [0, 1, 2, 3]
    spark.sql("DROP TABLE bucketed")


def test_a_table_without_partitions_can_be_compacted(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "flat"
    for number in range(6):
        hive.write_file(location / f"{number}.parquet", range(number * 10, number * 10 + 10))
    table = registered(client, "demo.flat", location)

    done = compacted(spark, client, table)

    assert (done.files_before, done.files_after) == (6, 1)
    assert sorted(row["id"] for row in rows_of(spark, location).collect()) == list(range(60))


def test_folders_of_one_value_are_joined_and_no_row_is_lost(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "spelled"
    folders = ("month=09/k=a%20b", "month=09/k=a b", "month=9/k=a b", "month=10/k=c%2fd")
    for at, folder in enumerate(folders):
        hive.write_file(location / folder / "part-0.parquet", range(10 * at, 10 * at + 10))
    hive.write_file(location / folders[1] / "part-1.parquet", range(40, 50))
    table = registered(client, "spelled", location)

    # No file is small, so nothing but joining them is a reason to rewrite any.
    done = compact(lambda: spark, client, table, target_file_size=512)

    assert (done.partitions, done.rows, done.left) == (1, 20, {})
    read = client.read(spark, table).select("id", "month", "k").collect()
    assert sorted((row.id, row.month, row.k) for row in read) == [
        (id_, *((10, "c/d") if 30 <= id_ < 40 else (9, "a b"))) for id_ in range(50)
    ]
    there = {path.parent.relative_to(location).as_posix() for path in location.rglob("*.parquet")}
    assert there == {folders[1], folders[3]}
    again = compact(lambda: pytest.fail("no work"), client, table, target_file_size=512)
    assert again.batches == 0


def test_columns_and_types_that_the_definition_leaves_out_stay_in_the_files(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "undeclared"
    ids = pa.array([1, 2])
    rows = {
        "k=1": pa.table({"id": ids}),
        "k=2": pa.table({"id": ids, "note": ["a", "b"], "time": pa.array([1, 2], pa.time64("ns"))}),
        "k=3": pa.table({"id": ids.cast(pa.int32())}),
    }
    for folder, table in rows.items():
        (location / folder).mkdir(parents=True)
        for number in range(3):
            pq.write_table(table, location / folder / f"{number}.parquet")
    table = registered(client, "demo.undeclared", location, columns={"id": "bigint", "k": "int"})

    done = compacted(spark, client, table)

    assert (done.partitions, done.files_before, done.files_after, done.left) == (3, 9, 3, {})
    for folder, table in rows.items():
        (path,) = (location / folder).iterdir()
        assert pq.read_table(path, partitioning=None).equals(pa.concat_tables([table] * 3))


def test_files_of_every_type_come_back_with_the_same_values_types_and_metadata(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    assert differences_after_compaction(spark, client, tables_root) == {}


def test_files_of_every_type_come_back_alike_on_every_spark(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    assert [older["compacted"] for older in on_older_sparks] == [{}] * len(on_older_sparks)


def test_files_that_cannot_be_merged_are_left_and_named(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "unlike"
    (location / "k=1").mkdir(parents=True)
    (location / "k=2").mkdir()
    for number in range(2):
        rows = pa.table({"id": [number], f"c{number}": [1]})
        pq.write_table(rows, location / "k=1" / f"{number}.parquet")
        keys = pa.table({"id": [number]}).replace_schema_metadata({"batch": str(number)})
        pq.write_table(keys, location / "k=2" / f"{number}.parquet")
    table = registered(client, "demo.unlike", location)
    before = hive.data_files(location)

    done = compacted(spark, client, table)

    assert (done.batches, sorted(done.left)) == (0, ["k=1", "k=2"])
    assert "k=1/0.parquet is not like other files: they differ in column 'c0'" in done.left["k=1"]
    assert "they differ in the metadata key 'batch'" in done.left["k=2"]
    assert hive.data_files(location) == before


def test_a_file_removed_before_it_is_read_is_skipped(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "shrinking", files_per_day=6)
    table = registered(client, "demo.shrinking", location)

    def meddle(text: str) -> None:
        if text.startswith("files: 18,"):
            (location / "ds=2026-11-02" / "part-00003.parquet").unlink()

    done = compacted(spark, client, table, on_progress=meddle)

    assert (done.left, done.files_before, done.files_after) == ({}, 17, 3)
    ids = sorted(row["id"] for row in rows_of(spark, location).collect())
    assert ids == [*range(90), *range(100, 180)]


class _Meddling(Client):
    """A client that changes a file after its replacement has been staged."""

    def __init__(self, transport: Transport, file: Path) -> None:
        super().__init__(transport)
        self._file: Path | None = file

    def put_write(self, table: str, write_id: str, update: WriteUpdate) -> WriteRecord:
        if update.state == "committing" and self._file is not None:
            hive.write_file(self._file, range(900, 905))
            self._file = None
        return super().put_write(table, write_id, update)


def test_a_partition_that_changes_before_the_commit_is_skipped_and_others_are_compacted(
    spark: SparkSession, coordinator: str, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "changing", files_per_day=6)
    table = registered(client, "demo.changing", location)
    changed = location / "ds=2026-11-02" / "part-00003.parquet"

    with httpx.Client(base_url=coordinator, timeout=60) as http:
        done = compacted(spark, _Meddling(Transport(http), changed), table)

    assert list(done.left) == ["ds=2026-11-02"]
    assert "has changed since the write began" in done.left["ds=2026-11-02"]
    assert (done.batches, done.partitions, done.files_before, done.files_after) == (1, 2, 12, 2)
    ids = sorted(row["id"] for row in rows_of(spark, location).collect())
    assert ids == [*range(90), *range(100, 180), *range(900, 905)]


def test_a_concurrent_append_loses_nothing(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "appended", files_per_day=6)
    table = registered(client, "demo.appended", location)

    def append(text: str) -> None:
        if text.startswith("files: 18,"):
            hive.write_file(location / "ds=2026-11-02" / "late.parquet", range(900, 910))

    done = compacted(spark, client, table, on_progress=append)

    assert done.left == {}
    ids = sorted(row["id"] for row in rows_of(spark, location).collect())
    assert ids == [*range(180), *range(900, 910)]


@pytest.fixture
def plain_environment(tmp_path: Path) -> dict[str, str]:
    """An environment without Python settings, whose `python3` has no libraries."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_each_partition_is_rewritten_once_whatever_comes_to_it_meanwhile(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "fed", files_per_day=3)
    table = registered(client, "demo.fed", location)

    def feed(text: str) -> None:
        if text.startswith("rewritten as"):
            for day in hive.DAYS:
                for _ in range(3):
                    number = len(hive.data_files(location))
                    hive.write_file(location / f"ds={day}" / f"more-{number}.parquet", [number])
            client.refresh(table)

    done = compacted(spark, client, table, max_partitions=2, on_progress=feed)

    new = [path for path in hive.data_files(location) if "more" not in path]
    assert (done.batches, done.partitions, done.folders) == (2, 3, 3)
    assert (done.files_before, done.files_after) == (9, len(new))
    assert (done.rows, client.scan(table).to_table().num_rows) == (90, 90 + 18)


def test_a_run_that_ends_between_batches_is_continued(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = hive.write_events(tables_root / "ended", files_per_day=6)
    table = registered(client, "demo.ended", location)
    # A batch for each day.
    options: dict[str, Any] = {"target_file_size": 8 * KIB, "max_batch_bytes": 8 * KIB}

    def end(text: str) -> None:
        if "rewritten as" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compacted(spark, client, table, on_progress=end, **options)
    assert len(hive.data_files(location)) == 13

    done = compacted(spark, client, table, **options)

    assert (done.batches, done.files_before, done.files_after, done.left) == (2, 12, 2, {})
    assert len(hive.data_files(location)) == 3
    assert sorted(row["id"] for row in rows_of(spark, location).collect()) == list(range(180))
    assert list(location.glob("_windrow/writes/*")) == []
    assert compacted(spark, client, table, **options).batches == 0


@pytest.mark.nightly
def test_a_killed_run_is_continued(
    plain_environment: dict[str, str],
    spark: SparkSession,
    coordinator: str,
    client: Client,
    tables_root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    location = hive.write_events(tables_root / "killed", files_per_day=6)
    table = registered(client, "demo.killed", location)
    # A batch for each day.
    options = ["--target-size", "8KB", "--max-batch-bytes", "8KB"]
    command = [sys.executable, "-m", "windrow_jobs.compact", table, "--coordinator", coordinator]
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, env=plain_environment, text=True
    )
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            if "rewritten as" in line:
                break
        process.kill()
    files = len(hive.data_files(location))
    assert 3 < files < 18

    done = subprocess.run(
        [*command, *options], env=plain_environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Compaction of demo.killed\n")
    facts = dict(line.strip().split("\t") for line in done.stdout.splitlines()[1:])
    assert 0 < int(facts["before"].split()[0]) < 18
    assert "the same before and after" in facts["rows"]
    assert len(hive.data_files(location)) == 3
    ids = sorted(row["id"] for row in rows_of(spark, location).collect())
    assert ids == list(range(180))
    assert list(location.glob("_windrow/writes/*")) == []
    assert {one.state for one in client.writes(table)} <= {"published", "undone"}
    capsys.readouterr()
    run(table, client, target_file_size=8 * KIB, max_batch_bytes=8 * KIB)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Compaction of demo.killed",
        "files\tnone was worth rewriting",
    ]


def test_refusals_of_the_coordinator_are_one_line(coordinator: str) -> None:
    command = [sys.executable, "-m", "windrow_jobs.compact", "nothing"]

    done = subprocess.run(
        [*command, "--coordinator", coordinator], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("windrow: no table 'nothing'")
