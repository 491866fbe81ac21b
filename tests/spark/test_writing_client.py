"""Whole writes through `client.write`: planned files, checked rows, and refusals."""

from __future__ import annotations

import resource
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.servers import embedded
from windrow.spark import plain_errors
from windrow_calls.errors import ProblemError
from windrow_core.files import places
from windrow_spark.errors import TaskFailedError
from windrow_spark.writing.counting import sum_rows
from windrow_spark.writing.errors import (
    NoSaltError,
    NotReproducibleError,
    StagingFailedError,
    UnfitRowsError,
    UnstableColumnError,
)
from windrow_tables.commits import TableWrite
from windrow_tables.commits.inventories import FileInventory

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_DAYS = {"ds": "date"}


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    folder = tmp_path_factory.mktemp("writes")
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture
def client(coordinator: windrow.Client) -> Iterator[windrow.Client]:
    """A client without tables."""
    yield coordinator
    for table in list(coordinator.tables()):
        coordinator.delete_table(table.name)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """4,000 rows on days of very different sizes; a tenth of them have no day."""
    day = F.expr("date_add(date'2026-11-01', 2 - cast(log2(1 + id % 7) as int))")
    return spark.range(4_000).select(
        "id",
        F.concat(F.lit("name-"), F.col("id")).alias("name"),
        F.when(F.col("id") % 10 != 3, day).alias("ds"),
    )


def files_of(location: Path) -> list[Path]:
    return sorted(path for path in location.rglob("*") if path.is_file())


def ids_in(spark: SparkSession, location: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(location)).select("id").collect())


