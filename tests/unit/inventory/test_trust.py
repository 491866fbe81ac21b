"""Bounds in footers are used only if their order is certain, whatever writers say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files import footers
from tests.support.files.footers import Fields, deprecate, edit_statistics
from tests.unit.inventory.files import take_inline, write
from windrow_core.files.footers import footer_in
from windrow_core.files.trust import names_orders, orders_of

ARROW = "parquet-cpp-arrow version 21.0.0"
OLD_MR = "parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)"
NEW_MR = "parquet-mr version 1.15.2 (build 859eac165b08f927fa14590c34bc5f476405fb68)"
HIVE = "parquet-mr"
IMPALA = "impala version 2.2.0-cdh5.4.4 (build f1ac9f3c9cbe7e3c5b8aa3f2ac4e19e2ed3a2bc8)"
POLARS = "Polars"
OLD_ARROW = "parquet-cpp version 1.5.1-SNAPSHOT"
KNOWN = [ARROW, OLD_MR, NEW_MR, HIVE, IMPALA, POLARS, OLD_ARROW]
UNKNOWN = [
    "",
    "me",
    "Parquet.Net version 4.25.0 (build 687fbb462e94eddd1dc5a0aa26f33ba8e53f60e3)",
    "github.com/parquet-go/parquet-go version v0.32.0",
    "parquet-mr compatible Photon version 0.2",
    "https://github.com/r-lib/nanoparquet",
    # Of 2021, whose texts are compared by their lengths.
    "parquet-rs version 4.1.0 (build unknown)",
    "parquet-rs",
    "Polars by another name",
    "DuckDB\nversion v1.5.5",
]

# Values whose bytes, taken with sign, are in another order than the values.
COLUMNS: dict[str, pa.Array] = {
    "boolean": pa.array([False, True]),
    "int": pa.array([-1, 128], pa.int32()),
    "bigint": pa.array([-1, 128]),
    "uint32": pa.array([1, 2**31], pa.uint32()),
    "uint64": pa.array([1, 2**63], pa.uint64()),
    "double": pa.array([-1.5, 1.5]),
    "date": pa.array([date(1999, 1, 1), date(2001, 1, 1)]),
    "timestamp": pa.array([-1, 1], pa.timestamp("us", "UTC")),
    "string": pa.array(["a", "å"]),
    "binary": pa.array([b"\x01", b"\xff"]),
    "fixed": pa.array([b"\x01\x01", b"\xff\x01"], pa.binary(2)),
    "narrow": pa.array([Decimal(1), Decimal(200)], pa.decimal128(9, 0)),
    "wide": pa.array([Decimal(1), Decimal(200)], pa.decimal128(38, 0)),
}
SIGNED = {"boolean", "int", "bigint", "double", "date", "timestamp"}
# What cannot be wrong by time zone, unit, calendar or order.
CERTAIN = {"boolean", "int", "bigint"}
# Columns that Spark's own reader never reads.
ONLY_GROUPED = {"uint32", "uint64", "fixed"}
Edit = Callable[[Fields], None]


def bounded_in(
    folder: Path, edit: Edit, *, created_by: str, with_orders: bool, **options: Any
) -> set[str]:
    """Return the columns that have bounds after an edit, all of which must be those of the values."""
    path = write(folder, "f", dict(COLUMNS), store_decimal_as_integer=True, **options)
    edit_statistics(path, edit, created_by=created_by, with_orders=with_orders)
    (file,) = take_inline(str(folder)).files.to_pylist()
    found = {name for name, one in file["stats"].items() if one["min"] is not None}
    for name in found:
        ends = file["stats"][name]["min"], file["stats"][name]["max"]
        assert tuple(map(str, ends)) == tuple(map(str, _values(COLUMNS[name])))
    assert {one["null_count"] for one in file["stats"].values()} <= {0, None}
    return found


def grouped_in(folder: Path) -> set[str]:
    """Return the columns that Spark's own reader does not read for their bounds."""
    (file,) = take_inline(str(folder)).files.to_pylist()
    return set(file["grouped_columns"]) - ONLY_GROUPED


def _values(column: pa.Array) -> list[Any]:
    return (column.cast(pa.decimal128(20, 0)) if column.type == pa.uint64() else column).to_pylist()


@pytest.mark.parametrize("created_by", [*KNOWN, *UNKNOWN])
def test_of_deprecated_bounds_only_those_of_signed_types_are_used(
    tmp_path: Path, created_by: str
) -> None:
    found = bounded_in(tmp_path, deprecate, created_by=created_by, with_orders=False)

    assert found == (SIGNED if created_by in KNOWN else CERTAIN)
    # Spark's own reader would skip row groups by the others.
    assert grouped_in(tmp_path) == SIGNED - found


