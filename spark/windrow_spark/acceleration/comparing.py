"""Whether Spark's own table has the columns, the format and the options of a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from windrow_core.models import Plan
from windrow_core.models.format_options import checked_format_options, has_no_effect
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.acceleration.requests import Columns
from windrow_spark.arrow_types import spark_schema
from windrow_spark.catalog.entries import SparkCatalog
from windrow_spark.catalog.mapping import UnreadableTableError, default_of, definition_of
from windrow_spark.catalog.writer_options import is_of_writers

# Spark's classes that read each format, by the last part of their names.
_FORMATS = {
    "ParquetFileFormat": "parquet",
    "OrcFileFormat": "orc",
    "AvroFileFormat": "avro",
    "CSVFileFormat": "csv",
    "JsonFileFormat": "json",
    "TextFileFormat": "text",
}
# Stands for all of Hive's SerDes; see `AcceleratedReads.java`.
_OF_SERDES = "HiveFiles"
# Options that do not affect which rows are read, whatever their value.
_IRRELEVANT = {
    "path",
    "serialization.format",
    # Of writes; Hive's tables have them, whether or not they have buckets.
    "partitionoverwritemode",
    "__hive_compatible_bucketed_table_insertion__",
}
# Options that do not if they are off; `spark.read.text` always gives `wholetext`.
_IF_FALSE = {"mergeschema", "recursivefilelookup", "wholetext", "multiline", "header"}
_MERGED = "mergeschema"
# In formats with types, it is the zone of times in the names of folders only.
_ZONE = "timezone"
# Formats whose scans do not look at `mergeSchema`.
_TYPED = {"parquet", "orc"}
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


def check_same(plan: Plan, request: Columns, serde: Mapping[str, str] | None = None) -> None:
    """Compare a plan of a table with the table or path as Spark has resolved it.

    Args:
        plan: A plan of all columns.
        request: Spark's relation, or a command.
        serde: What `serde_of` returns, if Spark reads it through a SerDe.

    Raises:
        NotTheSameError: They differ.
    """
    if not plan.reading.is_plain or plan.summary.delete_files:
        raise NotTheSameError(
            f"{plan.table!r} has deleted rows or a log of its own, which Spark's reader of files ignores"
        )
    data, folders = _struct(request.data), _struct(request.partition_schema)
    if serde is None:
        _check_format(plan, request, folders)
    elif (plan.format, dict(plan.format_options)) != ("text", serde):
        raise NotTheSameError(
            f"Spark reads it with {serde}, and {plan.table!r} is read with "
            f"{dict(plan.format_options)}: import it again"
        )
    partition = [column.name for column in plan.partition_columns]
    _check_columns(
        plan,
        folders,
        spark_schema(plan.partition_columns),
        "partition columns",
        ordered=True,
    )
    # Fields of lines are found by their places.
    ordered = not plan.reading.files.is_grouped
    # Other files may have partition columns, too: their values are those of the folders.
    unread = set() if ordered else set(partition)
    _check_columns(
        plan,
        StructType([field for field in data if field.name not in unread]),
        spark_schema([column for column in plan.columns if column.name not in partition]),
        "columns",
        ordered=ordered,
    )


def check_defaults(spark: SparkSession, plan: Plan, request: Columns) -> None:
    """Compare what Spark and a plan give columns in rows of files that lack them.

    Args:
        spark: A session of the application.
        plan: As in `check_same`.
        request: As in `check_same`.

    Raises:
        NotTheSameError: They differ.
    """

    def value_of(sql: str, type_: str) -> Any:
        # Most tables have no default, and a catalog may be a metastore far away.
        return SparkCatalog(spark).value_of(sql, type_)

    for field in _struct(request.data):
        try:
            theirs = default_of(field, plan.format, value_of)
        except UnreadableTableError as error:
            raise NotTheSameError(str(error)) from error
        ours = plan.file_fields[field.name].default if field.name in plan.file_fields else None
        if theirs != ours:
            raise NotTheSameError(
                f"in files without its column {field.name!r}, it is {theirs or 'null'} in Spark, and "
                f"{ours or 'null'} in {plan.table!r}"
            )


def is_of_serde(request: Columns) -> bool:
    """Return whether Spark reads a table through one of Hive's SerDes."""
    return _class_name(request) == _OF_SERDES


