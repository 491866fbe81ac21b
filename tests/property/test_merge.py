"""Laws of reading a group: every row once, in order, whatever the sizes of files and batches."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections import Counter
from functools import cmp_to_key
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.plans.plans import group_of
from windrow_tables.executor.batches import bounded
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec, SortKey

SETTINGS = examples(40)

SCHEMA = pa.schema(
    [("f", pa.float64()), ("s", pa.string()), ("i", pa.int16()), ("row", pa.int64())]
)
ROW = st.tuples(
    st.none() | st.sampled_from([0.0, -0.0, 1.0, -2.5, math.nan, math.inf, -math.inf]),
    st.none() | st.sampled_from(["", "a", "b", "é", "\uffff", "\U00010000"]),
    st.none() | st.integers(-2, 2) | st.sampled_from([-(2**15), 2**15 - 1]),
)
FILES = st.lists(st.lists(ROW, max_size=12), max_size=6)
KEYS = st.lists(
    st.builds(
        SortKey,
        name=st.sampled_from(["f", "s", "i", "p"]),
        descending=st.booleans(),
        nulls_first=st.booleans(),
    ),
    min_size=1,
    max_size=3,
)
# Small enough that every path is taken: runs spilled, files streamed, batches cut.
LIMITS = st.builds(
    ReadLimits,
    max_batch_rows=st.sampled_from([1, 3, 1000]),
    max_batch_bytes=st.sampled_from([50, 10_000]),
    max_buffered_file_bytes=st.sampled_from([0, 10_000_000]),
    max_decoded_at_once_bytes=st.sampled_from([0, 1_300, 10_000_000]),
    max_run_bytes=st.sampled_from([1, 200, 10_000]),
)


def compare(keys: list[SortKey], left: dict[str, Any], right: dict[str, Any]) -> int:
    """Compare two rows as Spark's `ORDER BY` does."""
    for key in keys:
        a, b = left[key.name], right[key.name]
        if a is None and b is None:
            continue
        if a is None or b is None:
            return (-1 if a is None else 1) * (1 if key.nulls_first else -1)
        if isinstance(a, str):
            a, b = a.encode(), b.encode()
        if isinstance(a, float):
            a, b = (
                (math.isnan(a), 0.0 if math.isnan(a) else a),
                (
                    math.isnan(b),
                    0.0 if math.isnan(b) else b,
                ),
            )
        if a != b:
            return (-1 if a < b else 1) * (-1 if key.descending else 1)
    return 0


def write_files(
    folder: str, files: list[list[tuple[Any, ...]]], keys: list[SortKey]
) -> list[dict[str, Any]]:
    """Write each list of rows as a sorted file of its own partition; return all rows."""
    every: list[dict[str, Any]] = []
    for number, cells in enumerate(files):
        value = None if number % 4 == 3 else number % 2
        rows = [
            {"f": f, "s": s, "i": i, "p": value, "row": len(every) + n}
            for n, (f, s, i) in enumerate(cells)
        ]
        rows.sort(key=cmp_to_key(lambda a, b: compare(keys, a, b)))
        every += rows
        name = "__HIVE_DEFAULT_PARTITION__" if value is None else value
        path = Path(folder, f"p={name}", f"{number}.parquet")
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, row_group_size=5)
    return every


def spec_of(folder: str, keys: list[SortKey], limits: ReadLimits) -> ReadSpec:
    return ReadSpec(
        table="t",
        location=folder,
        data=SCHEMA,
        hidden=pa.schema([]),
        partition=pa.schema([("p", pa.int32())]),
        output=("f", "s", "i", "p", "row"),
        sort=tuple(keys),
        limits=limits,
    )


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


@SETTINGS
@given(FILES, KEYS, LIMITS)
def test_a_group_of_sorted_files_returns_every_row_once_and_in_order(
    files: list[list[tuple[Any, ...]]], keys: list[SortKey], limits: ReadLimits
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected = write_files(folder, files, keys)
        spec = spec_of(folder, keys, limits)

        batches = list(read_group(spec, group_of(folder, {"p": "int"}), None))

    got = [row for batch in batches for row in batch.to_pylist()]
    assert counted(got) == counted(expected)
    assert all(compare(keys, a, b) <= 0 for a, b in pairwise(got))


@SETTINGS
@given(FILES, LIMITS)
def test_a_group_without_sort_columns_returns_every_row_once_in_split_order(
    files: list[list[tuple[Any, ...]]], limits: ReadLimits
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected = write_files(folder, files, [])
        spec = spec_of(folder, [], limits)
        group = group_of(folder, {"p": "int"})

        got = [row for batch in read_group(spec, group, None) for row in batch.to_pylist()]

    in_order = [
        row
        for path in group.column("path").to_pylist()
        for row in _rows_of(expected, files, int(Path(path).stem))
    ]
    assert repr(got) == repr(in_order)


def _rows_of(
    rows: list[dict[str, Any]], files: list[list[tuple[Any, ...]]], number: int
) -> list[dict[str, Any]]:
    start = sum(map(len, files[:number]))
    ordered = ("f", "s", "i", "p", "row")
    return [{k: row[k] for k in ordered} for row in rows[start : start + len(files[number])]]


@SETTINGS
@given(FILES, KEYS, LIMITS, st.integers(-3, 3))
def test_a_residual_filter_keeps_matching_rows_whatever_the_limits(
    files: list[list[tuple[Any, ...]]], keys: list[SortKey], limits: ReadLimits, bound: int
) -> None:
    residual = {"op": "ge", "column": "i", "value": bound}
    with tempfile.TemporaryDirectory() as folder:
        expected = write_files(folder, files, keys)
        spec = spec_of(folder, keys, limits)
        group = group_of(folder, {"p": "int"})

        got = [r for b in read_group(spec, group, residual) for r in b.to_pylist()]
        usual = dataclasses.replace(spec, limits=ReadLimits())
        in_usual_batches = [r for b in read_group(usual, group, residual) for r in b.to_pylist()]

    kept = [row for row in expected if row["i"] is not None and row["i"] >= bound]
    assert counted(got) == counted(in_usual_batches) == counted(kept)


@SETTINGS
@given(
    st.lists(st.lists(st.text("ab", max_size=40), max_size=20), max_size=5),
    st.integers(1, 8),
    st.integers(1, 200),
)
def test_batches_stay_within_their_bounds_and_are_never_empty(
    columns: list[list[str]], max_rows: int, max_bytes: int
) -> None:
    tables = [pa.table({"s": pa.array(values, pa.string())}) for values in columns]

    batches = list(bounded(tables, max_rows, max_bytes))

    assert [s for b in batches for s in b.column(0).to_pylist()] == list(
        chain.from_iterable(columns)
    )
    for batch in batches:
        assert 0 < batch.num_rows <= max_rows
        # A batch of one row may exceed the bound, as rows are not divided.
        assert batch.num_rows == 1 or batch.nbytes <= max_bytes
