"""Run one query in a fresh process, with the table's data not in memory, and print JSON.

`read_small_files.py` runs it for its cold figures, once for each side. The clock starts when the
engine is ready (the Spark session exists, the packages are imported) but has not seen the table,
and stops at the answer. So the time includes Spark's listing and Windrow's planning.

A quick run calls `cold_answer` for the sides on Spark, in a JVM that has already run queries.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from peers import ENGINES, Rows, normal, queries, timed_answer

from windrow.connecting import connect
from windrow_demo.local_session import local_session
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW


def drop_from_memory(folder: Path) -> None:
    """Drop the contents of a folder's files from the page cache, as far as possible without root.

    File names and attributes stay cached, and so do contents that are not on disk yet.
    """
    for where, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(where, name), os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def main() -> None:
    """Run one query and print `{"seconds": …, "rows": …}`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    sides = (SPARK_DEFAULT, SPARK_TUNED, WINDROW, *ENGINES)
    parser.add_argument("side", choices=sides)
    parser.add_argument("query")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", help="coordinator, for windrow")
    parser.add_argument("--table", help="name of the table, for windrow")
    options = parser.parse_args()
    rows, seconds = cold_answer(
        options.side, options.query, options.folder, options.url, options.table
    )
    print(json.dumps({"seconds": seconds, "rows": repr(rows)}))


def cold_answer(
    side: str, query_name: str, folder: Path, url: str, table_name: str
) -> tuple[Rows, float]:
    """Return the rows of a query and the seconds that it took, in this process.

    Args:
        side: Spark as it is or tuned, Windrow, or another engine.
        query_name: Name of the query.
        folder: Folder of the table.
        url: Coordinator, for Windrow.
        table_name: Name of the table, for Windrow.
    """
    if side in ENGINES:
        __import__(side)
        drop_from_memory(folder)
        return timed_answer(ENGINES[side], folder, query_name)
    conf = {"spark.sql.files.openCostInBytes": "0"} if side == SPARK_TUNED else {}
    query = next(query for query in queries() if query.name == query_name)
    with (
        tempfile.TemporaryDirectory() as logs,
        local_session("windrow benchmark", Path(logs) / "spark.log", conf=conf) as spark,
        ExitStack() as opened,
    ):
        drop_from_memory(folder)
        began = time.perf_counter()
        if side == WINDROW:
            client = opened.enter_context(connect(url))
            table = client.read(spark, table_name, columns=query.columns)
        else:
            table = spark.read.parquet(str(folder))
        rows = query.ask(table).collect()
        return normal(rows), time.perf_counter() - began


if __name__ == "__main__":
    main()
