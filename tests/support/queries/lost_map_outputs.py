"""Spark writes that lose the output of a map task halfway.

Each way to place rows writes 20,000 rows once. As soon as the first files exist, the shuffle output
of a map task is deleted, so that the task runs again and produces its rows in a different order.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.plans.write_plans import exact_keys, plan_of, table_of
from windrow_spark.writing import stage

_ROWS = 20_000
_TASKS = 16
_COLUMNS = {"ds": "string"}
_DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
_TIMEOUT_S = 60.0

SCHEMES = ("repartition", "columns", "salted", "range_hash", "exact")
HAZARDS = ("rand", "range_rand")


def outcomes(spark: SparkSession, scratch: Path, local: Path) -> dict[str, dict[str, Any]]:
    """Write in every way, and return the outcome of each.

    Args:
        spark: A local session.
        scratch: Folder for the written files.
        local: The session's folder of shuffle output.
    """
    results = {}
    for way in (*HAZARDS, *SCHEMES):
        folder = scratch / way
        folder.mkdir()
        results[way] = _outcome(_source(spark, folder), way, folder, local)
    return results


def _outcome(df: DataFrame, way: str, folder: Path, local: Path) -> dict[str, Any]:
    staging = folder / "staged"
    stop = threading.Event()
    lost_outputs: list[str] = []
    thread = threading.Thread(target=_delete_one_output, args=(staging, local, stop, lost_outputs))
    thread.start()
    failed = False
    try:
        _writer(way)(df, str(staging))
    except (Py4JError, PySparkException):
        failed = True
    finally:
        stop.set()
        thread.join()
    files = staging.rglob("*.parquet")
    counts: Counter[int] = Counter()
    if not failed:
        for file in files:
            counts.update(pq.ParquetFile(file).read(["id"])["id"].to_pylist())
    runs = [path.stat().st_size for path in folder.glob("runs-*")]
    return {
        "failed": failed,
        "lost": _ROWS - len(counts),
        "doubled": sum(count > 1 for count in counts.values()),
        "deleted": len(lost_outputs),
        "runs": min(runs),
    }


def _writer(way: str) -> Callable[[DataFrame, str], None]:
    if way == "rand":
        key = F.floor(F.rand(7) * _TASKS)
        return lambda df, folder: _plainly(df.repartition(_TASKS, key), folder)
    if way == "range_rand":
        columns = (F.xxhash64("ds"), F.rand(7))
        return lambda df, folder: _plainly(df.repartitionByRange(_TASKS, *columns), folder)
    keys, tasks = exact_keys(_COLUMNS, dict(zip([(day,) for day in _DAYS], (9, 5, 2), strict=True)))
    plan = plan_of(
        way, tasks, _COLUMNS, salt_columns=["id", "name"], salts=4,
        keys=keys if way == "exact" else None,
    )  # fmt: skip
    return lambda df, folder: stage(df, plan, table_of(folder), folder)


def _plainly(df: DataFrame, folder: str) -> None:
    df.write.partitionBy("ds").parquet(folder)


def _source(spark: SparkSession, folder: Path) -> DataFrame:
    """Return rows whose order changes each time a task makes them."""
    runs, days = str(folder), list(_DAYS)

    def rows(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        context = TaskContext.get()
        assert context is not None
        with open(f"{runs}/runs-{context.partitionId()}", "ab") as file:
            file.write(b".")
            seed = file.tell()
        ids = pd.concat(list(batches))["id"].to_numpy()
        ids = np.random.default_rng(seed).permutation(ids)
        of_days = np.array([0, 0, 0, 0, 1, 1, 2])[ids % 7]
        names = [f"name-{number}" for number in ids.tolist()]
        yield pd.DataFrame({"id": ids, "name": names, "ds": np.array(days)[of_days]})

    source = spark.range(_ROWS, numPartitions=4)
    return source.mapInPandas(rows, "id bigint, name string, ds string")


def _delete_one_output(
    staging: Path, local: Path, stop: threading.Event, lost_outputs: list[str]
) -> None:
    """Wait for the first file of the write, and delete the shuffle output of a map task."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not any(staging.rglob("*.parquet")):
        if stop.is_set() or time.monotonic() > deadline:
            return
        time.sleep(0.001)
    outputs = [path.name.split("_") for path in local.rglob("shuffle_*.index")]
    shuffle = max(int(parts[1]) for parts in outputs)
    first_map = min(int(parts[2]) for parts in outputs if int(parts[1]) == shuffle)
    for path in local.rglob(f"shuffle_{shuffle}_{first_map}_*"):
        os.unlink(path)
        lost_outputs.append(path.name)
