"""Readers that read a table repeatedly while it is being written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.client import Client
from windrow_core.files.listing import is_hidden
from windrow_core.files.remote import read_whole_file, remote_status
from windrow_core.files.status import FileStatus
from windrow_tables.commits.inventories import list_files

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


def stored_ids(location: str) -> dict[str, list[int]]:
    """Return the ids of each partition of a table on a store, as listed."""
    ids: dict[str, list[int]] = {}
    for path in list_files(location)["path"].to_pylist():
        ids.setdefault(path.rpartition("/")[0], []).extend(_ids_of(f"{location}/{path}"))
    return {folder: sorted(some) for folder, some in ids.items()}


def planned_stored_ids(client: Client, table: str, location: str) -> list[int] | None:
    """Do as `planned_ids` on a store."""
    groups = client.plan(table).groups
    ids: list[int] = []
    for split in (split for group in groups["splits"].to_pylist() for split in group):
        file = f"{location}/{split['path']}"
        status = FileStatus(split["size_bytes"], split["mtime_ns"], split.get("etag"))
        try:
            if status.difference(remote_status(file)) is not None:
                return None
            ids += _ids_of(file)
        except FileNotFoundError:
            return None
    return sorted(ids)


def _ids_of(file: str) -> list[int]:
    with pq.ParquetFile(pa.BufferReader(read_whole_file(file, 2**30))) as parquet:
        ids: list[int] = parquet.read(["id"], use_threads=False)["id"].to_pylist()
    return ids


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
