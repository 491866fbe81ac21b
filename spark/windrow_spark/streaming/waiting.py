"""Waiting batches: rows of a stream that are durable, but not in the table yet.

Each is a folder `_windrow/streams/<query>/<batch>` in the table's location, with Parquet files and
a description. One rename makes it visible as a whole.
"""

from __future__ import annotations

import json
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING, Form
from windrow_spark.streaming.errors import WaitingBatchError
from windrow_tables.commits import posix

# Names that begin with an underscore are skipped by Spark, Hive, Arrow and Windrow's own listing.
_ROOT = "_windrow/streams"
_DESCRIPTION = "batch.json"
_VERSION = 1
# Begins the names of folders that are being written, and that gather files to be read.
_UNFINISHED = "."
_NUMBER = re.compile("0|[1-9][0-9]*")
_OURS = Form(re.compile(rf"{_ROOT}/[^/]+/(\.[0-9a-f]{{32}}|{_NUMBER.pattern})(?s:/.+)?"))
# Another driver or write may remove the folders above as often while one is made in them.
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """One waiting batch.

    Attributes:
        batch_id: The batch.
        rows: Number of its rows.
        size_bytes: Bytes that their columns take in its files.
        partitions: The partitions of the rows, as texts.
        schema: Spark's schema of the rows, as JSON.
        staged_at_s: When it was staged, in seconds since 1970.
        query_name: Name of the query.
        checkpoint: Location of the query's checkpoint.
    """

    batch_id: int
    rows: int
    size_bytes: int
    partitions: tuple[str, ...]
    schema: str
    staged_at_s: float
    query_name: str | None
    checkpoint: str | None


