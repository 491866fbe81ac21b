"""Look up a plan's values for a row's key by an SQL expression; a join would take another job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow_core.models import KeyFiles
from windrow_spark.writing.counting import collected
from windrow_spark.writing.expressions import int_array, key_of

# A bucket finds its shift with a chance of at least one half each time.
_SHIFTS = range(1, 48)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A perfect hash table: each of the known keys has a slot of its own.

    The hash of a key determines its bucket in the hash table. A bucket with n keys has n^2 slots,
    and a shift of the hash under which no two of its keys share a slot.

    Attributes:
        keys: For each slot, the number of the key that it belongs to. Unused slots are given to
            all keys in turn, so that rows of unknown keys are spread.
        slot: SQL of a row's slot.
    """

    keys: np.ndarray
    slot: str

    @classmethod
    def of(cls, hashes: np.ndarray, key_hash: str) -> Lookup:
        """Return the table of keys.

        Args:
            hashes: The 64-bit hash of each key; among keys with equal hashes, the first is found.
            key_hash: SQL of the hash of a row's key.
        """
        distinct, number = np.unique(hashes, return_index=True)
        count = len(distinct)
        bucket = np.mod(distinct, count)
        widths = np.maximum(np.bincount(bucket, minlength=count) ** 2, 1)
        starts = np.cumsum(widths) - widths
        shifts = np.zeros(count, np.int64)
        slots = np.zeros(count, np.int64)
        left = np.arange(count)
        for shift in _SHIFTS:
            of = bucket[left]
            shifts[of] = shift
            slots[left] = starts[of] + _shifted(distinct[left], shift) % widths[of]
            _, at, sizes = np.unique(slots[left], return_inverse=True, return_counts=True)
            left = left[np.isin(of, of[sizes[at] > 1])]
            if not len(left):
                break
        keys = np.arange(widths.sum()) % len(hashes)
        keys[slots] = number
        own = f"CAST(pmod({key_hash}, {count}L) AS INT)"
        start, shift_of, width = (
            f"get({int_array(of_bucket.tolist())}, {own})" for of_bucket in (starts, shifts, widths)
        )
        within = f"pmod(shiftrightunsigned({key_hash}, {shift_of}), {width})"
        return cls(keys, f"{start} + CAST({within} AS INT)")

    def value(self, values: Sequence[int]) -> str:
        """Return the SQL of an int that belongs to a row's key.

        Args:
            values: One for each key, in the order of the hashes that were given to `of`.
        """
        return f"get({int_array(np.asarray(values)[self.keys].tolist())}, {self.slot})"


def key_hash(keys: Sequence[str]) -> str:
    """Return the SQL of the hash of a key, given the SQL of each of its values."""
    # xxhash64 skips nulls: without their positions, (null, 1) and (1, null) would be equal.
    return f"xxhash64({', '.join([*keys, *(f'({key}) IS NULL' for key in keys)])})"


def key_hashes(df: DataFrame, key_files: KeyFiles) -> np.ndarray:
    """Return `key_hash` of each key of a plan.

    Args:
        df: The rows, for the types of their columns.
        key_files: The keys.
    """
    keys, columns = [], {}
    for at, (column, values) in enumerate(zip(key_files.columns, key_files.values, strict=True)):
        type_ = df.schema[column.name].dataType
        keys.append(key_of(f"try_cast(key_{at} AS {type_.simpleString()})", type_))
        columns[f"key_{at}"] = pa.array(map(_text, values), pa.string())
    if key_files.buckets is not None:
        keys.append("bucket")
        columns["bucket"] = pa.array(key_files.buckets, pa.int32())
    rows = _rows(df, pa.table(columns)).select(F.expr(key_hash(keys)).alias("hash"))
    hashes: np.ndarray = collected(rows)["hash"].to_numpy()
    return hashes


def _rows(df: DataFrame, table: pa.Table) -> DataFrame:
    if hasattr(df, "toArrow"):
        # Spark evaluates expressions of a local table while planning, without a job.
        return df.sparkSession.createDataFrame(table)
    types = {name: "int" if name == "bucket" else "string" for name in table.column_names}
    schema = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    # One Spark partition keeps the order.
    return df.sparkSession.createDataFrame(rows, schema, verifySchema=False).coalesce(1)


def _shifted(hashes: np.ndarray, bits: int) -> np.ndarray:
    quotient: np.ndarray = (hashes.view(np.uint64) >> np.uint64(bits)).astype(np.int64)
    return quotient


def _text(value: bool | int | float | str | None) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
