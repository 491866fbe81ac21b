"""A coordinator, and a Spark session that reads through it, for the time of a benchmark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.client import Client
from windrow.connecting import connect
from windrow_demo.coordinator import running_coordinator
from windrow_demo.local_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_and_client(
    data: Path | str, work: Path, conf: Mapping[str, str] | None = None
) -> Iterator[tuple[SparkSession, Client]]:
    """Start a coordinator that knows no table yet, and Spark; both end with the block.

    Args:
        data: Folder of the tables, or its URI.
        work: Folder for the coordinator's database, and for logs.
        conf: Further settings of Spark.
    """
    shutil.rmtree(work / "state", ignore_errors=True)
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
        local_session("windrow benchmark", work / "spark.log", conf=conf) as spark,
    ):
        # Spark's first job also starts its threads.
        spark.range(10).count()
        yield spark, client
