"""What Spark asks of a catalog: which tables there are, and what it must know of each."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.models import Column, SnapshotInfo, TableInfo
from windrow_spark.arrow_types import spark_schema
from windrow_spark.reading.session_times import (
    in_session,
    own_zone,
    partition_columns_in_session,
    zone_of,
)
from windrow_spark.refusals import refusal
from windrow_spark.relation.callbacks import Answering, answers_in_session
from windrow_spark.relation.java_classes import partition_rows, prepare
from windrow_spark.relation.native import arrow_stream
from windrow_spark.relation.partitions import partition_rows as partitions_of
from windrow_spark.relation.reports import note_stale
from windrow_spark.relation.scans import ANSWERS
from windrow_spark.sql import requests
from windrow_spark.sql.cached_relations import caches_following, move_cached, note_use
from windrow_spark.sql.creations import (
    check_alike,
    create,
    creation_properties,
    table_to_create,
    take_back,
    with_snapshot,
)
from windrow_spark.sql.deletions import delete_rows
from windrow_spark.sql.names import (
    find_table,
    location_of,
    namespaces_in,
    parts_of,
    plain,
    quoted,
    tables_in,
)
from windrow_spark.sql.procedures import SYSTEM, Procedure, named
from windrow_spark.sql.snapshots import current_snapshot, snapshot_at, snapshot_of_version
from windrow_spark.sql.writes import write_rows
from windrow_spark.writing.own_changes import note_change
from windrow_spark.writing.schemas import partition_columns_of
from windrow_tables.errors import UnfitReadError

# Returns the client of a coordinator by its URL, or the default one for None, for a catalog's name.
Clients = Callable[[str | None, str], Coordinator]

# The option of the format that says which snapshot of a table a catalog means.
OPTION = "catalog"
# The option that says which others are the table's own, and whether a version was asked for.
DETAILS = "catalog_details"

# What a version begins with to mean a snapshot as queries had it while it was current.
_ONCE_CURRENT = "once-current-"
# Sessions outlive registrations.
_ordinals = itertools.count(1)


class Answers:
    """The answers of all catalogs of a driver."""

    def __init__(self, clients: Clients, procedures: Sequence[Procedure]) -> None:
        """Create answers.

        Args:
            clients: Returns the client of a catalog's `coordinator`, or raises what is missing.
            procedures: What `CALL` can do.
        """
        self._clients = clients
        self._known = procedures

    def answering(self, spark: SparkSession) -> Answering:
        """Return what answers the JVM's catalogs: JSON, or the JVM's array of rows for partitions.

        Args:
            spark: A session of the application.
        """
        in_json: tuple[Callable[..., Any], ...] = (
            *(self._begin, self._namespaces, self._tables, self._table, self._target, self._exists),
            *(self._prepare, self._create, self._stage, self._replace, self._unwritten),
            *(self._abort, self._refresh, self._follow_stream, self._refuse),
            *(self._procedure, self._procedures, self._call),
        )
        return answers_in_session(
            spark, *map(_in_json, in_json), self._partitions, self._write, self._delete
        )

    def _write(self, request: requests.Write, spark: SparkSession, rows: Any) -> None:
        """Carry out a statement with the JVM's Dataset of its rows, or its plan of them."""
        client = self._client(request)
        write_rows(client, spark, request, rows)
        self._follow(spark, client, request.catalog, request.table)

    def _delete(self, request: requests.Delete, spark: SparkSession) -> None:
        client, table = self._client(request), request.table
        with caches_following(client, table, self._opener(spark, request.catalog, table)):
            delete_rows(client, spark, request)

    def _procedure(self, request: requests.Procedure, spark: SparkSession) -> Any:
        return named(self._known, request.namespace, request.name).told()

    def _procedures(self, request: requests.Procedures, spark: SparkSession) -> list[str]:
        is_there = [part.lower() for part in request.namespace] in ([], [SYSTEM])
        return [one.name for one in self._known] if is_there else []

    def _call(self, request: requests.Call, spark: SparkSession) -> list[list[Any]]:
        client = self._client(request)
        procedure = named(self._known, [SYSTEM], request.procedure)
        table = request.arguments.get("table")
        if table is None:
            return procedure.answer(client, spark, request.arguments)
        with caches_following(client, table, self._opener(spark, request.catalog, table)):
            rows = procedure.answer(client, spark, request.arguments)
        note_change(client, table)
        self._follow(spark, client, request.catalog, table)
        return rows

    def _client(self, request: requests.Request) -> Coordinator:
        client = self._clients(request.coordinator, request.catalog)
        if client.is_closed:
            catalog = request.catalog
            raise UnfitReadError(
                f"the client of catalog {catalog!r} is closed",
                "register one that stays open as long as tables are queried: "
                "windrow.register(spark, windrow.connect('http://…'))",
            )
        return client

    def _begin(self, request: requests.Begin, spark: SparkSession) -> None:
        self._client(request)

    def _names(self, request: requests.Request) -> list[str]:
        # Others are being created, or have never been looked at.
        tables = self._client(request).tables()
        return [table.name for table in tables if table.current_snapshot is not None]

    def _namespaces(self, request: requests.Namespaces, spark: SparkSession) -> Any:
        return namespaces_in(
            self._names(request), request.namespace, case_sensitive=request.case_sensitive
        )

    def _tables(self, request: requests.Tables, spark: SparkSession) -> Any:
        tables = tables_in(
            self._names(request), request.namespace, case_sensitive=request.case_sensitive
        )
        if tables is None:
            return None
        return [dict(zip(("namespace", "name"), parts_of(table), strict=True)) for table in tables]

    def _named(self, request: requests.Named) -> TableInfo | None:
        return find_table(
            self._client(request),
            request.namespace,
            request.name,
            case_sensitive=request.case_sensitive,
        )

    def _table(self, request: requests.Table, spark: SparkSession) -> Any:
        table = self._named(request)
        if table is None:
            return None
        client = self._client(request)
        if request.version is not None:
            version = request.version.replace(_ONCE_CURRENT, "snapshot-")
            snapshot = snapshot_of_version(client, table, version)
        elif request.timestamp_us is not None:
            snapshot = snapshot_at(client, table, request.timestamp_us)
        else:
            note_stale(client, table.name)
            if client.look_if_changed(table.name):
                table = client.table(table.name)
            snapshot = current_snapshot(table)
            note_use(client, table.name, snapshot.snapshot_id)
        return self._description(spark, request, table, snapshot)

    def _there(self, request: requests.Named) -> TableInfo | None:
        """Return a table that has a snapshot by the time that a statement writes or creates it."""
        table = self._named(request)
        return None if table is None else with_snapshot(self._client(request), table)

    def _exists(self, request: requests.Exists, spark: SparkSession) -> bool:
        return self._there(request) is not None

    def _target(self, request: requests.Target, spark: SparkSession) -> Any:
        """Return what `TargetTable.java` is made of."""
        table = self._there(request)
        return None if table is None else _target_of(spark, table)

    def _description(
        self,
        spark: SparkSession,
        request: requests.Table,
        table: TableInfo,
        snapshot: SnapshotInfo,
    ) -> dict[str, Any]:
        """Return what `CatalogedTable.java` is made of."""
        namespace, name = parts_of(table.name)
        definition = table.definition
        version = request.version or _ONCE_CURRENT
        at_snapshot = request.timestamp_us is not None or not version.startswith(_ONCE_CURRENT)
        target = {
            "catalog": request.catalog,
            "coordinator": request.coordinator,
            "table": table.name,
            "created_at": table.created_at.isoformat(),
            "snapshot_id": snapshot.snapshot_id,
            "at_snapshot": at_snapshot,
        }
        details = {"options": list(definition.format_options), "pinned": at_snapshot}
        return {
            "table": table.name,
            "label": ".".join(map(plain, (request.catalog, *namespace, name))),
            "name": name,
            "database": ".".join(namespace),
            "key": _key(request, snapshot),
            "location": location_of(request.catalog, table.name),
            "snapshot_id": snapshot.snapshot_id,
            "schema": _schema(
                snapshot.columns,
                partition_columns_in_session(spark, table, snapshot.partition_columns),
            ),
            "partition_columns": [column.name for column in snapshot.partition_columns],
            "options": {
                **definition.format_options,
                OPTION: json.dumps(target),
                DETAILS: json.dumps(details),
            },
            "own_options": definition.format_options,
            "properties": _properties(table, snapshot),
            "creation": creation_properties(definition),
            "created_ms": int(table.created_at.timestamp() * 1000),
        }

    def _refresh(self, request: requests.Refresh, spark: SparkSession) -> None:
        table = self._named(request)
        if table is None:
            return
        client = self._client(request)
        client.refresh(table.name, full=table.definition.trust_folder_times)
        self._follow(spark, client, request.catalog, table.name)

    def _follow_stream(self, request: requests.Follow, spark: SparkSession) -> None:
        table = self._named(request)
        if table is not None:
            self._follow(spark, self._client(request), request.catalog, table.name)

    def _follow(self, spark: SparkSession, client: Coordinator, catalog: str, table: str) -> None:
        """Give what sessions have cached of a table its current rows."""
        snapshot = current_snapshot(client.table(table))
        move_cached(client, table, snapshot.snapshot_id, self._opener(spark, catalog, table))

    def _opener(self, spark: SparkSession, catalog: str, table: str) -> Callable[[int], DataFrame]:
        """Return what opens a snapshot of a table as queries had it while it was current."""
        namespace, last = parts_of(table)
        name = ".".join(map(quoted, (catalog, *namespace, last)))

        def open_snapshot(snapshot_id: int) -> DataFrame:
            rows = spark.sql(f"SELECT * FROM {name} VERSION AS OF '{_ONCE_CURRENT}{snapshot_id}'")
            leaf = rows._jdf.queryExecution().analyzed().collectLeaves().apply(0)
            return DataFrame(spark._jsparkSession.baseRelationToDataFrame(leaf.relation()), spark)

        return open_snapshot

    def _prepare(self, request: requests.Prepare, spark: SparkSession) -> None:
        prepare(spark, ANSWERS)

    def _create(self, request: requests.Create, spark: SparkSession) -> Any:
        """Create a table without rows, or one whose rows are there."""
        return _target_of(spark, create(self._client(request), spark, request.full_name, request))

    def _stage(self, request: requests.Stage, spark: SparkSession) -> Any:
        """Register a table whose rows follow, with its first snapshot."""
        client = self._client(request)
        table, folders = table_to_create(client, spark, request.full_name, request, empty=True)
        return _creation(spark, table, folders, replaces=False)

    def _replace(self, request: requests.Replace, spark: SparkSession) -> Any:
        table = self._there(request)
        if table is None:
            return self._stage(request, spark)
        check_alike(spark, table, request)
        return _creation(spark, table, [], replaces=True)

    def _unwritten(self, request: requests.Unwritten, spark: SparkSession) -> None:
        """End a statement that has no rows, not even of an empty query."""
        creation = request.creation
        if creation["replaces"]:
            raise refusal("TRUNCATE TABLE", {"table": creation["name"]})
        self._client(request).refresh(creation["name"])

    def _abort(self, request: requests.Abort, spark: SparkSession) -> None:
        creation = request.creation
        if not creation["replaces"]:
            take_back(
                self._client(request),
                creation["name"],
                creation["location"],
                creation["folders"],
            )

    def _partitions(self, request: requests.Partitions, spark: SparkSession) -> Any:
        client, table, snapshot_id = self._client(request), request.table, request.snapshot_id
        plan = in_session(spark, client.probe(table, snapshot_id=snapshot_id).info)
        types = {column.name: column.type for column in plan.partition_columns}
        zone = zone_of(spark, own_zone(plan.format_options)) if plan.local_times else ""
        rows = partitions_of(client.partition_values(table, snapshot_id), types, zone)
        return partition_rows(spark, arrow_stream(rows), spark_schema(plan.partition_columns))

    def _refuse(self, request: requests.Refuse, spark: SparkSession) -> None:
        # The name may be that of no table, as in CREATE TABLE.
        raise refusal(request.statement, {"table": request.full_name})


