"""Errors of reading a plan on Spark, as the driver sees them.

* WindrowError
  + ReadError
    - SparkConnectError         the session has no JVM that can be reached
    - DataSourceUnavailableError  a session of Spark Connect is too old to read tables
    - ServerCannotReachError    a coordinator inside this process is out of reach of Spark's server
    - PlanningFailedError       Spark's server could not open or plan a table
    - OnlyClientWritesError     Spark's own ways to write do not write tables
      * StreamWriteError        a stream cannot write a table by itself
    - StreamReadError           a table cannot be read as a stream
    - RelationUnavailableError  this Spark lacks classes that tables which plan each query need
    - HybridUnavailableError    this Spark lacks classes through which its own reader takes part
    - FormatUnavailableError    this Spark has no reader of a table's format
    - ClientClosedError         a query needs a plan, but the client is closed
    - CaseSensitiveNamesError   the session tells names apart by case
    - SettingError              a setting of the session changes what Spark's own reader reads
    - EqualTimesError           a plan prunes by times that the session reads otherwise than stored
    - InexactColumnError        no reader reads a column of a transactional table exactly
    - OnlySparkReadsError       only Spark's own reader reads the files, but it may not be used
    - FileNameError             a query asks for the files of rows that only groups can read
    - UnsupportedDeletesError   delete files apply to the plan's files
    - NotBucketedError          a table to be read by bucket has no buckets
    - BucketColumnsError        a table is to be read by bucket without a bucket column
    - BucketsDifferError        two tables to be joined by bucket are bucketed differently
    - BucketsUnavailableError   Spark cannot be told of the buckets, so it has to shuffle
    - NestedConditionError      a filter names a nested column that is not read
    - UnsupportedTypeError      a column's type cannot be read
    - TaskFailedError           a task stopped; `kind` names an error of `executor.errors`
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import WindrowError


class ReadError(WindrowError):
    """Base of every error of reading a plan on Spark."""


class SparkConnectError(ReadError):
    """The session is one of Spark Connect, which gives no way to place tasks."""

    message = (
        "this needs a classic Spark session, since Spark Connect gives no way to place rows and "
        "tasks: {remedy}"
    )
    remedy = (
        "start the session with `.master(...)` instead of `.remote(...)`, or read tables through "
        "`windrow.register(spark)` and `spark.read.format('windrow')`"
    )


@dataclass(eq=False)
class DataSourceUnavailableError(ReadError):
    """A session of Spark Connect is too old to read tables.

    Attributes:
        version: Spark's version.
    """

    version: str
    message = (
        "tables are read on Spark Connect through Python data sources, which Spark {version} "
        "lacks: {remedy}"
    )
    remedy = "use Spark 4.0 or newer, or a classic session"


class ServerCannotReachError(ReadError):
    """Spark's server plans the reads, but cannot reach a coordinator inside this process."""

    message = (
        "Spark's server plans tables itself, and cannot reach a coordinator in this process: "
        "{remedy}"
    )
    remedy = "run one with `windrow serve`, and use `windrow.connect(url)`"


@dataclass(eq=False)
class PlanningFailedError(ReadError):
    """Spark's server could not open or plan a table.

    Attributes:
        kind: The class of the server's error, such as `NotFoundError`.
        detail: Its message.
    """

    kind: str
    detail: str

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class NestedConditionError(ReadError):
    """A filter names a nested column that is not read, whose type only a session could parse.

    Attributes:
        column: The column.
    """

    column: str
    message = "the filter names {column!r}, a nested column that is not among the columns: {remedy}"
    remedy = "name it in `columns` too"


@dataclass(eq=False)
class OnlyClientWritesError(ReadError):
    """A table is to be written by one of Spark's own ways.

    Attributes:
        table: The table.
    """

    table: str
    message = "Spark cannot write table {table!r} by itself, and has written nothing: {remedy}"
    remedy = "use client.write(df, {table!r}), with `mode` to replace rows"


class StreamWriteError(OnlyClientWritesError):
    """A table is to be written by a stream."""

    message = "a stream cannot write table {table!r} by itself: {remedy}"
    remedy = (
        "write each batch with .writeStream.foreachBatch(lambda df, _: client.write(df, {table!r}))"
    )