@pytest.mark.parametrize("created_by", [*KNOWN, *UNKNOWN])
def test_bounds_of_an_unnamed_order_are_not_used(tmp_path: Path, created_by: str) -> None:
    def only_new(statistics: Fields) -> None:
        for field in (footers.MIN, footers.MAX):
            statistics.pop(field, None)

    assert not bounded_in(tmp_path, only_new, created_by=created_by, with_orders=False)


@pytest.mark.parametrize("created_by", [*KNOWN, *UNKNOWN])
def test_deprecated_bounds_in_a_file_that_names_orders_are_not_used(
    tmp_path: Path, created_by: str
) -> None:
    assert not bounded_in(tmp_path, deprecate, created_by=created_by, with_orders=True)


@pytest.mark.parametrize("created_by", [ARROW, NEW_MR])
def test_bounds_with_orders_by_writers_that_compare_values_are_used(
    tmp_path: Path, created_by: str
) -> None:
    found = bounded_in(tmp_path, lambda _: None, created_by=created_by, with_orders=True)

    assert found == set(COLUMNS)


@pytest.mark.parametrize("created_by", [POLARS, IMPALA, OLD_ARROW])
def test_decimals_in_bytes_by_other_writers_have_no_bounds(tmp_path: Path, created_by: str) -> None:
    found = bounded_in(tmp_path, lambda _: None, created_by=created_by, with_orders=True)

    assert found == set(COLUMNS) - {"wide"}
    assert grouped_in(tmp_path) == {"wide"}


@pytest.mark.parametrize("created_by", UNKNOWN)
def test_unknown_writers_have_bounds_of_what_no_writer_states_wrongly(
    tmp_path: Path, created_by: str
) -> None:
    found = bounded_in(tmp_path, lambda _: None, created_by=created_by, with_orders=True)

    assert found == CERTAIN
    assert grouped_in(tmp_path) == set(COLUMNS) - CERTAIN - ONLY_GROUPED


@pytest.mark.parametrize("with_orders", [True, False])
def test_a_writer_that_states_bounds_of_parts_has_none(tmp_path: Path, with_orders: bool) -> None:
    edit: Edit = (lambda _: None) if with_orders else deprecate
    arrow2 = "Arrow2 - Native Rust implementation of Arrow"

    assert not bounded_in(tmp_path, edit, created_by=arrow2, with_orders=with_orders)


@pytest.mark.parametrize("missing", [footers.MIN_VALUE, footers.MAX_VALUE])
def test_one_bound_without_the_other_is_not_used(tmp_path: Path, missing: int) -> None:
    found = bounded_in(
        tmp_path, lambda found: found.pop(missing) and None, created_by=ARROW, with_orders=True
    )

    assert not found


def test_bounds_in_the_wrong_order_are_not_used_and_spark_does_not_read_the_column(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "f", {"x": [1, 2], "y": [3, 3], "z": ["a", "b"]})
    edit_statistics(path, footers.swap)

    (file,) = take_inline(str(tmp_path)).files.to_pylist()

    assert [file["stats"][name]["min"] for name in "xyz"] == [None, 3, None]
    assert file["grouped_columns"] == ["x", "z"]


@pytest.mark.parametrize("count", [-1, 3, 2])
def test_an_impossible_count_of_nulls_is_not_used(tmp_path: Path, count: int) -> None:
    path = write(tmp_path, "f", {"x": [1, 2]})
    edit_statistics(path, lambda found: found.update({footers.NULL_COUNT: (footers.LONG, count)}))

    (file,) = take_inline(str(tmp_path)).files.to_pylist()

    assert file["stats"]["x"] == {"min": 1, "max": 2, "null_count": None}


@pytest.mark.parametrize("with_keys", [True, False])
def test_a_file_of_arrow_with_another_writers_name_does_not_prove_that_there_is_no_nan(
    tmp_path: Path, with_keys: bool
) -> None:
    path = write(tmp_path, "f", {"x": [1.0, float("nan")]})
    edit_statistics(path, created_by=NEW_MR, with_keys=with_keys)

    (file,) = take_inline(str(tmp_path)).files.to_pylist()

    assert not file["stats_see_nan"]


def _unusual(footer: Fields) -> None:
    # A field after the orders, as an encryption leaves it.
    footer[9] = footers.BINARY, b"key"


@pytest.mark.parametrize("change", [lambda _: None, _unusual])
@pytest.mark.parametrize("created_by", ["", "a", ARROW, "\0", "x" * 300])
@pytest.mark.parametrize("with_orders", [True, False])
@pytest.mark.parametrize("columns", [1, 14, 15, 200])
def test_orders_are_seen_wherever_they_are(
    tmp_path: Path, change: Edit, created_by: str, with_orders: bool, columns: int
) -> None:
    path = tmp_path / "f"
    pq.write_table(pa.table({f"c{at}": [at] for at in range(columns)}), path)
    edit_statistics(path, created_by=created_by, with_orders=with_orders)
    footers.edit(path, change)

    found = names_orders(footer_in(path.read_bytes()), created_by, orders_of(columns))

    assert found is with_orders
