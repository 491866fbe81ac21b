"""The Spark job publishes the same inventory as the coordinator would."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import windrow
import windrow_jobs.inventory
from tests.support.laws import a_few
from tests.support.servers.coordinators import running
from tests.support.servers.s3 import s3_server
from windrow_core.files.limits import ReadLimits
from windrow_jobs import tasks
from windrow_jobs.errors import TableMovedError, UnfitFilesError, UnfitTableError
from windrow_jobs.hosts import file_hosts, hosts_of, parsed
from windrow_jobs.inventory import publish_inventory
from windrow_service.bootstrap import open_services
from windrow_service.inventory.manifests.encoding import decode_manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SPARK_ENVIRONMENT = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
}


@dataclass(frozen=True)
class Coordinator:
    """A running coordinator, a client for it, and its settings."""

    url: str
    client: windrow.Client
    settings: Settings

    def inventory(self, name: str) -> pa.Table:
        """Return the files of a table's current snapshot with all columns, sorted by path."""

        async def load() -> pa.Table:
            async with open_services(self.settings) as services:
                _, snapshot = await services.snapshots.snapshots.get(name, None)
                bodies = await services.snapshots.snapshots.bodies(
                    name, snapshot, snapshot.manifests
                )
                tables = [decode_manifest(body) for body in bodies]
                removed = [entry.removed for entry in snapshot.manifests]
                return merge_files(tables, removed) if tables else None

        # In a thread, as the browser of other tests keeps an event loop running in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, load()).result()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    settings = Settings(
        state_dir=tmp_path / "state", allowed_locations=(str(tmp_path), "s3://jobs")
    )
    with running(settings) as url, windrow.connect(url) as client:
        yield Coordinator(url, client, settings)


def write(folder: Path, path: str, columns: Any, **options: Any) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, target, **options)


def partitions_of_several_types(folder: Path) -> None:
    for n in range(40):
        code = "__HIVE_DEFAULT_PARTITION__" if n % 10 == 0 else f"c%3A{n % 3}"
        path = f"ds=2026-11-{1 + n % 5:02}/n={n % 7 - 3}/x={n % 2}.5/code={code}/{n:02}.parquet"
        # `N` in the files is ignored, as folders have the column `n`.
        write(folder, path, {"id": [n], "N": [n]})


