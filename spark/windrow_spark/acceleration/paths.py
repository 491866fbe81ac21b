"""The columns that Spark finds in a path with a table's files, without a list of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType, StructType

from windrow_core.models import Plan, TableDefinition
from windrow_spark.acceleration.comparing import check_options
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.acceleration.requests import Path
from windrow_spark.arrow_types import spark_schema

_V1 = "spark.sql.sources.useV1SourceList"
_V1_FORMATS = "avro,csv,json,kafka,orc,parquet,text"
# Besides those that any read refuses: with other values, Spark may infer other columns.
_INFERENCE = {
    "spark.sql.parquet.mergeSchema": ("false",),
    "spark.sql.legacy.timeParserPolicy": ("corrected", "exception"),
}
# The beginning of a text that neither Spark nor Windrow takes for anything else: times may begin with
# T, and numbers are also written NaN and Infinity.
_TEXT = "^[A-HJ-MO-SU-Za-hj-mo-su-z]"


def columns_of_path(
    definition: TableDefinition,
    plan: Plan,
    request: Path,
    settings: Mapping[str, str],
    partitions: Callable[[], pa.Table],
) -> tuple[StructType, StructType | None]:
    """Return the partition columns and the other columns that Spark would find in a path.

    Args:
        definition: The table at the path.
        plan: A plan of it.
        request: What is read.
        settings: The session's settings that are not left at their defaults.
        partitions: Returns the distinct partition values of the plan's snapshot.

    Returns:
        The second is None if Spark takes them from the first file.

    Raises:
        NotTheSameError: Spark has to look at all folders to find them.
    """
    format_ = request.format.lower()
    if format_ != plan.format or format_ not in settings.get(_V1, _V1_FORMATS).lower().split(","):
        raise NotTheSameError(f"it is read as {request.format}")
    check_options(plan, request.options)
    for name, values in _INFERENCE.items():
        if settings.get(name, values[0]).lower() not in values:
            raise NotTheSameError(f"the session has set {name}")
    partition = spark_schema(plan.partition_columns)
    if definition.partition_columns:
        raise NotTheSameError("the types of its partition columns are declared")
    for field in partition:
        if field.dataType == StringType() and not _is_text(partitions().column(field.name)):
            raise NotTheSameError(f"Spark may take values of {field.name} for times or numbers")
    if request.schema is None:
        if format_ != "parquet":
            raise NotTheSameError("Spark infers its columns from more than one file")
        return partition, None
    schema = StructType.fromJson(json.loads(request.schema))
    types = {field.name.lower(): field.dataType for field in partition}
    fields = []
    for field in schema:
        type_ = types.get(field.name.lower())
        if type_ is None:
            fields.append(field)
        elif type_ != field.dataType or field.name not in partition.names:
            raise NotTheSameError(f"its schema says that {field.name} is {field.dataType}")
    return partition, StructType(fields)


def _is_text(values: pa.ChunkedArray) -> bool:
    """Return whether Spark, too, infers text: one such value makes all the others text."""
    return bool(pc.any(pc.match_substring_regex(values, _TEXT)).as_py())
