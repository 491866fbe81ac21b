"""Counting rows by key and summing the hashes of all rows in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow_core.cards import count_text
from windrow_core.models import MAX_WRITE_KEYS, BucketSpec, KeyCounts
from windrow_core.models import Column as WireColumn
from windrow_spark.writing.errors import TooManyKeysError
from windrow_spark.writing.expressions import bucket_of, key_texts, keys_of, quoted
from windrow_spark.writing.folder_names import (
    UnfitValueError,
    refuse_two_spellings,
    wire_values,
)

# Hashes are summed in three parts; none of the sums overflows a long below 2^41 rows.
_PART_BITS = 22
_PARTS = ("windrow_hash_0", "windrow_hash_1", "windrow_hash_2")
_ROWS = "windrow_rows"
_HASHLESS = ("calendarinterval", "variant", "geometry", "geography")


@dataclass(frozen=True, slots=True)
class RowSums:
    """A count and checksum that equal sets of rows share, in any order.

    Attributes:
        rows: Number of rows.
        hash: Sum of the 64-bit hashes of the rows, modulo 2^64.
    """

    rows: int
    hash: int

    def __str__(self) -> str:
        return f"{count_text(self.rows, 'row')} with hash sum {self.hash:016x}"


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of one pass over the rows.

    Attributes:
        keys: Rows by key; None if there are no rows.
        rows: Number of rows.
        sums: Sums of all rows; None if they were not hashed.
    """

    keys: KeyCounts | None
    rows: int
    sums: RowSums | None


def count_rows(
    df: DataFrame,
    partition_columns: Sequence[WireColumn],
    buckets: BucketSpec | None,
    *,
    hashed: bool,
) -> Tally:
    """Count the rows of each key, and sum the hashes of all rows if asked to.

    Args:
        df: The rows.
        partition_columns: The table's partition columns; `df` has columns of the same names.
        buckets: The table's buckets.
        hashed: Whether to sum the hashes. If not, Spark reads only the key columns.
    """
    names = [column.name for column in partition_columns]
    keys = [key.cast("string").alias(f"k{at}") for at, key in enumerate(keys_of(df, names))]
    if buckets is not None:
        keys.append(F.expr(bucket_of(buckets)).alias("bucket"))
    totals = sums_of(df, names) if hashed else [F.count(F.lit(1)).alias(_ROWS)]
    totals_by_key = df.groupBy(*keys).agg(*totals).limit(MAX_WRITE_KEYS + 1)
    table = collected(totals_by_key)
    if len(table) > MAX_WRITE_KEYS:
        by = names if buckets is None else [*names, f"bucket of {', '.join(buckets.columns)}"]
        raise TooManyKeysError(tuple(by))
    rows = [int(count) for count in table[_ROWS].to_pylist()]
    sums = _summed(table) if hashed else None
    texts = [_texts(one, table[f"k{at}"]) for at, one in enumerate(partition_columns)]
    values = [wire_values(*one) for one in zip(partition_columns, texts, strict=True)]
    for column, some in zip(partition_columns, texts, strict=True):
        refuse_two_spellings(column, some)
    if not rows:
        return Tally(None, 0, RowSums(0, 0))
    return Tally(
        KeyCounts(
            columns=list(partition_columns) or None,
            values=values,
            buckets=None if buckets is None else table["bucket"].to_pylist(),
            rows=rows,
        ),
        sum(rows),
        sums,
    )


def _summed(table: pa.Table) -> RowSums:
    columns = (_ROWS, *_PARTS)
    return row_sums(
        {name: sum(value or 0 for value in table[name].to_pylist()) for name in columns}
    )


def _texts(column: WireColumn, values: pa.ChunkedArray) -> list[str | None]:
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError as error:
        raise UnfitValueError(
            f"partition column {column.name!r} holds bytes that are not UTF-8 text, which cannot "
            "name folders: write `hex` of it"
        ) from error


def sum_rows(df: DataFrame, partition_columns: Iterable[str]) -> RowSums:
    """Count rows and sum their hashes."""
    return row_sums(collected(df.agg(*sums_of(df, partition_columns))).to_pylist()[0])


def sums_of(df: DataFrame, partition_columns: Iterable[str]) -> list[Column]:
    """Return the aggregates for `row_sums`, which `df.observe` also accepts."""
    texts = [text for text in _hashed(df, partition_columns) if text is not None]
    parts = ["0L"] * len(_PARTS)
    if texts:
        # xxhash64 skips nulls: without their positions, (null, 1) and (1, null) would be equal.
        nulls = (f"({text}) IS NULL" for text in texts)
        whole = f"xxhash64({', '.join((*texts, *nulls))})"
        mask = (1 << _PART_BITS) - 1
        parts = [
            f"{whole} & {mask}",
            f"shiftrightunsigned({whole}, {_PART_BITS}) & {mask}",
            f"shiftrightunsigned({whole}, {2 * _PART_BITS})",
        ]
    # As SQL text: making such columns from functions takes hundreds of calls to the JVM.
    sums = [F.expr(f"sum({part})").alias(name) for part, name in zip(parts, _PARTS, strict=True)]
    return [F.expr("count(1)").alias(_ROWS), *sums]


def row_sums(totals: Mapping[str, Any]) -> RowSums:
    """Combine the parts of the sums."""
    parts = [int(totals[part] or 0) for part in _PARTS]
    whole = sum(part << (_PART_BITS * at) for at, part in enumerate(parts))
    return RowSums(int(totals[_ROWS] or 0), whole % (1 << 64))


def unhashed_columns(df: DataFrame) -> list[str]:
    """Return the columns that Spark cannot hash; only their rows are counted."""
    names = df.columns
    return [name for name, column in zip(names, _hashed(df, ()), strict=True) if column is None]


def is_hashable(type_: DataType) -> bool:
    """Return whether Spark's `xxhash64` takes a column of this type."""
    if isinstance(type_, MapType) or type_.typeName() in _HASHLESS:
        return False
    if isinstance(type_, ArrayType):
        return is_hashable(type_.elementType)
    if isinstance(type_, StructType):
        return all(is_hashable(field.dataType) for field in type_.fields)
    return True


def collected(df: DataFrame) -> pa.Table:
    """Return a few rows as an Arrow table."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    # Spark 3.5 has only this private method, which `toPandas` uses.
    batches = df._collect_as_arrow()
    if batches:
        return pa.Table.from_batches(batches)
    return pa.table({name: [] for name in df.columns})


def _hashed(df: DataFrame, partition_columns: Iterable[str]) -> list[str | None]:
    """Return the SQL to hash for each column; partition columns have the form of folder names.

    None stands for a column that cannot be hashed.
    """
    partition = set(partition_columns)
    texts: list[str | None] = []
    for field in df.schema.fields:
        if field.name in partition:
            texts += key_texts(df, [field.name])
        elif is_hashable(field.dataType):
            texts.append(quoted(field.name))
        elif isinstance(field.dataType, MapType) and _is_sortable(field.dataType):
            texts.append(f"array_sort(map_entries({quoted(field.name)}))")
        else:
            texts.append(None)
    return texts


def _is_sortable(type_: MapType) -> bool:
    return is_hashable(type_.keyType) and is_hashable(type_.valueType)
