"""Footers of real files become columns."""

from __future__ import annotations

import shutil
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.listings import list_files, read_footers
from tests.unit.inventory.files import inline, write
from windrow_core.models import RefreshProgress

ROOT = Path(__file__).parents[3]


def footers(location: Path) -> list[dict[str, Any]]:
    """Return the contents of footers, one dict per file, in path order."""
    rows = []
    for group in read_footers(str(location), list_files(str(location)).files, executor=inline):
        for row in group.table.to_pylist():
            bounds = {
                name: tuple(row[f"{index}.{end}"] for end in ("min", "max", "nulls"))
                for index, name in enumerate(group.bounded.names)
            }
            rows.append({**row, "bounds": bounds})
    return sorted(rows, key=lambda row: row["row"])


def bounds_of(location: Path, columns: Any, **options: Any) -> dict[str, tuple[Any, Any, int]]:
    write(location, "f", columns, **options)
    found: dict[str, tuple[Any, Any, int]] = footers(location)[0]["bounds"]
    return found


CASES: dict[str, tuple[pa.Array, Any, Any]] = {
    "boolean": (pa.array([True, False, None]), False, True),
    "tinyint": (pa.array([-1, 7, None], pa.int8()), -1, 7),
    "uint8": (pa.array([0, 255, None], pa.uint8()), 0, 255),
    "uint32": (pa.array([1, 2**32 - 1, None], pa.uint32()), 1, 2**32 - 1),
    "uint64": (pa.array([1, 2**64 - 1, None], pa.uint64()), Decimal(1), Decimal(2**64 - 1)),
    "bigint": (pa.array([-(2**63), 2**63 - 1, None]), -(2**63), 2**63 - 1),
    "float": (pa.array([-1.5, 2.5, None], pa.float32()), -1.5, 2.5),
    "double": (pa.array([-1.5, float("inf"), None]), -1.5, float("inf")),
    "string": (pa.array(["a", "å", None]), "a", "å"),
    "large string": (pa.array(["a", "å", None], pa.large_string()), "a", "å"),
    "dictionary": (pa.array(["b", "a", None]).dictionary_encode(), "a", "b"),
    "binary": (pa.array([b"\x00", b"\xff", None]), b"\x00", b"\xff"),
    "fixed binary": (pa.array([b"ab", b"cd", None], pa.binary(2)), b"ab", b"cd"),
    "date": (
        pa.array([date(1582, 10, 15), date(9999, 12, 31), None]),
        date(1582, 10, 15),
        date(9999, 12, 31),
    ),
    "decimal in 16 bytes": (
        pa.array([Decimal("-1.5"), Decimal("2.5"), None], pa.decimal128(38, 2)),
        Decimal("-1.50"),
        Decimal("2.50"),
    ),
    "timestamp": (
        pa.array([-1, 1, None], pa.timestamp("ms", "UTC")),
        datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc),
        datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=timezone.utc),
    ),
    "nanoseconds, rounded outwards": (
        pa.array([-1, 1, None], pa.timestamp("ns")),
        datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        datetime(1970, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    ),
    "seconds": (
        pa.array([0, 1, None], pa.timestamp("s")),
        datetime(1970, 1, 1),  # noqa: DTZ001
        datetime(1970, 1, 1, 0, 0, 1),  # noqa: DTZ001
    ),
}


@pytest.mark.parametrize(("values", "lower", "upper"), CASES.values(), ids=CASES)
def test_bounds_are_those_of_the_values(
    tmp_path: Path, values: pa.Array, lower: Any, upper: Any
) -> None:
    assert bounds_of(tmp_path, {"c": values}) == {"c": (lower, upper, 1)}


@pytest.mark.parametrize(("precision", "physical"), [(5, "INT32"), (15, "INT64")])
def test_decimals_stored_as_integers_have_bounds(
    tmp_path: Path, precision: int, physical: str
) -> None:
    values = pa.array([Decimal("-1.5"), Decimal("2.5")], pa.decimal128(precision, 2))

    found = bounds_of(tmp_path, {"c": values}, store_decimal_as_integer=True)

    assert pq.read_metadata(tmp_path / "f").schema.column(0).physical_type == physical
    assert found == {"c": (Decimal("-1.50"), Decimal("2.50"), 0)}


def test_a_footer_gives_the_row_count_and_the_offsets_of_row_groups(tmp_path: Path) -> None:
    path = write(tmp_path, "f", {"x": list(range(10))}, row_group_size=4)

    (footer,) = footers(tmp_path)

    first_columns = [pq.read_metadata(path).row_group(index).column(0) for index in range(3)]
    assert footer["row_count"] == 10
    assert footer["row_group_offsets"] == [c.dictionary_page_offset for c in first_columns]
    assert footer["bounds"] == {"x": (0, 9, 0)}


def test_row_groups_of_nulls_do_not_affect_bounds(tmp_path: Path) -> None:
    values = [None, None, 5, 6, None, 1]

    assert bounds_of(tmp_path, {"x": values}, row_group_size=2) == {"x": (1, 6, 3)}


