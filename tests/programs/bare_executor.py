"""An executor without some packages: runs work that arrives pickled on standard input.

`python -m tests.programs.bare_executor WAY PACKAGES`, with the names of packages between commas.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from tests.programs.hiding import hide

Read = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def read_twice(read: Read, descriptor: bytes) -> None:
    """Print the rows of a group, read twice."""
    for _ in range(2):
        print(sum(batch.num_rows for batch in read(_task(descriptor))))


def read_in_turn(first: Read, second: Read, descriptor: bytes) -> None:
    """Print what each of three reads by two readers finds in memory."""
    for read in (first, second, first):
        frozen = gc.get_freeze_count()
        columns = [batch.schema.names for batch in read(_task(descriptor))]
        print(columns, frozen > 0, len(sys.modules["_windrow_readers"].readers))


def fail(read: Read, descriptor: bytes) -> None:
    """Print the error of a read."""
    try:
        list(read(_task(descriptor)))
    except Exception as error:
        print(type(error).__name__, error.args, error)


def read_column(pickled_read: bytes, descriptor: bytes) -> None:
    """Print how many values the column `a` has, and their sum."""
    read: Read = pickle.loads(pickled_read)
    values = [row for out in read(_task(descriptor)) for row in out["a"].to_pylist()]
    print(len(values), sum(values))


def read_source(reader: Any, _source: object, groups: Any) -> None:
    """Print the ids of all groups of a Python data source."""
    batches = (batch for group in groups for batch in reader.read(group))
    print(sorted(id_ for batch in batches for id_ in batch["id"].to_pylist()))


def list_and_read_footers(
    list_folders: Callable[..., Any], read_footers: Callable[..., Any]
) -> None:
    """Print what the tasks of an inventory job find."""
    files, folders, failures = list_folders([""])
    groups, unreadable, changes = read_footers((0, files))
    print(folders, failures, len(groups), unreadable, changes)


def _task(descriptor: bytes) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"value": pa.array([descriptor], pa.binary())})])


WAYS = {
    way.__name__: way
    for way in (
        read_twice,
        read_in_turn,
        fail,
        read_column,
        read_source,
        list_and_read_footers,
    )
}

if __name__ == "__main__":
    way, packages = sys.argv[1:]
    hide(packages.split(","))
    WAYS[way](*pickle.load(sys.stdin.buffer))