def values_of_many_types(folder: Path) -> None:
    nan = float("nan")
    instant = dt.datetime(2026, 11, 1, 12, 0, 0, 123456, dt.timezone.utc)
    columns = {
        "flag": pa.array([True, None, False]),
        "tiny": pa.array([-1, 7, None], pa.int8()),
        "unsigned": pa.array([1, 2**63 + 1, None], pa.uint64()),
        "x": pa.array([0.5, nan, None]),
        "only_nan": pa.array([nan, nan, nan], pa.float32()),
        "nothing": pa.array([None, None, None], pa.string()),
        "void": pa.nulls(3),
        "text": pa.array(["a", "ü" * 40, None]),
        "word": pa.array(["a", "b", None]).dictionary_encode(),
        "raw": pa.array([b"\x00", b"\xff\xfe", None]),
        "price": pa.array([Decimal("1.25"), Decimal("-3.50"), None], pa.decimal128(12, 2)),
        "day": pa.array([dt.date(1969, 12, 31), dt.date(2026, 11, 1), None]),
        "ts": pa.array([instant, None, instant]),
        "ntz": pa.array([instant.replace(tzinfo=None), None, None], pa.timestamp("ns")),
        "nested": pa.array([{"a": 1, "b": [1, 2]}, None, {"a": None, "b": None}]),
        "tags": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
    write(folder, "a.parquet", columns)
    write(folder, "b.parquet", pa.table(columns).slice(0, 0))
    write(folder, "c.parquet", columns, write_statistics=False)
    write(folder, "d.parquet", {"ts": columns["ts"]}, use_deprecated_int96_timestamps=True)


def columns_that_grow_and_widen(folder: Path) -> None:
    for n in range(30):
        path = f"ds={n % 3}/{n:02}.parquet"
        if n % 3 == 0:
            write(folder, path, {"id": pa.array([n], pa.int32()), "x": pa.array([n], pa.float32())})
        elif n % 3 == 1:
            write(folder, path, {"late": ["y"], "ID": pa.array([2**40 + n]), "x": [float(n)]})
        else:
            write(folder, path, {"s": pa.array([{"a": n}])})


def many_row_groups(folder: Path) -> None:
    for n in range(5):
        values = [None if i % 7 == 0 else i * n for i in range(1_000)]
        write(folder, f"{n}.parquet", {"id": values}, row_group_size=10 + 100 * n)


def files_to_pass_over(folder: Path) -> None:
    for path in ("p=1/a.parquet", "p=2/b.parquet", "p=1/_tmp/c.parquet", "_old/p=1/d.parquet"):
        write(folder, path, {"id": [1]})
    for path in ("_SUCCESS", "p=1/.a.parquet.crc", "p=2/e.parquet._COPYING_"):
        (folder / path).write_bytes(b"x")
    (folder / "p=1" / "link").symlink_to(folder / "p=1" / "a.parquet")


def small_files_of_several_tasks(folder: Path) -> None:
    for n in range(600):
        write(folder, f"ds=2026-11-{1 + n % 20:02}/{n:04}.parquet", {"id": [n], "s": [f"v{n}"]})


def no_files(folder: Path) -> None:
    folder.mkdir()


TABLES = (
    partitions_of_several_types,
    values_of_many_types,
    columns_that_grow_and_widen,
    many_row_groups,
    files_to_pass_over,
    small_files_of_several_tasks,
    no_files,
)


@pytest.mark.parametrize("make", a_few(TABLES, 2), ids=lambda make: make.__name__)
def test_the_job_publishes_the_same_files_as_the_coordinator(
    spark: SparkSession,
    coordinator: Coordinator,
    tmp_path: Path,
    make: Callable[[Path], None],
) -> None:
    client = coordinator.client
    make(tmp_path / "table")
    for name in ("by_coordinator", "by_job"):
        client.register_table(name, str(tmp_path / "table"))
    taken = client.refresh("by_coordinator").snapshot

    published = publish_inventory(spark, client, "by_job").snapshot

    assert taken is not None
    assert (published.columns, published.partition_columns) == (
        taken.columns,
        taken.partition_columns,
    )
    found, expected = coordinator.inventory("by_job"), coordinator.inventory("by_coordinator")
    if expected is None:
        assert found is None
    else:
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
    assert client.refresh("by_job").changed is False
    assert client.refresh("by_job", full=True).changed is False


def test_declared_columns_and_buckets_apply_to_the_job_as_well(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    client = coordinator.client
    for n in range(8):
        # Spark's names for bucketed files.
        write(
            tmp_path / "table", f"part-{n:05}-0a1b_{n % 4:05}.c000.parquet", {"id": [n], "x": [n]}
        )
    declared: dict[str, Any] = {
        "columns": {"id": "bigint", "x": "bigint", "later": "string"},
        "bucket_spec": {"columns": ["id"], "count": 4},
    }
    for name in ("by_coordinator", "by_job"):
        client.register_table(name, str(tmp_path / "table"), **declared)
    client.refresh("by_coordinator")

    published = publish_inventory(spark, client, "by_job")

    assert (published.snapshot.snapshot_id, published.folder_count) == (1, 1)
    found = coordinator.inventory("by_job")
    assert found.to_pylist() == coordinator.inventory("by_coordinator").to_pylist()
    assert found["bucket"].to_pylist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.nightly
def test_the_inventory_of_a_table_on_s3_equals_that_of_the_coordinator(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    client = coordinator.client
    folder = tmp_path / "table"
    for n in range(60):
        write(folder, f"ds={n % 3}/h={n % 2}/{n:02}.parquet", {"id": [n]})
    with s3_server() as s3:
        environment = spark.sparkContext.environment
        before = dict(environment)
        environment.update(s3.environment)
        try:
            client.register_table("t", s3.upload(folder, "jobs", "t"))
            client.refresh("t")
            expected = coordinator.inventory("t")
            publish_inventory(spark, client, "t")

            assert coordinator.inventory("t").to_pylist() == expected.to_pylist()
            assert client.refresh("t").changed is False
        finally:
            environment.clear()
            environment.update(before)


def test_nothing_is_published_if_the_table_changes_during_the_job(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    client = coordinator.client
    write(tmp_path / "table", "a.parquet", {"id": [1]})
    client.register_table("t", str(tmp_path / "table"))
    client.refresh("t")

    def refresh_before_publishing(message: str) -> None:
        if message.startswith("publishing"):
            write(tmp_path / "table", "b.parquet", {"id": [2]})
            client.refresh("t")

    with pytest.raises(TableMovedError, match=r"'t' was changed .* run the job again"):
        publish_inventory(spark, client, "t", refresh_before_publishing)

    snapshot = client.table("t").current_snapshot
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.file_count) == (2, 2)


def test_files_that_cannot_be_read_are_named_and_nothing_is_published(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    client = coordinator.client
    folder = tmp_path / "table"
    for n in range(9):
        write(folder, f"{n}.parquet", {"x": [n, n]})
    client.register_table("t", str(folder), columns={"x": "bigint"})
    damage_footer(folder / "3.parquet")
    (folder / "5.parquet").write_bytes(b"not Parquet at all")

    with pytest.raises(UnfitFilesError) as caught:
        publish_inventory(spark, client, "t")

    assert "'3.parquet': its footer is damaged" in str(caught.value)
    assert "'5.parquet': " in str(caught.value)
    assert "'4.parquet'" not in str(caught.value)
    assert client.table("t").current_snapshot is None


def damage_footer(file: Path) -> None:
    """Damage a footer so that Arrow crashes the process that reads it."""
    data = bytearray(file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # The type of the first column chunk: the thrift field after its file offset.
    data[data.rindex(b"\x1c\x15\x04\x19", footer) + 2] = 0x5E
    file.write_bytes(data)


def test_a_missing_folder_is_named(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.client.register_table("t", str(tmp_path / "nowhere"))

    with pytest.raises(UnfitFilesError, match=r"nowhere' does not exist; give an existing folder"):
        publish_inventory(spark, coordinator.client, "t")


def test_files_that_fit_no_common_schema_are_named(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    write(tmp_path / "table", "a.parquet", {"x": [1]})
    write(tmp_path / "table", "b.parquet", {"x": ["text"]})
    coordinator.client.register_table("t", str(tmp_path / "table"))

    with pytest.raises(UnfitFilesError, match=r"'a\.parquet' and string in file 'b\.parquet'"):
        publish_inventory(spark, coordinator.client, "t")


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"format": "orc"}, "is of format orc"),
        ({"bloom_columns": ["x"]}, "has Bloom filters, which this job does not build"),
    ],
)
def test_a_table_whose_inventory_would_be_incomplete_is_refused(
    spark: SparkSession,
    coordinator: Coordinator,
    tmp_path: Path,
    definition: dict[str, Any],
    reason: str,
) -> None:
    coordinator.client.register_table("t", str(tmp_path), **definition)

    with pytest.raises(UnfitTableError, match=reason):
        publish_inventory(spark, coordinator.client, "t")


def test_a_local_file_system_has_no_hosts(spark: SparkSession, tmp_path: Path) -> None:
    for path in ("top", "a=1/x y", "a=1/é"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(b"abc")
    paths = pa.chunked_array([["a=1/x y", "a=1/é", "gone", "gone=1/x", "top"]])

    assert hosts_of(spark, str(tmp_path), paths).to_pylist() == [[]] * 5


def test_hosts_hold_at_least_half_of_a_file_and_come_with_their_racks(spark: SparkSession) -> None:
    # Block locations as HDFS reports them, given as (bytes, {host: rack}).
    blocks = block_locations(
        spark,
        (100, {"n1": "/r1", "n2": "/default-rack"}),
        (50, {"n1": "/r1", "n3": "/r2"}),
    )

    hosts = file_hosts(spark).ofBlocks(blocks)

    assert parsed("ds=1", f"a\0{hosts}\0b\0\0").to_pylist() == [
        {"path": "ds=1/a", "hosts": ["/r1/n1", "n2"]},
        {"path": "ds=1/b", "hosts": []},
    ]


def block_locations(spark: SparkSession, *blocks: tuple[int, dict[str, str]]) -> Any:
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway

    def texts(values: list[str]) -> Any:
        made = gateway.new_array(jvm.java.lang.String, len(values))
        for at, value in enumerate(values):
            made[at] = value
        return made

    location = jvm.org.apache.hadoop.fs.BlockLocation
    made = gateway.new_array(location, len(blocks))
    for at, (size_bytes, racks) in enumerate(blocks):
        addresses = [f"10.0.0.{n}:9866" for n in range(len(racks))]
        places = [f"{rack}/{at}" for rack, at in zip(racks.values(), addresses, strict=True)]
        made[at] = location(texts(addresses), texts(list(racks)), texts(places), 0, size_bytes)
    return made


def test_executors_need_nothing_but_numpy_and_pyarrow(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", {"x": [1], "s": ["a"], "price": [Decimal("1.25")]})
    location = str(tmp_path)
    read = partial(tasks.read_footers, location, ReadLimits(footer_bytes=2**20))
    work = partial(tasks.list_folders, location), read

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.programs.bare_executor", "list_and_read_footers"),
            "windrow,windrow_core,windrow_jobs,windrow_spark,pydantic,pandas,httpx,obstore",
        ],
        input=cloudpickle.dumps(work),
        capture_output=True,
        check=False,
    )

    assert done.stderr.decode() == ""
    assert done.stdout.decode().strip() == "[] [] 1 [] []"


@pytest.mark.nightly
def test_the_command_line_publishes_with_spark(coordinator: Coordinator, tmp_path: Path) -> None:
    write(tmp_path / "table", "ds=1/a.parquet", {"id": [1]})
    coordinator.client.register_table("t", str(tmp_path / "table"), columns={"id": "bigint"})
    command = [sys.executable, "-m", "windrow_cli", "table", "refresh", "t", "--json"]
    command += ["--on-spark", "--master", "local[1]", "--url", coordinator.url]

    done = subprocess.run(
        command, env=SPARK_ENVIRONMENT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["table"], answer["folders_listed"]) == ("t", 2)
    assert answer["snapshot"]["file_count"] == 1


# The other tests here run the job in their session.
@pytest.mark.nightly
def test_the_job_can_be_submitted_to_spark(coordinator: Coordinator, tmp_path: Path) -> None:
    write(tmp_path / "table", "a.parquet", {"id": [1]})
    coordinator.client.register_table("t", str(tmp_path / "table"), columns={"id": "bigint"})
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += [windrow_jobs.inventory.__file__, "t", "--coordinator", coordinator.url]

    done = subprocess.run(
        command, env=SPARK_ENVIRONMENT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    # spark-submit merges the job's stderr into its stdout.
    assert "t: reading 1 footer\n" in done.stdout
    facts = dict(
        line.strip().split(maxsplit=1) for line in done.stdout.splitlines() if len(line.split()) > 1
    )
    assert facts["table"] == "t"
    assert facts["snapshot"].startswith("1: 1 file, ")


def test_refusals_of_the_coordinator_are_one_line(coordinator: Coordinator) -> None:
    command = [sys.executable, "-m", "windrow_jobs.inventory", "nothing"]

    done = subprocess.run(
        [*command, "--coordinator", coordinator.url], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("windrow: no table 'nothing'")


def test_a_file_written_by_spark_is_described_the_same_way(
    spark: SparkSession, coordinator: Coordinator, tmp_path: Path
) -> None:
    rows = spark.range(100).selectExpr(
        "id", "id % 3 as p", "if(id = 7, double('nan'), id) as x", "timestamp_seconds(id) as ts"
    )
    rows.repartition(4).write.partitionBy("p").parquet(f"{tmp_path}/table")
    client = coordinator.client
    client.register_table("t", f"{tmp_path}/table")
    client.refresh("t")
    expected = coordinator.inventory("t").to_pylist()

    publish_inventory(spark, client, "t")

    assert coordinator.inventory("t").to_pylist() == expected
    assert all(file["stats_see_nan"] for file in expected)
