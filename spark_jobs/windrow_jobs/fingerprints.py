"""Sums of row hashes, which tell whether two DataFrames hold the same rows in whatever order."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow.spark.writing.columns import named


@dataclass(frozen=True, slots=True)
class RowSum:
    """What rows come to.

    Attributes:
        rows: How many.
        hash: Sum of their hashes.
        unhashed: Columns that have none.
    """

    rows: int
    hash: str
    unhashed: tuple[str, ...]


def row_sum(df: DataFrame) -> RowSum:
    """Count and hash all rows of a DataFrame; a Spark job."""
    hashed = hashable_columns(df)
    columns = [named(name) for name in hashed]
    # A hash passes over nulls, so that (null, 1) and (1, null) would look alike.
    row_hash = F.xxhash64(*columns, *(column.isNull() for column in columns))
    one = row_hash.cast("decimal(20,0)")
    found = df.agg(F.count(F.lit(1)).alias("rows"), F.sum(one).alias("sum")).first()
    assert found is not None
    unhashed = tuple(name for name in df.columns if name not in hashed)
    return RowSum(int(found["rows"]), str(found["sum"] or 0), unhashed)


def hashable_columns(df: DataFrame) -> list[str]:
    """Return the columns that Spark has a hash of."""
    return [field.name for field in df.schema if _is_hashable(field.dataType)]


def _is_hashable(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _is_hashable(type_.elementType)
    if isinstance(type_, StructType):
        return all(_is_hashable(field.dataType) for field in type_)
    return not isinstance(type_, MapType) and type_.typeName() != "variant"
