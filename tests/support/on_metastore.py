"""Tables of a metastore of Hive, imported and read: run as a program, as it needs a session of its own.

    python -m tests.support.on_metastore URL FOLDER

The last line printed is what was found, as JSON.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

import windrow


def differences(spark: SparkSession, client: windrow.Client, name: str) -> list[str]:
    """Return the rows that only one of Spark and us has, and how the columns differ."""
    wanted, found = spark.table(name), client.read(spark, name)
    if {field.name: field.dataType for field in wanted.schema} != {
        field.name: field.dataType for field in found.schema
    }:
        return [f"columns: {wanted.schema.simpleString()} {found.schema.simpleString()}"]
    theirs = sorted(map(repr, wanted.collect()))
    ours = sorted(map(repr, found.select(*wanted.columns).collect()))
    if theirs == ours:
        # Partition columns alone, and none at all.
        counts = wanted.count(), found.count()
        return [] if counts[0] == counts[1] == len(ours) else [f"counts: {counts}"]
    return [f"spark: {theirs}", f"windrow: {ours}"]