@dataclass(eq=False)
class StreamReadError(ReadError):
    """A table is to be read as a stream.

    Attributes:
        table: The table.
    """

    table: str
    message = "table {table!r} cannot be read as a stream, only at one snapshot: {remedy}"
    remedy = (
        "use spark.read instead of spark.readStream, in the foreachBatch of another stream if need "
        "be, where client.write writes tables"
    )


@dataclass(eq=False)
class RelationUnavailableError(ReadError):
    """This Spark lacks a class or method that tables which plan each query need.

    Attributes:
        version: Spark's version.
        reason: What happened.
    """

    version: str
    reason: str
    message = (
        "Spark {version} cannot plan a table anew for each query ({reason}); this table is planned "
        "once, with every column and row asked for: {remedy}"
    )
    remedy = "pass `columns` and `filter` to read less"


@dataclass(eq=False)
class HybridUnavailableError(ReadError):
    """This Spark lacks a class or method that its own reader needs to read files of a plan.

    Attributes:
        version: Spark's version.
        reason: What happened.
    """

    version: str
    reason: str
    message = (
        "the reader of Spark {version} cannot take part in reads ({reason}), so large files are "
        "read in groups too, which is slower, and input_file_name() and its like know no file: "
        "{remedy}"
    )
    remedy = "use a release of Spark that Windrow supports"


@dataclass(eq=False)
class FormatUnavailableError(ReadError):
    """This Spark has no reader of a table's format.

    Attributes:
        version: Spark's version.
        format: The format.
        reason: What happened.
    """

    version: str
    format: str
    reason: str
    message = "Spark {version} has no reader of {format} that can be used here ({reason}): {remedy}"
    remedy = "use Spark 4.0 or newer"


@dataclass(eq=False)
class InexactColumnError(ReadError):
    """A file of a transactional table has a column that no reader reads exactly.

    Attributes:
        table: The table.
        path: The file.
    """

    table: str
    path: str
    message = (
        "one of the columns asked for has values in file {path!r} of transactional table {table!r} "
        "that cannot be read exactly: {remedy}"
    )
    remedy = (
        "leave out char columns, times in lists, maps and structs, and times and decimals without "
        "statistics in the file, or compact the table in Hive ('major')"
    )


@dataclass(eq=False)
class OnlySparkReadsError(ReadError):
    """Only Spark's own reader reads some files, but the request rules it out.

    Attributes:
        table: The table.
        format: Its format.
        obstacle: Why Spark's own reader cannot be used.
        way_out: What to do about it.
        path: One of the files, if it depends on the file and the columns asked for.
    """

    table: str
    format: str
    obstacle: str
    way_out: str
    path: str = ""

    def __str__(self) -> str:
        what = (
            f"file {self.path!r} of table {self.table!r} has a column that only Spark's own "
            f"{self.format.upper()} reader reads correctly"
            if self.path
            else f"table {self.table!r} is {self.format}, which only Spark's own reader reads"
        )
        return f"{what}, and {self.obstacle}: {self.way_out}"


@dataclass(eq=False)
class FileNameError(ReadError):
    """A query asks for the files of its rows, which only Spark's own reader tells.

    Attributes:
        table: The table.
        function: The function that asks, such as `input_file_name`.
        obstacle: Why Spark's own reader cannot answer.
        way_out: What to do about it.
    """

    table: str
    function: str
    obstacle: str
    way_out: str

    def __str__(self) -> str:
        return (
            f"{self.function}() cannot be answered for table {self.table!r}, as "
            f"{self.obstacle}: {self.way_out}"
        )


@dataclass(eq=False)
class ClientClosedError(ReadError):
    """A query needs a new plan of a table, but the client that would ask for it is closed.

    Attributes:
        table: The table.
    """

    table: str
    message = (
        "the client that read table {table!r} is closed, and each query needs a plan: {remedy}"
    )
    remedy = "keep the client open as long as its tables are queried, or read the table again"


