"""Tables that statements create: `CREATE TABLE windrow.sales.events … AS SELECT …`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import NotFoundError
from windrow_core.files.roots.disks import Root
from windrow_core.files.schemes import canonical_scheme
from windrow_core.models import TableDefinition, TableInfo
from windrow_spark.reading.session_times import partition_columns_in_session
from windrow_spark.sql.requests import Create
from windrow_spark.writing.options import NAMES
from windrow_tables.commits import recover
from windrow_tables.errors import UnfitReadError

WAREHOUSE: Final = "spark.windrow.warehouse"
# The property by which `SHOW CREATE TABLE` tells what its clauses do not, as JSON.
DEFINITION: Final = "definition"
# Nobody says these when a table is registered, or a clause does.
_NOT_TOLD = {"location", "imported_from", "listed_partitions"}
# Spark shows the collation that all strings have.
_PLAIN_COLLATION = " COLLATE UTF8_BINARY"
_FORMATS = {"windrow", "parquet"}
# A name of a type, but neither that of a field nor what is quoted.
_KEYWORD = re.compile(r"`[^`]*`|\b[A-Z_]+\b(?!:)")
_LENGTH = re.compile(r"\b(var)?char\(\d+\)")
# What Spark tells of every table, and what is about nothing else than where it lies.
_IGNORED = {"external", "is_managed_location", "owner"}


def table_to_create(
    client: Coordinator, spark: SparkSession, name: str, request: Create, *, empty: bool
) -> tuple[TableInfo, list[str]]:
    """Register a table, which to Spark is not there before it has a snapshot.

    A registration that a driver has left that died in the same statement is used again.

    Args:
        client: The client of its coordinator.
        spark: The session that creates it.
        name: Its name.
        request: Its columns, partitions and properties.
        empty: Whether its folder must not have any files.

    Returns:
        The table, and the folders that were made for it, the innermost first.

    Raises:
        UnfitReadError: The statement wants something that tables do not have, or no folder; or the
            name is that of another table.
    """
    properties = _properties(name, request.properties)
    location = properties.get("location") or _default_location(spark, name)
    if canonical_scheme(location.partition("://")[0]) is not None:
        raise _refused(
            name,
            f"folders are made only on local paths, not at {location}",
            "make the folder, register it with client.register_table, and use INSERT",
        )
    columns, partition_columns = _columns(name, request)
    _check_unused(client, name, location, columns, partition_columns)
    if empty and os.path.isdir(location) and os.listdir(location):
        raise _refused(
            name,
            f"its folder {location} is not empty",
            "name another with LOCATION, or register the folder with client.register_table",
        )
    folders = _missing_folders(location)
    try:
        os.makedirs(location, exist_ok=True)
        table = client.register_table(
            name, location, columns=columns, partition_columns=partition_columns
        )
    except BaseException:
        _remove(folders)
        raise
    return table, folders


def create(client: Coordinator, spark: SparkSession, name: str, request: Create) -> TableInfo:
    """Create a table with the files that are in its folder; see `table_to_create`."""
    if DEFINITION in request.properties:
        return _created_again(client, spark, name, request)
    table, folders = table_to_create(client, spark, name, request, empty=False)
    try:
        client.refresh(name)
    except BaseException:
        take_back(client, name, table.definition.location, folders)
        raise
    return client.table(name)


def creation_properties(definition: TableDefinition) -> dict[str, str]:
    """Return the properties with which `CREATE TABLE` makes a table like this one."""
    properties = {"provider": "windrow", "location": definition.location, "external": "true"}
    values = definition.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_TOLD)
    is_remote = canonical_scheme(definition.location.partition("://")[0]) is not None
    if is_remote or values.keys() - {"columns", "partition_columns"}:
        properties[DEFINITION] = json.dumps(values)
    return properties


def _created_again(
    client: Coordinator, spark: SparkSession, name: str, request: Create
) -> TableInfo:
    """Create a table as `SHOW CREATE TABLE` tells it."""
    texts = dict(request.properties)
    try:
        values = json.loads(texts.pop(DEFINITION))
        location = _properties(name, texts)["location"]
        definition = TableDefinition.model_validate({**values, "location": location})
    except (ValueError, TypeError, KeyError):
        raise _refused(
            name,
            f"its property {DEFINITION!r} is not one that SHOW CREATE TABLE gives, with a LOCATION",
            "leave it out",
        ) from None
    client.put_table(name, definition)
    try:
        client.refresh(name)
        table = client.table(name)
        if not _is_alike(spark, table, request):
            raise _refused(
                name,
                f"its files have other columns, by its property {DEFINITION!r}",
                "change neither the columns nor that property",
            )
    except BaseException:
        client.delete_table(name)
        raise
    return table


def with_snapshot(client: Coordinator, table: TableInfo) -> TableInfo | None:
    """Return a table if it has a snapshot, which a commit that was interrupted gets now; else None.

    Args:
        client: The client of its coordinator.
        table: The table as it has just been read.

    Raises:
        WriteError: The commit cannot be finished.
    """
    if table.current_snapshot is None and any(client.writes(table.name, open_only=True)):
        recover(client, table)
        table = client.table(table.name)
    return None if table.current_snapshot is None else table


def take_back(client: Coordinator, name: str, location: str, folders: list[str]) -> None:
    """Undo the creation of a table whose rows could not be written.

    A table that others use by now stays, and so does one that has files: a commit was interrupted,
    which the next statement on the table finishes.
    """
    if os.path.isdir(location) and os.listdir(location):
        return
    if client.table(name).current_snapshot is not None:
        return
    client.delete_table(name)
    _remove(folders)


def check_alike(spark: SparkSession, table: TableInfo, request: Create) -> None:
    """Make sure that new rows of a table have its columns, so that they can replace its rows.

    Raises:
        UnfitReadError: They have others.
    """
    name = table.name
    properties = _properties(name, request.properties)
    if not _is_alike(spark, table, request):
        raise UnfitReadError(
            f"the columns of table {name!r} are others than those of the new rows, and nothing was "
            "written",
            f"write to the table as it is (INSERT OVERWRITE, writeTo), or client.delete_table"
            f"({name!r}) deletes its registration and leaves its files",
        )
    location = properties.get("location")
    if location not in (None, table.definition.location):
        raise _refused(name, "it lies elsewhere", "leave the location out")


def _is_alike(spark: SparkSession, table: TableInfo, request: Create) -> bool:
    columns, partition_columns = _columns(table.name, request)
    snapshot = table.current_snapshot
    folders = [] if snapshot is None else snapshot.partition_columns
    own = {c.name: c.type for c in partition_columns_in_session(spark, table, folders)}
    data = {} if snapshot is None else {c.name: c.type for c in snapshot.columns}
    data = {column: type_ for column, type_ in data.items() if column not in own}
    return _folded(columns) == _folded(data) and _folded(partition_columns) == _folded(own)


def _check_unused(
    client: Coordinator,
    name: str,
    location: str,
    columns: Mapping[str, str],
    partition_columns: Mapping[str, str],
) -> None:
    """Make sure that a name is free, or was left by the same statement when its driver died."""
    try:
        table = client.table(name)
    except NotFoundError:
        return
    if with_snapshot(client, table) is not None:
        raise _refused(name, "it exists by now", "use INSERT, or name another")
    own = {column.name: column.type for column in table.definition.columns or ()}
    folders = {column.name: column.type for column in table.definition.partition_columns or ()}
    if (
        os.path.realpath(location) != os.path.realpath(table.definition.location)
        or _folded(columns) != _folded(own)
        or _folded(partition_columns) != _folded(folders)
    ):
        raise _refused(
            name,
            f"the name is registered for {table.definition.location}, or for other columns, and "
            "has no snapshot yet",
            f"client.refresh({name!r}) makes the first, and client.delete_table({name!r}) frees the "
            "name",
        )
    if any(client.writes(name, open_only=True)):
        raise _refused(name, "another statement is creating it", "wait for its end")


def _properties(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    properties = {
        key.lower(): text for key, text in texts.items() if not key.lower().startswith("option.")
    }
    provider = properties.pop("provider", "windrow")
    if provider.lower() not in _FORMATS:
        raise _refused(name, f"its files are Parquet, not {provider}", "write USING windrow")
    path = properties.pop("path", None)
    location = properties.pop("location", path)
    others = sorted(properties.keys() - _IGNORED - set(NAMES))
    if others:
        raise _refused(name, f"tables have no property {others[0]!r}", "leave it out")
    return {} if location is None else {"location": location.removeprefix("file:")}


def _columns(name: str, request: Create) -> tuple[dict[str, str], dict[str, str]]:
    types = {column["name"]: _type_of(column["type"]) for column in request.columns}
    strict = [column["name"] for column in request.columns if not column["nullable"]]
    if strict:
        raise _refused(
            name, f"column {strict[0]!r} is NOT NULL, which no table ensures", "leave it out"
        )
    short = [column for column, type_ in types.items() if _LENGTH.search(type_)]
    if short:
        raise _refused(
            name,
            f"column {short[0]!r} is {types[short[0]].upper()}, whose length no table ensures",
            "make it STRING",
        )
    partitions = [name for name in request.partitions if name is not None]
    if len(partitions) < len(request.partitions):
        raise _refused(
            name, "it is partitioned or clustered by more than columns", "name columns alone"
        )
    by_lower = {column.lower(): column for column in types}
    own = [by_lower[column.lower()] for column in partitions]
    return (
        {column: type_ for column, type_ in types.items() if column not in own},
        {column: types[column] for column in own},
    )


def _type_of(text: str) -> str:
    """Return a type with the names of its fields as they are written."""
    plain = text.replace(_PLAIN_COLLATION, "")
    return _KEYWORD.sub(lambda one: one[0] if one[0][0] == "`" else one[0].lower(), plain)


def _folded(columns: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name.lower(), type_.lower().replace(" ", "")) for name, type_ in columns.items()]


def _default_location(spark: SparkSession, name: str) -> str:
    root = spark.conf.get(WAREHOUSE, None)
    if not root:
        raise _refused(
            name,
            "no folder is known for its files",
            f"name one with LOCATION, or SET {WAREHOUSE} to a folder for all new tables",
        )
    return os.path.join(root.removeprefix("file:"), *name.split("."))


def _missing_folders(location: str) -> list[str]:
    folders = []
    while not os.path.isdir(location) and location != os.path.dirname(location):
        folders.append(location)
        location = os.path.dirname(location)
    return folders


def _remove(folders: list[str]) -> None:
    """Remove folders that were made for a table, as long as they are empty."""
    if folders:
        above = os.path.dirname(folders[-1])
        with suppress(OSError):
            Root.resolved(above).remove_empty(os.path.relpath(folders[0], above))


def _refused(name: str, reason: str, remedy: str) -> UnfitReadError:
    return UnfitReadError(
        f"table {name!r} cannot be created: {reason}, and nothing was written", remedy
    )
