"""A table as a DataFrame that plans each query by itself."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_calls.errors import InvalidArgumentError, NotFoundError
from windrow_core.models import PastPlan, WayFigures
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation import java_classes
from windrow_spark.relation.recent_scans import recent_scans
from windrow_tables.errors import UnfitReadError

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture
def location(client: windrow.Client, tmp_path: Path) -> Iterator[Path]:
    """The folder of the table `sales.events`: 60 rows on 3 days, 10 in each file."""
    location = hive.write_events(tmp_path / "events")
    client.register_table("sales.events", str(location))
    client.refresh("sales.events")
    yield location
    client.delete_table("sales.events")


def planned(rows: DataFrame) -> str:
    """Return Spark's plan of a query, before the changes that Spark makes at run time."""
    return str(rows._jdf.queryExecution().sparkPlan().toString())


def test_a_query_opens_the_files_and_decodes_the_columns_that_it_needs(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    for path in hive.data_files(location):
        if "ds=2026-11-02" not in path:
            (location / path).unlink()
    client.create_view(spark, "sales.events", "events", reader="grouped")

    query = spark.sql("SELECT max(id) AS top FROM events WHERE ds = '2026-11-02' AND id < 30")
    assert [row.top for row in query.collect()] == [29]
    assert "ReadSchema: struct<id:bigint>" in query._jdf.queryExecution().toString()
    with pytest.raises(TaskFailedError, match="has vanished"), plain_errors():
        spark.sql("SELECT count(*) FROM events").collect()


def test_filters_columns_and_limits_of_a_read_apply_to_every_query(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.read(
        spark, "sales.events", filter="id >= 25 AND ds < '2026-11-03'", columns=["name", "id"]
    )
    few = client.read(spark, "sales.events", limit=7)

    assert rows.columns == ["name", "id"]
    assert rows.count() == 15
    assert {row.id for row in rows.where("id < 28 OR name = 'name-39'").collect()} == {
        *range(25, 28),
        39,
    }
    assert rows.where("id < 25").count() == 0
    assert few.count() == len(few.collect()) == 7
    # The limit applies before the condition, as in SQL.
    assert few.where("id < 0").count() == 0


def test_all_queries_see_one_snapshot(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.create_view(spark, "sales.events", "then")
    hive.write_file(location / "ds=2026-11-04" / "part-0.parquet", range(60, 70))
    client.refresh("sales.events")
    client.create_view(spark, "sales.events", "now", snapshot_id=None)

    assert rows.count() == 60
    both = "SELECT (SELECT count(*) FROM then) AS old, (SELECT count(*) FROM now) AS new"
    assert [tuple(row) for row in spark.sql(both).collect()] == [(60, 70)]


def test_a_table_that_is_registered_anew_is_another_one_whatever_is_cached_of_the_first(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = hive.write_events(tmp_path / "events")

    def register() -> DataFrame:
        client.register_table("anew", str(location))
        client.refresh("anew")
        return client.create_view(spark, "anew")

    before = register()
    before.cache().count()
    spark.sql("CACHE TABLE anew")
    # Of another reader, so that nothing is cached of it.
    unread = client.read(spark, "anew", reader="native")
    client.delete_table("anew")
    hive.write_file(location / "ds=2026-11-04" / "part-0.parquet", range(60, 70))

    after = register()
    assert (after.count(), spark.table("anew").count()) == (70, 70)
    assert before.count() == 60
    for query in (unread.where("ds > '2026-11-01'"), unread.selectExpr("max(ds)")):
        with (
            pytest.raises(UnfitReadError, match="'anew' has been registered again"),
            plain_errors(),
        ):
            query.collect()
    before.unpersist()
    client.delete_table("anew")


def test_the_latest_scans_report_what_was_planned(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.read(spark, "sales.events", filter="id < 50")

    rows.where("ds = '2026-11-03' AND upper(name) <> 'X'").select("name").collect()

    scan = recent_scans("sales.events")[0]
    # Conditions on partitions are applied to their values, not to rows.
    assert set(scan.columns) == {"name"}
    assert {"op": "eq", "column": "ds", "value": "2026-11-03"} in scan.conditions
    assert (scan.plan.summary.files_planned, scan.plan.summary.files_total) == (1, 6)
    assert client.explain(scan.plan.plan_id).plan_id == scan.plan.plan_id


def test_jobs_describe_what_they_read_unless_their_user_does(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()
    rows = client.read(spark, "sales.events")

    def descriptions(ask: Callable[[], object]) -> set[str]:
        def told() -> dict[int, str]:
            context._jsc.sc().listenerBus().waitUntilEmpty()
            jobs = store.jobsList(None).iterator()
            found = {}
            while jobs.hasNext():
                job = jobs.next()
                text = job.description()
                found[job.jobId()] = text.get() if text.isDefined() else ""
            return found

        before = told()
        ask()
        return {text for job, text in told().items() if job not in before}

    joined = rows.join(rows.where("id < 30").select("id").distinct(), "id")
    texts = descriptions(joined.collect)
    plans = {scan.plan.plan_id for scan in recent_scans("sales.events")[:2]}
    # Each job is described by the scans that have been planned until it starts.
    assert all(text.startswith("windrow sales.events snapshot 1, plan ") for text in texts)
    last = max(texts, key=len)
    assert all(plan in last for plan in plans)
    # Spark applies `id < 30` to both sides of the join.
    assert last.count(": 3 files in ") == 2
    assert descriptions(spark.range(3).collect) == {""}
    context.setLocalProperty("spark.job.description", "mine")
    try:
        assert descriptions(rows.count) == {"mine"}
    finally:
        context.setLocalProperty("spark.job.description", None)


def test_a_view_may_have_any_name(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    client.create_view(spark, "sales.events", "odd `name`", filter="ds = '2026-11-01'")

    assert spark.sql("SELECT count(*) AS n FROM `odd ``name```").collect()[0].n == 20


def test_a_view_of_another_table_is_replaced_only_by_name(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    session = spark.newSession()
    client.register_table("archive.events", str(location))
    client.refresh("archive.events")

    def shown() -> int:
        return session.table("events").count()

    client.create_view(session, "sales.events", filter="ds = '2026-11-01'")
    with pytest.raises(InvalidArgumentError, match=r"'events' reads sales\.events: give"):
        client.create_view(session, "archive.events")
    assert shown() == 20
    # Its own view is replaced by a newer one.
    client.create_view(session, "sales.events", columns=["id"], limit=7)
    assert shown() == 7
    client.create_view(session, "archive.events", "events")
    assert shown() == 60
    session.range(3).createOrReplaceTempView("events")
    with pytest.raises(InvalidArgumentError, match="'events' reads something else"):
        client.create_view(session, "archive.events")


def test_spark_knows_how_large_a_table_is_and_that_two_scans_of_it_are_equal(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    first, second = (client.read(spark, "sales.events") for _ in range(2))
    size = sum((location / path).stat().st_size for path in hive.data_files(location))

    statistics = first._jdf.queryExecution().optimizedPlan().stats()
    assert statistics.sizeInBytes() == size
    assert first.sameSemantics(second)
    assert not first.sameSemantics(client.read(spark, "sales.events", filter="id > 3"))
    joined = first.join(second.select("id"), "id")
    assert "BroadcastHashJoin" in planned(joined)
    assert joined.where("ds = '2026-11-02'").count() == 20


def test_scans_of_other_columns_of_one_type_are_not_taken_for_equal(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    (tmp_path / "pairs").mkdir()
    pairs = pa.table({"one": [1, 2, 2, 3], "other": [2, 5, 6, 7]})
    pq.write_table(pairs, tmp_path / "pairs" / "part-0.parquet")
    client.register_table("sales.pairs", str(tmp_path / "pairs"))
    client.refresh("sales.pairs")
    client.create_view(spark, "sales.pairs", "pairs")

    # A plan that shuffled one of them for both would find 6 rows.
    join = "SELECT /*+ MERGE(b) */ count(*) FROM pairs a JOIN pairs b ON a.one = b.other"
    assert spark.sql(join).collect() == [(2,)]
    halves = "SELECT max(one) AS n FROM pairs UNION ALL SELECT max(other) FROM pairs"
    assert sorted(n for (n,) in spark.sql(halves).collect()) == [3, 7]


def test_one_plan_is_read_whole_whatever_a_query_needs(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    plan = client.plan("sales.events", filter="id > 3", columns=["id"], limit=5)

    rows = client.read_plan(spark, plan)

    assert rows.columns == ["id"]
    assert len(rows.collect()) == 5
    assert all(row.id > 3 for row in rows.collect())


def test_spark_opens_tables_by_the_format_windrow(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    windrow.register(spark, client)
    by_name = spark.read.format("windrow").load("sales.events")
    other = spark.newSession()
    other.sql(
        "CREATE TEMPORARY VIEW few USING windrow "
        "OPTIONS (table 'sales.events', filter 'id < 30', max_split_size '1MB', snapshot_id 1, "
        "columns 'id, name')"
    )

    assert by_name.where("id >= 25").count() == 35
    assert other.sql("SELECT count(*) AS n FROM few WHERE id >= 25").collect()[0].n == 5
    assert other.table("few").columns == ["id", "name"]
    for options, reason in (
        ({"path": "sales.none"}, "no table 'sales.none'"),
        ({}, "name a table"),
        ({"path": "sales.events", "limit": "3"}, "write LIMIT in the query"),
        ({"path": "sales.events", "strategie": "tez"}, "did you mean 'strategy'"),
    ):
        with pytest.raises(PySparkException, match=reason):
            spark.read.format("windrow").options(**options).load()
    windrow.register(spark)
    with pytest.raises(PySparkException, match="name a coordinator"):
        spark.read.format("windrow").load("sales.events")


def test_a_query_that_cannot_be_planned_fails_with_the_reason(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = hive.write_events(tmp_path / "events")
    client.register_table("short", str(location))
    client.refresh("short")
    rows = client.read(spark, "short")
    client.delete_table("short")

    with pytest.raises(PySparkException, match="short"):
        rows.collect()
    with pytest.raises(NotFoundError, match="short"), plain_errors():
        rows.count()


def test_queries_after_the_client_is_closed_fail_with_that_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        client.register_table("t", str(hive.write_events(tmp_path / "events")))
        client.refresh("t")
        rows = client.create_view(spark, "t")
        assert rows.count() == 60

    with pytest.raises(UnfitReadError, match="keep the client open"), plain_errors():
        spark.sql("SELECT count(*) FROM t").collect()


def test_conditions_beyond_the_limits_of_the_coordinator_are_left_to_spark(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.read(spark, "sales.events", filter="id < 50")
    many = " OR ".join(f"(id = {id_} AND name = 'name-{id_}')" for id_ in range(40, 1_100))

    assert sorted(row.id for row in rows.where(many).collect()) == list(range(40, 50))


def test_driver_threads_query_at_the_same_time(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.create_view(spark, "sales.events", "many")

    def counted(number: int) -> int:
        # The small side of the join is planned in a thread of Spark's own.
        both = rows.join(rows.select("id", "ds").hint("broadcast"), ["id", "ds"])
        kept = both.where(f"id >= {number}").count()
        sub = f"SELECT (SELECT count(*) FROM many WHERE id >= {number}) AS n"
        return kept + int(spark.sql(sub).collect()[0].n)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(counted, range(8))) == [2 * (60 - n) for n in range(8)]


@pytest.mark.nightly
def test_many_queries_leave_no_threads_sockets_or_classes_behind(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.create_view(spark, "sales.events", "often")
    management = spark.sparkContext._jvm.java.lang.management.ManagementFactory

    def held() -> dict[str, int]:
        gc.collect()
        return {
            "classes": management.getClassLoadingMXBean().getLoadedClassCount(),
            "threads of the JVM": management.getThreadMXBean().getThreadCount(),
            "threads of Python": threading.active_count(),
            "files and sockets": len(os.listdir("/proc/self/fd")),
        }

    def ask(times: int) -> None:
        for number in range(times):
            # Only planned, since a relation adds nothing else to Spark's own work.
            again = client.read(spark, "sales.events") if number % 10 == 0 else rows
            again.where(f"id < {number}").select("name")._jdf.queryExecution().toRdd()

    # First warm up, as the JVM generates classes for methods that are called often.
    ask(40)
    before = held()
    ask(160)

    grown = {kind: count - before[kind] for kind, count in held().items()}
    # One class per query would add 160; an executor's first heartbeat alone loads 70.
    assert grown.pop("classes") <= 100
    assert {kind: by for kind, by in grown.items() if by > 20} == {}


def test_without_the_classes_of_spark_a_table_is_read_by_one_plan_with_a_warning(
    spark: SparkSession, client: windrow.Client, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_classes, "_factories", {})
    monkeypatch.setattr(java_classes, "_compiled", {})
    monkeypatch.setattr(java_classes, "_SOURCES", ("__init__.py",))

    with pytest.warns(UserWarning, match="planned once"):
        rows = client.read(spark, "sales.events", filter="id >= 25", limit=20)

    assert rows.count() == 20
    assert "MapInArrow" in planned(rows)


def read_bytes() -> int:
    """Return the bytes that Python workers below this process have read so far."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                status = (entry / "stat").read_text()
                parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])

    def is_below(process: int) -> bool:
        while process not in (0, os.getpid()):
            process = parents.get(process, 0)
        return process != 0

    total = 0
    for process in parents:
        with suppress(OSError):
            if b"pyspark.worker" in Path(f"/proc/{process}/cmdline").read_bytes() and is_below(
                process
            ):
                counters = Path(f"/proc/{process}/io").read_text().split()
                total += int(counters[counters.index("rchar:") + 1])
    return total


def test_one_column_of_fifty_costs_no_more_in_sql_than_requested_by_name(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = tmp_path / "wide"
    location.mkdir()
    table = pa.table(
        {f"c{n}": pa.array(np.random.default_rng(n).random(25_000)) for n in range(50)}
    )
    # Smaller files would be read whole.
    for number in range(2):
        pq.write_table(table, location / f"part-{number}.parquet", compression="none")
    size = sum(path.stat().st_size for path in location.iterdir())
    client.register_table("wide", str(location))
    client.refresh("wide")
    client.create_view(spark, "wide", reader="grouped")

    def taken(ask: Callable[[], DataFrame]) -> int:
        before = read_bytes()
        ask().collect()
        return read_bytes() - before

    by_name = partial(client.read, spark, "wide", columns=["c7"], reader="grouped")
    in_sql = partial(spark.sql, "SELECT c7 FROM wide")
    # Workers load their modules once.
    taken(in_sql)
    named, queried = taken(by_name), taken(in_sql)

    assert size / 50 < queried < 1.1 * named < size / 10


@pytest.mark.parametrize("reader", ["grouped", "native"])
def test_a_query_reports_what_its_scan_took(
    spark: SparkSession, client: windrow.Client, location: Path, reader: Any
) -> None:
    rows = client.read(spark, "sales.events", reader=reader)
    assert len(rows.where("id < 30").collect()) == 30
    scan = recent_scans("sales.events")[0]

    plan = reported(client, scan.plan.plan_id)

    assert plan.scan is not None
    ways = {"grouped": plan.scan.groups, "native": plan.scan.native}
    way = ways.pop(reader)
    assert (way.files, way.rows, way.bytes) == (scan.read.files, scan.read.rows, scan.read.bytes)
    assert way.seconds > 0
    assert ways.popitem()[1] == WayFigures()
    assert plan.scan.seconds > 0
    assert plan.scan.planning_seconds == scan.planning_seconds > 0


def reported(client: windrow.Client, plan_id: str) -> PastPlan:
    """Wait until the driver has reported a scan."""
    for _ in range(600):
        plan = client.past_plans(plan_id=plan_id)[0]
        if plan.scan is not None:
            return plan
        time.sleep(0.1)
    raise AssertionError(f"no report of plan {plan_id} has come")


def test_no_query_fails_if_its_report_cannot_be_sent(
    spark: SparkSession, client: windrow.Client, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def refuse(scans: Any) -> None:
        tried.set()
        raise RuntimeError("no report is wanted")

    monkeypatch.setattr(client, "report_scans", refuse)
    rows = client.read(spark, "sales.events")
    assert rows.count() == 60
    assert tried.wait(60)
    monkeypatch.undo()

    assert rows.where("id < 30").count() == 30
    assert reported(client, recent_scans("sales.events")[0].plan.plan_id).scan is not None