def serde_of(spark: SparkSession, jtable: Any) -> dict[str, str]:
    """Return the format options of a table that Spark reads through one of Hive's SerDes.

    Args:
        spark: A session of the application.
        jtable: The JVM's entry of the table in the catalog.

    Raises:
        NotTheSameError: The SerDe is not one of text.
    """
    catalog = SparkCatalog(spark)
    try:
        fields = definition_of(catalog.described(jtable), catalog.value_of).fields
        options: dict[str, str] = fields.get("format_options", {})
        if "serde" in options:
            return checked_format_options(fields["format"], options)
    except (UnreadableTableError, ValueError) as error:
        raise NotTheSameError(str(error)) from error
    raise NotTheSameError(f"Spark reads it through Hive's SerDe of {fields['format']}")


def _check_format(plan: Plan, request: Columns, partition: StructType) -> None:
    format_ = _FORMATS.get(_class_name(request))
    if format_ != plan.format:
        raise NotTheSameError(
            f"Spark reads it as {format_ or request.format}, and {plan.table!r} is {plan.format}"
        )
    options = request.options
    if plan.format in _TYPED:
        in_zone = any("timestamp" in field.dataType.simpleString() for field in partition)
        without_effect = {_MERGED} if in_zone else {_MERGED, _ZONE}
        options = {name: options[name] for name in options if name.lower() not in without_effect}
    check_options(plan, options)


def _class_name(request: Columns) -> str:
    return request.format.rpartition(".")[2].rpartition("$")[2]


def check_options(plan: Plan, options: Mapping[str, str]) -> None:
    """Refuse options of a read that the table does not have, unless they do not change its rows."""
    ours = {name.lower(): value for name, value in plan.format_options.items()}
    theirs = {name.lower(): value for name, value in options.items()}
    for name in [*theirs]:
        if name in _IRRELEVANT or is_of_writers(name) or has_no_effect(plan.format, name):
            del theirs[name]
    for name in _IF_FALSE:
        for either in (ours, theirs):
            if either.get(name, "").lower() == "false":
                del either[name]
    for name in sorted(theirs.keys() | ours.keys()):
        if theirs.get(name) != ours.get(name):
            raise NotTheSameError(
                f"its option {name} is {_shown(theirs.get(name))} in Spark, and "
                f"{_shown(ours.get(name))} in {plan.table!r}"
            )


def _struct(text: str) -> StructType:
    """Return a schema of the JVM's.

    Raises:
        NotTheSameError: A column has a type of the application's own.
    """
    if '"type":"udt"' in text:
        raise NotTheSameError("a column has a user-defined type, whose class only Spark knows")
    return StructType.fromJson(json.loads(text))


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)


def _check_columns(
    plan: Plan, theirs: StructType, ours: StructType, what: str, *, ordered: bool
) -> None:
    for field in theirs:
        _check_plain(field)
    spark, windrow = _typed(theirs), _typed(ours)
    if dict(spark) == dict(windrow) and (not ordered or spark == windrow):
        return
    raise NotTheSameError(
        f"its {what} are {theirs.simpleString()} in Spark, and {ours.simpleString()} in "
        f"{plan.table!r}"
    )


def _typed(schema: StructType) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in schema]


def _check_plain(field: StructField) -> None:
    metadata = json.dumps(field.jsonValue())
    if _DECLARED in metadata and "char(" in metadata.replace("varchar(", ""):
        raise NotTheSameError(f"its column {field.name!r} is char, whose values Spark pads")
