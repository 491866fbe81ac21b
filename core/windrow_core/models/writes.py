"""Wire models of write plans: number of files, repartition scheme and predicted outcome."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from windrow_core.models.base import Answer, ByteSize, ColumnName, Request, Scalar, TableName, Whole
from windrow_core.models.tables import Column

MAX_WRITE_KEYS = 100_000
MAX_SALT_COLUMNS = 64

# In Spark, `salted` is `repartition(n * scale, keys, salt)`, and `range_hash` is
# `repartitionByRange(n, xxhash64(keys), salt)`.
WriteScheme: TypeAlias = Literal[
    "coalesce", "repartition", "columns", "salted", "range_hash", "exact"
]
# Versions before also had `range`; their reports and comparisons of schemes still name it.
RecordedScheme: TypeAlias = Literal[WriteScheme, "range"]
WriteMode: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]
FileCountBasis: TypeAlias = Literal["size", "rows", "static", "hybrid"]

_Rows: TypeAlias = Annotated[int, Whole(0, 2**50)]
_Bucket: TypeAlias = Annotated[int, Whole(0, 2**31 - 1)]
_PositiveRows: TypeAlias = Annotated[int, Whole(1, 2**50)]
_Tasks: TypeAlias = Annotated[int, Whole(1, 1_000_000)]


class KeyCounts(Request):
    """The number of rows of each key, which is a set of partition values and a bucket.

    The lists are parallel columns: `values[c][i]` is the value of `columns[c]` in key i.
    """

    columns: Annotated[list[Column], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="The partition columns; those of the table by default. Left out for a table "
        "that is only bucketed.",
    )
    values: Annotated[
        list[Annotated[list[Scalar], Field(max_length=MAX_WRITE_KEYS)]], Field(max_length=64)
    ] = Field(description="Dates and times are text, as Spark writes them; null is a value.")
    buckets: Annotated[list[_Bucket], Field(max_length=MAX_WRITE_KEYS)] | None = Field(
        default=None, description="The bucket of each key, for a bucketed table."
    )
    rows: Annotated[list[_Rows], Field(min_length=1, max_length=MAX_WRITE_KEYS)]
    bytes: Annotated[list[_Rows], Field(max_length=MAX_WRITE_KEYS)] | None = Field(
        default=None,
        description="Bytes that the rows of each key take in files, if known; otherwise "
        "`bytes_per_row` applies to all keys.",
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
    """A request to plan a write: the rows to write, and how large the files should be."""

    table: TableName | None = Field(
        default=None,
        description="The table whose partition columns, buckets, files and history are used.",
    )
    target_file_size: ByteSize | None = Field(
        default=None,
        description="Target size of a file in bytes, or as text such as '128MB', the default.",
    )
    target_rows: _PositiveRows | None = Field(
        default=None, description="Target number of rows per file, instead of a size."
    )
    rows: _Rows | None = Field(default=None, description="Number of rows to write, if known.")
    bytes_per_row: Annotated[float, Field(ge=0.001, le=2**40)] | None = Field(
        default=None,
        description="Bytes that a row takes in files; taken from the table's earlier writes or "
        "files by default.",
    )
    keys: KeyCounts | None = Field(default=None, description="Rows per key, if known.")
    keys_from: Literal["files", "history"] | None = Field(
        default=None,
        description="Take the rows per key from the table's files, or from its last write. The "
        "plan's `basis` is then `hybrid`: counted once, static since.",
    )
    files: Annotated[int, Whole(1, 10_000_000)] | None = Field(
        default=None, description="Fixed number of files for all keys together."
    )
    files_per_key: Annotated[int, Whole(1, 100_000)] | None = Field(
        default=None, description="Fixed number of files for each key."
    )
    scheme: WriteScheme | None = Field(default=None, description="The best scheme by default.")
    salt_columns: Annotated[list[ColumnName], Field(max_length=MAX_SALT_COLUMNS)] = Field(
        default=[],
        description="Columns whose hash may divide the rows of a key; their values must be stable.",
    )
    source_tasks: _Tasks | None = Field(
        default=None, description="Current number of Spark partitions, for `coalesce`."
    )
    parallelism: _Tasks | None = Field(
        default=None,
        description="Number of tasks that run at the same time; an `exact` plan then gives work to "
        "all of them, if there are enough keys.",
    )
    efficiency: Annotated[float, Field(gt=0, le=0.99)] = Field(
        default=0.9,
        description="Ratio of non-empty Spark partitions to files that `salted` aims for.",
    )
    max_files: Annotated[int, Whole(1, 10_000_000)] = Field(
        default=100_000, description="Plans of more files are refused."
    )
    compare: bool = Field(
        default=True, description="Also predict the outcome of the other schemes."
    )

    @field_validator("scheme", mode="before")
    @classmethod
    def _is_no_former_scheme(cls, scheme: object) -> object:
        if scheme == "range":
            raise ValueError(
                "the scheme 'range' no longer exists: use 'columns', which makes the same files "
                "and "
                "reads the data once"
            )
        return scheme

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
    """The bytes that a row takes in the table's files, and how certain that is."""

    bytes_per_row: float
    low: float = Field(description="10 % of the rows are in files with fewer bytes per row.")
    high: float = Field(description="10 % of the rows are in files with more bytes per row.")
    source: Literal["request", "history", "files"]
    rows: int = Field(description="Number of rows that it is based on; 0 if it was given.")


