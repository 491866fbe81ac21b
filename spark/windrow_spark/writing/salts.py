"""Salt columns, whose hash may divide the rows of a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructType

from windrow_core.models.writes import MAX_SALT_COLUMNS
from windrow_spark.writing.counting import is_hashable
from windrow_spark.writing.errors import NoSaltError, UnstableColumnError
from windrow_spark.writing.lineage import Unstable


def check_keys(names: Iterable[str], unstable: dict[str, Unstable]) -> None:
    """Make sure that partition and bucket columns have the same values at every attempt.

    The current time is allowed, since it is constant within a query.

    Args:
        names: Partition and bucket columns.
        unstable: The unstable columns that `lineage_of` found.
    """
    for name in names:
        cause = unstable.get(name)
        if cause is not None and not cause.per_query:
            raise UnstableColumnError(name, "a partition or bucket column", cause.reason)


def check_salts(df: DataFrame, names: Iterable[str], unstable: dict[str, Unstable]) -> None:
    """Make sure that columns can be salts.

    Args:
        df: The rows.
        names: Names of the columns.
        unstable: The unstable columns that `lineage_of` found.
    """
    for name in names:
        reason = _refusal(name, df.schema[name].dataType, unstable)
        if reason is not None:
            raise UnstableColumnError(name, "a salt", reason)


def default_salts(
    df: DataFrame, partition_columns: Sequence[str], unstable: dict[str, Unstable]
) -> list[str]:
    """Return at most 64 columns that can be salts and are not partition columns."""
    refusals: list[tuple[str, str]] = []
    fit: list[str] = []
    for field in df.schema.fields:
        if field.name in partition_columns:
            continue
        reason = _refusal(field.name, field.dataType, unstable)
        if reason is None:
            fit.append(field.name)
        else:
            refusals.append((field.name, reason))
    if not fit:
        raise NoSaltError(tuple(refusals))
    return fit[:MAX_SALT_COLUMNS]


def _refusal(name: str, type_: DataType, unstable: dict[str, Unstable]) -> str | None:
    if name in unstable:
        return unstable[name].reason
    if not is_hashable(type_):
        return f"Spark has no hash of {type_.simpleString()}"
    if _holds_floats(type_):
        return "it holds float or double numbers, whose last digits may differ between attempts"
    return None


def _holds_floats(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _holds_floats(type_.elementType)
    if isinstance(type_, StructType):
        return any(_holds_floats(field.dataType) for field in type_.fields)
    return isinstance(type_, (FloatType, DoubleType))
