"""Commits to a Delta table as a streaming job makes them: small, and one after another."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def rows_of(commit: int) -> pa.Table:
    """Return the rows that a commit appends."""
    count = 1 + commit % 5
    return pa.table(
        {
            "id": pa.array(range(commit * 10, commit * 10 + count), pa.int64()),
            "part": [f"p {at % 3}/é" for at in range(count)],
            "text": [None if at % 4 == 3 else f"{commit}-{at}" for at in range(count)],
        }
    )


def write(folder: Path, commits: int, first: int = 0) -> None:
    """Make commits: mostly appends, now and then an overwrite, a delete, or a compaction."""
    for commit in range(first, commits):
        if commit % 20 == 13:
            DeltaTable(folder).delete(f"id % 100 = {commit % 7}")
        elif commit % 20 == 19:
            DeltaTable(folder).optimize.compact()
        elif commit % 50 == 31:
            DeltaTable(folder).optimize.z_order(["id"])
        elif commit == 120:
            write_deltalake(folder, rows_of(commit), mode="overwrite", predicate="part = 'p 0/é'")
        else:
            write_deltalake(folder, rows_of(commit), mode="append", partition_by=["part"])
        if commit % 40 == 39:
            DeltaTable(folder).create_checkpoint()


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
