"""A published inventory is checked column by column, and equals a listed one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.inventory.files import as_previous, take_inline, write
from windrow_core.files.numbered_layouts import TEXTS, with_numbers
from windrow_core.files.rows import EXCERPT_FIELDS, EXTRA_FIELDS, inventory_schema
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.look import Inventory
from windrow_service.inventory.published.accepting import accept_change, accept_inventory

MIB = 2**20
DATA = pa.schema([("x", pa.int32()), ("s", pa.string()), ("nested", pa.list_(pa.int32()))])
PARTITION = pa.schema([("month", pa.int32())])
SCHEMA = inventory_schema(DATA, PARTITION, ["x"])
FILES: dict[str, list[Any]] = {
    "path": ["month=1/a", "month=2/b", "month=2/c"],
    "size_bytes": [10, 20, 30],
    "mtime_ns": [1, 2, 3],
    "row_count": [5, 6, 7],
}
KNOWN = {"min": 1, "max": 3, "null_count": 2}


LAYOUT = '{"columns":[["x","int32"],["l",["list",["item","int32"]]]],"ids":false,"old":false}'


def published(**columns: Any) -> pa.Table:
    return pa.table({**FILES, **columns})


def with_layouts(table: pa.Table, texts: Any, numbers: list[int | None]) -> pa.Table:
    field = pa.field("layout", pa.int32(), metadata={TEXTS: json.dumps(texts)})
    return table.append_column(field, pa.array(numbers, pa.int32()))


def accept(
    table: pa.Table, previous: Inventory | None = None, columns: pa.Schema = DATA
) -> Inventory:
    return accept_inventory(
        table,
        columns=columns,
        partition_types=None,
        bucket_count=None,
        previous=as_previous(previous) if previous else None,
        bloom=["x"],
        max_bytes=MIB,
    )


def stats_of(value: Any) -> pa.Array:
    return pa.array([{"x": KNOWN}, {"x": value}, None])


def test_an_inventory_listed_here_can_be_published_elsewhere(tmp_path: Path) -> None:
    columns = {"x": [1, None], "f": [1.0, float("nan")], "s": ["a", "b"], "l": [[1], []]}
    for path in ("month=1/a", "month=2/b", "month=2/c"):
        write(tmp_path, path, columns)
    taken = take_inline(str(tmp_path), bloom=["x", "s"])

    accepted = accept_inventory(
        with_numbers(taken.files.drop(["partition", *EXCERPT_FIELDS]).take([2, 0, 1])),
        columns=taken.data_schema,
        partition_types=None,
        bucket_count=None,
        previous=None,
        bloom=["x", "s"],
        max_bytes=MIB,
    )

    assert accepted.files["layout"].null_count == 0
    assert accepted.files.equals(taken.files)
    assert (accepted.added_count, accepted.removed_count) == (3, 0)


def test_an_unchanged_file_keeps_its_layout() -> None:
    before = accept(with_layouts(published(), [LAYOUT], [0, 0, None]))

    after = accept(published(size_bytes=[10, 21, 30]), before)

    assert before.files["layout"].to_pylist() == [LAYOUT, LAYOUT, None]
    assert after.files["layout"].to_pylist() == [LAYOUT, None, None]


@pytest.mark.parametrize(
    ("texts", "numbers", "message"),
    [
        ([LAYOUT], [0, 1, None], "column 'layout', row 1: 1 is not the number of one of 1 texts"),
        ([LAYOUT], [-1, 0, 0], "column 'layout', row 0: -1 is not the number"),
        ([], [0, 0, 0], "row 0: 0 is not the number of one of 0 texts"),
        ([LAYOUT, LAYOUT], [0, 0, 0], "has a text that is no layout, or one twice"),
        (["[]"], [0, 0, 0], "has a text that is no layout"),
        (['{"columns":[["a"]],"ids":false,"old":false}'], [0, 0, 0], "no layout"),
        (['{"columns":[["a",["kind"]]],"ids":false,"old":false}'], [0, 0, 0], "no layout"),
        (['{"columns":[],"ids":0,"old":false}'], [0, 0, 0], "no layout"),
        (["[" * 100_000], [0, 0, 0], "no layout"),
        ([LAYOUT.replace("x", "\ud800")], [0, 0, 0], "no layout"),
        ([LAYOUT.replace("x", "\\ud800")], [0, 0, 0], "no layout"),
        (["9" * 10_000], [0, 0, 0], "no layout"),
        ({"a": 1}, [0, 0, 0], "is no JSON list of texts"),
        ([1], [0, 0, 0], "is no JSON list of texts"),
    ],
)
def test_layouts_that_nobody_can_have_taken_are_refused(
    texts: Any, numbers: list[int | None], message: str
) -> None:
    with pytest.raises(InvalidInventoryError) as error:
        accept(with_layouts(published(), texts, numbers))

    assert message in str(error.value)


def test_unpublished_statistics_are_unknown() -> None:
    unknown = {"min": None, "max": None, "null_count": None}

    files = accept(published(stats=stats_of(KNOWN))).files.to_pylist()

    assert [file["stats"] for file in files] == [
        {"x": KNOWN, "s": unknown},
        {"x": KNOWN, "s": unknown},
        {"x": unknown, "s": unknown},
    ]
    assert files[0]["bloom"] == {"x": None}
    assert (files[0]["hosts"], files[0]["delete_count"], files[0]["bucket"]) == ([], 0, None)


def test_unchanged_files_keep_statistics_that_are_not_published_again() -> None:
    flags = [True, False, True]
    filters = pa.array([{"x": bytes(32)}] * 3)
    before = accept(published(stats=stats_of(KNOWN), stats_see_nan=flags, bloom=filters))

    after = accept(published(size_bytes=[10, 21, 30]), before)

    kept, changed, _ = after.files.to_pylist()
    assert kept == before.files.to_pylist()[0]
    assert changed["stats"]["x"] == {"min": None, "max": None, "null_count": None}
    assert (changed["bloom"], changed["stats_see_nan"]) == ({"x": None}, False)
    assert (after.added_count, after.removed_count) == (1, 1)


def test_grouped_columns_are_kept_as_long_as_the_columns_are_the_same() -> None:
    before = accept(published(grouped_columns=[["X", "s"], [], None]))

    again = accept(published(size_bytes=[10, 20, 31]), before)
    other = accept(published(), before, columns=pa.schema([("x", pa.int16()), ("s", pa.string())]))

    assert before.files["grouped_columns"].to_pylist() == [["x", "s"], [], None]
    assert again.files["grouped_columns"].to_pylist() == [["x", "s"], [], None]
    assert other.files["grouped_columns"].to_pylist() == [None, None, None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"grouped_columns": [["x", None], [], []]},
            "column 'grouped_columns', row 0: ['x', None] holds",
        ),
        ({"size_bytes": [1, -1, -2]}, "column 'size_bytes', row 1: -1 is negative"),
        ({"mtime_ns": [1, None, 3]}, "column 'mtime_ns', row 1: None is null"),
        ({"path": ["month=1/b", "month=1/a", "month=1/b"]}, "row 2: 'month=1/b' appears twice"),
        ({"path": ["month=1/a", "month=1/../b", "c"]}, "row 1: 'month=1/../b' is not canonical"),
        ({"path": ["/" * 999, "b", "c"]}, "row 0: '" + "/" * 96 + "... is not canonical"),
        ({"hosts": pa.array([[], ["a", None], []])}, "column 'hosts', row 1: ['a', None] holds"),
        ({"stats": [1, 2, 3]}, "column 'stats' is int64; send a struct"),
        ({"stats": pa.array([{"y": KNOWN}] * 3)}, "column 'stats.y' is unknown; send x, s"),
        ({"stats": pa.array([{"x": {"mean": 1}}] * 3)}, "column 'stats.x.mean' is unknown"),
        ({"stats": pa.array([{"x": 1}] * 3)}, "column 'stats.x' is int64; send a struct"),
        ({"stats": stats_of({**KNOWN, "min": 2**40})}, "column 'stats.x.min' is int64, and not"),
        ({"stats": stats_of({**KNOWN, "min": 4})}, "'stats.x.min', row 1: 4 is greater than max"),
        ({"stats": stats_of({"null_count": -1})}, "'stats.x.null_count', row 1: -1 is negative"),
        ({"stats": stats_of({"null_count": 7})}, "row 1: 7 is greater than row_count"),
        ({"bloom": pa.array([{"s": b""}] * 3)}, "column 'bloom.s' is unknown; send x"),
        ({"bloom": pa.array([{"x": b"123"}] * 3)}, "'bloom.x', row 0: b'123' is not a filter"),
        ({"change": ["added"] * 3}, "column 'change' is unknown"),
    ],
)
def test_an_invalid_value_is_named_with_its_row_and_column(
    columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInventoryError) as error:
        accept(published(**columns))

    assert message in str(error.value)


def test_a_duplicate_column_is_refused() -> None:
    table = published()

    with pytest.raises(InvalidInventoryError, match="column 'path' appears twice"):
        accept(table.append_column("path", table["path"]))


CHANGES = ["removed", "added", "added"]


def test_a_delta_states_added_and_removed_files() -> None:
    table = published(
        path=["month=2/c", "month=2/b", "month=1/a"],
        size_bytes=[None, 20, 10],
        change=CHANGES,
        stats=pa.array([None, {"x": KNOWN}, {"x": KNOWN}]),
    )

    delta = accept_change(table, schema=SCHEMA, bucket_count=None, max_bytes=MIB)

    assert delta.added.schema == SCHEMA
    assert delta.added["path"].to_pylist() == ["month=1/a", "month=2/b"]
    assert delta.added["size_bytes"].to_pylist() == [10, 20]
    assert delta.removed.to_pylist() == [{"path": "month=2/c", "row": 0}]
    assert delta.carried == ("grouped_columns", "native_columns", "etag", *EXTRA_FIELDS, "bloom")


def test_a_delta_that_only_removes_files_needs_only_paths() -> None:
    table = pa.table({"path": ["a"], "change": ["removed"]})

    delta = accept_change(table, schema=SCHEMA, bucket_count=None, max_bytes=MIB)

    assert (len(delta.added), delta.removed["path"].to_pylist()) == (0, ["a"])


def test_a_delta_may_bring_new_values_of_a_partition_column() -> None:
    table = published(path=["month=7/a", "month=8/b", "month=9/c"], change=["added"] * 3)

    delta = accept_change(table, schema=SCHEMA, bucket_count=None, max_bytes=MIB)

    assert delta.added["partition"].to_pylist() == [{"month": month} for month in (7, 8, 9)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"change": ["added", "moved", "added"]}, "column 'change', row 1: 'moved' is not added"),
        ({"change": ["added", None, "added"]}, "column 'change', row 1: None is not added or rem"),
        ({"row_count": [-1, 1, -1]}, "column 'row_count', row 2: -1 is negative"),
        ({"path": ["month=1/a", "month=1/b", "month=1/a"]}, "row 2: 'month=1/a' appears twice"),
        (
            {"path": ["month=x/a", "month=1/b", "month=abc/c"]},
            "column 'path', row 2: folder 'month=abc': 'abc' is not a int",
        ),
        (
            {"path": ["month=1/a", "month=1/b", "month=1/day=2/c"]},
            "row 2: 'month=1/day=2/c' is not where the table's files are: month=…/name",
        ),
        ({"path": ["month=1/a", "day=1/b", "day=1/c"]}, "row 1: 'day=1/b': it is in no folder"),
        ({"path": ["month=1/a", "month/b", "month=2/c"]}, "row 1: 'month/b': folder 'month' is"),
    ],
)
def test_an_invalid_row_of_a_delta_is_named(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInventoryError) as error:
        accept_change(
            published(**{"change": CHANGES, **columns}),
            schema=SCHEMA,
            bucket_count=None,
            max_bytes=MIB,
        )

    assert message in str(error.value)


def test_a_bucket_that_the_table_does_not_have_is_named_with_its_row() -> None:
    paths = ["month=1/00000_0", "month=1/00001_0", "month=1/00009_0"]

    with pytest.raises(InvalidInventoryError, match=r"row 2: file .* has bucket 9"):
        accept_change(
            published(path=paths, change=["added"] * 3),
            schema=SCHEMA,
            bucket_count=4,
            max_bytes=MIB,
        )


def test_a_delta_without_its_column_change_is_refused() -> None:
    with pytest.raises(InvalidInventoryError, match="column 'change' is missing"):
        accept_change(published(), schema=SCHEMA, bucket_count=None, max_bytes=MIB)


def test_a_published_file_of_0_bytes_is_skipped_except_for_its_folder() -> None:
    empty = {"size_bytes": [10, 0, 30], "row_count": [5, 0, 7]}

    inventory = accept(published(**empty, path=["month=1/a", "month=x/b", "month=2/c"]))

    assert inventory.files["path"].to_pylist() == ["month=1/a", "month=2/c"]
    assert inventory.files["partition"].to_pylist() == [{"month": "1"}, {"month": "2"}]
    assert inventory.added_count == 2
