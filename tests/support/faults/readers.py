"""Readers that read a table repeatedly while it is being written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq

import windrow
from windrow_core.files.listing import is_hidden

T = TypeVar("T")

# Between two looks, so that readers leave most of the processors to the writer.
_PAUSE_S = 0.01


def ids_in(file: Path) -> list[int]:
    """Return the ids in a Parquet file."""
    # Not `read_table`: making a dataset of the file would take most of the time of a look.
    with pq.ParquetFile(file) as parquet:
        # Waking up threads would take longer than reading a column of so few rows.
        ids: list[int] = parquet.read(["id"], use_threads=False)["id"].to_pylist()
    return ids


def listed_ids(location: Path) -> dict[str, list[int] | None]:
    """Return the ids of each partition, as seen by a reader that lists folders.

    None means that a file of the partition vanished after it was listed.
    """
    ids: dict[str, list[int] | None] = {}
    for folder in sorted(location.iterdir()):
        if is_hidden(folder.name):
            continue
        try:
            names = sorted(path.name for path in folder.iterdir() if not is_hidden(path.name))
            ids[folder.name] = sorted(id_ for name in names for id_ in ids_in(folder / name))
        except FileNotFoundError:
            ids[folder.name] = None
    return ids


def planned_ids(url: str, table: str, location: Path) -> list[int] | None:
    """Return all ids, as seen by a reader with a plan; None if a file has changed."""
    with windrow.connect(url) as client:
        groups = client.plan(table).groups
    ids: list[int] = []
    for split in (split for group in groups["splits"].to_pylist() for split in group):
        path = location / split["path"]
        try:
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) != (split["size_bytes"], split["mtime_ns"]):
                return None
            ids += ids_in(path)
        except FileNotFoundError:
            return None
    return sorted(ids)


@contextmanager
def looking(look: Callable[[], T]) -> Iterator[list[T]]:
    """Call `look` repeatedly in a thread, at least once; yield the list of results."""
    looks: list[T] = []
    failed: list[BaseException] = []
    end = threading.Event()

    def go_on() -> None:
        try:
            while not (looks and end.is_set()):
                looks.append(look())
                end.wait(_PAUSE_S)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield looks
    finally:
        end.set()
        thread.join()
    if failed:
        raise failed[0]
