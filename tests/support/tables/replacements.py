"""Files of a table that are replaced under their names, in every way that writers and tools have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import strategies as st

ROWS = 6


def write(path: Path, low: int, middle: int, rows: int = ROWS) -> None:
    """Write a file whose size depends on the number of rows alone, and its bounds on `low` alone.

    `id` goes from `low` to `low + 100`, and has `middle` in between.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = [low, *[low + middle % 100] * (rows - 2), low + 100]
    plain = {"use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path, **plain)


def _in_place(file: Path, new: Path) -> None:
    """As Polars, Dask and pandas write, and `cp` copies: the file stays, with other bytes."""
    file.write_bytes(new.read_bytes())


def _in_place_with_its_time(file: Path, new: Path) -> None:
    """As `cp -p` copies a file that has the time of the old one."""
    status = file.stat()
    _in_place(file, new)
    _set_time(file, status)


def _by_renaming(file: Path, new: Path) -> None:
    os.replace(new, file)


def _by_renaming_with_its_time(file: Path, new: Path) -> None:
    """As `rsync -t` replaces a file, or a backup that is restored."""
    _set_time(new, file.stat())
    os.replace(new, file)


def _removed_and_made(file: Path, new: Path) -> None:
    status = file.stat()
    file.unlink()
    shutil.copyfile(new, file)
    _set_time(file, status)


def _truncated_and_appended(file: Path, new: Path) -> None:
    status = file.stat()
    with file.open("r+b") as stream:
        stream.truncate(4)
        stream.seek(4)
        stream.write(new.read_bytes()[4:])
    _set_time(file, status)


def _in_place_within_the_second(file: Path, new: Path) -> None:
    """As any of these on a file system that keeps whole seconds."""
    second_ns = file.stat().st_mtime_ns // 10**9 * 10**9
    _in_place(file, new)
    os.utime(file, ns=(second_ns, second_ns))


def _set_time(file: Path, status: os.stat_result) -> None:
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


WAYS: dict[str, Callable[[Path, Path], None]] = {
    way.__name__.strip("_"): way
    for way in (
        _in_place,
        _in_place_with_its_time,
        _by_renaming,
        _by_renaming_with_its_time,
        _removed_and_made,
        _truncated_and_appended,
        _in_place_within_the_second,
    )
}

# The file (of four, in two folders), the way, its rows as `write` takes them, and whether their number,
# and so the file's size, stays.
replacements = st.tuples(
    st.integers(0, 3),
    st.sampled_from(sorted(WAYS)),
    st.integers(0, 3).map(lambda low: low * 1_000),
    st.integers(1, 99),
    st.integers(0, 4).map(bool),
)


def file_of(location: Path, number: int) -> Path:
    """Return one of a table's four files."""
    return location / f"ds=2026-11-0{number // 2 + 1}" / f"{number % 2:08d}.parquet"


def make_table(location: Path) -> Path:
    """Write a table of four files."""
    for number in range(4):
        write(file_of(location, number), number * 1_000, number)
    return location


def replace(location: Path, replacement: Any) -> None:
    """Replace one file of a table."""
    number, way, low, middle, keeps_size = replacement
    new = location.parent / f"{location.name}-new"
    write(new, low, middle, ROWS if keeps_size else ROWS + 1 + middle % 3)
    WAYS[way](file_of(location, number), new)
    new.unlink(missing_ok=True)


def ids_in(location: Path, low: int, high: int) -> list[int]:
    """Return the ids within bounds that the table's files have now, sorted."""
    ids = pa.concat_arrays(
        pq.read_table(path)["id"].combine_chunks() for path in location.rglob("*.parquet")
    )
    within = pc.and_(pc.greater_equal(ids, low), pc.less_equal(ids, high))
    values: list[int] = sorted(ids.filter(within).to_pylist())
    return values
