"""The format and the catalog `windrow` of a Spark session: tables by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow_spark.data_source import OpenTable
    from windrow_spark.relation.callbacks import Answering


def register(spark: SparkSession, client: Client | None = None) -> None:
    """Register the format `windrow` in a session; if it is classic, in all sessions of its driver.

    In classic sessions, `windrow` is also the catalog of the client's tables, as in
    `SELECT * FROM windrow.sales.events`.

    ```python
    windrow.register(spark)
    events = spark.read.format("windrow").option("coordinator", url).load("sales.events")
    ```

    In SQL: `CREATE TEMPORARY VIEW events USING windrow OPTIONS (coordinator '…', table
    'sales.events')`. Further options are those of `Client.read`, except `limit`, which belongs to
    the query; `columns` are separated by commas. A token comes only from WINDROW_TOKEN or the file
    that WINDROW_TOKEN_FILE names, because Spark shows options.

    With Spark Connect, the server plans tables: Windrow must be installed there, WINDROW_TOKEN set
    there, and the coordinator reachable from there. Later changes of the session's settings have no
    effect.

    Args:
        spark: The session.
        client: Plans the tables that name no `coordinator`, and has those of the catalog.

    Raises:
        DataSourceUnavailableError: The session is one of Spark Connect before Spark 4.0.
        ServerCannotReachError: The session is one of Spark Connect, and the client's coordinator is
            embedded.
        RelationUnavailableError: This version of Spark lacks a class or method that is needed.
    """
    from windrow_spark.placement import is_classic

    if is_classic(spark):
        _register_relation(spark, client)
    else:
        _register_data_source(spark, client)


@dataclass(frozen=True, slots=True)
class _Read:
    """The table that options ask for.

    Attributes:
        url: URL of the coordinator; None if the options name none.
        table: Name of the table.
        options: The arguments of `Client.read`.
        catalog: The catalog that the table was named by, if it was.
    """

    url: str | None
    table: str
    options: dict[str, Any]
    catalog: str | None = None


def _read_of(texts: Mapping[str, str], default_url: str | None = None) -> _Read:
    options = dict(texts)
    url = options.pop("coordinator", default_url)
    path = options.pop("path", None)
    table = options.pop("table", path)
    if table is None:
        raise InvalidArgumentError("table", "name a table: .load('sales.events')")
    if "limit" in options:
        raise InvalidArgumentError(
            "limit", "'limit' is not an option of the format: write LIMIT in the query"
        )
    return _Read(url, table, {name: _value(name, text) for name, text in options.items()})


def _target_of(texts: Mapping[str, str], method: str) -> _Read:
    """Return the table that a writer's options ask for; Spark may write their names in any case.

    Args:
        texts: The options.
        method: The method that takes the name of a table.
    """
    from windrow_spark.sql.names import place_of

    options = {
        # Those of Parquet's writer may name columns.
        name if name.lower().startswith("parquet.") else name.lower(): text
        for name, text in texts.items()
    }
    url, path = options.pop("coordinator", None), options.pop("path", None)
    place = place_of(path or "")
    if place is not None:
        return _Read(url, place[1], options, catalog=place[0])
    table = options.pop("table", path)
    if table is None:
        raise InvalidArgumentError("table", f"name a table: .{method}('sales.events')")
    if path not in (None, table):
        raise InvalidArgumentError(
            "table",
            f"new rows of table {table!r} cannot be a table of Spark's own catalog, and nothing was "
            f"written: write them with .save({table!r}) or client.write(df, {table!r})",
        )
    return _Read(url, table, options)


def _url_of(read: _Read) -> str:
    if read.url is None:
        raise InvalidArgumentError("coordinator", _no_coordinator())
    return read.url


def _no_coordinator(catalog: str | None = None) -> str:
    if catalog is None:
        return "name a coordinator: .option('coordinator', 'http://…')"
    return (
        f"name the coordinator of catalog {catalog!r}: windrow.register(spark, client), or the "
        f"setting spark.sql.catalog.{catalog}.coordinator = http://…"
    )


def _value(name: str, text: str) -> Any:
    """Return an option as `Client.read` takes it; Spark passes options only as texts."""
    if name == "columns":
        return [column.strip() for column in text.split(",")]
    if name == "filter":
        return text
    if re.fullmatch("[0-9]+", text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _register_relation(spark: SparkSession, client: Client | None) -> None:
    from windrow.procedures import PROCEDURES
    from windrow_spark.relation.saves import save
    from windrow_spark.relation.source import register_format
    from windrow_spark.relation.table import ReadOptions, open_table
    from windrow_spark.sql.registering import (
        OpenTables,
        cataloged_read,
        options_of_query,
        register_catalog,
    )
    from windrow_spark.streaming.sinks import open_sink
    from windrow_spark.streaming.source import open_source

    clients: dict[str, Client] = {}
    tables = OpenTables()

    def client_of(url: str | None, catalog: str | None = None) -> Client:
        if url is None and client is not None:
            return client
        if url is None:
            raise InvalidArgumentError("coordinator", _no_coordinator(catalog))
        if url not in clients or clients[url].is_closed:
            clients[url] = connect(url, check=False)
        return clients[url]

    def opened(session: SparkSession, texts: Mapping[str, str]) -> DataFrame:
        part = cataloged_read(texts)
        if part is not None:
            reader = client_of(part.coordinator, part.catalog)
            return tables.table(
                (session, reader, part),
                lambda: open_table(
                    reader,
                    session,
                    part.table,
                    ReadOptions(
                        snapshot_id=part.snapshot_id,
                        at_snapshot=part.at_snapshot,
                        follows=not part.at_snapshot,
                    ),
                ),
            )
        read = _read_of(texts)
        return client_of(read.url).read(session, read.table, **read.options)

    def streamed(stream: _Read) -> Client:
        url = stream.url or spark.conf.get(f"spark.sql.catalog.{stream.catalog}.coordinator", None)
        return client_of(url, stream.catalog)

    def sink(jsink: Any, texts: Mapping[str, str]) -> Callable[[int, Any], None]:
        stream = _target_of(texts, "start")
        return open_sink(streamed(stream), spark, jsink, stream.table, stream.options)

    def written(
        session: SparkSession, texts: Mapping[str, str], mode: str, rows: DataFrame
    ) -> DataFrame:
        target = _target_of(texts, "save")
        save(client_of(target.url), session, target.table, mode, rows, target.options)
        return client_of(target.url).read(session, target.table)

    def stream(session: SparkSession, texts: Mapping[str, str]) -> Answering:
        source = _target_of(options_of_query(texts), "load")
        return open_source(streamed(source), session, source.table, source.options)

    register_format(spark, opened, sink, stream, written)
    register_catalog(spark, client_of, PROCEDURES)


def _register_data_source(spark: SparkSession, client: Client | None) -> None:
    from windrow_spark.errors import DataSourceUnavailableError, ServerCannotReachError

    if not hasattr(spark, "dataSource"):
        raise DataSourceUnavailableError(spark.version)
    if client is not None and client.is_embedded:
        raise ServerCannotReachError
    from windrow_spark.data_source import register_data_source

    register_data_source(spark, partial(_opened, None if client is None else client.url))


def _opened(default_url: str | None, texts: Mapping[str, str]) -> OpenTable:
    """Open a table in a process of Spark's server."""
    from windrow_spark.data_source import OpenTable

    read = _read_of(texts, default_url)
    if read.options.pop("reader", "grouped") not in ("auto", "grouped"):
        raise InvalidArgumentError(
            "reader", "on Spark Connect all files are read in groups: leave out 'reader'"
        )
    return OpenTable(connect(_url_of(read), check=False), read.table, read.options)
