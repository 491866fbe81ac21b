"""Keys that rows are found by: which column they mean, and which values they equal."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windrow_core.files.keys import UnfitKeysError, fitted, key_column, values_at
from windrow_tables.erasing.task import new_name

USERS = pa.list_(pa.struct([("id", pa.string()), ("n", pa.float64())]))
TYPES = {
    "id": pa.int32(),
    "name": pa.string(),
    "payload": pa.struct([("user", pa.struct([("id", pa.int64())])), ("users", USERS)]),
    "tags": pa.list_(pa.string()),
    "price": pa.decimal128(10, 2),
    "day": pa.date32(),
    "raw": pa.binary(),
    "x.y": pa.string(),
    "x": pa.struct([("y", pa.int64())]),
    "rate": pa.float64(),
    "seen": pa.timestamp("us", "UTC"),
    "counts": pa.map_(pa.string(), pa.int64()),
}


@pytest.mark.parametrize(
    ("path", "column", "fields", "type_"),
    [
        ("id", "id", (), pa.int32()),
        ("payload.user.id", "payload", ("user", "id"), pa.int64()),
        ("payload.users.id", "payload", ("users", "id"), pa.string()),
        ("tags", "tags", (), pa.list_(pa.string())),
        # A column whose own name is the whole path comes first.
        ("x.y", "x.y", (), pa.string()),
    ],
)
def test_a_path_leads_to_a_column(
    path: str, column: str, fields: tuple[str, ...], type_: pa.DataType
) -> None:
    found = key_column(TYPES, path)

    assert (found.column, found.fields, found.type) == (column, fields, type_)
    assert found.is_plain == (path in ("id", "x.y"))


@pytest.mark.parametrize(
    "path", ["none", "payload", "payload.user", "payload.none", "id.x", "rate", "seen", "counts"]
)
def test_a_path_that_leads_to_no_keys_is_refused(path: str) -> None:
    with pytest.raises(UnfitKeysError):
        key_column(TYPES, path)


@pytest.mark.parametrize(
    ("path", "keys", "values"),
    [
        ("id", pa.array([3, 1, None, 3]), [1, 3]),
        ("id", pa.array(["7", "-3"]), [-3, 7]),
        # No value of the column can equal these.
        ("id", pa.array([2**40, 5]), [5]),
        ("id", pa.array(["9" * 60, "5"]), [5]),
        ("id", pa.array([2**63 + 5, 5], pa.uint64()), [5]),
        ("name", pa.array(["007", "7"]), ["007", "7"]),
        ("tags", pa.array(["b", "a"], pa.large_string()), ["a", "b"]),
        ("price", pa.array(["7.5", "7.505", "8", "12345678901"]), [Decimal("7.50"), Decimal(8)]),
        ("price", pa.array([7]), [Decimal(7)]),
        ("day", pa.array(["2026-11-01"]), [date(2026, 11, 1)]),
        ("raw", pa.array([b"\xff"]), [b"\xff"]),
        ("id", pa.nulls(2), []),
    ],
)
def test_keys_get_the_type_of_their_column(path: str, keys: pa.Array, values: list[Any]) -> None:
    assert fitted(keys, key_column(TYPES, path)).to_pylist() == values


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        # A number has many texts, and a text is one.
        ("name", pa.array([7])),
        ("id", pa.array(["secret-007"])),
        ("id", pa.array(["007"])),
        ("id", pa.array([7.0])),
        ("day", pa.array(["1.11.2026"])),
        ("raw", pa.array(["ff"])),
        ("price", pa.array(["7,5"])),
    ],
)
def test_keys_of_another_kind_are_refused_without_showing_one(path: str, keys: pa.Array) -> None:
    with pytest.raises(UnfitKeysError) as refusal:
        fitted(keys, key_column(TYPES, path))

    assert "secret" not in str(refusal.value)


def test_lists_on_the_way_are_entered() -> None:
    rows: list[Any] = [
        {"users": [{"id": "a"}, {"id": None}]},
        None,
        {"users": None},
        {"users": []},
        {"users": [{"id": "z"}]},
    ]

    values, at = values_at(pa.array(rows, TYPES["payload"]), ["users", "id"])

    assert (values.to_pylist(), at.to_pylist()) == (["a", None, "z"], [0, 0, 4])
    values, at = values_at(pa.array([["x"], None, ["y", "x"]]), [])
    assert (values.to_pylist(), at.to_pylist()) == (["x", "y", "x"], [0, 2, 2])


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("part-0-uuid-c000.snappy.parquet", "part-0-uuid-c000.erased-aaaaaaaa.snappy.parquet"),
        ("part-0-u_00003.c000.parquet", "part-0-u_00003.erased-aaaaaaaa.c000.parquet"),
        ("part-0.erased-bbbbbbbb.parquet", "part-0.erased-aaaaaaaa.parquet"),
        ("000003_0", "000003_0.erased-aaaaaaaa"),
        ("000003_0.erased-bbbbbbbb", "000003_0.erased-aaaaaaaa"),
    ],
)
def test_a_new_name_sorts_and_is_bucketed_like_the_old_one(name: str, after: str) -> None:
    assert new_name(name, "a" * 8) == after
