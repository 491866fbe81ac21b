"""Generated Hive tables of Parquet files of chosen sizes, with the same rows every time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import console

from windrow_core.files.roots.proofs import Consent
from windrow_core.files.roots.stores import StoreRoot
from windrow_demo.hive import folder_name
from windrow_demo.processes import run_in_processes
from windrow_demo.progress import counting
from windrow_demo.write_once import write_once

KIB, MIB = 2**10, 2**20
_LAYOUT = 1
_FILES_PER_FOLDER = 100
_FILES_PER_CALL = 200
_MAX_ROWS_PER_CALL = 2_000_000
# A new file on HDFS takes a third of a second, most of it waiting.
_UPLOADS = 64
# Starting processes takes longer than writing so little.
_FEW_FILES, _FEW_ROWS = 400, 200_000
# Measured size of a file with these columns: a footer, and bytes per row.
_FOOTER_BYTES, _BYTES_PER_ROW = 2_000, 22.5


@dataclass(frozen=True, slots=True)
class Part:
    """A number of files of about the same size."""

    file_count: int
    file_bytes: int

    @property
    def rows_per_file(self) -> int:
        """Number of rows in a file of this size."""
        return max(1, round((self.file_bytes - _FOOTER_BYTES) / _BYTES_PER_ROW))


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table to generate.

    Attributes:
        name: Name for programs, and of the table's folder.
        title: Title for people.
        parts: Files of the table, the smallest first.
    """

    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def file_count(self) -> int:
        """Number of files in the table."""
        return sum(part.file_count for part in self.parts)

    @property
    def row_count(self) -> int:
        """Number of rows in the table."""
        return sum(part.file_count * part.rows_per_file for part in self.parts)


def table_of(file_count: int, file_bytes: int) -> TableSpec:
    """Return a table whose files all have the same size."""
    size = f"{file_bytes // MIB}MB" if file_bytes >= MIB else f"{file_bytes // KIB}KB"
    title = f"{file_count:,} x {size[:-2]} {size[-2:]}"
    return TableSpec(f"{file_count}x{size}", title, (Part(file_count, file_bytes),))


def generate(root: Path, spec: TableSpec) -> Path:
    """Make sure that a table exists under `root`, and return its folder.

    The partition column is `day`, an int; each folder holds a hundred files.
    """
    folder = root / spec.name

    def write(to: Path) -> None:
        with counting(console, f"Writing {spec.title}", spec.file_count) as progress:
            if spec.file_count <= _FEW_FILES and spec.row_count <= _FEW_ROWS:
                for call in _calls(to, spec):
                    progress.advance(_write_files(*call))
            else:
                run_in_processes(_write_files, _calls(to, spec), progress.advance)

    stamp = {"table": spec.name, "layout": _LAYOUT, "rows": spec.row_count}
    write_once(folder, stamp, write, file_count=spec.file_count)
    return folder


def upload(folder: Path, location: str) -> None:
    """Copy the files of a table's folders to a store.

    Args:
        folder: The table.
        location: URI of the copy.
    """
    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.glob("*/*.parquet"))]
    with ThreadPoolExecutor(_UPLOADS) as threads:
        copies = [
            threads.submit(StoreRoot(location).upload, str(folder / path), path, Consent())
            for path in paths
        ]
    for copy in copies:
        copy.result()


def remove(root: Path, spec: TableSpec) -> None:
    """Delete a generated table."""
    shutil.rmtree(root / spec.name, ignore_errors=True)


def _calls(folder: Path, spec: TableSpec) -> Sequence[tuple[str, int, int, int, int]]:
    calls = []
    number = first_row = 0
    for part in spec.parts:
        per_call = max(1, min(_FILES_PER_CALL, _MAX_ROWS_PER_CALL // part.rows_per_file))
        for begin in range(0, part.file_count, per_call):
            count = min(per_call, part.file_count - begin)
            calls.append((str(folder), number, count, first_row, part.rows_per_file))
            number += count
            first_row += count * part.rows_per_file
    return calls


def _write_files(folder: str, number: int, count: int, first_row: int, rows: int) -> int:
    """Write `count` files from file `number` on; runs in a worker process."""
    for at in range(number, number + count):
        where = Path(folder) / folder_name([("day", at // _FILES_PER_FOLDER)])
        where.mkdir(exist_ok=True)
        pq.write_table(rows_of(at, first_row, rows), where / f"part-{at:06d}.parquet")
        first_row += rows
    return count


def rows_of(seed: int, first_row: int, count: int) -> pa.Table:
    """Return the rows of one file, the same for each seed."""
    random = np.random.default_rng(seed)
    key = random.integers(0, 1000, count)
    return pa.table(
        {
            "id": np.arange(first_row, first_row + count, dtype=np.int64),
            "region": (key % 16).astype(np.int32),
            "customer": pa.array([f"c{number:05d}" for number in range(1000)]).take(pa.array(key)),
            "amount": random.integers(0, 10_000_000_000, count),
            "score": random.random(count).astype(np.float32),
        }
    )
