"""The format `windrow` on Spark Connect: a Python data source of Spark 4.

Spark runs it in Python processes beside its server: one opens a table, and another plans it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_core.models import Column
from windrow_spark.arrow_types import plain_schema
from windrow_spark.errors import CaseSensitiveNamesError, UnsupportedTypeError
from windrow_spark.reading.reader import Schemas, partition_reader, read_spec
from windrow_spark.reading.session_calendars import mode_of
from windrow_spark.refusals import refusal
from windrow_spark.session_options import options_of_texts
from windrow_spark.session_settings import check_refusable, refusable
from windrow_tables.errors import UnfitReadError
from windrow_tables.executor.rebasing import Calendars
from windrow_tables.executor.shipping import PartitionReader
from windrow_tables.groups.checks import check_files, check_groups
from windrow_tables.groups.descriptors import descriptors_of

FORMAT = "windrow"

_SLOTS = re.compile(r"splits=(?:Some\()?(\d+)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenTable:
    """The table that a read's options name.

    Attributes:
        client: Context of the coordinator's client that plans it.
        table: Name of the table.
        options: The arguments of `Client.plan`.
    """

    client: AbstractContextManager[Coordinator]
    table: str
    options: dict[str, Any]


# Opens the table that options name, in a process of Spark's server.
Opener = Callable[[Mapping[str, str]], OpenTable]


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The session's settings that reads need; the server's processes cannot ask for them.

    Attributes:
        options: Plan options that the session sets.
        calendars: How old dates and times are read.
        refusable: Settings that are refused for tables whose rows they would change.
    """

    options: dict[str, Any]
    calendars: Calendars
    refusable: dict[str, str]


def register_data_source(spark: SparkSession, opener: Opener) -> None:
    """Register the format `windrow` in a session of Spark Connect, with its current settings."""
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        raise CaseSensitiveNamesError
    namespace = {"opener": staticmethod(opener), "settings": settings_of(spark)}
    spark.dataSource.register(type("Registered", (TableSource, DataSource), namespace))


def settings_of(spark: SparkSession) -> SessionSettings:
    """Return the settings of a session of Spark Connect."""
    settings = dict(spark.conf.getAll)
    options = options_of_texts(settings)
    if "parallelism" not in options:
        options["parallelism"] = _parallelism(spark)
    # Only the JVM has Spark's table of old offsets, and the zone of files that name none.
    calendars = Calendars(dates=mode_of(spark, "datetime"), int96=mode_of(spark, "int96"), zone="")
    return SessionSettings(options, calendars, refusable(settings))


def _parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session runs at the same time, without running any."""
    (row,) = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()
    slots = _SLOTS.search(row[0])
    if slots is None:
        raise InvalidArgumentError(
            "parallelism",
            "this Spark does not say how many tasks it runs at the same time: set "
            "spark.windrow.parallelism",
        )
    return int(slots[1])


class TableSource:
    """Mixin for a `DataSource`: a table, opened once for each analysis of a query that names it.

    It has no `pushFilters`: Spark would keep the reader with the filters of one query for all uses
    of the table in the session, so other queries would miss rows.
    """

    opener: Opener
    settings: SessionSettings
    options: Mapping[str, str]

    _snapshot_id: int | None = None
    _is_planned = False

    @classmethod
    def name(cls) -> str:
        """Return the name by which users load the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the table's columns as SQL writes them, and pin its snapshot."""
        source = self.opener(self.options)
        with source.client as client:
            # A plan of one file tells the columns and the snapshot.
            first = client.probe(
                source.table,
                session_options=self.settings.options,
                **source.options,
            ).info
        check_files(first)
        check_refusable(self.settings.refusable, first)
        self._snapshot_id = first.snapshot_id
        return ", ".join(map(_in_sql, first.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan the table, and return the reader of the plan."""
        if self._snapshot_id is None:
            raise InvalidArgumentError(
                "schema", "a table of Windrow has columns of its own: leave out .schema(…)"
            )
        source = self.opener(self.options)
        options = source.options | {
            "columns": schema.names,
            "snapshot_id": self._snapshot_id,
            "version": None,
            "max_staleness": None,
        }
        with source.client as client:
            plan = client.plan(source.table, session_options=self.settings.options, **options)
        check_files(plan.info)
        check_groups(plan.info, plan.groups)
        try:
            hidden = plain_schema(plan.info.hidden_columns)
        except UnsupportedTypeError as error:
            raise UnfitReadError(
                f"the filter names {error.column!r}, a nested column that is not among the columns",
                "name it in `columns` too",
            ) from error
        schemas = Schemas(schema, hidden, plain_schema(plan.info.partition_columns))
        spec = read_spec(plan.info, schemas, lambda: self.settings.calendars)
        self._is_planned = True
        reader = type("Planned", (_PlannedReader, DataSourceReader), {})
        # If there are no partitions, Spark adds one, which differs between versions.
        groups = [InputPartition(descriptor.content) for descriptor in descriptors_of(plan.groups)]
        return reader(partition_reader(spec), groups or [InputPartition(None)])

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write, in words that say how to."""
        raise refusal("write", self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802
        """Refuse to write a stream, in words that say how to."""
        raise refusal("writeStream", self.options)

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: N802
        """Refuse to read a stream, in words that say what to do instead."""
        raise refusal("readStream", self.options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Spark sends this source to tasks too, which do not need it and have no Windrow.
        return (object, ()) if self._is_planned else super().__reduce_ex__(protocol)


class _PlannedReader:
    """Mixin for a `DataSourceReader`: the groups of a plan as partitions."""

    def __init__(self, reads: PartitionReader, groups: list[InputPartition]) -> None:
        self._reads = reads
        self._groups = groups

    def partitions(self) -> list[InputPartition]:
        return self._groups

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reads.read(partition)

    def __reduce__(self) -> Any:
        # Tasks get an object that does not need Windrow.
        return PartitionReader, tuple(self._reads)


def _in_sql(column: Column) -> str:
    name = column.name.replace("`", "``")
    # A DataFrame has char and varchar columns as strings.
    type_ = "string" if _TEXT.fullmatch(column.type) else column.type
    return f"`{name}` {type_}"
