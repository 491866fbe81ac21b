"""What an inventory knows about the values of one column in each file.

Keys are values in a form that compares fast: NumPy numbers, or Arrow arrays where no number
represents the value (strings, compared by their bytes, and decimals).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.rows import bloom_columns
from windrow_core.files.types import stored_as
from windrow_service.planner.pruning.bloom import BloomColumn, literal_type
from windrow_service.planner.pruning.expressions import Scalar

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class SortKeys:
    """The keys of n values of one type.

    Attributes:
        values: n keys; the key at an unknown position has no meaning.
        known: Whether there is a value at each position.
        type: The type of the values before they became keys.
    """

    values: Any
    known: Bools
    type: pa.DataType

    @classmethod
    def of(cls, column: pa.ChunkedArray, *, round_up: bool = False) -> SortKeys:
        """Turn a column into keys; nanoseconds become microseconds, rounded down or up."""
        known = mask(column.is_valid())
        kind = column.type
        if _is_text(kind):
            return cls(column.cast(pa.large_binary()).combine_chunks(), known, kind)
        if pt.is_decimal(kind):
            return cls(column.combine_chunks(), known, kind)
        if pt.is_boolean(kind):
            column = column.cast(pa.int8())
        elif pt.is_floating(kind):
            column = column.cast(pa.float64())
        else:
            column = column.cast(stored_as(kind))
        values = column.fill_null(0).to_numpy()
        if pt.is_timestamp(kind):
            values = _micros(values, kind.unit, round_up)
        elif pt.is_floating(kind):
            known &= ~np.isnan(values)
        return cls(values, known, kind)

    @property
    def are_integers(self) -> bool:
        """Whether keys are discrete: no value lies between two neighbouring integers."""
        return isinstance(self.values, np.ndarray) and self.values.dtype.kind in "iu"

    def less(self, literal: Scalar) -> Bools:
        """Return where `key < literal`."""
        if isinstance(self.values, np.ndarray):
            return np.asarray(self.values < self._key(literal))
        return mask(pc.less(self.values, self._arrow([literal])[0]))

    def less_equal(self, literal: Scalar) -> Bools:
        """Return where `key <= literal`."""
        if isinstance(self.values, np.ndarray):
            return np.asarray(self.values <= self._key(literal))
        return mask(pc.less_equal(self.values, self._arrow([literal])[0]))

    def less_bytes(self, literal: bytes) -> Bools:
        """Return where `key < literal`, for keys that are text."""
        return mask(pc.less(self.values, pa.scalar(literal, pa.large_binary())))

    def equal(self, other: SortKeys) -> Bools:
        """Return where two columns of keys have the same key."""
        if isinstance(self.values, np.ndarray):
            return np.asarray(self.values == other.values)
        return mask(pc.equal(self.values, other.values))

    def distance(self, other: SortKeys) -> npt.NDArray[np.uint64]:
        """Return `other - self`, for integer keys where `other` is not less."""
        # Unsigned arithmetic wraps around, so the difference is right even beyond int64.
        here, there = (
            keys.values.astype(
                np.uint64 if keys.values.dtype.kind == "u" else np.int64, copy=False
            ).view(np.uint64)
            for keys in (self, other)
        )
        return np.asarray(there - here)

    def count_less(
        self, literals: Sequence[Scalar], *, or_equal: bool, repetitive: bool = False
    ) -> Ints:
        """Return, for each key, how many literals are less than it (or equal to it).

        Args:
            literals: Distinct, ascending.
            or_equal: Whether to count a literal that equals the key.
            repetitive: Whether there are few distinct keys; this only affects speed.
        """
        if isinstance(self.values, np.ndarray):
            numbers = self._numbers(literals).astype(self.values.dtype)
            numeric: Ints = numbers.searchsorted(self.values, "right" if or_equal else "left")
            return numeric
        arrow = self._arrow(literals)
        if not repetitive:
            return _count_less(self.values, arrow, or_equal)
        coded = self.values.dictionary_encode(null_encoding="encode")
        counts: Ints = _count_less(coded.dictionary, arrow, or_equal)[coded.indices.to_numpy()]
        return counts

    def _key(self, literal: Scalar) -> Any:
        return self._numbers([literal])[0]

    def _numbers(self, literals: Sequence[Scalar]) -> npt.NDArray[Any]:
        type_ = literal_type(self.type)
        numbers = pa.array(literals, type_).cast(stored_as(type_))
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def _arrow(self, literals: Sequence[Scalar]) -> pa.Array:
        if _is_text(self.type):
            texts = [text.encode() if isinstance(text, str) else text for text in literals]
            return pa.array(texts, pa.large_binary())
        return pa.array(literals, self.type)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known about one column in n files.

    A file's values lie in `lower..upper`, except NaN, which `nan` covers.

    Attributes:
        lower: Least values; an unknown one is not a bound.
        upper: Greatest values; an unknown one is not a bound.
        value: Whether the file may hold a value that is neither null nor NaN.
        nan: Whether it may hold NaN.
        null: Whether it may hold null.
        exact: Whether `lower` and `upper` are the same value, which every row has.
        bloom: Bloom filters of the values; None if there are none, or they were not requested.
    """

    lower: SortKeys
    upper: SortKeys
    value: Bools
    nan: Bools
    null: Bools
    exact: bool
    bloom: BloomColumn | None = None


