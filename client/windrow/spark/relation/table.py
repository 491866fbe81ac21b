"""A table as a DataFrame that plans itself at each query, pinned to one snapshot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.calls.coordinator import Coordinator
from windrow.spark.arrow_types import arrow_schema, spark_schema
from windrow.spark.errors import HybridUnavailableError, RelationUnavailableError
from windrow.spark.reading.reader import check_readable, read_plan
from windrow.spark.relation import java
from windrow.spark.relation.division import Reader, ReadExplanation, explained
from windrow.spark.relation.scans import SOURCES, Pinned, Source, answer, divided
from windrow.spark.session_options import session_options


def open_table(
    client: Coordinator,
    spark: SparkSession,
    table: str,
    *,
    filter: str | Mapping[str, Any] | None,
    columns: Sequence[str] | None,
    snapshot_id: int | None,
    limit: int | None,
    max_staleness: int | None,
    reader: Reader,
    options: Mapping[str, Any],
) -> DataFrame:
    """Return a table as a DataFrame; see `windrow.Client.read`.

    Raises:
        ReadError: The session or a column's type does not allow it, or the files' format.
        ProblemError: The coordinator refuses.
    """
    # One file is enough to learn what there is to read.
    first = client.plan(
        table,
        filter=filter,
        columns=columns,
        snapshot_id=snapshot_id,
        limit=1,
        max_staleness=max_staleness,
        session_options=session_options(spark),
        **options,
    ).info
    check_readable(spark, first)
    schema = spark_schema(first.columns)
    arrow_schema(schema)
    filter_tree = None if first.filter is None else first.filter.model_dump()
    pinned = Pinned(
        source=SOURCES.name_of(Source(client, spark)),
        table=table,
        snapshot_id=first.snapshot_id,
        filter=filter_tree,
        limit=limit,
        types={column.name: column.type for column in first.columns},
        options=dict(options),
        reader=reader,
    )
    try:
        rows = java.relation(
            spark,
            schema,
            first.summary.size_bytes + first.summary.bytes_pruned_by_limit,
            f"windrow {table} snapshot {first.snapshot_id}",
            pinned.to_text(),
            answer,
        )
    except RelationUnavailableError as error:
        warnings.warn(str(error), stacklevel=3)
        plan = client.plan(
            table,
            filter=filter_tree,
            columns=columns,
            snapshot_id=first.snapshot_id,
            limit=limit,
            session_options=session_options(spark),
            **options,
        )
        rows = read_plan(spark, plan.info, plan.groups)
    else:
        if reader != "grouped":
            _plan_hybrids(spark)
    return rows if limit is None else rows.limit(limit)


def explain_read(
    client: Coordinator,
    spark: SparkSession,
    table: str,
    *,
    filter: str | Mapping[str, Any] | None,
    columns: Sequence[str] | None,
    snapshot_id: int | None,
    reader: Reader,
    options: Mapping[str, Any],
) -> ReadExplanation:
    """Say how a scan of a table would be divided; see `windrow.Client.explain_read`.

    Raises:
        ReadError: The session or a column's type does not allow it, or the files' format.
        ProblemError: The coordinator refuses.
    """
    whole = client.plan(table, snapshot_id=snapshot_id, limit=1, **options).info
    plan = client.plan(
        table,
        filter=filter,
        columns=columns,
        snapshot_id=whole.snapshot_id,
        session_options=session_options(spark),
        **options,
    )
    check_readable(spark, plan.info)
    types = {column.name: column.type for column in whole.columns}
    return explained(plan, divided(plan, reader, types, filtered=False))


def _plan_hybrids(spark: SparkSession) -> None:
    """Let scans of a session's relations be divided, from now on."""
    try:
        java.hybrid(spark).plan(spark._jsparkSession)
    except HybridUnavailableError as error:
        warnings.warn(str(error), stacklevel=4)
