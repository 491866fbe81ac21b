"""Statements that write to tables of a catalog."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow_calls.coordinator import Coordinator
from windrow_spark.reading.session_times import partition_columns_in_session
from windrow_spark.relation.inserts import rows_of
from windrow_spark.sql.requests import Write
from windrow_spark.writing.schemas import partition_columns_of
from windrow_spark.writing.statements import run


def write_rows(client: Coordinator, spark: SparkSession, request: Write, rows: Any) -> None:
    """Carry out a statement; see `Answers`."""
    table = client.table(request.table)
    dynamic = request.mode == "dynamic"
    columns = partition_columns_in_session(spark, table, partition_columns_of(table))
    types = {column.name.lower(): column.type for column in columns}
    partition = {
        name: _constant(text, types.get(name.lower(), "string"))
        for name, text in request.partition.items()
    }
    frame = rows_of(spark, rows) if dynamic else DataFrame(rows, spark)
    run(client, frame, table, request.mode, partition, request.options)


def _constant(text: str | None, type_: str) -> SparkColumn:
    """Return a value of a partition column from Spark's internal form."""
    if text is None:
        return F.lit(None)
    if type_ == "date":
        return F.date_from_unix_date(F.lit(int(text)))
    if type_ == "timestamp":
        return F.timestamp_micros(F.lit(int(text)))
    if type_ == "timestamp_ntz":
        seconds = F.lit(Decimal(text).scaleb(-6))
        nothing = F.lit(0)
        epoch = F.lit("1970-01-01").cast("timestamp_ntz")
        return epoch + F.make_dt_interval(nothing, nothing, nothing, seconds)
    return F.lit(text).cast(type_)
