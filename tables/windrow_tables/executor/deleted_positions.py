"""Deleted rows of Delta and Iceberg files, which bitmaps or files of positions name."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow_core.files.access import is_of_system
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of
from windrow_tables.executor.bitmaps import BitmapError, positions_in
from windrow_tables.executor.errors import DeletesError
from windrow_tables.executor.files import open_stream, read_range
from windrow_tables.executor.formats import FORMAT_ERRORS, unreadable
from windrow_tables.executor.spec import MIB, ReadSpec, Split

_Ints: TypeAlias = npt.NDArray[np.int64]

# A bitmap takes at most two bytes per row, and the bitmaps that engines write are far smaller.
_MAX_BITMAP_BYTES = 256 * MIB
_BATCH_ROWS = 2**18
_LOCAL, _S3 = re.compile("^file:/+"), re.compile("^s3[an]:")


class DeletedPositions:
    """The deleted rows of a group's files.

    Args:
        spec: What to read.
        splits: The group's splits.
        counts: Counts, as `delete_files`, the files that are opened to find deleted rows.
    """

    def __init__(self, spec: ReadSpec, splits: Sequence[Split], counts: Counter[str]) -> None:
        self._location, self._home = spec.location, home_of(spec.location)
        self._counts = counts
        # By the path of each file of positions: the files whose rows it may name.
        self._named: defaultdict[str, dict[str, Split]] = defaultdict(dict)
        for split in splits:
            for delete in split.deletes or ():
                if delete["kind"] == "positions":
                    self._named[delete["path"]][_plain(split.path)] = split
        self._listed: dict[str, dict[str, _Ints]] = {}
        # Splits of one file follow one another.
        self._last: tuple[str, _Ints | None] = ("", None)

    def of(self, split: Split) -> _Ints | None:
        """Return the positions of a file's deleted rows, ascending; None if there are none."""
        if not split.deletes:
            return None
        if self._last[0] != split.path:
            parts = [self._positions(split, delete) for delete in split.deletes]
            positions = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
            self._last = split.path, positions if len(positions) else None
        return self._last[1]

    def _positions(self, split: Split, delete: dict[str, Any]) -> _Ints:
        if delete["kind"] == "vector":
            return self._of_bitmap(split, delete)
        if delete["kind"] != "positions":
            reason = f"its plan has deletes of kind {delete['kind']!r}: install a newer client"
            raise DeletesError(split.path, reason)
        path = delete["path"]
        if path not in self._listed:
            self._listed[path] = self._of_file(path, delete["size_bytes"])
        return self._listed[path][_plain(split.path)]

    def _of_bitmap(self, split: Split, delete: dict[str, Any]) -> _Ints:
        if split.row_count is None:
            raise DeletesError(split.path, "it has a deletion vector, but its rows are not counted")
        try:
            if delete["inline"] is not None:
                content = base64.b64decode(delete["inline"], validate=True)
            else:
                content = self._read(delete)
            return positions_in(content, split.row_count)
        except (BitmapError, binascii.Error) as error:
            where = f" in {delete['path']!r}" if delete["path"] is not None else ""
            reason = f"its deletion vector{where} is not usable: {error}"
            raise DeletesError(split.path, reason) from error

    def _read(self, delete: dict[str, Any]) -> bytes:
        if not 0 <= delete["length"] <= _MAX_BITMAP_BYTES:
            raise BitmapError(f"its length is given as {delete['length']:,} bytes")
        path = absolute_path(self._location, delete["path"])
        home = home_for(self._location, self._home, path)
        self._counts["delete_files"] += 1
        return read_range(home, path, delete["offset"], delete["length"])

    def _of_file(self, relative: str, size_bytes: int) -> dict[str, _Ints]:
        """Return the positions in a file of positions, by the plain paths of the group's files."""
        path = absolute_path(self._location, relative)
        home = home_for(self._location, self._home, path)
        splits = self._named[relative]
        lists = {plain: _PositionList(path, split) for plain, split in splits.items()}
        self._counts["delete_files"] += 1
        try:
            with open_stream(home, path, FileStatus(size_bytes, None), _opened) as reader:
                for batch in reader.iter_batches(_BATCH_ROWS, columns=["file_path", "pos"]):
                    for plain, positions in _by_path(batch, lists.keys()):
                        lists[plain].add(positions)
        except FORMAT_ERRORS as error:
            if is_of_system(error):
                raise unreadable(path, error, "") from error
            reason = f"it is not a file of positions: {' '.join(str(error).split())[:300]}"
            raise DeletesError(path, reason) from error
        return {plain: positions.ascending() for plain, positions in lists.items()}


def kept_rows(positions: _Ints, first: int, count: int) -> pa.BooleanArray | None:
    """Return which of `count` rows from position `first` on are not deleted; None if all are kept."""
    begin, end = np.searchsorted(positions, (first, first + count))
    if begin == end:
        return None
    mask = np.ones(count, np.bool_)
    mask[positions[begin:end] - first] = False
    return pa.array(mask)


def _opened(path: str, file: Any, buffer_bytes: int) -> Any:
    return pq.ParquetFile(file, buffer_size=buffer_bytes)


def _by_path(batch: pa.RecordBatch, plain_paths: Set[str]) -> Iterator[tuple[str, _Ints]]:
    """Yield the positions of each wanted file in a batch, by its plain path."""
    if batch.schema.names != ["file_path", "pos"] or batch["pos"].type != pa.int64():
        raise ValueError("its columns are not file_path and pos")
    if batch["file_path"].null_count or batch["pos"].null_count:
        raise ValueError("it holds nulls")
    encoded = batch["file_path"].dictionary_encode()
    codes, positions = np.asarray(encoded.indices), np.asarray(batch["pos"], np.int64)
    order = np.argsort(codes, kind="stable")
    codes, positions = codes[order], positions[order]
    for code, path in enumerate(encoded.dictionary.cast(pa.string()).to_pylist()):
        if (plain := _plain(path)) in plain_paths:
            first, last = np.searchsorted(codes, (code, code + 1))
            yield plain, positions[first:last]


class _PositionList:
    """The positions that a file of positions names in one file, without duplicates.

    Args:
        path: The file of positions, for messages.
        split: A split of the file that it names.
    """

    def __init__(self, path: str, split: Split) -> None:
        self._path, self._split = path, split
        self._parts: list[_Ints] = []
        self._count, self._most = 0, _BATCH_ROWS

    def add(self, positions: _Ints) -> None:
        """Add positions, in any order."""
        self._parts.append(positions)
        self._count += len(positions)
        # A file of positions may name the same rows many times.
        if self._count > self._most:
            self._most = max(_BATCH_ROWS, 2 * len(self.ascending()))

    def ascending(self) -> _Ints:
        """Return the positions so far, ascending."""
        positions = np.unique(np.concatenate([np.empty(0, np.int64), *self._parts]))
        self._parts, self._count = [positions], len(positions)
        rows = self._split.row_count
        if len(positions) and (positions[0] < 0 or (rows is not None and positions[-1] >= rows)):
            reason = f"it names a row that {self._split.path!r} does not have"
            raise DeletesError(self._path, reason)
        return positions


def _plain(path: str) -> str:
    """Return a path in a common spelling, so that paths of different writers compare equal."""
    return _S3.sub("s3:", _LOCAL.sub("/", path))
