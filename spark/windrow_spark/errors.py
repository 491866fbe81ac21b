"""Errors of reading a plan on Spark, as the driver sees them."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow_tables.errors import ReadError


class SparkConnectError(ReadError):
    """The session is one of Spark Connect, which gives no way to place tasks."""

    message = (
        "this needs a classic Spark session, because Spark Connect cannot place rows and tasks: "
        "{remedy}"
    )
    remedy = (
        "start the session with `.master(...)` instead of `.remote(...)`, or read tables through "
        "`windrow.register(spark)` and `spark.read.format('windrow')`"
    )


@dataclass(eq=False)
class DataSourceUnavailableError(ReadError):
    """A session of Spark Connect is too old to read tables."""

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
class RelationUnavailableError(ReadError):
    """This Spark lacks a class or method that tables which plan each query need."""

    version: str
    reason: str
    message = (
        "Spark {version} cannot plan a table for each query ({reason}); this table is planned "
        "once, with all requested columns and rows: {remedy}"
    )
    remedy = "pass `columns` and `filter` to read less"


@dataclass(eq=False)
class FormatUnavailableError(ReadError):
    """This Spark has no reader of a table's format."""

    version: str
    format: str
    reason: str
    message = "Spark {version} has no reader of {format} that can be used here ({reason}): {remedy}"
    remedy = "use Spark 4.0 or newer"


@dataclass(eq=False)
class BucketsDifferError(ReadError):
    """Two tables cannot be joined bucket by bucket.

    Attributes:
        left_spec: How that table is bucketed.
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
    remedy = "join the DataFrames of `client.read` instead"


@dataclass(eq=False)
class BucketsUnavailableError(ReadError):
    """Spark cannot be told of a table's buckets."""

    table: str
    reason: str
    message = "{table} cannot be read bucket by bucket ({reason}), so Spark shuffles it: {remedy}"
    remedy = "expect a slower join"


class CaseSensitiveNamesError(ReadError):
    """The session tells `id` from `ID`, but a table's files were united without regard to case."""

    message = (
        "spark.sql.caseSensitive is true, but Windrow ignores case in column names, so rows "
        "could differ from Spark's: {remedy}"
    )
    remedy = "set it to false to read them"


@dataclass(eq=False)
class EqualTimesError(ReadError):
    """A plan may rule out files by times as they are stored, which the session reads differently."""

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
        effect: What Spark's own reader does with that value.
        common_value: The value with which all ways read the same rows.
        what: What would differ: rows, or a column.
    """

    table: str
    setting: str
    value: str
    effect: str
    common_value: str
    what: str
    message = (
        "{setting} is {value}: Spark then {effect} and Windrow does not, so {what} of {table} "
        "would depend on which of the two reads a file: {remedy}"
    )
    remedy = "set it to {common_value} to read the table"


@dataclass(eq=False)
class UnsupportedTypeError(ReadError):
    """A column has a type that cannot pass from Arrow to Spark.

    Attributes:
        type_name: Its type, as Spark SQL writes it.
    """

    column: str
    type_name: str
    message = "column {column!r} is {type_name}, which this reader cannot pass to Spark; {remedy}"
    remedy = "leave it out of the requested columns"


@dataclass(eq=False)
class TaskFailedError(ReadError):
    """A task could not read its group.

    Attributes:
        kind: The error's class in `windrow_tables.executor.errors`, such as `StaleFileError`.
        detail: Its message: the file, what is wrong with it and what to do.
        spark_error: The error that Spark raised, with the traces of the JVM; None if it is not known.
    """

    kind: str
    detail: str
    spark_error: Exception | None = field(default=None, init=False)

    def __str__(self) -> str:
        return self.detail
