"""The demo's table: its contents, and when it is written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from windrow_demo.errors import DemoError
from windrow_demo.flights import PARTITION, flights_table, write_flights
from windrow_demo.hive import folder_name, partition_count, write_hive_table
from windrow_demo.write_once import count_files, write_once


@pytest.mark.slow
def test_the_flights_of_2013_have_19486_partitions() -> None:
    flights = flights_table()

    assert flights.num_rows == 336_776
    assert partition_count(flights, PARTITION) == 19_486
    assert flights.schema.field("dep_time").type == pa.int32()
    assert flights["dep_time"].null_count == 8_255
    assert flights["time_hour"][0].as_py().isoformat() == "2013-01-01T10:00:00+00:00"


@pytest.mark.slow
def test_only_flights_of_the_first_days_are_written(tmp_path: Path) -> None:
    files: list[int] = []

    count = write_flights(tmp_path / "flights", 1, lambda _: None, files.append)

    expected = flights_table(1)
    folders = pads.partitioning(
        pa.schema([expected.schema.field(name) for name in PARTITION]), flavor="hive"
    )
    found = pq.read_table(tmp_path / "flights", partitioning=folders)
    assert count == sum(files) == count_files(tmp_path / "flights")
    assert found.num_rows == expected.num_rows == 842
    order = [(name, "ascending") for name in ("hour", "origin", "flight", "carrier")]
    columns = expected.column_names
    assert found.sort_by(order).select(columns) == expected.sort_by(order).select(columns)


def test_partition_columns_are_in_folder_names_and_not_in_files(tmp_path: Path) -> None:
    table = pa.table({"ds": ["a", "a", None, "x/y %"], "n": [1, 2, 3, 4]})

    write_hive_table(tmp_path, table, ["ds"], lambda _: None)

    written = {
        path.parent.name: pq.read_table(path, partitioning=None) for path in tmp_path.glob("*/*")
    }
    assert {name: found.to_pydict() for name, found in written.items()} == {
        "ds=a": {"n": [1, 2]},
        "ds=__HIVE_DEFAULT_PARTITION__": {"n": [3]},
        "ds=x%2Fy %25": {"n": [4]},
    }


def test_values_in_folder_names_are_escaped_as_in_hive() -> None:
    assert folder_name([("t", "10:30=ü"), ("n", 7)]) == "t=10%3A30%3Dü/n=7"


def _writer(calls: list[Path]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        calls.append(folder)
        (folder / "a.parquet").write_text("x")

    return write


def test_a_table_is_written_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    first = write_once(tmp_path / "t", {"v": 1}, _writer(calls), file_count=1)
    second = write_once(tmp_path / "t", {"v": 1}, _writer(calls), file_count=1)

    assert (first, second, len(calls)) == (True, False, 1)


def test_an_interrupted_table_is_written_again(tmp_path: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "half.parquet").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_once(tmp_path / "t", {"v": 1}, interrupted, file_count=1)

    assert write_once(tmp_path / "t", {"v": 1}, _writer([]), file_count=1)
    assert not (tmp_path / "t" / "half.parquet").exists()


def test_a_table_with_another_stamp_or_a_missing_file_is_written_again(tmp_path: Path) -> None:
    write_once(tmp_path / "t", {"v": 1}, _writer([]), file_count=1)

    assert write_once(tmp_path / "t", {"v": 2}, _writer([]), file_count=1)
    (tmp_path / "t" / "a.parquet").unlink()
    assert write_once(tmp_path / "t", {"v": 2}, _writer([]), file_count=1)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")

    with pytest.raises(DemoError, match="was not changed"):
        write_once(tmp_path, {"v": 1}, _writer([]), file_count=1)

    assert (tmp_path / "mine.txt").read_text() == "precious"