class FileFacts:
    """The columns of some of an inventory's files.

    Args:
        files: With the schema of `columns.inventory_schema`.
        rows: Which files, or None for all of them.
        evidence: Which evidence to use: partition values only, statistics as well, or Bloom filters as
            well.
    """

    def __init__(
        self,
        files: pa.Table,
        rows: Bools | None = None,
        *,
        evidence: Literal["partition", "statistics", "bloom"],
    ) -> None:
        self._files = files
        self._rows = None if rows is None or rows.all() else pa.array(rows)
        self._evidence = evidence
        self._known: dict[str, Bounds | None] = {}
        self._parts: dict[str, list[pa.ChunkedArray]] = {}
        self.file_count = len(files) if rows is None else int(np.count_nonzero(rows))

    def bounds(self, column: str) -> Bounds | None:
        """Return what is known about a column; None if nothing is known."""
        if column not in self._known:
            self._known[column] = self._read(column)
        return self._known[column]

    def _read(self, column: str) -> Bounds | None:
        at = self._files.schema.field("partition").type.get_field_index(column)
        if at >= 0:
            return self._partition(at)
        at = self._files.schema.field("stats").type.get_field_index(column)
        if at >= 0 and self._evidence != "partition":
            return self._bounds(at, self._bloom(column, self._files.schema.field("stats").type[at]))
        return None

    def _partition(self, at: int) -> Bounds:
        column = self._column("partition", at)
        keys = SortKeys.of(column)
        null = mask(column.is_null())
        up = keys
        if pt.is_timestamp(column.type) and column.type.unit == "ns":
            up = SortKeys.of(column, round_up=True)
        return Bounds(keys, up, keys.known, ~keys.known & ~null, null, exact=up is keys)

    def _bloom(self, column: str, field: pa.Field) -> BloomColumn | None:
        names = bloom_columns(self._files.schema)
        if self._evidence != "bloom" or column not in names:
            return None
        return BloomColumn(self._column("bloom", names.index(column)), field.type.field("min").type)

    def _bounds(self, at: int, bloom: BloomColumn | None) -> Bounds:
        lower = SortKeys.of(self._column("stats", at, 0))
        upper = SortKeys.of(self._column("stats", at, 1), round_up=True)
        null_count = self._column("stats", at, 2)
        null = mask(pc.greater(null_count, 0).fill_null(True))
        value = mask(pc.less(null_count, self._column("row_count")).fill_null(True))
        nan = np.zeros(self.file_count, np.bool_)
        if pt.is_floating(lower.type):
            proven = mask(self._column("stats_see_nan")) & lower.known & upper.known
            nan = value & ~proven
            if bloom is not None:
                last = nan.astype(np.int64)
                nan &= bloom.may_hold([math.nan], np.zeros_like(last), last)
        return Bounds(lower, upper, value, nan, null, exact=False, bloom=bloom)

    def _column(self, name: str, *path: int) -> pa.ChunkedArray:
        column = self._files[name]
        if path:
            # Flatten all parts at once: one part alone takes as long.
            if name not in self._parts:
                self._parts[name] = column.flatten()
            column = self._parts[name][path[0]]
        for part in path[1:]:
            column = column.flatten()[part]
        return column if self._rows is None else column.filter(self._rows)


def _count_less(keys: pa.Array, literals: pa.Array, or_equal: bool) -> Ints:
    # Sorting keys and literals together costs about as much as a search for each key, and copies no
    # literal. The sort is stable: whether equal keys or literals come first decides `or_equal`.
    if or_equal:
        order = pc.array_sort_indices(pa.concat_arrays([literals, keys])).to_numpy()
        is_literal = order < len(literals)
    else:
        order = pc.array_sort_indices(pa.concat_arrays([keys, literals])).to_numpy()
        is_literal = order >= len(keys)
    counts = np.empty(len(order), np.int64)
    counts[order] = np.cumsum(is_literal)
    return counts[len(literals) :] if or_equal else counts[: len(keys)]


def mask(column: pa.Array | pa.ChunkedArray) -> Bools:
    """Turn a boolean column into a mask; null is False."""
    filled = column.fill_null(False)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pt.is_string(type_) or pt.is_binary(type_) or pt.is_large_string(type_))


def _micros(values: Ints, unit: str, round_up: bool) -> Ints:
    if unit == "ns":
        return -(-values // 1_000) if round_up else values // 1_000
    factor = _MICROS_PER_UNIT[unit]
    # Times outside int64 are outside every literal's years too, on the same side.
    limit = np.iinfo(np.int64).max // factor
    return np.clip(values, -limit, limit) * factor
