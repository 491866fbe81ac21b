"""Write plans on the wire: how many files, which repartition scheme, and what comes of it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from windrow.models.base import Answer, ByteSize, ColumnName, Request, Scalar, TableName, Whole
from windrow.models.tables import Column

MAX_WRITE_KEYS = 100_000
MAX_SALT_COLUMNS = 64

# As in Spark: `salted` is `repartition(n * scale, keys, salt)`, `range` is
# `repartitionByRange(n, keys)`, `range_hash` is `repartitionByRange(n, xxhash64(keys), salt)`.
WriteScheme: TypeAlias = Literal[
    "coalesce", "repartition", "columns", "salted", "range", "range_hash", "exact"
]
WriteMode: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]
FileCountBasis: TypeAlias = Literal["size", "rows", "static", "hybrid"]

_Rows: TypeAlias = Annotated[int, Whole(0, 2**50)]
_Bucket: TypeAlias = Annotated[int, Whole(0, 2**31 - 1)]
_PositiveRows: TypeAlias = Annotated[int, Whole(1, 2**50)]
_Tasks: TypeAlias = Annotated[int, Whole(1, 1_000_000)]


class KeyCounts(Request):
    """How many rows each key holds; a key is the values of the partition columns, and a bucket.

    Columns lie side by side: `values[c][i]` is the value of `columns[c]` in key i.
    """

    columns: Annotated[list[Column], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="The partition columns, by default those of the table; none of a table that "
        "is only bucketed.",
    )
    values: Annotated[
        list[Annotated[list[Scalar], Field(max_length=MAX_WRITE_KEYS)]], Field(max_length=64)
    ] = Field(description="Dates and times as text, as Spark writes them; null is a value.")
    buckets: Annotated[list[_Bucket], Field(max_length=MAX_WRITE_KEYS)] | None = Field(
        default=None, description="Of a bucketed table: the bucket of each key."
    )
    rows: Annotated[list[_Rows], Field(min_length=1, max_length=MAX_WRITE_KEYS)]
    bytes: Annotated[list[_Rows], Field(max_length=MAX_WRITE_KEYS)] | None = Field(
        default=None,
        description="That the rows of each key take in files, where that is known; else "
        "`bytes_per_row` says it for all.",
    )

    @model_validator(mode="after")
    def _is_a_table(self) -> KeyCounts:
        lengths = {len(self.rows), *(len(column) for column in self.values)}
        for more in (self.buckets, self.bytes):
            if more is not None:
                lengths.add(len(more))
        if len(lengths) > 1:
            raise ValueError("values, buckets, rows and bytes do not have the same number of keys")
        if self.columns is not None and len(self.columns) != len(self.values):
            raise ValueError("there must be one list of values for each of the columns")
        return self


class WritePlanRequest(Request):
    """What is to be written, and how large its files should be."""

    table: TableName | None = Field(
        default=None, description="Whose partition columns, buckets, files and history count."
    )
    target_file_size: ByteSize | None = Field(
        default=None, description="Bytes, or text such as '128MB', which is the default."
    )
    target_rows: _PositiveRows | None = Field(
        default=None, description="Rows per file, instead of a size."
    )
    rows: _Rows | None = Field(default=None, description="To be written, where known.")
    bytes_per_row: Annotated[float, Field(ge=0.001, le=2**40)] | None = Field(
        default=None, description="In files; by default as in earlier writes or files of the table."
    )
    keys: KeyCounts | None = Field(default=None, description="Rows per key, where known.")
    keys_from: Literal["files", "history"] | None = Field(
        default=None,
        description="Take the rows per key from the table's files, or from its last write "
        "(`hybrid`: counted once, static since).",
    )
    files: Annotated[int, Whole(1, 10_000_000)] | None = Field(
        default=None, description="A static number of files, all keys together."
    )
    files_per_key: Annotated[int, Whole(1, 100_000)] | None = Field(
        default=None, description="A static number of files of each key."
    )
    scheme: WriteScheme | None = Field(default=None, description="By default the best one.")
    salt_columns: Annotated[list[ColumnName], Field(max_length=MAX_SALT_COLUMNS)] = Field(
        default=[], description="Stable columns, whose hash may divide the rows of a key."
    )
    source_tasks: _Tasks | None = Field(
        default=None, description="Spark partitions of the data before, for `coalesce`."
    )
    parallelism: _Tasks | None = Field(
        default=None,
        description="Tasks that run at the same time; an `exact` plan then gives all of them work, "
        "as far as there are keys.",
    )
    efficiency: Annotated[float, Field(gt=0, le=0.99)] = Field(
        default=0.9, description="Wanted of `salted`: Spark partitions with rows, per file."
    )
    max_files: Annotated[int, Whole(1, 10_000_000)] = Field(
        default=100_000, description="A plan of more files is refused."
    )
    compare: bool = Field(
        default=True, description="Predict what the other schemes would come to, too."
    )

    @model_validator(mode="after")
    def _says_each_thing_once(self) -> WritePlanRequest:
        if self.target_file_size is not None and self.target_rows is not None:
            raise ValueError("target_file_size and target_rows exclude each other: give one")
        if self.keys is not None and self.keys_from is not None:
            raise ValueError("keys and keys_from exclude each other: give one")
        if self.files is not None and self.files_per_key is not None:
            raise ValueError("files and files_per_key exclude each other: give one")
        return self


class RowSize(Answer):
    """Bytes that a row takes in files of the table, and how sure that is."""

    bytes_per_row: float
    low: float = Field(description="A tenth of the rows lie in files of less.")
    high: float = Field(description="A tenth of the rows lie in files of more.")
    source: Literal["request", "history", "files"]
    rows: int = Field(description="That it rests on; 0 if it was given.")


class KeyFiles(Answer):
    """The files of each key; columns lie side by side, as in `KeyCounts`."""

    columns: list[Column]
    values: list[list[Scalar]]
    buckets: list[int] | None = None
    rows: list[int]
    files: list[int] = Field(description="k: files of each key.")
    first_task: list[int] = Field(
        description="Rows go to the Spark partition `first_task + pmod(xxhash64(salt), files)`; "
        "small keys share one."
    )


class WriteOutcome(Answer):
    """What a scheme makes of the keys, computed with Spark's own hash where one decides."""

    scheme: WriteScheme
    serves: bool = Field(description="Whether it is fit for these keys.")
    reason: str = Field(description="Why it is the one, or why not.")
    tasks: int = Field(description="Spark partitions that the data is repartitioned to.")
    scale: int | None = Field(default=None, description="Of `salted`: Spark partitions per file.")
    salts: int | None = Field(default=None, description="Of `salted`: k, the same for every key.")
    files: int
    small_files: int = Field(description="Under half of the target.")
    mean_file: float = Field(description="In targets, as are the next two.")
    largest_file: float
    largest_task: float = Field(description="Of one Spark partition, all its files together.")
    mean_file_bytes: int | None = Field(
        description="Null where bytes per row are not known, as are the next two."
    )
    largest_file_bytes: int | None
    largest_task_bytes: int | None
    efficiency: float = Field(description="Spark partitions with rows, per file.")
    collisions: float = Field(
        description="Share of the Spark partitions with rows that have two (key, salt) pairs "
        "or more."
    )
    severe_collisions: float = Field(description="The same, of three or more.")
    most_keys_in_a_task: int
    exact: bool = Field(
        description="Computed for these very keys; else expected of a uniform hash."
    )


class WritePlan(Answer):
    """How many files to write, and how to have Spark make just those."""

    table: str | None
    snapshot_id: int | None = Field(description="Of the table when this was planned.")
    target_file_bytes: int | None = Field(description="Null where bytes per row are not known.")
    target_file_rows: int | None = Field(description="Null where bytes per row are not known.")
    basis: FileCountBasis
    row_size: RowSize | None = Field(description="Null where it is not known, nor needed.")
    rows: int | None = Field(description="Null where it is not known.")
    files: int
    files_low: int = Field(description="If rows are as small as `row_size.low`.")
    files_high: int = Field(description="If rows are as large as `row_size.high`.")
    scheme: WriteScheme
    tasks: int
    scale: int | None = None
    salts: int | None = None
    partition_columns: list[Column]
    salt_columns: list[str]
    keys: KeyFiles | None = Field(default=None, description="Of `exact`.")
    outcome: WriteOutcome
    others: list[WriteOutcome] = Field(
        default=[], description="The other schemes, and why not; none if `compare` is false."
    )
