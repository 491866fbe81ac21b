"""Columns of files without a schema, as Spark infers them from all rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windrow_calls.arguments import checked
from windrow_calls.errors import InvalidArgumentError
from windrow_calls.tables import option_texts
from windrow_core.files.types import spark_type
from windrow_core.models import TableDefinition
from windrow_spark.arrow_types import arrow_schema
from windrow_spark.placement import require_classic


def infer_columns(
    spark: SparkSession, location: str, format: str, format_options: Mapping[str, Any]
) -> dict[str, str]:
    """Return the columns that Spark infers; see `windrow.Client.infer_columns`."""
    require_classic(spark)
    fields = {
        "location": location,
        "format": format,
        "format_options": option_texts(format_options),
    }
    definition = checked(TableDefinition, fields)
    if definition.kind.files.states_columns:
        raise InvalidArgumentError(
            "format",
            f"columns of {definition.format} are not inferred: leave `columns` out, or declare them "
            "if there is a SerDe",
        )
    reader = spark.read.format(definition.format).options(**definition.format_options)
    # Only CSV needs this option to infer types from values.
    rows = reader.option("inferSchema", "true").load(location)
    relation: Any = rows._jdf.queryExecution().analyzed().relation()
    data, partition = (
        StructType.fromJson(json.loads(schema.json()))
        for schema in (relation.dataSchema(), relation.partitionSchema())
    )
    folders = {name.lower() for name in partition.names}
    return {
        field.name: spark_type(field.type)
        for field in arrow_schema(data)
        if field.name.lower() not in folders
    }
