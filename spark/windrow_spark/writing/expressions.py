"""Spark expressions of a table's keys: its partition columns, and its buckets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from windrow_core.models import BucketSpec

# Types whose values are in the same folder exactly if they are equal. Values of other types are
# compared by the text in the folder's name.
_COMPARED_AS_THEY_ARE = (
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    DateType,
    DecimalType,
)


def named(name: str) -> Column:
    """Return the column with exactly this name, whatever characters it contains."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """Return a name quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def key_of(sql: str, type_: DataType) -> str:
    """Return the SQL of a partition column's value such that it is equal for all rows of a folder.

    The empty string and null share the folder `__HIVE_DEFAULT_PARTITION__`: both become null.
    """
    if isinstance(type_, _COMPARED_AS_THEY_ARE):
        return sql
    text = sql if isinstance(type_, StringType) else f"CAST({sql} AS STRING)"
    return f"CASE WHEN {text} != '' THEN {text} END"


def key_texts(df: DataFrame, names: Iterable[str]) -> list[str]:
    """Return `key_of` for columns of a DataFrame."""
    return [key_of(quoted(name), df.schema[name].dataType) for name in names]


def keys_of(df: DataFrame, names: Iterable[str]) -> list[Column]:
    """Return `key_of` for columns of a DataFrame, as columns."""
    return [F.expr(text) for text in key_texts(df, names)]


def bucket_of(spec: BucketSpec) -> str:
    """Return the SQL of the bucket that Spark puts a row in, an int."""
    return f"CAST(pmod(hash({', '.join(map(quoted, spec.columns))}), {spec.count}) AS INT)"


def int_array(numbers: Iterable[int]) -> str:
    """Return the SQL of a constant array of ints; a single literal is faster to parse."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<INT>)"


def new_names(df: DataFrame, *models: str) -> Sequence[str]:
    """Return names like the wanted ones that are not yet columns of the DataFrame."""
    columns = {name.lower() for name in df.columns}
    names = []
    for name in models:
        while name.lower() in columns:
            name += "_"
        names.append(name)
    return names
