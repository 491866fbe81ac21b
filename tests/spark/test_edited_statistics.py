"""No filter loses a row of files whose statistics are missing, wrong or in an unknown order."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.files.footers import (
    BINARY,
    FALSE,
    LONG,
    MAX,
    MAX_IS_EXACT,
    MAX_VALUE,
    MIN,
    MIN_IS_EXACT,
    MIN_VALUE,
    NULL_COUNT,
    Fields,
    deprecate,
    edit_statistics,
    statistics_in,
    swap,
)
from tests.support.files.footers import edit as edit_footer
from tests.support.laws import examples
from windrow_spark.relation.division import Reader

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

WRITERS = [
    "parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)",
    "parquet-mr version 1.10.1 (build a89df8f9932b6ef6633d06069e50c9b7970bebd1)",
    "parquet-mr version 1.15.2 (build 859eac165b08f927fa14590c34bc5f476405fb68)",
    "parquet-mr",
    "impala version 2.2.0-cdh5.4.4 (build f1ac9f3)",
    "parquet-cpp version 1.5.1-SNAPSHOT",
    "parquet-cpp-arrow version 21.0.0",
    "Polars",
    "parquet-rs version 55.1.0",
]
# Writers whose bounds may be wrong in any way, but for those of integers.
UNKNOWN = [
    "github.com/parquet-go/parquet-go version v0.32.0",
    "Parquet.Net version 4.25.0 (build 687fbb462e94eddd1dc5a0aa26f33ba8e53f60e3)",
    "parquet-rs version 4.1.0",
    "an unknown writer",
    "",
]
NAN = float("nan")
UTC = dt.timezone.utc
# For each column its type, its values, and how SQL writes them.
COLUMNS: dict[str, tuple[pa.DataType, list[Any], Callable[[Any], str]]] = {
    "i": (pa.int32(), [-129, -1, 0, 1, 127, 128, 256], str),
    "u": (pa.uint32(), [0, 1, 2**31 - 1, 2**31, 2**32 - 1], str),
    "w": (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1], str),
    "f": (
        pa.float64(),
        [-1.5, -0.0, 0.0, 1.5, NAN],
        str,
    ),
    "s": (
        pa.string(),
        ["", "a", "aa", "b", "\u00e9", "\u6f22", "\U0001f600"],
        lambda text: f"'{text}'",
    ),
    "b": (
        pa.binary(),
        [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"],
        lambda value: f"X'{value.hex()}'",
    ),
    "n": (pa.decimal128(9, 2), [Decimal(n).scaleb(-2) for n in (-128, -1, 1, 127, 200)], str),
    "d": (
        pa.decimal128(38, 2),
        [Decimal(n).scaleb(-2) for n in (-128, -1, 1, 127, 128, 256)],
        lambda value: f"{value:f}",
    ),
    "t": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(year, 1, 1, tzinfo=UTC) for year in (1901, 1969, 1970, 2026)],
        lambda value: f"timestamp'{value:%Y-%m-%d %H:%M:%S}Z'",
    ),
    "y": (
        pa.date32(),
        [dt.date(year, 1, 1) for year in (1901, 1969, 1970, 2026)],
        lambda value: f"date'{value}'",
    ),
    "o": (pa.bool_(), [False, True], str),
}


def _truncate(statistics: Fields) -> None:
    """Cut bounds of text and bytes as writers do: the upper one is raised."""
    if MIN_VALUE in statistics and len(statistics[MIN_VALUE][1]) in (2, 3):
        low, high = statistics[MIN_VALUE][1], statistics[MAX_VALUE][1]
        statistics[MIN_VALUE] = BINARY, low[:1]
        statistics[MIN_IS_EXACT] = FALSE, False
        if high and high[0] < 255:
            statistics[MAX_VALUE] = BINARY, bytes([high[0] + 1])
            statistics[MAX_IS_EXACT] = FALSE, False


def _without(*fields: int) -> Callable[[Fields], None]:
    def drop(statistics: Fields) -> None:
        for field in fields:
            statistics.pop(field, None)

    return drop


def _by_signed_bytes(footer: Fields, rows: pa.Table) -> None:
    """State the deprecated bounds that a comparison of bytes with sign finds among the values."""
    for statistics, column in zip(statistics_in(footer), rows.columns, strict=True):
        deprecate(statistics)
        if pa.types.is_decimal(column.type) and column.type.precision < 19:
            continue  # stored as integers
        values = [_bytes_of(value) for value in column.to_pylist() if value is not None]
        if values and None not in values and MIN in statistics:
            ordered = sorted(values, key=lambda value: [byte ^ 128 for byte in value or b""])
            statistics[MIN], statistics[MAX] = (BINARY, ordered[0]), (BINARY, ordered[-1])


def _of_a_part(footer: Fields, rows: pa.Table) -> None:
    """State bounds of the least value alone, as if of a part, for columns that are no integers."""
    for statistics, column in zip(statistics_in(footer), rows.columns, strict=True):
        if column.type not in (pa.int32(), pa.bool_()):
            for low, high in ((MIN, MAX), (MIN_VALUE, MAX_VALUE)):
                if low in statistics:
                    statistics[high] = statistics[low]


def _bytes_of(value: Any) -> bytes | None:
    """Return how a column of this test stores text, bytes and wide decimals; None for others."""
    if isinstance(value, Decimal):
        return int(value.scaleb(2)).to_bytes(16, "big", signed=True)
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None


def _negative_nulls(statistics: Fields) -> None:
    statistics[NULL_COUNT] = LONG, -1


_SIGNED = "deprecated, by signed bytes"
_PART = "of a part of the values"
_OLD_PART = "deprecated, of a part of the values"
# What is stated wrongly on purpose, and by writers of which kind.
_WRONG = {
    _SIGNED: (_by_signed_bytes, [*WRITERS, *UNKNOWN]),
    _PART: (_of_a_part, UNKNOWN),
    _OLD_PART: (_of_a_part, UNKNOWN),
}
EDITS: dict[str, tuple[Callable[[Fields], None], bool]] = {
    "as written": (lambda _: None, True),
    "deprecated": (deprecate, False),
    _SIGNED: (lambda _: None, False),
    _PART: (lambda _: None, True),
    _OLD_PART: (deprecate, False),
    "deprecated, though orders are named": (deprecate, True),
    "truncated": (_truncate, True),
    "no order": (_without(MIN, MAX), False),
    "missing": (_without(MIN, MAX, MIN_VALUE, MAX_VALUE, NULL_COUNT), True),
    "only the lower bound": (_without(MAX, MAX_VALUE), True),
    "only the upper bound": (_without(MIN, MIN_VALUE), True),
    "swapped": (swap, True),
    "no count of nulls": (_without(NULL_COUNT), True),
    "a negative count of nulls": (_negative_nulls, True),
}


@st.composite
def edited_files(draw: st.DrawFn) -> list[tuple[pa.Table, str, str, bool]]:
    """Draw files: their rows, their writer, the edit, and whether Arrow's schema stays."""
    files = []
    for place in range(draw(st.integers(1, 3))):
        # Of three values or more, bounds by signed bytes may be wrong without being reversed.
        count = draw(st.integers(1 if place else 3, 6))
        columns = {
            name: pa.array(
                draw(st.lists(st.sampled_from([None, *values]), min_size=count, max_size=count)),
                type_,
            )
            for name, (type_, values, _) in COLUMNS.items()
        }
        edit = draw(st.sampled_from(list(EDITS if place else _WRONG)))
        _, writers = _WRONG.get(edit, (None, [*WRITERS, *UNKNOWN]))
        writer = draw(st.sampled_from(writers))
        files.append((pa.table(columns), writer, edit, draw(st.booleans())))
    return files


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Draw a condition on one or two columns."""
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from([*COLUMNS, *"d" * len(COLUMNS)]))
        _, values, sql = COLUMNS[name]
        # Lists of Windrow's SQL take no NaN.
        values = [value for value in values if value == value]
        one, other = (sql(draw(st.sampled_from(values))) for _ in range(2))
        comparisons = [f"{name} {op} {one}" for op in ("=", "<", "<=", ">", ">=", "<>")]
        others = [
            f"{name} IN ({one}, {other})",
            f"{name} BETWEEN {one} AND {other}",
            f"NOT ({name} <= {one})",
            f"{name} IS NULL",
            f"{name} IS NOT NULL",
        ]
        parts.append(draw(st.sampled_from([*comparisons, *others])))
    return draw(st.sampled_from([" AND ", " OR "])).join(parts)


READERS: tuple[Reader, ...] = ("grouped", "native")

_numbers = itertools.count()
# In `make test`; at night twenty times as many tables of as many filters.
_TABLES = 3
_FILTERS = 40


@examples(_TABLES, deadline=None)
@given(files=edited_files(), asked=st.lists(conditions(), min_size=_FILTERS, max_size=_FILTERS))
def test_no_filter_loses_a_row_whatever_the_statistics_say(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    files: list[tuple[pa.Table, str, str, bool]],
    asked: list[str],
) -> None:
    location = folder / f"table{next(_numbers)}"
    location.mkdir()
    for place, (rows, writer, edit, with_keys) in enumerate(files):
        path = location / f"{place}.parquet"
        pq.write_table(rows, path, store_decimal_as_integer=True)
        if edit in _WRONG:
            edit_footer(path, partial(_WRONG[edit][0], rows=rows))
        change, with_orders = EDITS[edit]
        edit_statistics(
            path, change, created_by=writer, with_orders=with_orders, with_keys=with_keys
        )
    table = f"edited.{location.name}"
    client.register_table(table, str(location))
    client.refresh(table)
    matches = _matches(spark.read.parquet(str(location)), asked)

    rows_of = {f"{place}.parquet": rows.num_rows for place, (rows, *_) in enumerate(files)}
    for at, condition in enumerate(asked):
        plan = client.plan(table, filter=condition)
        splits = [
            (split["path"], group["residual_filter"])
            for group in plan.groups.to_pylist()
            for split in group["splits"]
        ]
        for name, counts in matches.items():
            left = [residual for path, residual in splits if path == name]
            assert left or not counts[at], (condition, name, files)
            # Without a residual filter, every row is taken to match.
            assert None not in left or counts[at] == rows_of[name], (condition, name, files)
    for reader in READERS:
        condition, count = asked[0], sum(counts[0] for counts in matches.values())
        found = client.read(spark, table, reader=reader).where(condition).count()
        assert found == count, (reader, condition, files)


def _matches(rows: DataFrame, asked: list[str]) -> dict[str, list[int]]:
    """Return for each file how many of its rows each condition is true of, in one job.

    Spark skips no row groups here, as an aggregate is no condition.
    """
    sums = [f"count_if({condition}) AS c{at}" for at, condition in enumerate(asked)]
    found = rows.groupBy(F.input_file_name().alias("file")).agg(*map(F.expr, sums)).collect()
    return {row[0].rpartition("/")[2]: list(row[1:]) for row in found}
