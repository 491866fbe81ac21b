"""What Windrow plans of a query, and why Spark plans the rest."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.cards import Shown
from windrow_core.models import Plan, TableInfo
from windrow_spark.acceleration import requests
from windrow_spark.acceleration.comparing import (
    check_defaults,
    check_same,
    is_of_serde,
    serde_of,
)
from windrow_spark.acceleration.paths import columns_of_path
from windrow_spark.acceleration.patience import Patience
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.acceleration.registered import Registered
from windrow_spark.arrow_types import spark_schema
from windrow_spark.catalog.importing import ImportedTable, import_tables
from windrow_spark.hadoop import hadoop_location
from windrow_spark.reading.reader import check_readable, check_session
from windrow_spark.reading.session_times import in_session, own_zone
from windrow_spark.relation import java_classes
from windrow_spark.relation.division import check_native
from windrow_spark.relation.pins import Pin, label_of
from windrow_spark.relation.reports import note_stale
from windrow_spark.relation.scans import ANSWERS, SOURCES, Source
from windrow_spark.session_options import session_options
from windrow_spark.session_settings import check_settings, settings_of

_IMPORTED = "hive:"
_BUCKETING = "spark.sql.sources.bucketing.enabled"
_KEPT_DECISIONS = 200
# No command of the application has been seen yet: less than the number of any.
NOTHING = -1


@dataclass(frozen=True, slots=True, repr=False)
class Decision(Shown):
    """What was decided for a table or path of a query.

    Attributes:
        target: The table of Spark's catalog, or the path.
        table: The table at the coordinator; None if Spark plans the target.
        reason: Why Spark plans it; empty if Windrow does.
        at: When it was decided.
    """

    target: str
    table: str | None
    reason: str
    at: datetime


@dataclass(slots=True)
class _State:
    """What queries have seen of a table.

    Attributes:
        listed_writes: The number of the application's last command there before a listing.
        compared_writes: The same before a comparison with the catalog's partitions.
        compared_at: When the last of these began.
        partitions: How often the list of partitions has changed.
    """

    listed_writes: int = NOTHING
    compared_writes: int = NOTHING
    compared_at: float = 0.0
    partitions: int = 0


class Decisions:
    """Answers the optimizer's rule, and keeps its newest answers.

    Args:
        spark: A session of the application.
        client: Plans the tables.
        tables: Which tables, as patterns.
        max_staleness: How old, in seconds, the last look at a table's files may be.
        wait_s: How long a query waits for the coordinator.

    Attributes:
        newest: The newest decisions.
        patience: Waits for the coordinator.
    """

    def __init__(
        self,
        spark: SparkSession,
        client: Coordinator,
        tables: Sequence[str],
        max_staleness: int,
        wait_s: float,
    ) -> None:
        self._spark = spark
        self._client = client
        self._patterns = tables
        self._max_staleness = max_staleness
        self.patience = Patience(wait_s)
        self._registered = Registered(client, tables)
        self._states: defaultdict[str, _State] = defaultdict(_State)
        self.newest: deque[Decision] = deque(maxlen=_KEPT_DECISIONS)

    def relation(self, request: requests.Relation, spark: SparkSession, theirs: Any) -> Any:
        """Return the JVM's relation to read instead of Spark's, or why there is none."""
        try:
            name, relation = self._relation(request, spark, theirs)
            self.note(request.target, name, "")
            return relation
        # Spark can answer the query without us, whatever has gone wrong here.
        except Exception as error:
            return self.refused(
                requests.Refused(request.target, str(error) or type(error).__name__), spark
            )

    def refused(self, request: requests.Refused, spark: SparkSession) -> str:
        """Keep and return why Spark itself plans something."""
        self.note(request.target, None, request.refusal)
        return request.refusal

    def path(self, request: requests.Path, spark: SparkSession) -> Any:
        """Return the JVM's list of what `columns_of_path` returns, and bytes; None if Spark lists.

        Whether Windrow plans the scans of the path is decided for each query, as always.
        """
        try:
            if self._client.is_closed:
                return None
            table = self.table_of(request)
            first = in_session(spark, self._first_plan(spark, table, request))
            check_settings(spark, first)
            columns = columns_of_path(
                table.definition,
                first,
                request,
                settings_of(spark),
                lambda: self._client.partition_values(table.name, first.snapshot_id),
            )
        # The query itself says why.
        except Exception:
            return None
        jvm: Any = spark.sparkContext._jvm
        answer = jvm.java.util.ArrayList()
        for schema in columns:
            type_ = jvm.org.apache.spark.sql.types.DataType
            answer.add(None if schema is None else type_.fromJson(schema.json()))
        answer.add(first.summary.size_bytes + first.summary.bytes_pruned_by_limit)
        return answer

    def note(self, target: str, table: str | None, reason: str) -> None:
        """Keep a decision; see `Decision`."""
        self.newest.append(Decision(target, table, reason, datetime.now(timezone.utc)))

    def _relation(
        self, request: requests.Relation, spark: SparkSession, theirs: Any
    ) -> tuple[str, Any]:
        if request.refusal is not None:
            raise NotTheSameError(request.refusal)
        if self._client.is_closed:
            raise NotTheSameError("the client is closed")
        serde = None
        if is_of_serde(request):
            serde = serde_of(spark, theirs.location().table())
        table = self.table_of(request)
        if request.has_buckets and settings_of(spark).get(_BUCKETING, "true") == "true":
            raise NotTheSameError("it is bucketed, and Spark uses its buckets")
        first = in_session(spark, self._first_plan(spark, table, request))
        check_same(first, request, serde)
        check_defaults(spark, first, request)
        if not first.reading.files.is_grouped:
            check_session(spark, first)
            check_native(first, "auto", hadoop_location(spark, first.location))
        else:
            check_readable(spark, first)
        pin = Pin(
            source=SOURCES.name_of(Source(self._client, self._spark)),
            table=table.name,
            registration=first.registration,
            snapshot_id=first.snapshot_id,
            filter=None,
            types={column.name: column.type for column in first.columns},
            options={},
            reader="auto",
            local_times=first.local_times,
            zone=own_zone(first.format_options),
        )
        relation = java_classes.relation_in_place_of(
            spark,
            theirs,
            java_classes.planned_format(spark, first.format, first.format_options),
            first.format_options,
            spark_schema(first.columns),
            first.summary.size_bytes + first.summary.bytes_pruned_by_limit,
            label_of(table.name, first.snapshot_id),
            pin.to_text(),
            ANSWERS,
        )
        return table.name, relation

    def table_of(self, request: requests.Place) -> TableInfo:
        """Return the table with the files of Spark's relation, or of its command.

        Raises:
            NotTheSameError: There is none.
        """
        tables = self._registered.at(request.path)
        if not tables:
            patterns = ", ".join(self._patterns)
            raise NotTheSameError(
                f"no table of {patterns} is registered at {request.path}, or only in the last "
                "30 seconds"
            )
        if request.in_catalog:
            tables = [table for table in tables if _is_import_of(table, request.table)]
            if not tables:
                raise NotTheSameError(
                    "Spark takes its partitions from the catalog, and no table has these: import it "
                    f"with client.import_tables(spark, {request.table!r})"
                )
        else:
            tables = [table for table in tables if not table.definition.listed_partitions]
            if not tables:
                raise NotTheSameError(
                    "Spark takes its partitions from folders, and the table there from a catalog"
                )
        # Of several tables at one location, the one of the same name.
        return min(tables, key=lambda table: (table.name != request.table, table.name))

    def _first_plan(self, spark: SparkSession, table: TableInfo, request: requests.Read) -> Plan:
        """Return a plan of one file, which tells columns, snapshot and size."""
        name, writes = table.name, request.writes
        options = session_options(spark)
        if request.in_catalog:
            self.compare(spark, name, writes, is_running=request.running)
        note_stale(self._client, name)
        state = self._states[name]
        # Before acceleration began, this application may have written to the table, too.
        fresh = request.running or state.listed_writes < writes
        late = (
            f"this application may have written to {name!r}, which is refreshed first"
            if fresh
            else f"{name!r} is planned, or refreshed first if its last refresh is older than "
            f"{self._max_staleness} s"
        )

        def plan() -> Plan:
            partitions = state.partitions
            info = self._client.probe(
                name,
                max_staleness=0 if fresh else self._max_staleness,
                session_options=options,
            ).info
            # Also if the query has not waited for it: the next one need not look again.
            if fresh and partitions == state.partitions:
                state.listed_writes = max(state.listed_writes, writes)
            return info

        return self.patience.call(name, late, plan)

    def compare(
        self, spark: SparkSession, name: str, writes: int = NOTHING, *, is_running: bool = True
    ) -> None:
        """Give a table the partitions of the catalog, if that is due.

        By default that is what others have changed in the catalog a moment ago.

        Raises:
            NotTheSameError: The catalog or the coordinator does not answer, or refuses.
        """
        began_at, state = time.monotonic(), self._states[name]
        is_known = not is_running and state.compared_writes >= writes
        if is_known and began_at - state.compared_at <= self._max_staleness:
            return

        def compare() -> ImportedTable:
            (done,) = import_tables(spark, self._client, [name], refresh="none")
            if done.outcome == "updated":
                state.partitions += 1
                state.listed_writes = NOTHING
            if done.outcome in ("updated", "unchanged"):
                state.compared_at, state.compared_writes = began_at, writes
            return done

        late = f"the partitions of {name!r} are compared with the catalog's"
        done = self.patience.call(name, late, compare)
        if done.outcome not in ("updated", "unchanged"):
            raise NotTheSameError(done.reason or f"{name!r} was {done.outcome} by an import")


def _is_import_of(table: TableInfo, name: str) -> bool:
    definition = table.definition
    return definition.listed_partitions and definition.imported_from == _IMPORTED + name
