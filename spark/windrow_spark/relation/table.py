"""A table as a DataFrame that is planned anew for each query, pinned to one snapshot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.models import AddedFiles
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.errors import RelationUnavailableError
from windrow_spark.hadoop import hadoop_location
from windrow_spark.reading.reader import check_readable, check_session, read_plan
from windrow_spark.reading.session_times import in_session, own_zone
from windrow_spark.relation import java_classes
from windrow_spark.relation.division import Reader, ReadExplanation, check_native, explained
from windrow_spark.relation.packed import packed_files
from windrow_spark.relation.pins import Pin
from windrow_spark.relation.relations import buckets_of, relation_of
from windrow_spark.relation.reports import note_stale
from windrow_spark.relation.scans import ANSWERS, SOURCES, Source, divided
from windrow_spark.relation.session_conditions import condition
from windrow_spark.relation.session_conditions import divided as divided_filter
from windrow_spark.session_options import session_options
from windrow_spark.writing.expressions import quoted
from windrow_tables.errors import OnlySparkReadsError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is read of a table, and how: the arguments of `windrow.Client.read`.

    Attributes:
        filter: Rows to keep.
        columns: Columns, in this order; None for all.
        snapshot_id: Id of a snapshot; None for the current one.
        version: Instead of `snapshot_id`, a version in the table's own log.
        limit: Maximum number of rows.
        max_staleness: Seconds, as in `Client.plan`.
        reader: What reads the files.
        options: Plan options.
        at_snapshot: Whether the user has named the snapshot; by default, whether there is a
            `snapshot_id` or a `version`.
        additions: Only files that an older snapshot lacks, as in `Client.plan`.
        follows: Whether queries read a later snapshot once this process has changed the table.
    """

    filter: str | Mapping[str, Any] | None = None
    columns: Sequence[str] | None = None
    snapshot_id: int | None = None
    version: str | int | None = None
    limit: int | None = None
    max_staleness: int | None = None
    reader: Reader = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    at_snapshot: bool | None = None
    additions: AddedFiles | None = None
    follows: bool = False


def open_table(
    client: Coordinator, spark: SparkSession, table: str, read: ReadOptions
) -> DataFrame:
    """Return a table as a DataFrame; see `windrow.Client.read`."""
    filter, columns, options = read.filter, read.columns, read.options
    note_stale(client, table)
    # A plan of one file tells columns, snapshot and size.
    first_plan = client.probe(
        table,
        filter=filter,
        columns=columns,
        snapshot_id=read.snapshot_id,
        version=read.version,
        max_staleness=read.max_staleness,
        session_options=session_options(spark),
        **options,
    )
    first = in_session(spark, first_plan.info)
    names: list[str] | None = None
    where = None
    if first.filter is not None and first.local_times:
        filter, of_session = divided_filter(first.filter.model_dump(), first.local_times)
        if of_session is not None:
            names, columns = [column.name for column in first.columns], None
            first_plan = client.probe(
                table, filter=filter, snapshot_id=first.snapshot_id, **options
            )
            first = in_session(spark, first_plan.info)
            types = {column.name: column.type for column in first.columns}
            where = condition(of_session, types)
    if not first.reading.files.is_grouped:
        if filter is not None:
            raise OnlySparkReadsError(
                table, first.format, "which applies no `filter`", "use .where(…) on the DataFrame"
            )
        check_session(spark, first)
        check_native(first, read.reader, hadoop_location(spark, first.location))
    else:
        check_readable(spark, first)
    if columns is not None and not first.reading.files.has_excerpts:
        names = [column.name for column in first.columns]
        # All columns are needed to divide the lines of a file, or to match columns by position.
        first = in_session(
            spark,
            client.probe(table, filter=filter, snapshot_id=first.snapshot_id, **options).info,
        )
    schema = spark_schema(first.columns)
    arrow_schema(schema)
    filter_tree = None if first.filter is None else first.filter.model_dump()
    pin = Pin(
        source=SOURCES.name_of(Source(client, spark)),
        table=table,
        registration=first.registration,
        snapshot_id=first.snapshot_id,
        filter=filter_tree,
        types={column.name: column.type for column in first.columns},
        options=dict(options),
        reader=read.reader,
        at_snapshot=(
            read.snapshot_id is not None or read.version is not None
            if read.at_snapshot is None
            else read.at_snapshot
        ),
        additions=None if read.additions is None else read.additions.model_dump(),
        local_times=first.local_times,
        zone=own_zone(first.format_options),
        follows=read.follows,
    )
    try:
        rows = relation_of(spark, first, pin, buckets_of(client, first_plan, read.reader), ANSWERS)
    except RelationUnavailableError as error:
        if not first.reading.files.is_grouped:
            raise
        warnings.warn(str(error), stacklevel=3)
        plan = client.plan(
            table,
            filter=filter_tree,
            columns=columns,
            snapshot_id=first.snapshot_id,
            additions=read.additions,
            limit=read.limit,
            session_options=session_options(spark),
            **options,
        )
        rows = read_plan(spark, plan.info, plan.groups)
    else:
        if not first.reading.files.is_grouped:
            folders = {column.name for column in first.partition_columns}
            data = [column for column in first.columns if column.name not in folders]
            java_classes.check_columns(
                spark, first.format, first.format_options, spark_schema(data)
            )
    if where is not None:
        rows = rows.where(where)
    if names is not None:
        rows = rows.select(*map(quoted, names))
    return rows if read.limit is None else rows.limit(read.limit)


def explain_read(
    client: Coordinator, spark: SparkSession, table: str, read: ReadOptions
) -> ReadExplanation:
    """Return how a scan of a table would be divided; see `windrow.Client.explain_read`."""
    whole = in_session(
        spark,
        client.probe(
            table, snapshot_id=read.snapshot_id, version=read.version, **read.options
        ).info,
    )
    plan = client.plan(
        table,
        filter=read.filter,
        columns=read.columns,
        snapshot_id=whole.snapshot_id,
        accept=() if read.reader == "grouped" else ("packs",),
        session_options=session_options(spark),
        **read.options,
    )
    plan = replace(plan, info=in_session(spark, plan.info))
    if not whole.reading.files.is_grouped:
        check_session(spark, plan.info)
    else:
        check_readable(spark, plan.info)
    types = {column.name: column.type for column in whole.columns}
    home = hadoop_location(spark, plan.info.location)
    in_packs = packed_files(spark, plan, read.reader, types, home, has_filter=False)
    division = divided(in_packs.rest, read.reader, types, home, filtered=False)
    return explained(plan, in_packs.files, division)
