"""Queries of which a table's scans plan few files, asked of Windrow and of Spark's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import windrow
from windrow_spark.relation.recent_scans import recent_scans

DAYS = ("2025-07-30", "2025-07-31", "2025-08-01", "2025-08-02")
_FILES_PER_DAY = 2
_ROWS_PER_FILE = 5

# Spark 3.5 does not tell scans of such subqueries.
OF_ANOTHER_COLUMN = "subquery of another column"

# `{t}` is the table, `{few}` a small one of days; each with the files of each scan that is planned.
QUERIES: dict[str, tuple[str, list[int]]] = {
    "function of a partition": ("SELECT * FROM {t} WHERE month(ds) = 8", [4]),
    "no partition": ("SELECT id FROM {t} WHERE year(ds) = 1999", [0]),
    "no column": ("SELECT count(*) FROM {t} WHERE ds > DATE'2025-07-31'", [4]),
    "scalar subquery": ("SELECT id FROM {t} WHERE ds = (SELECT max(day) FROM {few})", [2]),
    "in a subquery": (
        "SELECT id FROM {t} WHERE ds IN (SELECT day FROM {few} WHERE number > 10)",
        [2],
    ),
    "join": (
        "SELECT /*+ BROADCAST({few}) */ id, name FROM {t} JOIN {few} ON ds = day WHERE number > 10",
        [2],
    ),
    "join by keys of files": (
        "SELECT /*+ BROADCAST({few}) */ id, day FROM {t} JOIN {few} ON id = number WHERE number > 10",
        [1],
    ),
    "join by a column with another name": (
        "SELECT /*+ BROADCAST({few}) */ key FROM (SELECT id AS key, name FROM {t} WHERE id > 1) "
        "JOIN {few} ON key = number AND name = concat('name-', number) WHERE day > '2025-07-01'",
        [2],
    ),
    "join below a join": (
        "SELECT /*+ BROADCAST({few}) */ one.id, other.id FROM {t} one JOIN {t} other "
        "ON one.id = other.id JOIN {few} ON one.id = number WHERE number < 10",
        [1, 2],
    ),
    "semi join": (
        "SELECT id FROM {t} WHERE id IN (SELECT number FROM {few} WHERE number > 10)",
        [1],
    ),
    "join in a subquery": (
        "SELECT id FROM {t} WHERE name IN (SELECT /*+ BROADCAST({few}) */ other.name "
        "FROM {t} other JOIN {few} ON other.id = number WHERE number > 10 AND other.s.a > 1)",
        [1, 2],
    ),
    "outer join keeps all": (
        "SELECT /*+ BROADCAST({few}) */ id, number FROM {t} LEFT JOIN {few} "
        "ON id = number AND number > 10",
        [8],
    ),
    "anti join keeps all": (
        "SELECT id FROM {t} LEFT ANTI JOIN (SELECT * FROM {few} WHERE number > 10) ON id = number",
        [8],
    ),
    "no key": (
        "SELECT /*+ BROADCAST({few}) */ id FROM {t} JOIN {few} ON id = number WHERE number % 10 = 1",
        # Without any row on one side, the other is not read.
        [],
    ),
    "limit below a join": (
        "SELECT /*+ BROADCAST({few}) */ id FROM (SELECT id FROM {t} ORDER BY id LIMIT 30) "
        "JOIN {few} ON id = number WHERE number > 10",
        [8],
    ),
    OF_ANOTHER_COLUMN: (
        "SELECT * FROM {t} WHERE id = (SELECT max(number) FROM {few})",
        [1],
    ),
    "field of a struct": ("SELECT s.a, ds FROM {t} WHERE s.b = 'b7'", [8]),
    "fields in an array": ("SELECT list.a FROM {t} WHERE id < 5", [1]),
    "same scan twice": (
        "SELECT ds, count(*) FROM {t} GROUP BY ds UNION ALL "
        "SELECT ds, count(*) FROM {t} GROUP BY ds",
        [8],
    ),
}
LIMITS: dict[str, tuple[str, list[int]]] = {
    "limit": ("SELECT * FROM {t} LIMIT 3", [1]),
    "limit of a partition": ("SELECT id FROM {t} WHERE month(ds) = 8 LIMIT 3", [1]),
    "limit of a limit": ("SELECT count(*) FROM (SELECT * FROM {t} LIMIT 7) LIMIT 9", [2]),
}


def results(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Ask all queries.

    Returns:
        By query: `ours`, the rows as sorted texts; `theirs`, those of Spark's own reader; `files`,
        the number of files of each scan; and `schemas`, of the columns that scans decode.
    """
    register(client, folder)
    client.create_view(spark, "scanned", "scanned_ours")
    spark.read.parquet(str(folder / "scanned")).createOrReplaceTempView("scanned_theirs")
    few = {
        "day": pa.array(DAYS[1:3]).cast(pa.date32()),
        "number": [3, 17],
    }
    pq.write_table(pa.table(few), folder / "few.parquet")
    spark.read.parquet(str(folder / "few.parquet")).createOrReplaceTempView("scanned_few")
    return {name: _result(spark, query) for name, (query, _) in {**QUERIES, **LIMITS}.items()}


def register(client: windrow.Client, folder: Path) -> None:
    """Write the table, unless it is there, and register it as `scanned`."""
    if not (folder / "scanned").exists():
        _write(folder / "scanned")
    client.register_table("scanned", str(folder / "scanned"))
    client.refresh("scanned")


def _write(location: Path) -> None:
    first = 0
    for day in DAYS:
        for number in range(_FILES_PER_DAY):
            ids = list(range(first, first := first + _ROWS_PER_FILE))
            rows = pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "name": [f"name-{id_}" for id_ in ids],
                    "s": [{"a": id_, "b": f"b{id_}", "c": "c"} for id_ in ids],
                    "list": [[{"a": id_, "b": "b"}] for id_ in ids],
                }
            )
            path = location / f"ds={day}" / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, path)


def _result(spark: SparkSession, query: str) -> dict[str, Any]:
    before = {scan.plan.plan_id for scan in recent_scans("scanned")}
    frame = spark.sql(query.format(t="scanned_ours", few="scanned_few"))
    ours = frame.collect()
    scans = [scan for scan in recent_scans("scanned") if scan.plan.plan_id not in before]
    theirs = spark.sql(query.format(t="scanned_theirs", few="scanned_few")).collect()
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    return {
        "ours": sorted(map(str, ours)),
        "theirs": sorted(map(str, theirs)),
        "files": sorted(scan.plan.summary.files_planned for scan in scans),
        "schemas": sorted(
            {
                line.rpartition("ReadSchema: ")[2]
                for line in plan.splitlines()
                if "Scan windrow scanned" in line
            }
        ),
    }
