"""What the system refuses to Spark's tasks is told as that, with its own remedy.

The tables are on a file system that refuses what it is told to, so each error is the kernel's own.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.faults.refusing_disk import HARMFUL, RefusingDisk, events_on, refusing_disk
from tests.support.tables import hive
from windrow.spark import TaskFailedError, plain_errors
from windrow_core.files.limits import ReadLimits
from windrow_core.files.listing import FolderEntries, file_table, scan_local_folder
from windrow_jobs import tasks
from windrow_jobs.compact import compact
from windrow_jobs.inventory import UnfitFilesError, publish_inventory
from windrow_spark.writing.errors import StagingFailedError
from windrow_tables.executor.formats import unreadable

pytestmark = pytest.mark.usefixtures("interpreted")

FILE = "ds=2026-11-02/part-00001.parquet"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusingDisk]:
    with refusing_disk(tmp_path_factory.mktemp("refused") / "files") as disk:
        yield disk


@pytest.fixture(scope="module")
def client(
    disk: RefusingDisk, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[windrow.Client]:
    with events_on(disk, tmp_path_factory.mktemp("state")) as client:
        yield client


@pytest.mark.parametrize(
    ("reader", "operation", "number", "remedy"),
    [
        ("grouped", "open", errno.EACCES, "right to read it"),
        ("grouped", "read", errno.EIO, "check the disk or the mount"),
        ("native", "open", errno.EACCES, "right to"),
        ("native", "read", errno.EIO, "check the disk or the mount"),
    ],
)
def test_a_file_that_a_task_may_not_read_is_named_with_the_cause(
    spark: SparkSession,
    client: windrow.Client,
    disk: RefusingDisk,
    reader: str,
    operation: str,
    number: int,
    remedy: str,
) -> None:
    rows = client.read(spark, "events", reader=reader)

    with (
        disk.refusing(operation, f"{FILE}$", number),
        pytest.raises(TaskFailedError) as caught,
        plain_errors(),
    ):
        rows.collect()

    told = str(caught.value)
    assert caught.value.kind == "InaccessibleFileError"
    assert FILE in told
    assert os.strerror(number) in told
    assert remedy in told
    assert not HARMFUL.search(told)
    # The cause is all that was wrong.
    assert rows.count() == 60


@pytest.mark.parametrize(("operation", "where"), [("list", "/ds=2026-11-02$"), ("open", FILE)])
def test_the_inventory_job_says_what_the_system_refuses(
    spark: SparkSession, client: windrow.Client, disk: RefusingDisk, operation: str, where: str
) -> None:
    with (
        disk.refusing(operation, where, errno.EIO),
        pytest.raises(UnfitFilesError, match="Input/output error: check the disk") as caught,
    ):
        publish_inventory(spark, client, "events")

    assert "ds=2026-11-02" in str(caught.value)
    assert not HARMFUL.search(str(caught.value))


def test_footers_that_no_process_can_parse_are_not_called_damaged(disk: RefusingDisk) -> None:
    location = str(hive.write_events(disk.folder / "others", days=["d"]))
    entries = FolderEntries()
    scan_local_folder(location, "ds=d", entries)
    files = tasks.encoded(file_table(location, entries))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Files can be opened, and the pipe to one more process cannot.
        try:
            read = tasks.read_tails
            free = os.dup(0)

            def limited(*given: object) -> object:
                found = list(read(*given))  # type: ignore[arg-type]
                resource.setrlimit(resource.RLIMIT_NOFILE, (free, 4_096))
                return found

            tasks.read_tails = limited  # type: ignore[assignment]
            told = str(tasks.read_footers(location, ReadLimits(footer_bytes=2**20), (0, files)))
            os.write(writing, told.encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answers:
        told = answers.read()

    assert told.count("Too many open files: raise this process's limit") == 2
    assert not HARMFUL.search(told)


def test_memory_that_runs_out_in_a_task_is_not_called_damage() -> None:
    error = unreadable("/t/a", pa.ArrowMemoryError("malloc of size 64 failed"), "Parquet")

    assert "malloc of size 64 failed: give Spark's Python processes more memory" in str(error)
    assert not HARMFUL.search(str(error))


def test_a_task_that_may_not_write_says_so_with_the_remedy(
    spark: SparkSession, client: windrow.Client, disk: RefusingDisk
) -> None:
    rows = spark.createDataFrame([(1, "a", "2026-11-01")], "id bigint, name string, ds string")

    with (
        disk.refusing("create", r"/data/.*\.parquet$", errno.ENOSPC),
        pytest.raises(StagingFailedError, match=r"No space left on device.*make room") as caught,
    ):
        client.write(rows, "events")

    assert "nothing was changed" in str(caught.value)
    assert not HARMFUL.search(str(caught.value))
    assert not (disk.folder / "events" / "_windrow").exists()


def test_compaction_leaves_what_it_may_not_read_or_write_and_says_why(
    spark: SparkSession, client: windrow.Client, disk: RefusingDisk
) -> None:
    name, options = "small", {"worth_reads": 10**9, "min_files": 2}
    location = hive.write_events(disk.folder / name, days=["1", "2"], files_per_day=3)
    client.register_table(name, str(location))
    client.refresh(name)

    with disk.refusing("open", "ds=1/part-00001.parquet$", errno.EACCES):
        done = compact(lambda: spark, client, name, **options)
    with disk.refusing("write", r"/_windrow/.*/data/", errno.EDQUOT):
        full = compact(lambda: spark, client, name, **options)

    (why,) = done.left.values()
    assert "part-00001.parquet" in why
    assert "Permission denied: give this process's user the right to read it" in why
    (full_why,) = full.left.values()
    assert "Disk quota exceeded: raise the quota" in full_why
    assert not HARMFUL.search(why + full_why)
    assert pq.read_table(location).num_rows == 60
