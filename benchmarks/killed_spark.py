"""A driver with a JVM that writes to a table until `kills.py` kills it.

    python benchmarks/killed_spark.py JSON

The argument is what `tests.support.faults.killed_drivers.drive` is asked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.support.faults.killed_drivers import PARTITIONS, Notes

import windrow
from windrow_spark.writing import write as writing
from windrow_tables import commits
from windrow_tables.commits import TableWrite

_ROWS = 3


def main() -> None:
    """Append rows that nobody else writes, and note them, until killed."""
    task = json.loads(sys.argv[1])
    notes = Notes(Path(task["notes"]) / f"{task['number']}.notes")
    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    with windrow.connect(task["url"]) as client:
        for number in range(1_000):
            first = (task["number"] * 1_000 + number) * 100
            rows = {
                folder: list(range(first + at * _ROWS, first + (at + 1) * _ROWS))
                for at, folder in enumerate(PARTITIONS)
            }
            begun: list[str] = []

            def begin(
                *args: Any, rows: Any = rows, begun: Any = begun, **kwargs: Any
            ) -> TableWrite:
                write = commits.begin(*args, **kwargs)
                begun.append(write.write_id)
                notes.add(write_id=write.write_id, kind="write", mode="append", rows=rows)
                return write

            writing.begin = begin  # type: ignore[assignment]
            values = [(id_, int(folder[2:])) for folder, ids in rows.items() for id_ in ids]
            client.write(spark.createDataFrame(values, "id bigint, p int"), task["table"])
            notes.add(ended=begun[0], outcome="committed", said="")


if __name__ == "__main__":
    main()