def _key(request: requests.Table, snapshot: SnapshotInfo) -> str:
    """Return what Spark takes for the catalog of a table."""
    if request.for_stream:
        # Streams that write a table look it up by this name after each batch.
        return request.catalog
    # Sessions keep relations by it: each query of a table opens its own.
    return f"{request.catalog}, snapshot {snapshot.snapshot_id}, read {next(_ordinals)}"


def _in_json(handler: Callable[..., Any]) -> Callable[..., bytes]:
    """Return a handler whose answers are the JVM's as JSON."""

    @functools.wraps(handler)
    def answer(*arguments: Any) -> bytes:
        return json.dumps({"answer": handler(*arguments)}).encode()

    return answer


def _creation(
    spark: SparkSession, table: TableInfo, folders: list[str], *, replaces: bool
) -> dict[str, Any]:
    """Return what `CreatedTable.java` is made of."""
    creation: requests.Creation = {
        "name": table.name,
        "location": table.definition.location,
        "folders": folders,
        "replaces": replaces,
    }
    return {**_target_of(spark, table), "creation": creation}


def _target_of(spark: SparkSession, table: TableInfo) -> dict[str, Any]:
    """Return what `TargetTable.java` is made of."""
    snapshot = table.current_snapshot
    columns = snapshot.columns if snapshot is not None else table.definition.columns or []
    folders = partition_columns_in_session(spark, table, partition_columns_of(table))
    return {
        "table": table.name,
        "schema": _schema(columns, folders),
        "partition_columns": [column.name for column in folders],
    }


def _schema(columns: Sequence[Column], folders: Sequence[Column]) -> str:
    names = {column.name for column in columns}
    own = [column for column in folders if column.name not in names]
    return str(spark_schema([*columns, *own]).json())


def _properties(table: TableInfo, snapshot: SnapshotInfo) -> dict[str, str]:
    """Return what `DESCRIBE EXTENDED` and `SHOW TBLPROPERTIES` tell."""
    properties = {
        # Spark's own names of properties that it shows by themselves.
        "provider": "windrow",
        "location": table.definition.location,
        "external": "true",
        "format": table.definition.format,
        "snapshot_id": snapshot.snapshot_id,
        "snapshot_created_at": snapshot.created_at.isoformat(sep=" ", timespec="seconds"),
        "table_version": snapshot.table_version,
        "file_count": snapshot.file_count,
        "size_bytes": snapshot.size_bytes,
        "row_count": snapshot.row_count,
    }
    return {name: str(value) for name, value in properties.items() if value is not None}
