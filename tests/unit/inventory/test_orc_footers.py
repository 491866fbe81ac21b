"""What a refresh learns from the footers of ORC files."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from tests.support.files.orc_files import ZLIB, deflated, edit_statistics, file_of, footer_of, write
from tests.unit.inventory.files import as_previous, stats_of, take_inline
from windrow_core.files.errors import (
    ColumnNameError,
    SchemaConflictError,
    UnreadableFootersError,
    UnreadableTypeError,
)
from windrow_core.files.formats import ORC
from windrow_core.files.types import spark_type
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.look import Inventory
from windrow_service.orc.columns import Kind
from windrow_service.planner.pruning.bloom import bloom_filter

FIXTURES = Path(__file__).parents[2] / "fixtures" / "apache-orc"
take = partial(take_inline, file_format=ORC)


@pytest.fixture(scope="module")
def processes() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(2) as executor:
        yield executor


def native_columns(inventory: Inventory) -> dict[str, list[str]]:
    files = inventory.files.select(["path", "native_columns"]).to_pylist()
    return {file["path"]: file["native_columns"] for file in files}


def types_of(inventory: Inventory) -> dict[str, str]:
    return {field.name: spark_type(field.type) for field in inventory.data_schema}


def put(location: Path, path: str, content: bytes) -> None:
    location.mkdir(parents=True, exist_ok=True)
    (location / path).write_bytes(content)


def test_a_footer_states_rows_stripes_and_bounds(tmp_path: Path) -> None:
    rows = 60_000
    ids = pa.array(np.random.default_rng(1).permutation(rows))
    table = pa.table(
        {
            "id": ids,
            "flag": pa.array([True, None] * (rows // 2)),
            "off": pa.array([False] * rows),
            "name": pa.array([None if at % 2 else f"n{at:06d}" for at in range(rows)]),
            "price": pa.array([Decimal("-1.50"), Decimal("2.25")] * (rows // 2)),
            "day": pa.array([dt.date(2026, 1, 1), dt.date(2026, 2, 1)] * (rows // 2)),
            "nothing": pa.nulls(rows, pa.int32()),
            "blob": pa.array([b"\xff"] * rows),
        }
    )
    write(tmp_path, "f.orc", table, stripe_size=2**14, compression="zstd")

    found = take(str(tmp_path))

    (file,) = found.files.to_pylist()
    assert file["row_count"] == rows
    stripes = orc.ORCFile(tmp_path / "f.orc").nstripes
    offsets = file["row_group_offsets"]
    assert (len(offsets), offsets[0]) == (stripes, 3)
    assert stripes > 1
    assert offsets == sorted(offsets)
    stats = file["stats"]
    assert stats["id"] == {"min": 0, "max": rows - 1, "null_count": 0}
    assert stats["flag"] == {"min": True, "max": True, "null_count": rows // 2}
    assert stats["off"] == {"min": False, "max": False, "null_count": 0}
    assert stats["name"] == {"min": "n000000", "max": "n059998", "null_count": rows // 2}
    assert stats["price"] == {"min": Decimal("-1.50"), "max": Decimal("2.25"), "null_count": 0}
    assert stats["day"] == {
        "min": dt.date(2026, 1, 1),
        "max": dt.date(2026, 2, 1),
        "null_count": 0,
    }
    assert stats["nothing"] == {"min": None, "max": None, "null_count": rows}
    assert stats["blob"] == {"min": None, "max": None, "null_count": 0}
    assert native_columns(found) == {"f.orc": []}


@pytest.mark.parametrize(
    ("values", "bounds", "sees_nan"),
    [
        ([1.5, -0.0], (-0.0, 1.5), True),
        ([1.5, math.nan], None, False),
        ([math.nan, 1.5], None, False),
        ([math.inf, 1.0], (1.0, math.inf), False),
    ],
)
def test_bounds_of_floats_never_hide_a_nan(
    tmp_path: Path, values: list[float], bounds: tuple[float, float] | None, sees_nan: bool
) -> None:
    write(tmp_path, "f", {"x": values})

    found = take(str(tmp_path))

    (stats,) = stats_of(found, "x")
    assert found.files["stats_see_nan"].to_pylist() == [sees_nan]
    if bounds is not None:
        assert (stats["min"], stats["max"]) == bounds
    else:
        assert stats["min"] is None or not math.isnan(stats["min"])


def stated(kind: Kind, **fields: Any) -> tuple[Any, bytes]:
    """Return a footer for 5 rows that states these statistics of its one column, and its file."""
    footer = footer_of({"name": "x", "kind": kind, "precision": 10, "scale": 2}, row_count=5)
    footer.stripes.add(offset=3, row_count=5)
    footer.statistics.add(value_count=5, has_null=False)
    message = footer.statistics.add(value_count=5, has_null=False)
    for name, values in fields.items():
        for key, value in values.items():
            setattr(getattr(message, name), key, value)
    return footer, file_of(footer)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (
            Kind.STRING,
            {"strings": {"lower_bound": b"aaa", "upper_bound": b"aab"}},
            ("aaa", "aab"),
        ),
        (
            Kind.STRING,
            {"strings": {"minimum": b"a", "upper_bound": "zé".encode()[:-1]}},
            ("a", "z\U0010ffff"),
        ),
        (Kind.DECIMAL, {"decimals": {"minimum": b"-1.5", "maximum": b"99"}}, ("-1.50", "99.00")),
        (Kind.DECIMAL, {"decimals": {"minimum": b"0.001", "maximum": b"1"}}, None),
        (Kind.DECIMAL, {"decimals": {"minimum": b"1", "maximum": b"1E9999999"}}, None),
        (Kind.DECIMAL, {"decimals": {"minimum": b"what", "maximum": b"1"}}, None),
        (Kind.INT, {"integers": {"minimum": -(2**40), "maximum": 1}}, None),
        (Kind.INT, {"integers": {"minimum": 1}}, None),
        (Kind.DATE, {"dates": {"minimum": -200_000, "maximum": 0}}, ("1422-05-20", "1970-01-01")),
        (Kind.DATE, {"dates": {"minimum": -900_000, "maximum": 0}}, None),
        (Kind.TIMESTAMP, {}, None),
    ],
)
def test_bounds_are_never_narrower_than_the_footer_states(
    tmp_path: Path, kind: Kind, fields: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    put(tmp_path, "f", stated(kind, **fields)[1])

    (stats,) = stats_of(take(str(tmp_path)), "x")

    found = None if stats["min"] is None else (str(stats["min"]), str(stats["max"]))
    assert found == expected
    assert stats["null_count"] == 0


def test_nulls_are_not_counted_where_a_writer_does_not_say_whether_there_are_any(
    tmp_path: Path,
) -> None:
    footer, _ = stated(Kind.INT, integers={"minimum": 1, "maximum": 2})
    footer.statistics[1].ClearField("has_null")
    put(tmp_path, "f", file_of(footer))

    (stats,) = stats_of(take(str(tmp_path)), "x")

    assert stats == {"min": 1, "max": 2, "null_count": None}


def test_statistics_of_writers_that_mixed_up_columns_are_not_used(tmp_path: Path) -> None:
    footer, _ = stated(Kind.INT, integers={"minimum": 1, "maximum": 2})
    put(tmp_path, "f", file_of(footer, writer_version=0))

    (stats,) = stats_of(take(str(tmp_path)), "x")

    assert stats == {"min": None, "max": None, "null_count": None}


def test_bounds_that_contradict_each_other_are_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, "f.orc", {"x": [1, 2, 3]}, compression="uncompressed")

    def swap(statistics: Any) -> None:
        statistics.integers.minimum, statistics.integers.maximum = 3, 1

    edit_statistics(path, swap)

    found = take(str(tmp_path))

    assert stats_of(found, "x") == [{"min": None, "max": None, "null_count": 0}]


def test_types_are_those_of_spark(tmp_path: Path) -> None:
    inside = [{"name": "at", "kind": Kind.LONG, "catalyst": "timestamp_ntz"}]
    footer = footer_of(
        {"name": "v", "kind": Kind.VARCHAR, "length": 3},
        {"name": "old", "kind": Kind.DECIMAL},
        {"name": "d", "kind": Kind.DECIMAL, "precision": 12, "scale": 4},
        {"name": "t", "kind": Kind.TIMESTAMP, "catalyst": "timestamp"},
        {"name": "i", "kind": Kind.TIMESTAMP_INSTANT},
        {"name": "s", "kind": Kind.STRUCT, "inside": inside},
        {"name": "l", "kind": Kind.LIST, "inside": [{"name": "", "kind": Kind.BYTE}]},
        {
            "name": "m",
            "kind": Kind.MAP,
            "inside": [{"name": "", "kind": Kind.STRING}, {"name": "", "kind": Kind.DATE}],
        },
    )
    put(tmp_path, "f", file_of(footer))

    found = take(str(tmp_path))

    assert types_of(found) == {
        "v": "string",
        "old": "decimal(38,10)",
        "d": "decimal(12,4)",
        "t": "timestamp",
        "i": "timestamp",
        "s": "struct<at:timestamp_ntz>",
        "l": "array<tinyint>",
        "m": "map<string,date>",
    }
    # Without statistics, nothing is known of decimals and dates.
    assert native_columns(found) == {"f": ["d", "i", "m", "old", "t"]}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"kind": Kind.CHAR, "length": 5}, r"'x' .* is of type char\(5\).*with it as string"),
        ({"kind": Kind.INT, "catalyst": "interval year"}, "'x' .* is of type interval year"),
        (
            {"kind": Kind.STRING, "catalyst": "string collate UNICODE"},
            "is of type string collate UNICODE",
        ),
        (
            {"kind": Kind.UNION, "inside": [{"kind": Kind.INT}, {"kind": Kind.STRING}]},
            "'x' .* is of type .*union",
        ),
    ],
)
def test_a_type_that_is_not_read_is_refused_by_name(
    tmp_path: Path, column: dict[str, Any], said: str
) -> None:
    put(tmp_path, "f", file_of(footer_of({"name": "x", **column})))

    with pytest.raises(UnreadableTypeError, match=said):
        take(str(tmp_path))


def test_columns_are_read_the_way_that_agrees_with_spark(tmp_path: Path) -> None:
    old_day, day = dt.date(1500, 1, 1), dt.date(2000, 1, 1)
    time = pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)], pa.timestamp("ns", "UTC"))
    write(tmp_path, "plain", {"day": [day], "x": [1], "l": [[day]]})
    write(tmp_path, "old", {"day": [old_day], "x": [1], "l": [[old_day]]})
    write(tmp_path, "nulls", {"day": pa.nulls(1, pa.date32()), "a.b": [1], "at": time})
    maps = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    write(tmp_path, "wide", {"X": pa.array([1], pa.int64()), "m": maps})

    found = take(str(tmp_path))

    assert native_columns(found) == {
        "plain": [],
        "old": ["day", "l"],
        # Arrow takes a dot for the path to a field.
        "nulls": ["a.b", "at"],
        "wide": [],
    }


def test_columns_of_other_types_than_the_tables_are_read_by_spark(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": pa.array([1], pa.int32()), "y": [1.0]})
    before = take(str(tmp_path))
    write(tmp_path, "2", {"x": pa.array([2], pa.int64()), "y": pa.array([1.0], pa.float32())})

    after = take(str(tmp_path), previous=as_previous(before))

    assert native_columns(before) == {"1": []}
    assert types_of(after) == {"x": "bigint", "y": "double"}
    assert native_columns(after) == {"1": ["x"], "2": ["y"]}
    assert after.files["grouped_columns"].to_pylist() == [[], []]


def test_a_date_does_not_become_a_time(tmp_path: Path) -> None:
    # Spark's ORC reader has no such conversion, unlike its Parquet reader.
    write(tmp_path, "1", {"s": [{"x": dt.date(2000, 1, 1)}]})
    declared = pa.schema([("s", pa.struct([("X", pa.timestamp("us"))]))])

    with pytest.raises(SchemaConflictError, match="date"):
        take(str(tmp_path), columns=declared)


def test_files_without_column_names_are_read_by_position(tmp_path: Path) -> None:
    write(tmp_path, "1", {"_col0": [1, 2], "_col1": ["a", "b"]})
    declared = pa.schema([("id", pa.int64()), ("name", pa.string()), ("late", pa.int32())])

    found = take(str(tmp_path), columns=declared, bloom=["id"])
    undeclared = take(str(tmp_path))

    assert stats_of(found, "id") == [{"min": 1, "max": 2, "null_count": 0}]
    assert stats_of(found, "late") == [{"min": None, "max": None, "null_count": 2}]
    assert native_columns(found) == {"1": ["id", "name"]}
    # Read by name, the file seems to lack the column: the filter must not say so.
    assert found.files["bloom"].to_pylist() == [{"id": b""}]
    assert (types_of(undeclared), native_columns(undeclared)) == (
        {"_col0": "bigint", "_col1": "string"},
        {"1": []},
    )


def test_positions_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "b", {"_col0": [1], "_col1": ["a"]})
    one = pa.schema([("id", pa.int64())])
    forced = {"orc.force.positional.evolution": "true"}

    with pytest.raises(UnreadableFootersError, match=r"'b': .* has 2 where the table declares 1"):
        take(str(tmp_path), columns=one)
    with pytest.raises(UnreadableFootersError, match=r"'b': .* needs declared columns"):
        take(str(tmp_path), format_options=forced)
    write(tmp_path, "a", {"id": [1]})
    with pytest.raises(UnreadableFootersError, match="'b': its columns have no names"):
        take(str(tmp_path))


def test_columns_are_read_by_position_if_the_table_says_so(tmp_path: Path) -> None:
    write(tmp_path, "1", {"b": [1], "a": [2]})
    forced = {"orc.force.positional.evolution": "TRUE"}
    declared = pa.schema([("a", pa.int64()), ("b", pa.int64())])

    found = take(str(tmp_path), columns=declared, format_options=forced)

    assert [stats_of(found, name)[0]["max"] for name in "ab"] == [1, 2]
    assert native_columns(found) == {"1": ["a", "b"]}


def test_bloom_filters_are_built_of_columns_that_both_readers_read_alike(tmp_path: Path) -> None:
    days = [dt.date(1500, 1, 1), dt.date(2000, 1, 1)]
    rows = 40_000
    many = pa.table({"k": np.arange(rows) % 7, "t": [f"v{at % 5}" for at in range(rows)]})
    write(tmp_path, "many", many, stripe_size=2**16)
    write(tmp_path, "old", {"day": days, "k": [1, None]})

    found = take(str(tmp_path), bloom=["k", "t", "day"])

    filters = dict(
        zip(found.files["path"].to_pylist(), found.files["bloom"].to_pylist(), strict=True)
    )
    empty = bloom_filter(pa.array([], pa.int64()))
    assert filters["many"] == {
        "k": bloom_filter(pa.array(range(7))),
        "t": bloom_filter(pa.array([f"v{at}" for at in range(5)])),
        "day": empty,
    }
    assert filters["old"] == {"k": bloom_filter(pa.array([1])), "t": empty, "day": b""}


GOOD = file_of(footer_of({"name": "x", "kind": Kind.INT}))
_CYCLE = footer_of({"name": "x", "kind": Kind.LIST, "inside": [{"kind": Kind.INT}]})
_CYCLE.types[1].subtypes[0] = 1
_DEEP: dict[str, Any] = {"kind": Kind.INT}
for _ in range(200):
    _DEEP = {"kind": Kind.LIST, "inside": [_DEEP]}
_PAST = footer_of({"name": "x", "kind": Kind.INT}, row_count=1)
_PAST.stripes.add(offset=3, data_length=10**9, row_count=1)
_ROWS = footer_of({"name": "x", "kind": Kind.INT}, row_count=7)
_HUGE_ROWS = footer_of({"name": "x", "kind": Kind.INT}, row_count=2**63)
_HUGE_ROWS.stripes.add(offset=3, row_count=2**63)
DAMAGED = {
    "text": (b"id,name\n" * 50, "it is not ORC"),
    "one byte": (b"\x01", "it is not ORC"),
    "truncated": (GOOD[:-4], "ORC"),
    "wrong magic": (GOOD.replace(b"ORC", b"ORK"), "it is not ORC"),
    "footer of 2 GB": (file_of(b"x", footer_length=2 * 2**30), "ORC"),
    "wrong compression": (file_of(footer_of({"name": "x", "kind": 3}), compression=ZLIB), "ORC"),
    "unknown compression": (file_of(footer_of({"name": "x", "kind": 3}), compression=77), "ORC"),
    "blocks of 1 TB": (file_of(footer_of(), block_size=2**40), "blocks of 1,099,511,627,776 bytes"),
    "noise": (file_of(bytes(range(256)) * 8), "ORC"),
    "a cycle of types": (file_of(_CYCLE), "ORC"),
    "types in types": (file_of(footer_of({"name": "x", **_DEEP})), "ORC"),
    "stripes past the end": (file_of(_PAST), "points past its end|stripe"),
    "other rows": (file_of(_ROWS), "states 7 rows, its stripes 0"),
    "rows beyond count": (file_of(_HUGE_ROWS), "ORC"),
    "a future version": (file_of(footer_of(), version=[19, 99]), "of version 19.99 of ORC"),
    "an unknown kind": (file_of(footer_of({"name": "x", "kind": 42})), "ORC"),
    "no struct": (
        (FIXTURES / "TestOrcFile.testTimestamp.orc").read_bytes(),
        "no struct of columns",
    ),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_file_is_refused_by_name(
    tmp_path: Path, processes: IsolatedExecutor, how: str
) -> None:
    write(tmp_path, "good.orc")
    content, said = DAMAGED[how]
    put(tmp_path, "bad.orc", content)

    with pytest.raises(UnreadableFootersError, match=said) as caught:
        take(str(tmp_path), executor=processes)

    assert [path for path, _ in caught.value.files] == ["bad.orc"]
    assert "as ORC" in str(caught.value)


def test_a_footer_that_expands_beyond_memory_is_refused_by_name(
    tmp_path: Path, processes: IsolatedExecutor
) -> None:
    # Two gigabytes of empty types, from a file of a few megabytes.
    block = b"\x22\x00" * 2**17
    bomb = deflated(block) * 2**13
    write(tmp_path, "good.orc")
    put(tmp_path, "bomb.orc", file_of(bomb, compression=ZLIB, block_size=2**18))

    with pytest.raises(UnreadableFootersError) as caught:
        take(str(tmp_path), executor=processes)

    assert [path for path, _ in caught.value.files] == ["bomb.orc"]


@pytest.mark.slow
def test_any_byte_of_a_footer_may_be_wrong(tmp_path: Path, processes: IsolatedExecutor) -> None:
    random = np.random.default_rng(7)
    for file in FIXTURES.glob("*.orc"):
        content = file.read_bytes()
        for number in range(8):
            damaged = bytearray(content)
            damaged[random.integers(max(0, len(content) - 400), len(content))] ^= 1 << number
            put(tmp_path / f"{file.stem} {number}", "f.orc", bytes(damaged))

    outcomes: Counter[str] = Counter()
    for folder in tmp_path.iterdir():
        try:
            take(str(folder), executor=processes)
            outcomes["read"] += 1
        except (UnreadableFootersError, UnreadableTypeError, ColumnNameError) as error:
            outcomes["refused" if "'f.orc'" in str(error) else "nameless"] += 1

    assert min(outcomes["read"], outcomes["refused"]) > 10
    assert not outcomes["nameless"]
