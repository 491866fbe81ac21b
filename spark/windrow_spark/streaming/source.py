"""A table as a stream: its rows, and then those that later snapshots add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import NotFoundError
from windrow_spark.arrow_types import spark_schema
from windrow_spark.reading.session_times import in_session
from windrow_spark.relation import requests
from windrow_spark.relation.callbacks import Answering, answers_in_session
from windrow_spark.relation.streams import streaming_rows
from windrow_spark.relation.table import ReadOptions, open_table
from windrow_spark.streaming.errors import SnapshotsGoneError, StreamColumnsError
from windrow_spark.streaming.history import History, Position
from windrow_spark.streaming.options import source_options
from windrow_tables.errors import UnfitReadError


def open_source(
    client: Coordinator, spark: SparkSession, table: str, texts: Mapping[str, str]
) -> Answering:
    """Return what answers the JVM's `TableStream`.

    Args:
        client: Client of the coordinator that knows the table.
        spark: The session that opens the stream.
        table: Name of the table.
        texts: The other options of the stream, by name in lower case.

    Raises:
        UnfitReadError: The table cannot be read as a stream.
        InvalidArgumentError: An option is not valid.
    """
    source = TableSource(client, spark, table, texts)
    return answers_in_session(spark, source.columns, source.last, source.next, source.batch)


class TableSource:
    """Finds and reads the batches of a stream; see `open_source`."""

    def __init__(
        self, client: Coordinator, spark: SparkSession, table: str, texts: Mapping[str, str]
    ) -> None:
        options, self._plan_options = source_options(texts)
        self._client = client
        self._spark = spark
        self._table = table
        definition = client.table(table).definition
        if not definition.kind.reading.is_plain:
            raise UnfitReadError(
                f"table {table!r} is {definition.kind.noun}, and only tables of plain folders are read as streams",
                "read it as a stream with its own engine, or with spark.read",
            )
        self._history = History(client, table, options)
        first = in_session(spark, client.probe(table).info)
        self._columns = spark_schema(first.columns)

    def columns(self, request: requests.Columns, session: SparkSession) -> bytes:
        """Return the columns, as JSON."""
        return str(self._columns.json()).encode()

    def last(self, request: requests.Last, session: SparkSession) -> None:
        """End the stream with what there is now."""
        self._history.end_now()

    def next(self, request: requests.Next, session: SparkSession) -> bytes | None:
        """Return the text of the next position; None if there is none yet."""
        end = self._history.next(_position(request.start))
        return None if end is None else end.to_text().encode()

    def batch(self, request: requests.Batch, session: SparkSession) -> Any:
        """Return the JVM's rows between two positions."""
        start, end = _position(request.start), Position.of_text(request.end)
        try:
            read = ReadOptions(
                snapshot_id=end.snapshot_id,
                options=self._plan_options,
                additions=end.files_after(start),
            )
            rows = open_table(self._client, session, self._table, read)
        except NotFoundError as error:
            raise SnapshotsGoneError(self._table, end.snapshot_id) from error
        theirs = {field.name: field.dataType for field in rows.schema}
        ours = {field.name: field.dataType for field in self._columns}
        changes = [name for name, type_ in theirs.items() if type_ != ours.get(name)]
        if changes:
            raise StreamColumnsError(self._table, f"columns {', '.join(map(repr, changes))}")
        # Files of older snapshots lack columns that are new.
        return streaming_rows(rows, self._columns)


def _position(text: str | None) -> Position | None:
    return None if text is None else Position.of_text(text)