class KeyFiles(Answer):
    """The number of files of each key, as parallel columns like those of `KeyCounts`."""

    columns: list[Column]
    values: list[list[Scalar]]
    buckets: list[int] | None = None
    rows: list[int]
    files: list[int] = Field(description="Number of files of each key.")
    first_task: list[int] = Field(
        description="Rows go to Spark partition `first_task + pmod(xxhash64(salt), files)`; small "
        "keys share one."
    )


class WriteOutcome(Answer):
    """The predicted outcome of a scheme; hashes are computed as Spark does."""

    scheme: RecordedScheme
    serves: bool = Field(description="Whether the scheme is suitable for these keys.")
    reason: str = Field(description="Why it is suitable, or why not.")
    tasks: int = Field(description="Number of Spark partitions that it makes.")
    scale: int | None = Field(
        default=None, description="Number of Spark partitions per file, for `salted`."
    )
    salts: int | None = Field(
        default=None, description="Number of salts of every key, for `salted`."
    )
    files: int
    small_files: int = Field(description="Files smaller than half the target.")
    mean_file: float = Field(
        description="As a multiple of the target, like `largest_file` and `largest_task`."
    )
    largest_file: float
    largest_task: float = Field(
        description="Total size of the files of the largest Spark partition."
    )
    mean_file_bytes: int | None = Field(
        description="Null if the bytes per row are unknown, like the next two."
    )
    largest_file_bytes: int | None
    largest_task_bytes: int | None
    efficiency: float = Field(description="Ratio of non-empty Spark partitions to files.")
    collisions: float = Field(
        description="Share of the non-empty Spark partitions with two or more (key, salt) pairs."
    )
    severe_collisions: float = Field(description="The same for three or more pairs.")
    most_keys_in_a_task: int
    exact: bool = Field(
        description="Whether it was computed for exactly these keys; otherwise it is the "
        "expectation for a uniform hash."
    )


class WritePlan(Answer):
    """A write plan: the number of files, and how Spark should make them."""

    table: str | None
    snapshot_id: int | None = Field(
        description="The table's current snapshot when the plan was made."
    )
    target_file_bytes: int | None = Field(description="Null if the bytes per row are unknown.")
    target_file_rows: int | None = Field(description="Null if the bytes per row are unknown.")
    basis: FileCountBasis
    row_size: RowSize | None = Field(description="Null if it is neither known nor needed.")
    rows: int | None = Field(description="Null if unknown.")
    files: int
    files_low: int = Field(description="Number of files if rows are as small as `row_size.low`.")
    files_high: int = Field(description="Number of files if rows are as large as `row_size.high`.")
    scheme: RecordedScheme
    tasks: int
    scale: int | None = None
    salts: int | None = None
    partition_columns: list[Column]
    salt_columns: list[str]
    keys: KeyFiles | None = Field(default=None, description="Files of each key, for `exact`.")
    outcome: WriteOutcome
    others: list[WriteOutcome] = Field(
        default=[], description="The other schemes; empty if `compare` is false."
    )