_BATCH = TypeAdapter(WaitingBatch)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Figures of files, from their footers and partition columns.

    Attributes:
        rows: Number of rows.
        size_bytes: Bytes of all columns.
        partitions: The partitions of the rows, as texts.
    """

    rows: int
    size_bytes: int
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, folder: str, partition_columns: Sequence[str]) -> StagedRows:
        """Return the figures of the files in a new folder; files without rows are removed."""
        rows = size_bytes = 0
        partitions: set[str] = set()
        for path in _files_in(folder):
            with pq.ParquetFile(path) as file:
                groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
                if file.metadata.num_rows:
                    partitions |= _partitions(file, list(partition_columns))
            if not file.metadata.num_rows:
                Root(folder).remove_file(os.path.basename(path), ANYTHING)
            rows += file.metadata.num_rows
            size_bytes += sum(
                group.column(at).total_compressed_size
                for group in groups
                for at in range(group.num_columns)
            )
        return cls(rows, size_bytes, tuple(sorted(partitions)))


@dataclass(frozen=True)
class WaitingFolder:
    """The waiting batches of one stream.

    Attributes:
        location: Absolute path of the table.
        query_id: The streaming query.
    """

    location: str
    query_id: str

    @property
    def path(self) -> str:
        """Absolute path of the folder."""
        return os.path.join(self.location, self._below)

    @property
    def _below(self) -> str:
        return f"{_ROOT}/{self.query_id}"

    @cached_property
    def _root(self) -> Root:
        return Root.resolved(self.location)

    def batches(self) -> list[WaitingBatch]:
        """Return the batches in the order of their ids."""
        numbers = [int(name) for name in self._names() if _NUMBER.fullmatch(name)]
        return [self._batch(number) for number in sorted(numbers)]

    def new_folder(self) -> str:
        """Make a folder for the files of a batch, which does not count before `keep`.

        Returns:
            Its absolute path.
        """
        name = f"{_UNFINISHED}{uuid.uuid4().hex}"
        for attempt in range(_ATTEMPTS):
            try:
                self._root.make_folder(self._below)
                self._root.make_new_folder(f"{self._below}/{name}")
                break
            except FileNotFoundError:
                # A write that has just ended removes folders above if they are empty.
                if attempt == _ATTEMPTS - 1:
                    raise
        return os.path.join(self.path, name)

    def keep(self, folder: str, batch: WaitingBatch) -> None:
        """Make a folder's files a batch, at once and for good.

        Args:
            folder: What `new_folder` has returned.
            batch: The batch.

        Raises:
            FileExistsError: The batch waits already.
        """
        posix.sync(_files_in(folder))
        new = f"{self._below}/{os.path.basename(folder)}"
        description = json.dumps({"version": _VERSION, **asdict(batch)}).encode()
        self._root.write_file(f"{new}/{_DESCRIPTION}", description)
        self._root.move(new, f"{self._below}/{batch.batch_id}", _OURS)
        folders = self._below.split("/")
        for depth in range(len(folders), -1, -1):
            self._root.sync("/".join(folders[:depth]))

    @contextmanager
    def gathered(self, batches: Iterable[WaitingBatch]) -> Iterator[str]:
        """Yield a folder with the files of some batches: it is quicker to list than many."""
        folder = self.new_folder()
        new = f"{self._below}/{os.path.basename(folder)}"
        try:
            for batch in batches:
                old = f"{self._below}/{batch.batch_id}"
                for name, status in self._root.entries(old):
                    # A link could lead to files that only this process may read.
                    if name.endswith(".parquet") and stat.S_ISREG(status.st_mode):
                        self._root.link(f"{old}/{name}", f"{new}/{batch.batch_id}-{name}")
            yield folder
        finally:
            self.remove(folder)

    def remove(self, folder: str) -> None:
        """Remove a folder that is not kept."""
        with suppress(OSError):
            self._root.remove_tree(f"{self._below}/{os.path.basename(folder)}", _OURS)

    def remove_up_to(self, batch_id: int | None) -> None:
        """Remove batches that are in the table, and what an earlier run was writing.

        Args:
            batch_id: The newest batch in the table; None if there is none.
        """
        for name in self._names():
            path = f"{self._below}/{name}"
            is_old = _NUMBER.fullmatch(name) and batch_id is not None and int(name) <= batch_id
            with suppress(OSError):
                # Without a description, it is none of a stream's batches.
                if name.startswith(_UNFINISHED) or (
                    is_old and self._root.status(f"{path}/{_DESCRIPTION}") is not None
                ):
                    self._root.remove_tree(path, _OURS)
        with suppress(OSError):
            self._root.remove_empty(self._below)

    def _names(self) -> list[str]:
        try:
            return [name for name, _ in self._root.entries(self._below)]
        except FileNotFoundError:
            return []

    def _batch(self, batch_id: int) -> WaitingBatch:
        path = f"{self._below}/{batch_id}/{_DESCRIPTION}"
        try:
            return _described(self._root.content(path), batch_id)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise WaitingBatchError(os.path.join(self.location, path), str(error)) from error


def waiting_folders(location: str) -> Iterator[WaitingFolder]:
    """Yield the folders of all streams that have waiting batches at a table's location."""
    try:
        query_ids = sorted(os.listdir(os.path.join(location, _ROOT)))
    except FileNotFoundError:
        return
    for query_id in query_ids:
        yield WaitingFolder(location, query_id)


class WaitingRows(NamedTuple):
    """What waits of one stream.

    Attributes:
        query_id: The streaming query.
        batches: Number of its waiting batches.
        rows: Number of their rows.
    """

    query_id: str
    batches: int
    rows: int


def waiting_rows(location: str) -> list[WaitingRows]:
    """Return what waits of each stream at a table's location; nothing does beyond local paths."""
    figures = []
    for folder in waiting_folders(re.sub("^file:(//)?", "", location)):
        batches = folder.batches()
        if batches:
            rows = sum(batch.rows for batch in batches)
            figures.append(WaitingRows(folder.query_id, len(batches), rows))
    return figures


def _partitions(file: pq.ParquetFile, columns: list[str]) -> set[str]:
    if not columns:
        return {""}
    values = file.read(columns).group_by(columns).aggregate([])
    return {repr(tuple(one.values())) for one in values.to_pylist()}


def _described(content: bytes, batch_id: int) -> WaitingBatch:
    version = json.loads(content)["version"]
    if version != _VERSION:
        raise ValueError(f"its version is {version}")
    batch = _BATCH.validate_json(content)
    if batch.batch_id != batch_id:
        raise ValueError(f"it is of batch {batch.batch_id}")
    return batch


def _files_in(folder: str) -> list[str]:
    return sorted(
        os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".parquet")
    )
