"""A program that runs the work of several tests on the oldest supported Spark, in one session.

`python -m tests.programs.on_older_spark URL FOLDER`

One line of JSON on stdout has the version of Spark and the results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import windrow
from tests.support.queries import (
    accelerations,
    bucket_joins,
    catalog_statements,
    catalogs,
    compactions,
    file_names,
    hybrids,
    int96,
    lost_map_outputs,
    pack_reads,
    refused_uses,
    rewrites,
    statements,
    table_scans,
    text_formats,
)
from tests.support.tables import hive


def session(local: Path) -> SparkSession:
    """Return a session that keeps its files in a folder."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "600m")
        .config("spark.local.dir", str(local))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(url: str, folder: Path) -> None:
    """Run all of it, and print the results."""
    local = folder / "local"
    spark = session(local)
    with windrow.connect(url) as client:
        rewritten = rewrites.results(spark, client, folder)
        joins = bucket_joins.results(spark, client, folder)
        hybrid = hybrids.outcome(spark, client, folder)
        scans = table_scans.results(spark, client, folder)
        packs = pack_reads.outcomes(spark, client, folder)
        formats = text_formats.results(spark, client, folder)
        differences = file_names.differences(spark, client, folder)
        names = {
            "differences": differences,
            "of_groups": file_names.of_groups(spark, client, folder),
        }
        compaction = compactions.differences_after_compaction(spark, client, folder)
        times = folder / "int96"
        int96.write_files(spark, times)
        client.register_table("int96", str(times))
        client.refresh("int96")
        times_by_zone = int96.differences(spark, client, "int96", times, ["Pacific/Apia"])
        client.register_table("refused", str(hive.write_events(folder / "refused")))
        client.refresh("refused")
        windrow.register(spark, client)
        catalog = catalogs.results(spark, client, folder)
        table = catalog_statements.TABLE
        client.register_table(table, str(hive.write_events(folder / "stated")))
        client.refresh(table)
        outcomes_by_statement = catalog_statements.outcomes(spark)
        client.read(spark, "refused").createOrReplaceTempView("refused")
        uses = refused_uses.refusals(spark, "refused", {"coordinator": url}, folder / "streams")
        outcomes_of_statements = statements.outcomes(spark, client, folder)
        formats_of_catalog = {"a": "USING parquet", "b": "USING orc"}
        problems = accelerations.problems(spark, client, folder / "quick", formats_of_catalog)
    # These come last, since each makes Spark believe that it has lost its executor.
    outcomes = lost_map_outputs.outcomes(spark, folder, local)
    report = {
        "accelerated": problems,
        "outcomes": outcomes,
        "statements of the catalog": outcomes_by_statement,
        "catalog": catalog,
        "joined": joins,
        "hybrid": hybrid,
        "compacted": compaction,
        "int96": times_by_zone,
        "packs": packs,
        "scans": scans,
        "formats": formats,
        "file_names": names,
        "statements": outcomes_of_statements,
        "uses": uses,
        **rewritten,
    }
    sys.stdout.write(json.dumps({"version": spark.version, **report}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
