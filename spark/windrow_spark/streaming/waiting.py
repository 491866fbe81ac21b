"""Waiting batches: rows of a stream that are durable, but not in the table yet.

Each is a folder `_windrow/streams/<query>/<batch>` in the table's location, with Parquet files and
a description. One rename makes it visible as a whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from windrow_spark.commits import posix
from windrow_spark.streaming.errors import WaitingBatchError

# Names that begin with an underscore are skipped by Spark, Hive, Arrow and Windrow's own listing.
_ROOT = os.path.join("_windrow", "streams")
_DESCRIPTION = "batch.json"
_VERSION = 1
# Begin the names of folders that are being written, and that gather files to be read.
_UNFINISHED = "."


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
        """Return the figures of a folder's files; files without rows are removed."""
        rows = size_bytes = 0
        partitions: set[str] = set()
        for path in _files_in(folder):
            with pq.ParquetFile(path) as file:
                groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
                if file.metadata.num_rows:
                    partitions |= _partitions(file, list(partition_columns))
            if not file.metadata.num_rows:
                os.remove(path)
            rows += file.metadata.num_rows
            size_bytes += sum(
                group.column(at).total_compressed_size
                for group in groups
                for at in range(group.num_columns)
            )
        return cls(rows, size_bytes, tuple(sorted(partitions)))


@dataclass(frozen=True, slots=True)
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
        return os.path.join(self.location, _ROOT, self.query_id)

    def batches(self) -> list[WaitingBatch]:
        """Return the batches in the order of their ids."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return [
            self._batch(number) for number in sorted(int(one) for one in names if one.isdigit())
        ]

    def new_folder(self) -> str:
        """Make a folder for the files of a batch, which does not count before `keep`."""
        folder = os.path.join(self.path, f"{_UNFINISHED}{uuid.uuid4().hex}")
        while True:
            try:
                os.makedirs(folder)
                return folder
            except FileNotFoundError:
                # A write that has just ended removes folders above if they are empty.
                continue

    def keep(self, folder: str, batch: WaitingBatch) -> None:
        """Make a folder's files a batch, at once and for good."""
        posix.sync(_files_in(folder))
        description = {"version": _VERSION, **asdict(batch)}
        posix.write_atomically(os.path.join(folder, _DESCRIPTION), json.dumps(description).encode())
        posix.move_if_free(folder, self._folder(batch.batch_id))
        above = self.path
        folders = [above]
        while above != self.location:
            above = os.path.dirname(above)
            folders.append(above)
        posix.sync(folders)

    @contextmanager
    def gathered(self, batches: Iterable[WaitingBatch]) -> Iterator[str]:
        """Yield a folder with the files of some batches: it is quicker to list than many."""
        folder = self.new_folder()
        try:
            for batch in batches:
                for path in _files_in(self._folder(batch.batch_id)):
                    name = f"{batch.batch_id}-{os.path.basename(path)}"
                    posix.link(path, os.path.join(folder, name))
            yield folder
        finally:
            self.remove(folder)

    def remove(self, folder: str) -> None:
        """Remove a folder that is not kept."""
        shutil.rmtree(folder, ignore_errors=True)

    def remove_up_to(self, batch_id: int | None) -> None:
        """Remove batches that are in the table, and what an earlier run was writing.

        Args:
            batch_id: The newest batch in the table; None if there is none.
        """
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return
        for name in names:
            is_published = name.isdigit() and batch_id is not None and int(name) <= batch_id
            if is_published or name.startswith(_UNFINISHED):
                shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)
        folder = self.path
        with suppress(OSError):
            while folder != self.location:
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def _batch(self, batch_id: int) -> WaitingBatch:
        path = os.path.join(self._folder(batch_id), _DESCRIPTION)
        try:
            with open(path, "rb") as file:
                return _described(json.load(file))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WaitingBatchError(path, str(error)) from error

    def _folder(self, batch_id: int) -> str:
        return os.path.join(self.path, str(batch_id))


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


def _described(document: Mapping[str, Any]) -> WaitingBatch:
    fields = dict(document)
    version = fields.pop("version")
    if version != _VERSION:
        raise ValueError(f"its version is {version}")
    return WaitingBatch(**(fields | {"partitions": tuple(fields["partitions"])}))


def _files_in(folder: str) -> list[str]:
    return sorted(
        os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".parquet")
    )
