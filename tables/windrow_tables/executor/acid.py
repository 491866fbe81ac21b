"""Reading the files of transactional tables whose rows can be deleted one by one.

Each row of such a file says which write added it, and has a name that no other row of its
partition has. Delete files name the deleted rows; a group reads those of all its files once.
Files from before a table became transactional, and files that Hive loaded unchanged, hold rows
without names: such rows are named by the file's bucket and by their position in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.acid.names import (
    ACID_COLUMNS,
    BEFORE_ALL,
    ROW,
    are_named,
    bucket_property,
    buckets_in,
    buckets_of,
    file_folders,
    folder_of,
    latest_code,
)
from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.file_fields import position_in
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of
from windrow_tables.executor.caching import Files
from windrow_tables.executor.conversions import convert, widens
from windrow_tables.executor.deleted_rows import DeletedRows, Memory, RowNames
from windrow_tables.executor.errors import (
    AcidFileError,
    AmbiguousColumnError,
    ColumnTypeError,
    StaleFileError,
)
from windrow_tables.executor.files import read_whole
from windrow_tables.executor.formats import FORMAT_ERRORS, unreadable
from windrow_tables.executor.orc import OrcFormat
from windrow_tables.executor.rows import Rows
from windrow_tables.executor.spec import ReadSpec, Split

_OPERATION, _WRITE, _BUCKET, _ROW_ID, _CURRENT = ACID_COLUMNS
_INSERT, _DELETE = 0, 2
_MAX_DELETED_IN_MEMORY = 4 * 2**20
_TYPES = [pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64()]


class DeleteFile(NamedTuple):
    """A file that names deleted rows, as planned.

    Attributes:
        path: Relative to the table's location.
        size_bytes: Its length.
        mtime_ns: Its last change, nanoseconds since 1970.
    """

    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """The facts that the path of a data file states.

    Attributes:
        deletes: The partition's folder, and the bucket, whose delete files apply.
        write: The write that added its rows, unless each row names its write.
        statement: The statement of that write; -1 if there is none.
    """

    deletes: tuple[str, int]
    write: int
    statement: int

    @classmethod
    def all_of(cls, paths: pa.Array) -> list[_Origin]:
        """Read the paths of files, relative to the table's location."""
        folders = file_folders(paths)
        columns = [
            column.to_pylist() for column in (folders.root, folders.folder, buckets_of(paths))
        ]
        return [cls._of(*of) for of in zip(*columns, strict=True)]

    @classmethod
    def _of(cls, root: str, folder: str | None, bucket: int) -> _Origin:
        parsed = folder_of(folder[len(root) :]) if folder is not None else None
        # Rows without names are from one write; rows with names state their write.
        if parsed is None or parsed.least != parsed.most or parsed.most == BEFORE_ALL:
            return cls(deletes=(root, bucket), write=0, statement=-1)
        return cls(deletes=(root, bucket), write=parsed.most, statement=parsed.statement)


