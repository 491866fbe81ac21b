"""Measure how refreshing, publishing and planning grow with columns: CPU time per column and file.

    python benchmarks/wide_tables.py [--quick] [--json FILE]

Runs in one process on copies of one file: 20 columns against 2,000 in the same number of files. The
peer is the table of 20 columns. A ratio below 1/3 would mean that wide tables cost too much.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from common import Result, arguments, console, write_json
from rich.table import Table

from windrow_calls.snapshots import inventory_stream
from windrow_core.files.chunks import read_chunk
from windrow_core.files.status import FileStatus
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look
from windrow_service.inventory.manifests.encoding import cut_files, decode_manifest
from windrow_service.inventory.published.accepting import accept_inventory
from windrow_service.inventory.published.arrow_streams import read_stream
from windrow_service.planner.pruning.bounds import FileFacts

NARROW, WIDE = 20, 2_000
_MAX_BYTES = 2**32
Made = TypeVar("Made")


def main() -> None:
    """Measure, print a table, and write the JSON if asked to."""
    options = arguments(__doc__ or "").parse_args()
    files = 100 if options.quick else 1_000
    wide_columns = 400 if options.quick else WIDE
    narrow = _microseconds(NARROW, files)
    wide = _microseconds(wide_columns, files)
    table = Table("step", f"{NARROW} columns, µs", f"{wide_columns:,} columns, µs", "times")
    for step, us in wide.items():
        table.add_row(step, f"{narrow[step]:.2f}", f"{us:.2f}", f"{us / narrow[step]:.2f}")
    console.print(table)
    if options.json:
        results = [
            Result(
                case=f"{wide_columns:,} columns, {files:,} files: {step}",
                metric="CPU time per column and file",
                unit="µs",
                windrow=us,
                peer=f"Windrow, {NARROW} columns",
                peer_value=narrow[step],
            )
            for step, us in wide.items()
        ]
        write_json(options.json, "wide_tables", results)


def _microseconds(columns: int, files: int) -> dict[str, float]:
    """Return the CPU time of each step, per column and file."""
    spent: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Made]) -> Made:
        began_s = time.process_time()
        folder_name = work()
        spent[step] = (time.process_time() - began_s) / columns / files * 1e6
        return folder_name

    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        _write(folder, columns, files)
        listed = sorted(path.name for path in folder.iterdir())
        stats = [(folder / name).stat() for name in listed]
        states = [FileStatus(one.st_size, one.st_mtime_ns) for one in stats]
        timed("footers", lambda: read_chunk(folder_name, 0, listed, states))
        # Footers are read in other processes, whose time is not counted here.
        inventory = timed("inventory", lambda: take_inventory(Look(location=folder_name)))
    manifests = timed("manifests", lambda: cut_files(inventory.files))
    bodies = [manifest.data or b"" for manifest in manifests]
    timed("decoding", lambda: [decode_manifest(body) for body in bodies])
    timed("bounds", lambda: FileFacts(inventory.files, evidence="statistics").bounds("c1"))
    stream = inventory_stream(inventory.files.drop(["partition"]))
    sent = timed("stream", lambda: read_stream(stream, _MAX_BYTES))
    timed(
        "publish",
        lambda: accept_inventory(
            sent,
            columns=inventory.data_schema,
            partition_types=None,
            bucket_count=None,
            previous=None,
            max_bytes=_MAX_BYTES,
        ),
    )
    return spent


def _write(folder: Path, columns: int, files: int) -> None:
    numbers, texts = pa.array([1, 2]), pa.array(["a", "b"])
    table = pa.table({f"c{at}": numbers if at % 3 else texts for at in range(columns)})
    first = folder / "0000.parquet"
    pq.write_table(table, first)
    for at in range(1, files):
        shutil.copy(first, folder / f"{at:04d}.parquet")


if __name__ == "__main__":
    main()
