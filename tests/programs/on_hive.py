"""Rows of Spark's own Hive tables: a program, since they need a session with a metastore.

`python -m tests.programs.on_hive FOLDER URL`

`FOLDER/tables.json` defines the tables to create; the last line printed is a list with the rows of
each table and the findings of `metastore_tables` with a coordinator.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support.spark.metastore_tables import DATABASE, found_on_metastore


def outcome(table: DataFrame, number: int) -> list[str] | str:
    """Return the sorted rows, of every other table only its last columns, or `refused`."""
    columns = table.columns if number % 2 else table.columns[: -len(table.columns) // 2 - 1 : -1]
    try:
        return sorted(map(repr, table.select(*columns).collect()))
    except Exception:
        return "refused"


def main(folder: Path, url: str) -> None:
    """Create all tables, and print their rows."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", DATABASE)
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    tables = json.loads((folder / "tables.json").read_text())
    outcomes = [outcome(_created(spark, folder, one), at) for at, one in enumerate(tables)]
    imports = found_on_metastore(spark, url, folder)
    sys.stdout.write("\n" + json.dumps([outcomes, imports]) + "\n")


def _created(spark: SparkSession, folder: Path, table: dict[str, Any]) -> DataFrame:
    columns = ", ".join(f"`{name}` {type_}" for name, type_ in table["columns"].items())
    # Spark's Hive knows `collection.delim` only by the misspelt name that Hive used before 3.
    properties = {
        name.replace("collection", "colelction"): value
        for name, value in table["properties"].items()
    }
    clause = ", ".join(f"'{name}' = {_quoted(value)}" for name, value in properties.items())
    spark.sql(
        f"CREATE EXTERNAL TABLE {table['name']} ({columns}) ROW FORMAT SERDE '{table['serde']}' "
        + (f"WITH SERDEPROPERTIES ({clause}) " if clause else "")
        + f"STORED AS TEXTFILE LOCATION '{folder / table['name']}'"
    )
    return spark.table(table["name"])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