class AcidDecoder:
    """Decodes files of a transactional table, without rows that are invisible or deleted.

    Args:
        spec: What to read.
        files: The files to read from.
        delete_files: The group's delete files.
        splits: The group's splits, with `first_row_id`: the number of a file's first row among
            the rows of its bucket, if rows have no names of their own.
        counts: Counts the delete files that are opened.
    """

    def __init__(
        self,
        spec: ReadSpec,
        files: Files,
        delete_files: Sequence[DeleteFile],
        splits: pa.RecordBatch,
        counts: Counter[str],
    ) -> None:
        self._spec = spec
        self._files = files
        self._target = spec.decoded
        self._format = OrcFormat(spec)
        self._ids = WriteIds.parse(spec.valid_write_ids) if spec.valid_write_ids else None
        self._first_row_ids = splits.column("first_row_id").to_pylist()
        self._origins = _Origin.all_of(splits.column("path"))
        self._memory = Memory(_MAX_DELETED_IN_MEMORY)
        self._deleted = _Deletes(spec, delete_files, self._ids, self._memory, counts)

    def close(self) -> None:
        """Remove scratch files."""
        self._memory.close()

    def is_small(self, split: Split) -> bool:
        """See `Decoder.is_small`."""
        limits = self._spec.limits
        return (
            split.size_bytes <= limits.max_decoded_at_once_bytes
            and (split.row_count or 0) <= limits.max_batch_rows
        )

    def decode(self, splits: Iterable[Split], max_rows: int, max_bytes: int) -> Iterator[Rows]:
        """See `Decoder.decode`."""
        waiting: list[tuple[Split, pa.Table]] = []
        rows = size_bytes = 0
        for split in splits:
            for table in self._tables(split):
                if waiting and (
                    rows + table.num_rows > max_rows or size_bytes + table.nbytes > max_bytes
                ):
                    yield _joined(waiting)
                    waiting, rows, size_bytes = [], 0, 0
                waiting.append((split, table))
                rows += table.num_rows
                size_bytes += table.nbytes
        if waiting:
            yield _joined(waiting)

    def _tables(self, split: Split) -> Iterator[pa.Table]:
        """Yield the visible rows of a file, as the table's columns."""
        if split.size_bytes <= self._spec.limits.max_buffered_file_bytes:
            content = pa.BufferReader(self._files.whole(split))
            yield from self._rows_of(split, self._format.opened(split.path, content, 0))
            return
        with self._files.stream(split, self._format.opened) as reader:
            yield from self._rows_of(split, reader)

    def _rows_of(self, split: Split, reader: Any) -> Iterator[pa.Table]:
        layout = _Layout.of(split.path, reader, self._target)
        first_row_id = self._first_row_ids[split.ordinal]
        if layout.has_names != (first_row_id is None):
            raise StaleFileError(split.path, "kind of rows", None, None)
        origin = self._origins[split.ordinal]
        deletes = self._deleted.of(origin.deletes)
        needs_names = deletes is not None or (layout.has_names and self._ids is not None)
        count = 0
        names = layout.names(needs_names)
        batches = _named_batches if layout.has_names else _batches
        for batch in batches(split.path, reader, names):
            mask = np.ones(batch.num_rows, np.bool_)
            if layout.has_names:
                self._require_inserts(split.path, batch)
                if self._ids is not None:
                    mask &= self._ids.are_valid(_ints(split.path, batch, _CURRENT))
            if deletes is not None:
                rows = (
                    _names(split.path, batch)
                    if layout.has_names
                    else _made_names(origin, (first_row_id or 0) + count, batch.num_rows)
                )
                mask &= ~deletes.hold(rows)
            count += batch.num_rows
            if not mask.all():
                batch = batch.filter(pa.array(mask))
            yield layout.table(split.path, batch, int(mask.sum()), self._spec.calendars.zone)
        if count != split.row_count:
            raise StaleFileError(split.path, "row count", split.row_count, count)

    def _require_inserts(self, path: str, batch: pa.RecordBatch) -> None:
        if pc.any(pc.not_equal(batch[_OPERATION], _INSERT)).as_py():
            reason = (
                "it holds updates or deletes beside inserts, as Hive wrote before release 3: run a "
                "major compaction of the table in Hive, and refresh it"
            )
            raise AcidFileError(path, reason)


class _Deletes:
    """The deleted rows of each partition and bucket, read when they are first asked for."""

    def __init__(
        self,
        spec: ReadSpec,
        files: Sequence[DeleteFile],
        ids: WriteIds | None,
        memory: Memory,
        counts: Counter[str],
    ) -> None:
        self._location, self._home = spec.location, home_of(spec.location)
        self._format = OrcFormat(spec)
        self._ids, self._memory, self._counts = ids, memory, counts
        self._read: dict[tuple[str, int], DeletedRows | None] = {}
        self._files: defaultdict[tuple[str, int], list[DeleteFile]] = defaultdict(list)
        paths = pa.array([file.path for file in files], pa.string())
        roots, buckets = file_folders(paths).root.to_pylist(), buckets_of(paths).to_pylist()
        for file, root, bucket in zip(files, roots, buckets, strict=True):
            self._files[root, bucket].append(file)

    def of(self, key: tuple[str, int]) -> DeletedRows | None:
        """Return the deleted rows of a partition and bucket; None if there are none."""
        if key not in self._read:
            files = self._files.pop(key, [])
            rows = DeletedRows(self._memory) if files else None
            for file in files:
                for names in self._names_in(file, key[1]):
                    assert rows is not None
                    rows.add(names)
            self._read[key] = rows
        return self._read[key]

    def _names_in(self, file: DeleteFile, bucket: int) -> Iterator[RowNames]:
        path = absolute_path(self._location, file.path)
        home = home_for(self._location, self._home, path)
        content = read_whole(home, path, FileStatus(file.size_bytes, file.mtime_ns))
        reader = self._format.opened(path, pa.BufferReader(content), 0)
        self._counts["delete_files"] += 1
        schema = _schema(path, reader)
        if not has_row_names(schema):
            raise AcidFileError(path, "it does not name rows, as a delete file does")
        for batch in _named_batches(path, reader, schema.names[:-1]):
            names = _names(path, batch)
            if (_ints(path, batch, _OPERATION) != _DELETE).any():
                raise AcidFileError(path, "it holds rows that are not deletes")
            if (buckets_in(names.bucket) != bucket).any():
                raise AcidFileError(path, f"it names rows of buckets other than its own, {bucket}")
            if self._ids is not None:
                names = names.take(self._ids.are_valid(_ints(path, batch, _CURRENT)))
            yield names


