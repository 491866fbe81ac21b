"""The format `windrow` of a Spark session: tables by their names, in `spark.read` and in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windrow.client import Client
from windrow.connecting import connect
from windrow.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_IN_THE_QUERY = {"columns": "select them", "limit": "write LIMIT"}


def register(spark: SparkSession, client: Client | None = None) -> None:
    """Give a classic session, and all others of its driver, the format `windrow`.

    ```python
    windrow.register(spark)
    events = spark.read.format("windrow").option("coordinator", url).load("sales.events")
    ```

    In SQL: `CREATE TEMPORARY VIEW events USING windrow OPTIONS (coordinator '…', table
    'sales.events')`. Further options are those of `Client.read`, except `columns` and `limit`,
    which belong to the query. A token comes from WINDROW_TOKEN alone, as options are shown.

    Args:
        spark: The session.
        client: Plans the tables that name no `coordinator`.

    Raises:
        SparkConnectError: The session is one of Spark Connect.
        RelationUnavailableError: This Spark lacks what is needed.
    """
    from windrow.spark.relation.source import register_format

    clients: dict[str, Client] = {}

    def opened(session: SparkSession, given: Mapping[str, str]) -> DataFrame:
        options = dict(given)
        url = options.pop("coordinator", None)
        path = options.pop("path", None)
        table = options.pop("table", path)
        if table is None:
            raise InvalidArgumentError("table", "name a table: .load('sales.events')")
        for name, remedy in _IN_THE_QUERY.items():
            if name in options:
                raise InvalidArgumentError(
                    name, f"{name!r} is no option of the format: {remedy} in the query"
                )
        if url is None and client is None:
            raise InvalidArgumentError(
                "coordinator", "name a coordinator: .option('coordinator', 'http://…')"
            )
        if url is not None and url not in clients:
            clients[url] = connect(url)
        chosen = client if url is None else clients[url]
        assert chosen is not None
        return chosen.read(session, table, **{n: _value(n, text) for n, text in options.items()})

    register_format(spark, opened)


def _value(name: str, text: str) -> Any:
    """Return an option as `Client.read` takes it; Spark has only texts."""
    if name != "filter" and re.fullmatch("[0-9]+", text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text) if name != "filter" else text
