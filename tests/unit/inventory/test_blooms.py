"""Bloom filters are built with the inventory, and kept while files and columns stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.inventory.files import as_previous, take_inline, touch, write
from windrow_core.files.errors import FileChangedError
from windrow_service.filters.bind import bind
from windrow_service.filters.sql import parse_sql
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.errors import BloomColumnError
from windrow_service.inventory.footers.blooms import build_missing, carried_filters
from windrow_service.inventory.look import Inventory, Look
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.planner.pruning.prune import prune


def surviving(inventory: Inventory, text: str) -> list[str]:
    """Return the paths of the files that a filter does not rule out."""
    types = {f.name: f.type for f in [*inventory.data_schema, *inventory.partition_schema]}
    kept = prune(inventory.files, bind(parse_sql(text), types)).survives
    paths: list[str] = inventory.files["path"].filter(pa.array(kept)).to_pylist()
    return paths


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Three files with the same least and greatest values."""
    for number in range(3):
        ids = [0, 100 + number, 1000]
        write(tmp_path, f"{number}", {"id": ids, "name": [f"n{n:04}" for n in ids]})
    return tmp_path


def test_a_value_is_found_only_in_the_files_that_hold_it(
    location: Path,
) -> None:
    without = take_inline(str(location))
    inventory = take_inventory(Look(location=str(location), bloom=["ID", "name"]))

    assert surviving(without, "id = 101") == ["0", "1", "2"]
    assert surviving(inventory, "id = 101") == ["1"]
    assert surviving(inventory, "id = 500") == []
    assert surviving(inventory, "name IN ('n0100', 'n0102', 'n0555')") == ["0", "2"]
    assert surviving(inventory, "id = 1000 OR name = 'n0555'") == ["0", "1", "2"]


def test_files_without_an_excluded_value_need_no_residual_filter(location: Path) -> None:
    inventory = take_inline(str(location), bloom=["id"])

    pruning = prune(inventory.files, bind(parse_sql("id <> 101"), {"id": pa.int64()}))

    assert pruning.open.tolist() == [0, 1, 0]


def test_filters_of_files_that_did_not_change_are_carried_over(location: Path) -> None:
    first = take_inline(str(location), bloom=["id"])
    write(location, "3", {"id": [0, 1000], "name": ["n", "n"]})
    # No longer Parquet: reading it again would fail. Its size and time do not show the change,
    # and the stamps that would are dropped below.
    stamp = (location / "0").stat()
    (location / "0").write_bytes(b"\0" * stamp.st_size)
    touch(location / "0", stamp.st_mtime_ns)

    previous = replace(as_previous(first), folders=None)
    second = take_inline(str(location), bloom=["id"], previous=previous)

    assert second.files["bloom"][:3] == first.files["bloom"]
    assert surviving(second, "id = 100") == ["0"]


def test_a_newly_chosen_column_gets_filters_and_a_dropped_one_loses_them(
    location: Path,
) -> None:
    first = take_inline(str(location), bloom=["id"])

    second = take_inline(str(location), bloom=["name"], previous=as_previous(first))
    third = take_inline(str(location), previous=as_previous(second))

    assert second.footers_read == 0
    assert second.files.schema.field("bloom").type.names == ["name"]
    assert surviving(second, "name = 'n0102'") == ["2"]
    assert third.files.schema.names == [n for n in second.files.schema.names if n != "bloom"]


def test_a_file_that_lacks_the_column_holds_no_value_of_it(location: Path) -> None:
    write(location, "3", {"other": [1]})

    inventory = take_inline(str(location), bloom=["id", "other"])

    assert surviving(inventory, "other = 1") == ["3"]
    assert surviving(inventory, "id = 1000") == ["0", "1", "2"]


def test_a_filter_with_too_many_values_rules_nothing_out(tmp_path: Path) -> None:
    write(tmp_path, "f", {"id": range(0, 200_000, 2)}, row_group_size=10_000)

    inventory = take_inline(str(tmp_path), bloom=["id"])
    again = take_inventory(
        Look(location=str(tmp_path), bloom=["id"]), previous=as_previous(inventory)
    )

    assert inventory.files["bloom"].to_pylist() == [{"id": b""}]
    assert again.files.equals(inventory.files)
    assert surviving(again, "id = 1") == ["f"]


@pytest.mark.parametrize(
    ("column", "said"), [("nope", "not among"), ("ds", "not among"), ("tags", "has no order")]
)
def test_a_column_that_cannot_have_filters_is_named(tmp_path: Path, column: str, said: str) -> None:
    write(tmp_path, "ds=1/f", {"tags": [["a"]]})

    with pytest.raises(BloomColumnError, match=f"'{column}' .*{said}.*bloom_columns"):
        take_inline(str(tmp_path), bloom=[column])


def test_a_table_without_files_has_no_filters_yet(tmp_path: Path) -> None:
    assert "bloom" not in take_inline(str(tmp_path), bloom=["id"]).files.schema.names


def test_a_file_that_changes_while_it_is_read_is_named(location: Path) -> None:
    inventory = take_inline(str(location))
    (location / "1").unlink()

    nothing = carried_filters(["id"], pa.nulls(3, pa.int32()), None)
    with pytest.raises(FileChangedError, match="'1'"):
        build_missing(nothing, str(location), inventory.files, ProgressMeter(), None)
