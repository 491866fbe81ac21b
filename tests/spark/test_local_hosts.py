"""In local mode, tasks of groups that prefer hosts which the session lacks run all the same."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.servers import embedded
from windrow_spark.placement import placed
from windrow_spark.relation.division import Reader
from windrow_tables.groups.descriptors import Descriptor

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_ELSEWHERE = "10.255.255.1"
# Without an answer after this time, tasks wait for a host that does not exist.
_PATIENCE_S = 60


def count_of(rows: DataFrame) -> int | None:
    """Return the number of rows; None, after the query is cancelled, if it does not end."""
    counts: list[int] = []
    thread = threading.Thread(target=lambda: counts.append(len(rows.collect())), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    if thread.is_alive():
        rows.sparkSession.sparkContext.cancelAllJobs()
        thread.join()
    return counts[0] if counts else None


def this_host(spark: SparkSession) -> str:
    """Return the host on which Spark's scheduler offers slots, whatever `spark.driver.host` is."""
    jvm: Any = spark.sparkContext._jvm
    return str(jvm.org.apache.spark.util.Utils.localHostName())


def test_tasks_for_this_host_and_for_others_all_run(spark: SparkSession) -> None:
    hosts = [(this_host(spark),)] * 3 + [(_ELSEWHERE,)] * 5
    rows = placed(spark, [Descriptor(content=b"", hosts=each) for each in hosts])
    assert count_of(rows) == len(hosts)


@pytest.mark.parametrize("reader", ["grouped", "native"])
def test_files_of_several_hosts_are_read(
    spark: SparkSession, tmp_path: Path, reader: Reader
) -> None:
    location = tmp_path / "table"
    location.mkdir()
    files = 6
    for number in range(files):
        pq.write_table(pa.table({"id": [number]}), location / f"{number}.parquet")
    with embedded.client(tmp_path / "state", allowed_locations=[str(location)]) as client:
        client.register_table("local.table", str(location))
        client.refresh("local.table")
        hosts = [[this_host(spark)], [_ELSEWHERE]] * (files // 2)
        inventory = pa.table(
            {
                "path": [f"{number}.parquet" for number in range(files)],
                "size_bytes": [(location / f"{n}.parquet").stat().st_size for n in range(files)],
                "mtime_ns": [(location / f"{n}.parquet").stat().st_mtime_ns for n in range(files)],
                "row_count": [1] * files,
                "hosts": hosts,
            }
        )
        client.publish("local.table", inventory)
        rows = client.read(spark, "local.table", reader=reader, strategy="openlookeng")
        assert count_of(rows) == files
