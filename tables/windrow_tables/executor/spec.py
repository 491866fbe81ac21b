"""The settings that all tasks of one read share.

These classes travel by value, together with default instances of them, and therefore have no slots:
a dataclass with slots asks `dataclasses.fields` for its state, which finds none in a class that
Spark 3.5 has pickled.
"""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from windrow_tables.executor.rebasing import Calendars

# Spark does not accept batches without a column.
BARE_ROWS = pa.schema([("row", pa.bool_())])

KIB = 2**10
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class SortKey:
    """One column that every file is sorted by.

    Attributes:
        name: A column of the files, or a partition column.
        descending: Whether large values come first.
        nulls_first: Whether nulls come before every value.
    """

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Bounds of a task's memory and requests, and sizes from which it works differently.

    Attributes:
        max_batch_rows: Most rows in a batch that a task hands to Spark.
        max_batch_bytes: Most bytes in such a batch, unless it is a single row.
        max_buffered_file_bytes: Largest file that is read whole into memory.
        max_decoded_at_once_bytes: Largest file whose rows are decoded in one go.
        min_joined_files: Fewest small files of one shape that are decoded together: finding them
            costs some time, however many they are.
        max_run_bytes: Most decoded bytes that are sorted in memory; beyond, runs are spilled to
            disk and merged from there.
        prefetch_files: Most files that are asked for before they are decoded, if each is a
            request.
        prefetch_bytes: Most bytes of such files, unless it is a single file.
        requests_per_second: Most requests of a task to an object store; None for no bound.
    """

    max_batch_rows: int = 64 * KIB
    max_batch_bytes: int = 16 * MIB
    max_buffered_file_bytes: int = 8 * MIB
    max_decoded_at_once_bytes: int = 1 * MIB
    min_joined_files: int = 48
    max_run_bytes: int = 64 * MIB
    prefetch_files: int = 128
    prefetch_bytes: int = 16 * MIB
    requests_per_second: float | None = None


class PackFile(NamedTuple):
    """A pack: a Parquet file that holds the rows of many files of the table.

    Attributes:
        path: Absolute path, or URI.
        size_bytes: Its length; it never changes.
    """

    path: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class ReadSpec:
    """What to read of a table; the same for each of its groups.

    Attributes:
        table: The table's name, for messages.
        location: Absolute path or URI of the folder that the splits' paths are relative to.
        data: The columns to take from the files, with the table's types.
        hidden: Further columns of the files, which only the filter or the order needs.
        partition: The table's partition columns.
        output: Names of the columns to return, in order; each from `data` or `partition`. If there
            are none, rows are returned as a column without meaning.
        sort: The keys to merge the files by; empty to read them one after the other.
        limits: Bounds on memory and requests.
        calendars: How old dates and times are read.
        format: Format of the files: `parquet` or `orc`.
        names_rows: Whether files say by names which rows of others are deleted, as in Hive's transactional
            tables.
        valid_write_ids: For such a table, the valid write ids; None for all.
        logged: Whether the table keeps a log of its files, which never change once written.
        outlines: Outlines of the files whose splits have an `excerpt`.
        packs: Packs that hold the files whose splits have a `pack`.
        keeps_rows: Whether the rows stay in this process.
        zone: The zone of local times in folders, as the text of a `LocalZone`, if there are columns
            of instants for them.
    """

    table: str
    location: str
    data: pa.Schema
    hidden: pa.Schema
    partition: pa.Schema
    output: tuple[str, ...]
    sort: tuple[SortKey, ...] = ()
    limits: ReadLimits = ReadLimits()
    calendars: Calendars = field(default_factory=Calendars)
    format: str = "parquet"
    names_rows: bool = False
    valid_write_ids: str | None = None
    logged: bool = False
    outlines: tuple[str, ...] = ()
    packs: tuple[PackFile, ...] = ()
    keeps_rows: bool = False
    zone: str = ""

    def packed(self) -> bytes:
        """Return the spec in a form that does not contain its class."""
        return pickle.dumps(asdict(self))

    @classmethod
    def unpacked(cls, content: bytes) -> ReadSpec:
        """Return the spec that was packed."""
        fields = pickle.loads(content)
        fields["sort"] = tuple(SortKey(**key) for key in fields["sort"])
        fields["limits"] = ReadLimits(**fields["limits"])
        fields["packs"] = tuple(PackFile(*one) for one in fields["packs"])
        fields["calendars"] = Calendars(**fields["calendars"])
        return cls(**fields)

    @property
    def decoded(self) -> pa.Schema:
        """The columns to decode from each file."""
        return pa.schema([*self.data, *self.hidden])

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the batches that a task returns."""
        if not self.output:
            return BARE_ROWS
        fields = {field.name: field for field in (*self.partition, *self.data)}
        return pa.schema([(name, fields[name].type) for name in self.output])


class Split(NamedTuple):
    """A byte range of one data file.

    Attributes:
        ordinal: Place of the split in its group.
        path: Absolute path of the file, or its URI.
        start: First byte of the range.
        length: Bytes in the range.
        size_bytes: Length of the file when the plan was made.
        mtime_ns: Its last change, nanoseconds since 1970.
        row_count: Rows of the file, or of its excerpt; None if unknown.
        first_block: The first of the ORC file's stripes that the split covers; None if all.
        block_count: How many stripes it covers; None if all.
        deletes: What deletes rows of the file, as `windrow_core.models.Delete`.
        etag: The object's ETag when the plan was made; None if unknown.
        excerpt: Where its columns lie, as `windrow_core.models.Excerpt`; None if the file is read as is.
        pack: Position of a pack that holds the rows of the file; None if the file itself is read.
        pack_row: The number of the file's first row there.
    """

    ordinal: int
    path: str
    start: int
    length: int
    size_bytes: int
    mtime_ns: int
    row_count: int | None
    first_block: int | None = None
    block_count: int | None = None
    deletes: list[dict[str, Any]] | None = None
    etag: str | None = None
    excerpt: dict[str, Any] | None = None
    pack: int | None = None
    pack_row: int | None = None

    def blocks_of(self, file_blocks: int) -> range:
        """Return the numbers of the stripes that the split covers, of `file_blocks` in its file."""
        if self.is_whole:
            return range(file_blocks)
        if self.first_block is None or self.block_count is None:
            raise ValueError("its plan does not say which stripes are to be read")
        return range(self.first_block, min(self.first_block + self.block_count, file_blocks))

    @property
    def is_whole(self) -> bool:
        """Whether the split is the whole file."""
        return self.start == 0 and self.length >= self.size_bytes
