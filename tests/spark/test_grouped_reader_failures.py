"""A Spark job reports a file that differs from the plan in a single error with the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.plans.plans import plan_of
from windrow.spark import SparkConnectError, TaskFailedError, plain_errors, read_plan
from windrow_core.models import SortColumn

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ROWS = pa.table({"a": pa.array(range(1000), pa.int64()), "b": ["x"] * 1000})


def vanish(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    pq.write_table(pa.concat_tables([ROWS, ROWS]), path)


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100)


def corrupt(path: Path) -> None:
    """Overwrite the file, keeping its size and mtime."""
    status = path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def lose_rows(path: Path) -> None:
    """Replace the file with one of fewer rows but the same size and mtime."""
    status = path.stat()
    content = path.read_bytes()
    pq.write_table(ROWS.slice(0, 10), path)
    short = path.read_bytes()
    # Parquet locates the footer from the end of the file, and pages from its start.
    padding = b"\0" * (len(content) - len(short))
    footer_bytes = int.from_bytes(short[-8:-4], "little") + 8
    path.write_bytes(short[:-footer_bytes] + padding + short[-footer_bytes:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (vanish, "VanishedFileError", ["has vanished", "refresh the table and plan again"]),
        (grow, "StaleFileError", ["size in bytes was", "refresh the table and plan again"]),
        (touch, "StaleFileError", ["modification time in ns was", "refresh the table"]),
        (truncate, "StaleFileError", ["and is 100", "refresh the table and plan again"]),
        (
            corrupt,
            "UnreadableFileError",
            ["cannot be read as Parquet", "make it readable, or restore it"],
        ),
        (lose_rows, "StaleFileError", ["row count was 1000 and is 10", "refresh the table"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_a_file_that_changed_after_the_plan_fails_the_job_and_is_named(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[Path], None],
    kind: str,
    words: list[str],
) -> None:
    for name in "uvw":
        pq.write_table(ROWS, tmp_path / f"{name}.parquet")
    plan, groups = plan_of(tmp_path, {"a": "bigint", "b": "string"})
    change(tmp_path / "v.parquet")

    rows = read_plan(spark, plan, groups)
    with pytest.raises(TaskFailedError) as raised:
        rows.collect()

    error = raised.value
    assert error.kind == kind
    for word in [str(tmp_path / "v.parquet"), *words]:
        assert word in str(error)
    assert "\n" not in str(error)
    # Code that catches Spark's error still does, and finds the traces there.
    assert isinstance(error, PySparkException | Py4JJavaError)
    assert "Traceback (most recent call last)" in str(error.spark_error)
    with pytest.raises(TaskFailedError, match=r"v\.parquet"), plain_errors():
        rows.collect()


def test_a_type_that_does_not_widen_is_named_with_file_column_and_both_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(ROWS, tmp_path / "good.parquet")
    pq.write_table(pa.table({"a": ["text"], "b": ["x"]}), tmp_path / "odd.parquet")
    plan, groups = plan_of(tmp_path, {"a": "bigint", "b": "string"}, group_count=1)

    with pytest.raises(TaskFailedError) as raised, plain_errors():
        read_plan(spark, plan, groups).collect()

    assert raised.value.kind == "ColumnTypeError"
    for word in [
        "'a'",
        str(tmp_path / "odd.parquet"),
        "string",
        "int64",
        "give the table's column a type",
    ]:
        assert word in str(raised.value)


def test_a_file_that_is_not_sorted_as_declared_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(ROWS, tmp_path / "good.parquet")
    pq.write_table(ROWS.take(list(range(999, -1, -1))), tmp_path / "upside-down.parquet")
    plan, groups = plan_of(tmp_path, {"a": "bigint"}, sort=[SortColumn(name="a")], group_count=1)

    with pytest.raises(TaskFailedError) as raised, plain_errors():
        read_plan(spark, plan, groups).collect()

    assert "upside-down.parquet' is not sorted by a as the table declares" in str(raised.value)


def test_errors_that_are_not_from_the_reader_pass_unchanged(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="not ours"), plain_errors():
        spark.sql("SELECT raise_error('not ours')").collect()


def test_a_session_without_a_jvm_is_refused_with_the_remedy(tmp_path: Path) -> None:
    class ConnectSession:
        """Like a session of Spark Connect: without JVM attributes."""

    plan, groups = plan_of(tmp_path, {"a": "bigint"})

    with pytest.raises(SparkConnectError, match="classic Spark session"):
        read_plan(ConnectSession(), plan, groups)
