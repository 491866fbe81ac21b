"""The keys of a write: given by a caller, or taken from a table's files or its last write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.models import MAX_WRITE_KEYS, Column, KeyCounts, KeyReport, Scalar
from windrow_service.inventory.spark_types import arrow_type
from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.errors import InvalidKeysError, UnhashableTypeError
from windrow_service.planner.writes.key_values import column_of, numbered
from windrow_service.planner.writes.murmur3 import Words, hash_columns, hash_int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """Distinct keys, side by side in columns.

    Attributes:
        columns: The partition columns.
        values: The values of each column, typed.
        buckets: The bucket of each key; None if the table has no buckets.
        rows: Number of rows of each key.
        raw: The values as they were sent; None if they were not sent.
    """

    columns: list[Column]
    values: list[pa.Array]
    buckets: Ints | None
    rows: Ints
    raw: list[list[Scalar]] | None = None

    @classmethod
    def given(cls, keys: KeyCounts, columns: list[Column]) -> KeyTable:
        """Return the keys of a request."""
        if len(columns) != len(keys.values):
            raise InvalidKeysError(
                f"keys have values for {len(keys.values)} columns, and the table is partitioned by "
                f"{len(columns)} ({', '.join(column.name for column in columns) or 'none'}): give "
                "one list of values for each"
            )
        table = cls(
            columns=columns,
            values=_typed(columns, keys.values),
            buckets=None if keys.buckets is None else np.array(keys.buckets, np.int64),
            rows=np.array(keys.rows, np.int64),
            raw=keys.values,
        )
        table._refuse_repeated()
        return table

    @classmethod
    def reported(cls, keys: KeyReport) -> KeyTable:
        """Return the keys of an earlier write."""
        return cls(
            columns=keys.columns,
            values=_typed(keys.columns, keys.values),
            buckets=None,
            rows=np.array(keys.rows, np.int64),
            raw=keys.values,
        )

    @classmethod
    def of_files(cls, files: pa.Table, columns: list[Column], *, is_bucketed: bool) -> KeyTable:
        """Count the rows of each partition, and bucket, of an inventory."""
        if files["row_count"].null_count:
            raise InvalidKeysError(
                "the number of rows of the table's files is not known: count the rows to write"
            )
        values = partition_values(files)
        buckets = files["bucket"].fill_null(0).to_numpy().astype(np.int64) if is_bucketed else None
        by = values if buckets is None else [*values, pa.array(buckets)]
        number, count = numbered(by, len(files))
        _, first = np.unique(number, return_index=True)
        rows = np.bincount(number, files["row_count"].to_numpy(), count).astype(np.int64)
        return cls(
            columns=columns,
            values=[column.take(pa.array(first)) for column in values],
            buckets=None if buckets is None else buckets[first],
            rows=rows,
        )

    def over_buckets(self, count: int) -> KeyTable:
        """Return the keys divided over `count` buckets, each with an even share of the rows."""
        size = len(self)
        if size * count > MAX_WRITE_KEYS:
            raise InvalidKeysError(
                f"{size:,} partitions of {count:,} buckets each are more than {MAX_WRITE_KEYS:,} "
                "keys: write fewer partitions at a time"
            )
        again = pa.array(np.repeat(np.arange(size), count))
        rows, extra = np.divmod(np.repeat(self.rows, count), count)
        buckets = np.tile(np.arange(count, dtype=np.int64), size)
        return replace(
            self,
            values=[column.take(again) for column in self.values],
            buckets=buckets,
            rows=rows + (buckets < extra),
            raw=None,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def hashes(self) -> Words | None:
        """Return Spark's hash of partition columns and bucket; None if it cannot be known."""
        try:
            hashes = hash_columns(self.values, len(self))
        except UnhashableTypeError:
            return None
        if self.buckets is None:
            return hashes
        return hash_int(self.buckets.astype(np.int32), hashes)

    def travelling(self) -> list[list[Scalar]]:
        """Return the values in the form that they have in JSON."""
        return self.raw if self.raw is not None else [_scalars(column) for column in self.values]

    def _refuse_repeated(self) -> None:
        by = self.values if self.buckets is None else [*self.values, pa.array(self.buckets)]
        number, count = numbered(by, len(self))
        if count < len(self):
            _, first = np.unique(number, return_index=True)
            at = int(np.setdiff1d(np.arange(len(self)), first)[0])
            text = ", ".join(
                f"{column.name}={values[at].as_py()}"
                for column, values in zip(self.columns, self.values, strict=True)
            )
            raise InvalidKeysError(
                f"key {at:,} ({text or 'of no columns'}) appears twice: count each key once"
            )


def partition_values(files: pa.Table) -> list[pa.Array]:
    """Return the partition values of an inventory, column by column."""
    partition = files["partition"].combine_chunks()
    return [pc.struct_field(partition, [at]) for at in range(partition.type.num_fields)]


def _typed(columns: Sequence[Column], values: Sequence[Sequence[Scalar]]) -> list[pa.Array]:
    return [
        column_of(column.name, arrow_type(column.type), of_column)
        for column, of_column in zip(columns, values, strict=True)
    ]


def _scalars(column: pa.Array) -> list[Scalar]:
    type_ = column.type
    if pt.is_boolean(type_) or pt.is_integer(type_) or pt.is_string(type_):
        values: list[Scalar] = column.to_pylist()
        return values
    if pt.is_floating(type_):
        # JSON has no numbers for values that are not finite.
        numbers = column.to_pylist()
        return [str(one) if one is not None and one - one != 0 else one for one in numbers]
    texts: list[Scalar] = column.cast(pa.string()).to_pylist()
    return texts