def test_a_write_makes_the_planned_files_and_publishes_all_rows(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    report = client.write(events, "events", target_rows=300)

    files = files_of(location)
    assert ids_in(spark, location) == list(range(4_000))
    assert (report.rows, report.files, report.planned_files) == (4_000, len(files), len(files))
    assert report.scheme == "exact"
    assert report.keys is not None
    assert report.keys.planned_files == report.keys.files
    assert report.unhashed_columns == []
    assert max(pq.read_metadata(path).num_rows for path in files) < 1.5 * 300
    snapshot = client.table("events").current_snapshot
    assert snapshot is not None
    assert (snapshot.file_count, snapshot.row_count) == (len(files), 4_000)
    assert client.read(spark, "events").count() == 4_000
    (record,) = client.writes("events")
    assert record.state == "published"


def test_a_later_write_takes_its_keys_from_existing_files_without_counting(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    first = client.write(events, "events", target_rows=1_000)

    more = events.withColumn("id", F.col("id") + 4_000)
    # Files count the rows of all writes, and the history only those of the last.
    second = client.write(more, "events", target_rows=1_000, counts="files")
    more = events.withColumn("id", F.col("id") + 8_000)
    third = client.write(more, "events", target_rows=1_000, counts="history")

    assert ids_in(spark, location) == list(range(12_000))
    assert third.files == second.files == first.files
    assert len({first.row_hash, second.row_hash, third.row_hash}) == 3


@pytest.mark.parametrize("partition_columns", a_few([_DAYS, {}], 2))
def test_an_append_asks_for_its_table_twice_and_reads_each_new_footer_once(
    client: windrow.Client,
    location: Path,
    events: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    partition_columns: dict[str, str],
) -> None:
    client.register_table("events", str(location), partition_columns=partition_columns)
    client.write(events, "events", target_rows=1_000)
    before = files_of(location)
    requests: Counter[str] = Counter()
    footers: Counter[str] = Counter()
    send, opened, read = httpx.Client.send, places.open_beneath, pq.read_metadata

    def count_request(http: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        requests[f"{request.method} {request.url.path}"] += 1
        return send(http, request, **options)

    def count_opened(home: str, path: str) -> int:
        footers[Path(path).name] += 1
        return opened(home, path)

    def count_read(path: Any, *args: Any, **options: Any) -> Any:
        # Otherwise the end of a file, which has been read.
        if isinstance(path, str | Path):
            footers[Path(path).name] += 1
        return read(path, *args, **options)

    monkeypatch.setattr(httpx.Client, "send", count_request)
    monkeypatch.setattr(places, "open_beneath", count_opened)
    monkeypatch.setattr(pq, "read_metadata", count_read)
    client.write(events.withColumn("id", F.col("id") + 4_000), "events", target_rows=1_000)
    monkeypatch.undo()

    # Once before the rows are counted, and once when no other write can change the table.
    assert requests["GET /tables/events"] == 2
    added = {path.name for path in files_of(location)} - {path.name for path in before}
    assert added
    assert {name: footers[name] for name in added} == dict.fromkeys(added, 1)


def test_rows_are_compared_even_without_counting(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    # The number of partitions is not known yet, so these rows are counted even with `rows`.
    client.write(events, "events", rows=4_000, target_rows=500)

    for before, scheme in ((4_000, "columns"), (8_000, "range_hash")):
        more = events.withColumn("id", F.col("id") + before)
        report = client.write(more, "events", rows=4_000, target_rows=500, scheme=scheme)

        assert (report.scheme, report.rows) == (scheme, 4_000)
        assert report.files <= report.planned_files
    assert ids_in(spark, location) == list(range(12_000))


def test_an_overwrite_leaves_the_correct_rows(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    client.write(events, "events", target_rows=1_000)
    first = events.where("ds = '2026-11-01' and id < 1000")
    replaced = {row.id for row in first.select("id").collect()}
    kept = events.where("ds > '2026-11-01' or ds is null").select("id").collect()

    client.write(first, "events", "overwrite_partitions", target_rows=1_000)

    assert set(ids_in(spark, location)) == replaced | {row.id for row in kept}

    client.write(first, "events", "overwrite", target_rows=1_000)

    assert set(ids_in(spark, location)) == replaced


def test_a_reader_with_an_old_plan_reads_its_rows_or_is_told_to_plan_again(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    client.write(events, "events", target_rows=1_000)
    older = client.read(spark, "events")

    client.write(events.withColumn("id", F.col("id") + 4_000), "events", target_rows=1_000)

    assert sorted(row.id for row in older.collect()) == list(range(4_000))

    client.write(
        events.where("ds = '2026-11-01'"), "events", "overwrite_partitions", target_rows=1_000
    )

    with pytest.raises(TaskFailedError, match=r"has vanished.*plan again"), plain_errors():
        older.count()
    assert client.read(spark, "events").where("id >= 4000 and ds = '2026-11-01'").count() == 0


def test_a_table_without_partitions_is_written_without_empty_files(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns={})

    report = client.write(events.drop("ds"), "events", target_rows=1_000)

    assert report.files == 4
    assert ids_in(spark, location) == list(range(4_000))
    assert all(path.suffix == ".parquet" for path in files_of(location))


def test_bytes_per_row_of_a_new_table_are_measured_on_a_sample(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    plan = client.plan_write(events, "events", target_file_size="10kB")
    report = client.write(events, "events", target_file_size="10kB")

    assert plan.row_size is not None
    assert 4 < plan.row_size.bytes_per_row < 60
    assert plan.others
    assert report.files == plan.files > 4
    assert report.largest_file_bytes < 20_000


def test_columns_that_do_not_fit_are_all_named_before_any_work(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table(
        "events",
        str(location),
        columns={"id": "bigint", "name": "string"},
        partition_columns=_DAYS,
    )

    with pytest.raises(UnfitRowsError, match="lack columns 'name', 'ds'"):
        client.write(events.select("id"), "events")
    with pytest.raises(UnfitRowsError, match="has no columns 'more', 'other'"):
        client.write(events.selectExpr("*", "1 AS more", "2 AS other"), "events")
    with pytest.raises(UnfitRowsError, match="'id' is string, but bigint in the table"):
        client.write(events.withColumn("id", F.col("id").cast("string")), "events")
    for again in ("id", "ID"):
        with pytest.raises(UnfitRowsError, match=r"they have column '(id|ID)' twice"):
            client.write(events.selectExpr("*", f"1 AS {again}"), "events")
    assert list(location.iterdir()) == []


def test_narrower_columns_of_any_case_and_order_are_widened(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table(
        "events",
        str(location),
        columns={"id": "bigint", "name": "string"},
        partition_columns=_DAYS,
    )
    narrow = events.selectExpr("ds AS DS", "name", "cast(id AS int) AS ID")

    client.write(narrow, "events", target_rows=1_000)

    assert spark.read.parquet(str(location)).schema["id"].dataType.simpleString() == "bigint"
    assert client.read(spark, "events").columns == ["id", "name", "ds"]


def test_a_partition_value_that_the_table_cannot_hold_is_named(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    with pytest.raises(UnfitRowsError, match="'tomorrow' is not a value of partition column 'ds'"):
        client.write(events.withColumn("ds", F.lit("tomorrow")), "events", target_rows=100)
    assert list(location.iterdir()) == []


def test_data_that_differs_at_each_computation_is_refused_and_leaves_nothing(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    # A UDF, as even Spark's own `uuid()` is repeatable: its seed is fixed in the plan.
    new = F.udf(lambda _: uuid.uuid4().hex, "string").asNondeterministic()
    different = events.withColumn("x", new("id"))

    with pytest.raises(NotReproducibleError, match="not the same each time"):
        client.write(different, "events", target_rows=300)
    assert list(location.iterdir()) == []


def test_writing_no_rows_changes_nothing_whatever_the_plan_is_based_on(
    client: windrow.Client, location: Path, events: DataFrame, tmp_path: Path
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    events.write.parquet(str(tmp_path / "rows"))
    rows = events.sparkSession.read.parquet(str(tmp_path / "rows"))
    client.write(rows, "events", target_rows=1_000)

    for counts in ("count", "history", "files"):
        assert (
            client.write(rows.where("id < 0"), "events", counts=counts, target_rows=500).rows == 0
        )
    assert ids_in(events.sparkSession, location) == list(range(4_000))


def _lose_a_file(folder: Path) -> None:
    next(folder.rglob("*.parquet")).unlink()


def _double_a_file(folder: Path) -> None:
    file = next(folder.rglob("*.parquet"))
    shutil.copy(file, file.with_name(f"part-00099-{uuid.uuid4()}.c000.snappy.parquet"))


def _move_a_file_to_another_day(folder: Path) -> None:
    file = next(folder.glob("ds=2026-11-01/*.parquet"))
    file.rename(folder / "ds=2026-11-02" / file.name)


@pytest.mark.parametrize("damage", [_lose_a_file, _double_a_file, _move_a_file_to_another_day])
def test_staged_files_with_other_rows_than_the_tasks_wrote_are_refused(
    client: windrow.Client,
    location: Path,
    events: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    def inventory(write: TableWrite) -> FileInventory:
        damage(Path(write.folder))
        return inspected(write)

    inspected = TableWrite.inventory
    monkeypatch.setattr(TableWrite, "inventory", inventory)
    with pytest.raises(NotReproducibleError, match="differ from the input"):
        client.write(events, "events", target_rows=300)
    assert list(location.iterdir()) == []


def _fails_in_spark() -> Column:
    return F.expr("if(id = 3999, raise_error('no more'), 'a')")


def _fails_in_python() -> Column:
    return F.udf(lambda id_: "a" if id_ < 3_999 else {}["no more"], "string")("id")


@pytest.mark.parametrize(
    ("name", "reason"),
    [(_fails_in_spark, "no more"), (_fails_in_python, "nothing was changed: KeyError: 'no more'$")],
)
def test_a_task_that_fails_leaves_nothing_and_says_why(
    client: windrow.Client,
    location: Path,
    events: DataFrame,
    name: Callable[[], Column],
    reason: str,
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    with pytest.raises(StagingFailedError, match=reason):
        client.write(events.withColumn("name", name()), "events", target_rows=300)
    assert list(location.iterdir()) == []


def test_a_full_disk_while_staging_leaves_nothing_and_says_why(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    # Incompressible rows in a single file that exceeds the limit set below.
    text = F.concat(*(F.sha2(F.concat("id", F.lit(at)).cast("string"), 512) for at in range(4)))
    rows = spark.range(0, 8_000, 1, 32).select(
        "id", text.alias("name"), F.expr("date'2026-11-01'").alias("ds")
    )
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    process = jvm.java.lang.ProcessHandle.current().pid()
    unlimited = resource.prlimit(process, resource.RLIMIT_FSIZE)

    resource.prlimit(process, resource.RLIMIT_FSIZE, (800_000, unlimited[1]))
    try:
        with pytest.raises(StagingFailedError, match="File too large"):
            client.write(rows, "events", target_rows=10_000)
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, unlimited)

    assert list(location.iterdir()) == []
    assert client.write(rows, "events", target_rows=10_000).files == 1


def _swapped(rows: DataFrame) -> DataFrame:
    return rows.select("id", F.col("b").alias("a"), F.col("a").alias("b"))


_CHANGES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a row lost": lambda rows: rows.where("id <> 17"),
    "a row twice": lambda rows: rows.union(rows.where("id = 17")),
    "a row lost and another twice": lambda rows: rows.where("id <> 17").union(
        rows.where("id = 18")
    ),
    "a value changed": lambda rows: rows.withColumn("a", F.expr("if(id = 17, 99, a)")),
    "a null in another column": _swapped,
}


def test_every_change_to_a_row_is_noticed(spark: SparkSession) -> None:
    nothing = F.lit(None).cast("int")
    rows = spark.range(100).select("id", F.lit(1).alias("a"), nothing.alias("b"))
    sums = sum_rows(rows, [])

    assert sum_rows(rows.orderBy(F.desc("id")), []) == sums
    assert [name for name, change in _CHANGES.items() if sum_rows(change(rows), []) == sums] == []


def test_impossible_options_are_refused(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    with pytest.raises(ProblemError, match="max_files is 100"):
        client.write(events, "events", target_rows=1, max_files=100)
    with pytest.raises(UnfitRowsError, match="lack column 'nothing'"):
        client.write(events, "events", target_rows=100, salt_columns=["nothing"])
    with pytest.raises(ValueError, match="target_rows"):
        client.write(events, "events", target_rows=0)
    with pytest.raises(ValueError, match="counts='guess': it must be"):
        client.write(events, "events", counts="guess")  # type: ignore[arg-type]
    assert list(location.iterdir()) == []


def _interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("windrow_spark.writing.write._staged", "nothing of it is in the table"),
        ("windrow_tables.commits.committing.Commit.finish", "the next write to it finishes"),
        ("windrow_tables.commits.table_write.TableWrite.undo", "snapshot 1 has them"),
    ],
)
def test_ctrl_c_stays_ctrl_c_and_says_what_stays(
    client: windrow.Client,
    location: Path,
    events: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    words: str,
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)
    undo = TableWrite.undo

    def undo_and_stop(write: TableWrite) -> None:
        undo(write)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(place, undo_and_stop if place.endswith("undo") else _interrupt)

    with pytest.raises(KeyboardInterrupt, match=words):
        client.write(events, "events")

    monkeypatch.undo()
    client.write(events, "events")
    stopped = "nothing" not in words
    assert len(ids_in(events.sparkSession, location)) == events.count() * (1 + stopped)


def _random_day(df: DataFrame) -> DataFrame:
    return df.withColumn("ds", F.expr("date_add(ds, cast(rand() * 3 AS int))"))


def _first_name(df: DataFrame) -> DataFrame:
    return df.groupBy("id").agg(F.first("name").alias("name"), F.first("ds").alias("ds"))


@pytest.mark.parametrize("made", [_random_day, _first_name])
def test_partition_columns_that_may_differ_between_attempts_are_refused(
    client: windrow.Client,
    location: Path,
    events: DataFrame,
    made: Callable[[DataFrame], DataFrame],
) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    with pytest.raises(UnstableColumnError, match="'ds' cannot be a partition"):
        client.write(made(events), "events", target_rows=300)


def test_large_keys_without_a_stable_column_are_refused_and_small_ones_written(
    spark: SparkSession, client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table("numbers", str(location), partition_columns=_DAYS)
    floats = events.select(F.col("id").cast("double").alias("x"), "ds")

    with pytest.raises(NoSaltError, match="'x': it holds float"):
        client.write(floats, "numbers", target_rows=100)
    client.write(floats, "numbers", target_rows=10_000)

    assert spark.read.parquet(str(location)).count() == 4_000


def test_no_rows_make_no_files(client: windrow.Client, location: Path, events: DataFrame) -> None:
    client.register_table("events", str(location), partition_columns=_DAYS)

    report = client.write(events.where("id < 0"), "events", target_rows=300)

    assert (report.rows, report.files) == (0, 0)
    assert files_of(location) == []


def test_columns_of_every_type_are_written_and_compared_by_hash(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    client.register_table(
        "kinds",
        str(location),
        partition_columns={"at": "timestamp_ntz", "amount": "decimal(9,2)", "flag": "boolean"},
    )
    rows = spark.range(600).selectExpr(
        "id",
        "cast(id AS decimal(30,7)) / 3 AS price",
        "timestamp_micros(1700000000123456 + id) AS seen",
        "cast(id AS string) AS text",
        "cast(cast(id AS string) AS binary) AS bytes",
        "map('b', id, 'a', id % 7) AS tags",
        "struct(id % 2 AS odd, array(id, NULL) AS list) AS nested",
        "struct(map(id, 1) AS inner) AS hidden",
        "timestamp_ntz'2026-11-01 01:30:00' + make_interval(0, 0, 0, 0, 0, 0, id % 2 / 4) AS at",
        "cast(id % 3 * 1.5 AS decimal(9,2)) AS amount",
        "if(id % 5 = 0, NULL, id % 2 = 0) AS flag",
    )

    report = client.write(rows, "kinds", target_rows=20)

    assert report.unhashed_columns == ["hidden"]
    assert (report.rows, report.files) == (600, report.planned_files)
    assert report.keys is not None
    assert report.keys.planned_files == report.keys.files
    read = spark.read.schema(rows.schema).parquet(str(location))
    compared = [f"to_json(struct({', '.join(rows.columns)})) AS json"]
    assert sorted(read.selectExpr(*compared).collect()) == sorted(
        rows.selectExpr(*compared).collect()
    )


def test_a_bucketed_table_gets_files_of_one_bucket_each(
    client: windrow.Client, location: Path, events: DataFrame
) -> None:
    client.register_table(
        "events",
        str(location),
        partition_columns=_DAYS,
        bucket_spec={"columns": ["id"], "count": 4},
        sort_columns=["id"],
    )

    report = client.write(events, "events", target_rows=200)

    assert report.files == report.planned_files
    buckets = {path.name.partition(".")[0][-6:] for path in files_of(location)}
    assert buckets == {"_00000", "_00001", "_00002", "_00003"}
