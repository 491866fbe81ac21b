"""The sink of a streaming query: each batch is in the table once, and none waits too long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_spark.relation.jvm_sessions import session_of
from windrow_spark.streaming.earlier import earlier_queries
from windrow_spark.streaming.errors import CheckpointLostError
from windrow_spark.streaming.options import sink_options
from windrow_spark.streaming.queries import Query, query_of
from windrow_spark.streaming.stream import Stream
from windrow_tables.commits.locations import local_location

_log = logging.getLogger("windrow.streams")
_LOOK_S = 0.5
# A query that has not started by then has failed to.
_START_S = 60.0
_RETRY_S = 5.0
# The sink of the newest run of each query in this process.
_sinks: dict[str, TableSink] = {}


class TableSink:
    """Takes the batches of one run of a streaming query.

    Args:
        client: Client of the coordinator that knows the table.
        spark: The session that started the query.
        table: Name of the table.
        texts: The options of the stream, by name in lower case.
        sink: The JVM's `Sink`, by which the query is found.
    """

    def __init__(
        self,
        client: Coordinator,
        spark: SparkSession,
        table: str,
        texts: Mapping[str, str],
        sink: Any,
    ) -> None:
        self._options, self._holding, self._write_options = sink_options(texts)
        self._client = client
        self._spark = spark
        self._table = table
        self._sink = sink
        # Fails now if the table does not exist, or cannot be written.
        local_location(client.table(table))
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._query: Query | None = None
        self._is_over = False
        threading.Thread(target=self._watch, name="windrow-stream", daemon=True).start()

    def add(self, batch_id: int, jrows: Any) -> None:
        """Make the rows of a batch durable, and write the waiting batches if that is due.

        Args:
            batch_id: The batch.
            jrows: The JVM's rows, whose plan runs once.
        """
        with self._lock:
            stream = self._begun()
            if not stream.has(batch_id):
                stream.keep(batch_id, self._rows(jrows))
            self._publish_due(stream)

    def leave(self) -> None:
        """Leave the waiting batches to the next run of the query."""
        with self._lock:
            self._is_over = True

    def _watch(self) -> None:
        """Write waiting batches that no further batch does: when they are due, and at the end."""
        start_by_s = time.monotonic() + _START_S
        while True:
            time.sleep(_LOOK_S)
            if self._session_has_ended():
                # The next start of the query goes on.
                return
            try:
                query = query_of(self._spark._jsparkSession, self._sink)
            except Exception as error:
                # Rows wait until somebody looks again.
                _log.debug("queries cannot be looked at: %s", error)
                continue
            with self._lock:
                if self._is_over:
                    return
                if query is None and self._stream is None:
                    if time.monotonic() > start_by_s:
                        return
                    continue
                pause_s = self._work(query)
                if query is None and not pause_s:
                    return
            time.sleep(pause_s)

    def _session_has_ended(self) -> bool:
        try:
            return bool(self._spark.sparkContext._jsc.sc().isStopped())
        except (AttributeError, Py4JError, OSError):
            return True

    def _work(self, query: Query | None) -> float:
        """Write what is due, or everything if the query has ended; return how long to pause."""
        try:
            if query is not None:
                self._publish_due(self._begun())
            elif self._stream is not None:
                self._stream.publish(self._spark)
        except Exception as error:
            # The next batch fails with it too; if there is none, this is the only word of it.
            _log.warning("rows of a stream to table %r still wait: %s", self._table, error)
            return _RETRY_S
        return 0.0

    def _rows(self, jrows: Any) -> DataFrame:
        session = jrows.sparkSession()
        rows = session.internalCreateDataFrame(
            jrows.queryExecution().toRdd(), jrows.schema(), False
        )
        return DataFrame(rows, session_of(self._spark, session))

    def _begun(self) -> Stream:
        """Return the query's stream, as the table has it."""
        if self._stream is None:
            query = query_of(self._spark._jsparkSession, self._sink)
            assert query is not None
            self._begin(query)
        assert self._stream is not None
        self._stream.catch_up()
        return self._stream

    def _begin(self, query: Query) -> None:
        stream = self._stream_of(query)
        stream.catch_up()
        if not stream.has_begun:
            self._refuse_or_replace(query)
        before = _sinks.get(query.query_id)
        _sinks[query.query_id] = self
        if before is not None and before is not self:
            before.leave()
            stream.catch_up(again=True)
        self._query, self._stream = query, stream

    def _stream_of(self, query: Query) -> Stream:
        return Stream(self._client, self._table, query, self._write_options)

    def _refuse_or_replace(self, query: Query) -> None:
        """Look for an earlier query of which this one may be a second start."""
        location = local_location(self._client.table(self._table))
        for earlier in earlier_queries(self._client, self._table, location):
            likeness = earlier.likeness(query)
            if likeness is None:
                continue
            earlier_id = earlier.query.query_id
            if self._options.replaces_query != earlier_id:
                raise CheckpointLostError(
                    self._table, query.query_id, earlier_id, likeness, earlier.batch_id
                )
            # To Spark, its waiting batches were written.
            self._stream_of(earlier.query).publish(self._spark)
            return

    def _publish_due(self, stream: Stream) -> None:
        waiting = stream.waiting
        if not waiting:
            return
        is_due = self._query is not None and self._query.ends
        if is_due or self._holding.is_due(
            age_s=time.time() - waiting[0].staged_at_s,
            write_s=stream.write_s,
            size_bytes=sum(batch.size_bytes for batch in waiting),
            partitions=len({one for batch in waiting for one in batch.partitions}),
            recent_files=stream.recent_files(),
        ):
            stream.publish(self._spark)
