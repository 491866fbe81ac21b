"""The part of a table that a write replaces, by values of its partition columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windrow_core.models import TableInfo
from windrow_spark.writing.errors import UnfitRowsError
from windrow_spark.writing.expressions import named
from windrow_spark.writing.folder_names import UnfitValueError, wire_values
from windrow_spark.writing.schemas import folder_value, partition_columns_of


def folder_values(
    spark: SparkSession, table: TableInfo, values: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return values of partition columns as folders have them, not escaped; None for null.

    Args:
        spark: A classic session.
        table: The table.
        values: The value of some partition columns, as Python has it or as a column of Spark
            without any input; names are compared without regard to case.

    Raises:
        UnfitRowsError: The table is not partitioned by a column, or a value is not one of its type.
    """
    columns = {column.name.lower(): column for column in partition_columns_of(table)}
    others = [name for name in values if name.lower() not in columns]
    if others:
        names = ", ".join(repr(column.name) for column in columns.values()) or "no column"
        raise UnfitRowsError(
            table.name, f"`replace` names {others[0]!r}, but it is partitioned by {names}"
        )
    if not values:
        return {}
    literals = [
        (value if isinstance(value, SparkColumn) else F.lit(value)).alias(str(at))
        for at, value in enumerate(values.values())
    ]
    # Spark evaluates constants without a job.
    constants = spark.sql("SELECT 1").select(*literals)
    texts = constants.select(
        *(
            folder_value(named(field.name), field.dataType, columns[name.lower()]).cast("string")
            for name, field in zip(values, constants.schema, strict=True)
        )
    )
    region = {}
    for name, text in zip(values, texts.collect()[0], strict=True):
        # A folder holds the empty text as null.
        region[name] = text or None
        try:
            wire_values(columns[name.lower()], [region[name]])
        except UnfitValueError as error:
            raise UnfitRowsError(table.name, f"`replace`: {error}") from error
    return region
