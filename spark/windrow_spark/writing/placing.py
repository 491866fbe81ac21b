"""Repartitioning rows before they are written: one Spark partition for each planned task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from windrow_core.models import KeyFiles, SortColumn, TableInfo, WritePlan
from windrow_spark.placement import require_classic
from windrow_spark.writing.counting import sums_of
from windrow_spark.writing.expressions import (
    bucket_of,
    int_array,
    key_texts,
    keys_of,
    named,
    new_names,
    quoted,
)
from windrow_spark.writing.lookups import Lookup, key_hash, key_hashes

_BUCKET = "__windrow_bucket"

# The constants of Spark's hash of an int.
_SEED = 42
_WORD = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35


def place(df: DataFrame, plan: WritePlan, table: TableInfo | None = None) -> DataFrame:
    """Return the rows placed as planned, and sorted within each task.

    All rows are kept, including those of keys that the plan does not know. A task that runs again
    places its rows as before: placement depends only on `xxhash64` of the plan's salt columns and
    of the keys, so these columns must be stable.

    Args:
        df: Rows of a classic session, with the plan's partition and salt columns.
        plan: A write plan of any scheme.
        table: The table, for its buckets and sort columns.

    Returns:
        The columns of `df`, in `plan.tasks` Spark partitions (at most, for `coalesce`), sorted by
        the partition columns, bucket and the table's sort columns.
    """
    return place_with_bucket(df, plan, table)[0].select(*map(quoted, df.columns))


def place_with_bucket(
    df: DataFrame,
    plan: WritePlan,
    table: TableInfo | None,
    arrival: Observation | None = None,
    order: Sequence[Column] = (),
) -> tuple[DataFrame, str | None]:
    """Return the rows as `place` does, with a further column for the bucket, and its name.

    The name is None if the table has no buckets. `arrival` observes the sums of the rows after
    the shuffle, in the tasks that write them. Rows of a file are sorted by `order` where the table's
    sort columns leave it open.
    """
    require_classic(df.sparkSession)
    names = [column.name for column in plan.partition_columns]
    keys = [*map(named, names)]
    spec = table.definition.bucket_spec if table is not None else None
    if spec is None:
        bucket = None
        rows = _placed(df, plan, names, None)
    else:
        (bucket,) = new_names(df, _BUCKET)
        rows = _placed(df, plan, names, bucket_of(spec))
        rows = rows.withColumn(bucket, F.expr(bucket_of(spec)))
        keys.append(named(bucket))
    if arrival is not None:
        # Ahead of the sort, whose order Spark's writer would not see through an observation.
        rows = rows.observe(arrival, *sums_of(df, names))
    if table is not None:
        keys += _sort_order(table.definition.sort_columns, names)
    keys += order
    return (rows.sortWithinPartitions(*keys) if keys else rows), bucket


def _placed(df: DataFrame, plan: WritePlan, names: Sequence[str], bucket: str | None) -> DataFrame:
    if plan.scheme == "exact" and plan.keys is not None and plan.keys.files:
        return _placed_exactly(df, plan, plan.keys, bucket or "")
    keys = keys_of(df, names) + ([F.expr(bucket)] if bucket is not None else [])
    salts = [named(name) for name in plan.salt_columns]
    if plan.scheme == "coalesce":
        return df.coalesce(plan.tasks)
    if plan.scheme == "repartition" or not keys:
        return df.repartition(plan.tasks)
    if plan.scheme == "range_hash":
        hashes = [F.xxhash64(*keys), *([F.xxhash64(*salts)] if salts else [])]
        return df.repartitionByRange(plan.tasks, *hashes)
    if plan.scheme == "salted" and salts and plan.salts is not None:
        salt = F.pmod(F.xxhash64(*salts), F.lit(plan.salts)).cast("int")
        return df.repartition(plan.tasks, *keys, salt)
    return df.repartition(plan.tasks, *keys)


def _sort_order(columns: Iterable[SortColumn], partition_columns: Sequence[str]) -> list[Column]:
    """Return the sort order within a file, without partition columns, which are constant there."""
    constants = {name.lower() for name in partition_columns}
    order = []
    for column in columns:
        if column.name.lower() in constants:
            continue
        nulls_first = not column.descending if column.nulls_first is None else column.nulls_first
        direction = "desc" if column.descending else "asc"
        order.append(
            getattr(named(column.name), f"{direction}_nulls_{'first' if nulls_first else 'last'}")()
        )
    return order


# --- exact ------------------------------------------------------------------


def _placed_exactly(df: DataFrame, plan: WritePlan, key_files: KeyFiles, bucket: str) -> DataFrame:
    salts = ", ".join(map(quoted, plan.salt_columns))
    if not key_files.values and key_files.buckets is None:
        first_task, files = str(key_files.first_task[0]), str(key_files.files[0])
    else:
        keys = key_texts(df, (column.name for column in key_files.columns))
        # If the plan does not distinguish buckets, each key's tasks hold all of its buckets.
        keys += [bucket] if key_files.buckets is not None else []
        lookup = Lookup.of(key_hashes(df, key_files), key_hash(keys))
        first_task, files = lookup.value(key_files.first_task), lookup.value(key_files.files)
    task = first_task
    if salts and max(key_files.files) > 1:
        task += f" + CAST(pmod(xxhash64({salts}), {files}) AS INT)"
    return _repartitioned(df, plan.tasks, F.expr(task))


def _repartitioned(df: DataFrame, tasks: int, task: Column) -> DataFrame:
    if hasattr(df, "repartitionById"):
        return df.repartitionById(tasks, task)
    # Older Spark can only repartition by hash, so rows get ints whose hashes are the task numbers.
    ints = F.expr(int_array(map(int_with_hash, range(tasks))))
    return df.repartition(tasks, F.get(ints, task))


# --- the inverse of Spark's hash ---------------------------------------------


def int_with_hash(value: int) -> int:
    """Return the int whose hash in Spark is `value`; there is exactly one for each 32-bit number.

    This undoes each step of Murmur3 (x86, 32 bit, Austin Appleby) over one four-byte word in
    reverse order: multiplications by odd numbers, rotations, and xors with shifts.

    Args:
        value: From 0 to 2^32 - 1, or a signed 32-bit number as Spark shows it.

    Returns:
        A signed 32-bit number.
    """
    h = value & _WORD
    h ^= h >> 16
    h = _divided(h, _FINAL_2)
    h ^= (h >> 13) ^ (h >> 26)
    h = _divided(h, _FINAL_1)
    h ^= h >> 16
    h ^= 4
    h = _divided(h - 0xE6546B64, 5)
    h = _rotated_right(h, 13)
    k = _divided(h ^ _SEED, _C2)
    k = _divided(_rotated_right(k, 15), _C1)
    return k - (1 << 32) if k >> 31 else k


def _divided(product: int, odd: int) -> int:
    return product * pow(odd, -1, 1 << 32) & _WORD


def _rotated_right(word: int, bits: int) -> int:
    return (word >> bits | word << (32 - bits)) & _WORD