def has_row_names(schema: pa.Schema) -> bool:
    """Return whether the rows of a file with these columns have names."""
    return bool(
        are_named(schema.names) and schema.types[:-1] == _TYPES and pt.is_struct(schema.types[-1])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where the wanted columns are in a file.

    Attributes:
        own: The file's columns that name rows, and last the struct that holds the table's columns;
            empty if rows have no names.
        target: The wanted columns, with the table's types.
        file_names: Their names in the file; None for columns that the file lacks.
    """

    own: tuple[str, ...]
    target: pa.Schema
    file_names: tuple[str | None, ...]

    @property
    def has_names(self) -> bool:
        """Whether rows have names."""
        return bool(self.own)

    @classmethod
    def of(cls, path: str, reader: Any, target: pa.Schema) -> _Layout:
        schema = _schema(path, reader)
        has_names = has_row_names(schema)
        if not has_names and are_named(schema.names):
            raise AcidFileError(path, "the columns that name its rows are not as Hive writes them")
        columns = schema.types[-1] if has_names else pa.struct(list(schema))
        file_names: list[str | None] = []
        for field in target:
            at = position_in(columns, field)
            if at == -2:
                names = [one.name for one in columns if one.name.lower() == field.name.lower()]
                raise AmbiguousColumnError(path, field.name, tuple(names))
            if at >= 0 and not widens(_as_instant(columns.field(at).type), field.type):
                file_type = str(columns.field(at).type)
                raise ColumnTypeError(path, field.name, file_type, str(field.type))
            file_names.append(columns.field(at).name if at >= 0 else None)
        own = tuple(schema.names) if has_names else ()
        return cls(own=own, target=target, file_names=tuple(file_names))

    def names(self, with_names: bool) -> list[str]:
        """Return the names of the columns to decode, as Arrow's ORC reader takes them."""
        columns = [name for name in dict.fromkeys(self.file_names) if name is not None]
        if not self.has_names:
            return columns
        own = self.own[:-1] if with_names else self.own[:1]
        return [*own, *(f"{self.own[-1]}.{name}" for name in columns)]

    def table(self, path: str, batch: pa.RecordBatch, row_count: int, zone: str) -> pa.Table:
        """Return decoded rows as the table's columns."""
        source = batch
        if self.has_names:
            fields = batch[ROW] if ROW in batch.schema.names else None
            source = pa.RecordBatch.from_struct_array(fields) if fields is not None else None
        columns = []
        for field, name in zip(self.target, self.file_names, strict=True):
            if name is None:
                columns.append(pa.nulls(row_count, field.type))
                continue
            try:
                values = (
                    _instants(source[name], zone) if _is_wall(source[name].type) else source[name]
                )
                columns.append(convert(values, field.type))
            except pa.ArrowInvalid as error:
                reason = f"column {field.name!r}: {error}"
                raise AcidFileError(path, " ".join(reason.split())[:300]) from error
        if not columns:
            return pa.table({"": pa.nulls(row_count)})
        return pa.table(columns, schema=self.target)


def _is_wall(type_: pa.DataType) -> bool:
    return bool(pt.is_timestamp(type_) and type_.tz is None)


def _as_instant(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if _is_wall(type_) else type_


def _instants(values: pa.Array, zone: str) -> pa.Array:
    """Convert local times of a zone to instants."""
    return pc.assume_timezone(values, zone, ambiguous="raise", nonexistent="raise")


def _names(path: str, batch: pa.RecordBatch) -> RowNames:
    write, bucket, row_id = (_ints(path, batch, name) for name in (_WRITE, _BUCKET, _ROW_ID))
    return RowNames(write, latest_code(bucket), row_id)


def _made_names(origin: _Origin, first: int, count: int) -> RowNames:
    code = bucket_property(origin.deletes[1], origin.statement)
    return RowNames(
        np.full(count, origin.write, np.int64),
        np.full(count, code, np.int64),
        np.arange(first, first + count, dtype=np.int64),
    )


def _schema(path: str, reader: Any) -> pa.Schema:
    try:
        return reader.schema()
    except FORMAT_ERRORS as error:
        raise unreadable(path, error, "ORC") from error


def _batches(path: str, reader: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the stripes of a file; without columns, one batch that only has a length."""
    try:
        if not names:
            yield pa.RecordBatch.from_arrays([pa.nulls(reader.nrows())], [""])
            return
        for at in range(reader.nstripes()):
            yield reader.read_stripe(at, names)
    except FORMAT_ERRORS as error:
        raise unreadable(path, error, "ORC") from error


def _named_batches(path: str, reader: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the stripes of a file whose rows have names, with Hive's own spelling of columns."""
    spellings = {name.lower(): name for name in (*ACID_COLUMNS, ROW)}
    for batch in _batches(path, reader, list(names)):
        columns = [spellings[name.lower()] for name in batch.schema.names]
        yield batch.rename_columns(columns)


def _ints(path: str, batch: pa.RecordBatch, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    column = batch[name]
    if column.null_count:
        raise AcidFileError(path, f"its column {name!r} holds nulls")
    values: np.ndarray[Any, np.dtype[np.int64]] = column.to_numpy().astype(np.int64, copy=False)
    return values


def _joined(waiting: Sequence[tuple[Split, pa.Table]]) -> Rows:
    splits, tables = zip(*waiting, strict=True)
    table = pa.concat_tables(tables).combine_chunks()
    return Rows(table=table, splits=splits, counts=[one.num_rows for one in tables])
