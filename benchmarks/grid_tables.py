"""Tables of many files of one size: a few files are generated, and the others are copies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from tables import KIB, MIB, Part, rows_of

from windrow_demo.hive import folder_name
from windrow_demo.write_once import write_once

_LAYOUT = 1
_FILES_PER_FOLDER = 100
_DIFFERENT = 4
_MAX_BYTES = 2**30
# Number of rows in a file, relative to a Parquet file of the same size.
_ROWS = {"parquet": 1.0, "orc": 2.1}
_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": pq.write_table,
    "orc": partial(orc.write_table, compression="zlib"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A table of the grid.

    Attributes:
        name: Name for programs, and of the table's folder.
        title: Title for people.
        parts: Its files, by size.
    """

    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> int:
        """Number of files."""
        return sum(part.file_count for part in self.parts)

    @property
    def file_bytes(self) -> int:
        """Size of its largest files."""
        return max(part.file_bytes for part in self.parts)

    @property
    def is_mix(self) -> bool:
        """Whether it has files of several sizes."""
        return len(self.parts) > 1


def cell_of(files: int, file_bytes: int) -> Cell:
    """Return the cell of this many files of one size."""
    size = f"{file_bytes // MIB} MB" if file_bytes >= MIB else f"{file_bytes // KIB} KB"
    name = f"{files}x{size.replace(' ', '')}"
    return Cell(name, f"{files:,} x {size}", (Part(files, file_bytes),))


COUNTS = (1, 10, 100, 1_000, 10_000)
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB)
CELLS = tuple(
    cell_of(files, size) for size in SIZES for files in COUNTS if files * size <= _MAX_BYTES
)
MIX = Cell("mix", "2,000 x 16 KB + 10 x 32 MB", (Part(2_000, 16 * KIB), Part(10, 32 * MIB)))
QUICK_CELLS = (cell_of(20, 16 * KIB), cell_of(2, 256 * KIB))
QUICK_MIX = Cell("mix", "10 x 16 KB + 2 x 256 KB", (Part(10, 16 * KIB), Part(2, 256 * KIB)))


def written(root: Path, cell: Cell, format: str = "parquet") -> Path:
    """Make sure that a table exists under `root`, and return its folder.

    The partition column is `day`, an int; each folder holds a hundred files.
    """
    suffix = "" if format == "parquet" else f"-{format}"
    folder = root / f"{cell.name}-{cell.files}{suffix}"

    def write(to: Path) -> None:
        at = 0
        for part in cell.parts:
            originals: list[Path] = []
            count = round(part.rows_per_file * _ROWS[format])
            for number in range(part.file_count):
                day = folder_name([("day", at // _FILES_PER_FOLDER)])
                path = to / day / f"part-{at:06d}.{format}"
                path.parent.mkdir(exist_ok=True)
                if number < _DIFFERENT:
                    rows = rows_of(at, number * count, count)
                    _WRITERS[format](rows, path)
                    originals.append(path)
                else:
                    shutil.copyfile(originals[number % _DIFFERENT], path)
                at += 1

    write_once(folder, {"cell": cell.title, "layout": _LAYOUT}, write, file_count=cell.files)
    return folder