def test_a_file_of_nulls_has_no_bounds(tmp_path: Path) -> None:
    found = bounds_of(tmp_path, {"x": pa.nulls(3, pa.int32()), "n": pa.nulls(3)})

    assert found == {"x": (None, None, 3)}


def test_bounds_are_unknown_if_the_file_states_none(tmp_path: Path) -> None:
    found = bounds_of(tmp_path, {"x": [1, 2], "y": [1, 2]}, write_statistics=["y"])

    assert found == {"x": (None, None, None), "y": (1, 2, 0)}


def test_a_column_that_cannot_be_null_has_no_nulls(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])

    found = bounds_of(tmp_path, pa.table({"x": [1]}, schema=schema), write_statistics=False)

    assert found == {"x": (None, None, 0)}


def test_row_groups_out_of_order_are_sorted(tmp_path: Path) -> None:
    first = pq.read_metadata(write(tmp_path, "t/1", {"x": [1, 2]}, row_group_size=1))
    first.append_row_groups(pq.read_metadata(write(tmp_path, "t/2", {"x": [3]})))
    (tmp_path / "joined").mkdir()
    first.write_metadata_file(tmp_path / "joined/f")

    (footer,) = footers(tmp_path / "joined")

    assert footer["row_group_offsets"] == sorted(footer["row_group_offsets"])
    assert footer["bounds"] == {"x": (1, 3, 0)}


def test_a_file_of_no_rows_has_no_bounds_and_no_nulls(tmp_path: Path) -> None:
    (footer,) = footers(write(tmp_path, "f", {"x": pa.array([], pa.int32())}).parent)

    assert (footer["row_count"], footer["bounds"]) == (0, {"x": (None, None, 0)})


def test_int96_columns_have_no_bounds(tmp_path: Path) -> None:
    columns = {"t": pa.array([1], pa.timestamp("us")), "x": [1]}

    found = bounds_of(tmp_path, columns, use_deprecated_int96_timestamps=True)

    assert found == {"x": (1, 1, 0)}


def test_only_top_level_columns_with_an_order_have_bounds(tmp_path: Path) -> None:
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "b"])
    table = {
        "s": struct,
        "l": [[1, 2]],
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "s.a": [7],
        "h": pa.array([1.0], pa.float32()).cast(pa.float16()),
        "last": ["z"],
    }

    assert bounds_of(tmp_path, table) == {"s.a": (7, 7, 0), "last": ("z", "z", 0)}


def test_arrow_ignores_nan_so_its_bounds_do_not_prove_its_absence(tmp_path: Path) -> None:
    (footer,) = footers(write(tmp_path, "f", {"x": [1.0, float("nan"), 2.0]}).parent)

    assert (footer["stats_see_nan"], footer["bounds"]) == (False, {"x": (1.0, 2.0, 0)})


def test_a_footer_longer_than_the_first_read_is_read_in_full(tmp_path: Path) -> None:
    names = [f"{'long name ' * 20}{number}" for number in range(600)]
    write(tmp_path, "f", {name: [1, 2] for name in names})

    (footer,) = footers(tmp_path)

    assert list(footer["bounds"]) == names


def test_a_large_file_is_read_from_its_end(tmp_path: Path) -> None:
    write(tmp_path, "f", {"x": list(range(100_000))}, use_dictionary=False, compression="none")

    (footer,) = footers(tmp_path)

    assert footer["bounds"] == {"x": (0, 99_999, 0)}


def test_a_file_without_columns_is_still_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "f", pa.table({"x": [1, 2]}).select([]))

    (footer,) = footers(tmp_path)

    assert (footer["row_count"], footer["bounds"]) == (pq.read_metadata(path).num_rows, {})


def test_files_are_grouped_by_schema_in_this_process_and_in_others(tmp_path: Path) -> None:
    for number in range(300):
        columns = {"x": [number]} if number % 2 else {"y": [str(number)]}
        write(tmp_path, f"k={number:03d}/f", columns)
    files = list_files(str(tmp_path)).files
    seen: list[RefreshProgress] = []

    here = read_footers(str(tmp_path), files, seen.append, executor=inline)
    elsewhere = read_footers(str(tmp_path), files)

    assert [group.files.path for group in here] == ["k=000/f", "k=001/f"]
    assert [group.table.num_rows for group in here] == [150, 150]
    assert seen[-1] == RefreshProgress(phase="reading footers", footers_read=300, footers_total=300)
    assert [group.table.to_pylist() for group in elsewhere] == [
        group.table.to_pylist() for group in here
    ]


def test_no_files_have_no_footers(tmp_path: Path) -> None:
    assert footers(tmp_path) == []


def test_rows_of_row_groups_are_counted_if_the_footer_states_zero(tmp_path: Path) -> None:
    published = ROOT / "tests/fixtures/parquet-testing/repeated_no_annotation.parquet"
    assert pq.read_metadata(published).num_rows == 0
    shutil.copy(published, tmp_path)

    assert [footer["row_count"] for footer in footers(tmp_path)] == [6]
