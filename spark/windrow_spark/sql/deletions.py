"""Statements that delete rows from tables of a catalog, carried out as erasures."""

from __future__ import annotations

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.models import TableInfo
from windrow_core.models.tables import local_times
from windrow_spark.reading.session_times import partition_columns_in_session
from windrow_spark.refusals import refusal
from windrow_spark.relation.filters import UnsureError, exact
from windrow_spark.sql.requests import Delete
from windrow_spark.writing.own_changes import note_change
from windrow_spark.writing.schemas import partition_columns_of
from windrow_tables.erasing.erase import erase_rows
from windrow_tables.errors import UnfitReadError

# Conditions that hold for no row.
_NOTHING = ("false", "null")


def delete_rows(client: Coordinator, spark: SparkSession, request: Delete) -> None:
    """Carry out a `DELETE`: erase the rows for which its condition is TRUE; see `Answers`.

    Raises:
        UnfitReadError: The condition is missing, or nothing but Spark could decide it.
        ErasureError: See `Client.erase`.
    """
    if request.condition["op"] in _NOTHING:
        return
    if request.condition["op"] == "true":
        raise refusal("DELETE", {"table": request.table})
    types = _comparable(spark, client.table(request.table))
    try:
        where = exact(dict(request.condition), types)
    except UnsureError as error:
        raise UnfitReadError(
            f"DELETE has erased nothing from table {request.table!r}, since files are not searched "
            f"for what its condition asks: {error}",
            "compare columns with constants (=, <, IN, BETWEEN, LIKE 'a%', IS NULL), or collect "
            f"keys of the rows and use client.erase({request.table!r}, key='…', values=…)",
        ) from error
    erase_rows(client, request.table, where=where)
    note_change(client, request.table)


def _comparable(spark: SparkSession, table: TableInfo) -> dict[str, str]:
    """Return the columns whose stored values compare as Spark's do, with their types."""
    snapshot = table.current_snapshot
    folders = partition_columns_of(table)
    columns = () if snapshot is None else snapshot.columns
    types = {
        column.name: column.type
        for column in (*columns, *partition_columns_in_session(spark, table, folders))
    }
    local = local_times(table.definition, folders)
    return {
        name: type_
        for name, type_ in types.items()
        # A session may take local times for instants of its zone.
        if not (name in local and type_ == "timestamp")
    }
