"""Reads tables with Spark and Iceberg's runtime, or with Sail.

    python engines_on_spark.py URL PACKAGE

takes a JSON list of questions from its input: names of tables, or SQL that names tables as `w.name`.
It prints the rows of each, as sorted texts, or the error as a text. Without PACKAGE, which is Iceberg's runtime, Sail reads them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.programs.other_engines import row_texts


def session_with_iceberg(url: str, package: str) -> SparkSession:
    """Return a session with the catalog `w`."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars.packages", package)
        .config("spark.sql.catalog.w", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.w.type", "rest")
        .config("spark.sql.catalog.w.uri", f"{url}/iceberg")
    )
    return builder.getOrCreate()


def session_of_sail(url: str) -> tuple[SparkSession, Any]:
    """Return a session of a server in this process, with the catalog `w`, and the server.

    It stops with the last reference to it.
    """
    os.environ["SAIL_CATALOG__LIST"] = (
        f'[{{type = "iceberg-rest", name = "w", uri = "{url}/iceberg"}}]'
    )
    # It plans a scan for each partition, which takes minutes for thousands, and ends a session for
    # which it has planned that long as an idle one.
    os.environ["SAIL_SPARK__SESSION_TIMEOUT_SECS"] = "7200"
    from importlib import import_module

    sail: Any = import_module("pysail.spark")
    server = sail.SparkConnectServer()
    server.start()
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark, server


def main() -> None:
    """Answer all questions."""
    url, package = sys.argv[1:]
    spark, _server = (session_with_iceberg(url, package), None) if package else session_of_sail(url)

    def read(question: str) -> Any:
        is_sql = question.startswith("SELECT ")
        rows = (spark.sql(question) if is_sql else spark.table(f"w.{question}")).toArrow()
        columns = [rows.column(at).to_pylist() for at in range(rows.num_columns)]
        return zip(*columns, strict=True)

    answers = [_answer(read, question) for question in json.load(sys.stdin)]
    print(json.dumps(answers), flush=True)
    spark.stop()


def _answer(read: Callable[[str], Any], question: str) -> Any:
    try:
        return row_texts(read(question))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