@dataclass(eq=False)
class NotBucketedError(ReadError):
    """A table to be read by bucket has no bucket spec.

    Attributes:
        table: The table.
    """

    table: str
    message = "table {table!r} has no buckets: {remedy}"
    remedy = "register it with its bucket_spec, or read it with `client.read`"


@dataclass(eq=False)
class BucketColumnsError(ReadError):
    """A table is to be read by bucket, but without one of its bucket columns.

    Attributes:
        table: The table.
        column: The bucket column.
    """

    table: str
    column: str
    message = "{column!r}, a bucket column of table {table!r}, is not among the columns: {remedy}"
    remedy = "ask for it as well"


@dataclass(eq=False)
class BucketsDifferError(ReadError):
    """Two tables cannot be joined bucket by bucket.

    Attributes:
        left: One table.
        left_spec: How that table is bucketed.
        right: The other table.
        right_spec: How the other table is bucketed.
        on: The columns to join by.
    """

    left: str
    left_spec: str
    right: str
    right_spec: str
    on: str
    message = (
        "{left!r} has {left_spec} and {right!r} {right_spec}, so they cannot be joined on {on} "
        "bucket by bucket: {remedy}"
    )
    remedy = "join what `client.read` returns"


@dataclass(eq=False)
class BucketsUnavailableError(ReadError):
    """Spark cannot be told of a table's buckets.

    Attributes:
        table: The table.
        reason: Why.
    """

    table: str
    reason: str
    message = "{table} cannot be read bucket by bucket ({reason}), so Spark shuffles it: {remedy}"
    remedy = "expect a slower join"


class CaseSensitiveNamesError(ReadError):
    """The session tells `id` from `ID`, but a table's files were united without regard to case."""

    message = (
        "spark.sql.caseSensitive is true, but a table's columns are united without regard to "
        "case, so rows could differ from Spark's: {remedy}"
    )
    remedy = "set it to false to read them"


@dataclass(eq=False)
class EqualTimesError(ReadError):
    """A plan may rule out files by times as they are stored, which the session reads differently.

    Attributes:
        table: The table.
    """

    table: str
    message = (
        "spark.sql.parquet.int96TimestampConversion is true, so INT96 times differ from the stored "
        "ones by which this plan of {table} compares times for equality: {remedy}"
    )
    remedy = "plan with BETWEEN instead, or use `client.read`"


@dataclass(eq=False)
class SettingError(ReadError):
    """With a setting of the session, Spark's own reader would read other rows than groups.

    Attributes:
        table: The table.
        setting: Name of the setting.
        value: Its value in the session.
        effect: What Spark's own reader does with that value.
        agreed: The value with which all ways read the same rows.
        what: What would differ: rows, or a column.
    """

    table: str
    setting: str
    value: str
    effect: str
    agreed: str
    what: str
    message = (
        "{setting} is {value}, with which Spark {effect}, and Windrow does not, so that {what} of "
        "{table} would depend on which of the two reads a file: {remedy}"
    )
    remedy = "set it to {agreed} to read the table"


@dataclass(eq=False)
class UnsupportedDeletesError(ReadError):
    """Delete files apply to the plan's files; without them, deleted rows would reappear.

    Attributes:
        table: The table.
        delete_files: The number of delete files.
    """

    table: str
    delete_files: int
    message = (
        "{delete_files:,} delete files apply to the planned files of {table!r}, and they are not "
        "applied here: {remedy}"
    )
    remedy = (
        "compact the table first, or read the splits of `client.plan` with a reader that applies "
        "them"
    )


@dataclass(eq=False)
class UnsupportedTypeError(ReadError):
    """A column has a type that cannot pass from Arrow to Spark.

    Attributes:
        column: The column.
        type_name: Its type, as Spark SQL writes it.
    """

    column: str
    type_name: str
    message = "column {column!r} is {type_name}, which this reader cannot hand to Spark; {remedy}"
    remedy = "leave it out of the columns asked for"


@dataclass(eq=False)
class TaskFailedError(ReadError):
    """A task could not read its group.

    Attributes:
        kind: The error's class in `windrow_spark.executor.errors`, such as `StaleFileError`.
        detail: Its message: the file, what is wrong with it and what to do.
    """

    kind: str
    detail: str

    def __str__(self) -> str:
        return self.detail
