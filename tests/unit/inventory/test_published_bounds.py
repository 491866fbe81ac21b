"""Bounds in inventories hold for the values of published files, whoever wrote them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.laws import a_few
from tests.support.tables.published import read_in_full
from windrow_core.files.arrays import flat
from windrow_core.files.errors import InventoryError
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look
from windrow_tables.executor.errors import TaskReadError

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDER = os.environ.get("WINDROW_PUBLISHED_FILES")


def violations(folder: Path) -> list[str]:
    """Return what the inventory of a folder says of its one file, and the file's values disprove."""
    inventory = take_inventory(Look(location=str(folder)))
    rows = read_in_full(str(folder), inventory, inventory.data_schema)
    (stats,) = inventory.files["stats"].to_pylist()
    violations = []
    for name, one in stats.items():
        column = rows[name]
        values = flat(column).drop_null()
        for end, compare in (("min", pc.less), ("max", pc.greater)):
            bound = pa.scalar(one[end], column.type)
            if one[end] is not None and pc.any(compare(values, bound)).as_py():
                violations.append(f"{name}: {end} {one[end]!r}")
        if one["null_count"] not in (None, column.null_count):
            violations.append(f"{name}: {one['null_count']} nulls of {column.null_count}")
    return violations


def test_bounds_that_a_published_file_states_wrongly_are_not_used(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "duckdb" / "corrupt_stats.parquet", tmp_path)

    (file,) = take_inventory(Look(location=str(tmp_path))).files.to_pylist()

    assert file["stats"]["A"]["min"] is None
    assert file["stats"]["A"]["max"] is None


@pytest.mark.parametrize(
    "file", a_few(sorted(FIXTURES.glob("*/*.parquet")), 4), ids=lambda file: file.stem
)
def test_bounds_of_published_files_hold_for_their_values(tmp_path: Path, file: Path) -> None:
    shutil.copy(file, tmp_path)

    try:
        assert violations(tmp_path) == []
    except (InventoryError, TaskReadError):
        # tests/spark/test_published_files.py has the files that are refused.
        return


@pytest.mark.skipif(FOLDER is None, reason="WINDROW_PUBLISHED_FILES names no folder")
def test_so_do_those_of_a_folder(tmp_path: Path) -> None:
    all_violations = {}
    for number, file in enumerate(sorted(Path(str(FOLDER)).rglob("*.par*"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(file, folder / "f.parquet")
        try:
            all_violations[str(file)] = violations(folder)
        except (InventoryError, TaskReadError, OverflowError):
            # Python has no days after the year 9999.
            continue

    assert all_violations
    assert {name: some for name, some in all_violations.items() if some} == {}
