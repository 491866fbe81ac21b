"""Fitting the columns of a DataFrame to those of the table that it is written to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, types
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from windrow_core.files.meanings import CHARS_KEY, beyond_layout
from windrow_core.files.schema import MAX_NAME
from windrow_core.files.types import COLUMN_TYPES
from windrow_core.models import Column, TableInfo, WriteMode
from windrow_spark.arrow_types import spark_schema
from windrow_spark.writing.errors import UnfitRowsError
from windrow_spark.writing.expressions import named
from windrow_spark.writing.folder_names import is_instant

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
# Types that Spark can partition by.
_FOLDER_TYPES = (
    DecimalType,
    *(getattr(types, row.spark[0]) for row in COLUMN_TYPES if hasattr(types, row.spark[0])),
)


def partition_columns_of(table: TableInfo) -> list[Column]:
    """Return a table's partition columns; none if it has no files yet and declares none."""
    columns = table.definition.partition_columns
    if table.current_snapshot is not None:
        return table.current_snapshot.partition_columns
    return columns if columns is not None else []


def fitted(df: DataFrame, table: TableInfo, mode: WriteMode) -> DataFrame:
    """Return the rows with the table's columns: in its order, with its spelling and types.

    Partition columns keep their types, as folders hold them as text. Only instants become text
    here, in UTC and with a `Z`. In the session's time zone they would have no offset, and the
    next reader could take them for other instants.

    Args:
        df: The rows; column names are compared without regard to case, as in Spark.
        table: The table to write to. A table without files and declared columns takes any.
        mode: `overwrite` takes any columns if the table declares none.
    """
    partition = partition_columns_of(table)
    own = {name.lower(): name for name in df.columns}
    if len(own) < len(df.columns):
        counts = Counter(name.lower() for name in df.columns)
        twice = [name for lower, name in own.items() if counts[lower] > 1]
        raise UnfitRowsError(table.name, f"they have {_listed(twice)} twice")
    columns = _data_columns(table, mode, {column.name.lower() for column in partition})
    missing = [
        column.name for column in (*(columns or ()), *partition) if column.name.lower() not in own
    ]
    if missing:
        raise UnfitRowsError(
            table.name, f"they lack {_listed(missing)}; add it with `withColumn`, null if need be"
        )
    conflicts = []
    keys = []
    for column in partition:
        name = own[column.name.lower()]
        type_ = df.schema[name].dataType
        if not _names_folders(type_, column):
            conflicts.append(_conflict(name, type_, column))
        value = folder_value(named(name), type_, column)
        keys.append(_bare(value, df.schema[name], column.name))
    lower_names = {column.name.lower() for column in partition}
    if columns is None:
        data = [
            _bare(named(name), df.schema[name], name)
            for lower, name in own.items()
            if lower not in lower_names
        ]
    else:
        lower_names |= {column.name.lower() for column in columns}
        unknown = [name for lower, name in own.items() if lower not in lower_names]
        if unknown:
            raise UnfitRowsError(
                table.name,
                f"the table has no {_listed(unknown)}; drop it, or register the table with it",
            )
        fields = spark_schema(columns).fields
        data = []
        for column, field in zip(columns, fields, strict=True):
            name = own[column.name.lower()]
            type_ = df.schema[name].dataType
            if not _goes_into(type_, field.dataType):
                conflicts.append(_conflict(name, type_, column))
            expression = named(name)
            if type_.simpleString() != field.dataType.simpleString():
                expression = expression.cast(field.dataType)
            data.append(_bare(expression, df.schema[name], column.name))
    if conflicts:
        raise UnfitRowsError(table.name, f"{'; '.join(conflicts)}; cast what differs")
    if not data:
        raise UnfitRowsError(
            table.name, "they only have partition columns, which files do not hold"
        )
    rows = df.select(*data, *keys)
    _check_readable(table.name, rows.schema)
    return rows


def _bare(value: SparkColumn, field: StructField, name: str) -> SparkColumn:
    """Return a value without the CHAR or VARCHAR mark, which would make readers pad it again."""
    metadata = {key: value for key, value in field.metadata.items() if key != CHARS_KEY}
    return value.alias(name, metadata=metadata)


def _check_readable(table: str, rows: StructType) -> None:
    """Check that a refresh will accept files of these rows."""
    faults = [
        f"{name!r} is of type {meaning}, which cannot be read here"
        for name, meaning in beyond_layout(rows.jsonValue()).items()
    ]
    faults += [
        f"the name of column {name[:40]!r} has {len(name):,} characters, not 1 to {MAX_NAME:,}"
        for name in rows.names
        if not 0 < len(name) <= MAX_NAME
    ]
    if faults:
        raise UnfitRowsError(table, f"{'; '.join(faults)}; cast, rename or drop them")


def _data_columns(
    table: TableInfo, mode: WriteMode, partition_columns: set[str]
) -> list[Column] | None:
    columns = table.definition.columns
    if columns is None:
        snapshot = table.current_snapshot
        if mode == "overwrite" or snapshot is None or not snapshot.file_count:
            return None
        columns = snapshot.columns
    return [column for column in columns if column.name.lower() not in partition_columns]


def _names_folders(type_: DataType, column: Column) -> bool:
    """Return whether values of a type can name the folders of a partition column."""
    if not isinstance(type_, _FOLDER_TYPES):
        return False
    # The text of dates and local times never has an offset.
    return not (is_instant(column) and isinstance(type_, (DateType, TimestampNTZType)))


def folder_value(value: SparkColumn, type_: DataType, column: Column) -> SparkColumn:
    """Return a value of a partition column with a type whose text can name its folder."""
    if isinstance(type_, NullType):
        return value.cast("string")
    if column.type == "timestamp_ntz" and isinstance(type_, TimestampType):
        # As Spark spells it: the local time of the session.
        return value.cast(TimestampNTZType())
    if not (is_instant(column) and isinstance(type_, TimestampType)):
        return value
    # Without going through local time, in which an hour repeats each autumn.
    seconds = (F.unix_micros(value) / F.lit(1_000_000).cast("decimal(7,0)")).cast("decimal(18,6)")
    epoch = F.lit("1970-01-01").cast("timestamp_ntz")
    nothing = F.lit(0)
    in_utc = epoch + F.make_dt_interval(nothing, nothing, nothing, seconds)
    return F.concat(in_utc.cast("string"), F.lit("Z"))


def _conflict(name: str, type_: DataType, column: Column) -> str:
    return f"{name!r} is {type_.simpleString()}, but {column.type} in the table"


def _goes_into(type_: DataType, target: DataType) -> bool:
    """Return whether every value of a type also has the wanted type, without any change."""
    if type_.simpleString() == target.simpleString() or isinstance(type_, NullType):
        return True
    if isinstance(type_, _INTEGERS) and isinstance(target, _INTEGERS):
        return _INTEGERS.index(type(type_)) < _INTEGERS.index(type(target))
    if isinstance(type_, DecimalType) and isinstance(target, DecimalType):
        whole, target_whole = type_.precision - type_.scale, target.precision - target.scale
        return bool(target_whole >= whole and target.scale >= type_.scale)
    return isinstance(type_, FloatType) and isinstance(target, DoubleType)


def _listed(names: Sequence[str]) -> str:
    word = "column" if len(names) == 1 else "columns"
    return f"{word} {', '.join(repr(name) for name in names)}"
