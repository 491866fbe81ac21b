"""Reads tables on Spark with Iceberg's runtime, planned by the coordinator and by Iceberg.

    python iceberg_on_spark.py URL TOKEN PACKAGE

takes a JSON list from its input: a table and a condition for each question. It prints a list of the
rows of each, as sorted texts: those of scans that the coordinator plans, and of Iceberg's own.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Answer all questions in both ways."""
    url, token, package = sys.argv[1:]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.jars.packages", package)
    )
    for mode in ("server", "client"):
        catalog = f"spark.sql.catalog.{mode}"
        builder.config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        builder.config(f"{catalog}.type", "rest")
        builder.config(f"{catalog}.uri", f"{url}/iceberg")
        builder.config(f"{catalog}.token", token)
        builder.config(f"{catalog}.scan-planning-mode", mode)
    spark = builder.getOrCreate()
    answers = [
        [
            sorted(map(repr, spark.sql(f"SELECT * FROM {mode}.{name} WHERE {condition}").collect()))
            for mode in ("server", "client")
        ]
        for name, condition in json.load(sys.stdin)
    ]
    print(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main()
