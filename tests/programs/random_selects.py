"""Random SELECTs on Windrow's tables and Spark's, as many as one likes, on any release of Spark.

`python -m tests.programs.random_selects FOLDER SEED FIRST END ATTEMPTS`

Asks the queries of a seed from a number to another. Each hundred have tables of their own. What
differs is printed as it comes, with a simpler query that differs, too, if there are attempts to
find one; the last line has all counts as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.queries.select_answers import (
    Counts,
    Site,
    ask,
    drawn_settings,
    opened,
    settings,
    simplified,
)
from tests.support.servers import embedded
from tests.support.spark import quick_spark

_PER_SITE = 100


def _session(local: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(local / "local"))
        .config("spark.sql.warehouse.dir", str(local / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.ui.retainedExecutions", "10")
        .config("spark.ui.retainedJobs", "10")
        .config("spark.ui.retainedStages", "10")
        .config("spark.ui.retainedTasks", "100")
    )
    for name, value in quick_spark.INTERPRETED.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _ask(spark: SparkSession, site: Site, number: int, attempts: int, counts: Counts) -> None:
    with settings(spark, drawn_settings(site, number)):
        difference = ask(site, number, counts)
        if difference:
            print(difference, flush=True)
            if attempts:
                print(simplified(site, number, attempts), flush=True)


def run(folder: Path, seed: str, first: int, end: int, attempts: int) -> None:
    """Ask queries, and print what comes of them.

    Args:
        folder: Where the tables are made.
        seed: What tables and queries depend on.
        first: The number of the first query.
        end: The number after the last one.
        attempts: How often to ask a simpler query in place of one that differs.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    quick_spark.set_up(os.environ)
    # Thousands of queries are worth the optimising compiler.
    options = os.environ["SPARK_SUBMIT_OPTS"].replace("-XX:TieredStopAtLevel=1 ", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -Xmn500m"
    quick_spark.remember_classes()
    folder.mkdir(parents=True)
    spark = _session(folder)
    counts, began = Counts(), time.monotonic()
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        for start in range(first - first % _PER_SITE, end, _PER_SITE):
            numbers = range(max(first, start), min(start + _PER_SITE, end))
            with opened(spark, client, folder, f"{seed}_{start // _PER_SITE}") as site:
                for number in numbers:
                    _ask(spark, site, number, attempts, counts)
            shutil.rmtree(site.tables.folder)
            took_s = time.monotonic() - began
            print(
                f"{counts.queries} queries, {counts.differing} differ, {took_s:.0f} s", flush=True
            )
    print(json.dumps({"version": spark.version, **vars(counts)}))
    spark.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]))
