"""Past writes and their problems, inferred from the names, times and sizes of files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from tests.support.tables.inventories import inventory
from windrow_service.planner.folders import FolderBuckets
from windrow_service.planner.upkeep.grain import Grain, find_grain
from windrow_service.planner.upkeep.origins import NO_TASKS, TROUBLES, Writes, find_writes

KIB, MIB = 2**10, 2**20
SECOND_NS = 10**9


class File(NamedTuple):
    """One file of an inventory."""

    path: str
    size_bytes: int
    at_s: float = 0.0


def spark_files(
    folders: Iterable[str],
    tasks: Iterable[int],
    size_bytes: int,
    *,
    at_s: float = 0.0,
    job: str | None = None,
) -> list[File]:
    """Return the files of a job in which every task writes into every folder."""
    job = job or str(uuid.uuid4())
    tasks = list(tasks)
    return [
        File(f"{folder}/part-{task:05d}-{job}.c000.snappy.parquet", size_bytes, at_s)
        for folder in folders
        for task in tasks
    ]


def table_of(files: list[File]) -> pa.Table:
    files = sorted(files)
    table = inventory([one.size_bytes for one in files], paths=[one.path for one in files])
    for name, values in (
        ("mtime_ns", [int(one.at_s * SECOND_NS) for one in files]),
        ("row_count", [1_000_000] * len(files)),
    ):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, pa.int64()))
    return table


def found(files: list[File]) -> Writes:
    table = table_of(files)
    return find_writes(table, FolderBuckets.of(table), MIB)


def troubles(files: list[File]) -> list[str]:
    return [TROUBLES[at] for at in found(files).trouble]


def days(count: int) -> list[str]:
    return [f"ds={day:03d}" for day in range(count)]


def test_files_of_one_job_are_one_write_however_long_it_took() -> None:
    job = "0f0e0d0c-0b0a-0908-0706-050403020100"
    files = [
        *spark_files(["ds=1"], [0, 7], 300 * KIB, at_s=10, job=job),
        *spark_files(["ds=2"], [7], 700 * KIB, at_s=90_000, job=job),
        File("ds=2/part-00003-not-a-job.parquet", 5, 50),
    ]

    writes = found(files)

    assert writes.job.to_pylist() == [job, None]
    assert writes.first_ns.tolist() == [10 * SECOND_NS, 50 * SECOND_NS]
    assert writes.last_ns.tolist() == [90_000 * SECOND_NS, 50 * SECOND_NS]
    assert writes.files.tolist() == [3, 1]
    assert writes.small_files.tolist() == [2, 1]
    assert writes.size_bytes.tolist() == [1300 * KIB, 5]
    assert writes.largest_bytes.tolist() == [700 * KIB, 5]
    assert writes.rows.tolist() == [3_000_000, 1_000_000]
    assert writes.partitions.tolist() == [2, 1]
    assert writes.tasks.tolist() == [8, NO_TASKS]
    assert writes.writers.tolist() == [2, NO_TASKS]
    assert writes.ideal.tolist() == [2, 1]
    assert [writes.of_file.tolist().count(at) for at in range(2)] == [3, 1]


def test_a_minute_without_files_separates_writes_without_a_job_id() -> None:
    seconds = [0, 50, 100, 161, 500, 501]

    writes = found([File(f"ds=1/{at:04d}.parquet", KIB, at) for at in seconds])

    assert writes.files.tolist() == [3, 1, 2]


def test_names_of_bucketed_files_and_of_older_sparks_hold_the_job_id_too() -> None:
    job = str(uuid.uuid4())
    names = [f"part-00001-{job}_00003.c000.snappy.parquet", f"part-00002-{job}-c000.parquet"]

    writes = found([File(name, KIB) for name in names])

    assert writes.job.to_pylist() == [job]
    assert writes.tasks.tolist() == [3]


def test_no_files_mean_no_writes() -> None:
    assert len(found([])) == 0


def test_tasks_that_all_write_into_all_partitions_are_an_explosion() -> None:
    assert troubles(spark_files(days(20), range(30), 2 * KIB)) == ["explosion"]


def test_too_many_tasks_for_the_bytes_of_one_partition_are_many_tasks() -> None:
    assert troubles(spark_files(["ds=1"], range(200), 5 * KIB)) == ["many_tasks"]
    # Range partitioning: a task writes into one partition, a partition gets files of many tasks.
    files = [
        one
        for day, folder in enumerate(days(10))
        for one in spark_files(
            [folder],
            range(day * 20, day * 20 + 20),
            5 * KIB,
            job=f"{0:08d}-0000-0000-0000-{0:012d}",
        )
    ]
    assert troubles(files) == ["many_tasks"]


def test_one_file_per_partition_is_a_problem_if_one_is_too_large() -> None:
    even = spark_files(days(9), [1], 900 * KIB, job=(job := str(uuid.uuid4())))
    skewed = [*even, *spark_files(["ds=hot"], [2], 40 * MIB, job=job)]

    assert troubles(even) == ["nothing"]
    assert troubles(skewed) == ["one_file_per_key"]
    assert found(skewed).ideal.tolist() == [49]


def test_other_files_that_are_too_large_are_large_files() -> None:
    assert troubles(spark_files(["ds=1"], range(2), 20 * MIB)) == ["large_files"]
    assert troubles(spark_files(["ds=1"], range(2), MIB)) == ["nothing"]


def test_many_small_writes_into_the_same_partitions_are_small_appends() -> None:
    def appends(count: int, folders: int) -> list[File]:
        return [
            one
            for n in range(count)
            for one in spark_files([f"ds={n % folders}"], [0], KIB, at_s=100 * n)
        ]

    assert set(troubles(appends(12, folders=3))) == {"small_appends"}
    assert set(troubles(appends(12, folders=12))) == {"nothing"}
    assert set(troubles(appends(4, folders=1))) == {"nothing"}


def test_a_large_write_among_small_appends_is_not_one_of_them() -> None:
    large = spark_files(["ds=0"], [0], MIB)
    small = [one for n in range(6) for one in spark_files(["ds=0"], [0], KIB, at_s=100 + 100 * n)]

    assert troubles([*large, *small]) == ["nothing", *["small_appends"] * 6]


def grain(files: list[File], levels: int) -> Grain | None:
    table = table_of(files)
    return find_grain(table, FolderBuckets.of(table), levels, MIB)


def test_partitions_that_are_too_small_call_for_fewer_columns() -> None:
    files = [
        File(f"month={month}/day={day}/hour={hour}/f", 2 * KIB)
        for month in range(3)
        for day in range(9)
        for hour in range(30)
    ]
    full = [File(f"month=9/day=9/hour={hour}/f", MIB) for hour in range(5)]

    found = grain([*files, *full], 3)

    assert found is not None
    assert (found.partitions, found.small, found.levels) == (815, 810, 1)
    assert len(found.file_rows) == 810
    assert found.becomes == 3 + 5


def test_partitions_too_small_even_by_the_first_column_call_for_no_columns() -> None:
    found = grain([File(f"ds={day}/f", KIB) for day in range(100)], 1)

    assert found is not None
    assert (found.levels, found.becomes) == (0, 1)


def test_a_table_with_few_or_full_or_no_partitions_is_left_alone() -> None:
    assert grain([File(f"ds={day}/f", KIB) for day in range(9)], 1) is None
    assert grain([File(f"ds={day}/f", MIB) for day in range(100)], 1) is None
    assert grain([File(f"{n}.parquet", KIB) for n in range(100)], 0) is None
