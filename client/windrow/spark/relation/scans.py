"""Scans: a relation says which columns and filters a query needs, and gets rows of a new plan."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.calls.coordinator import Coordinator
from windrow.calls.plans import SplitPlan
from windrow.errors import InvalidRequestError
from windrow.spark.errors import ClientClosedError
from windrow.spark.failures import remembered
from windrow.spark.reading.reader import read_plan
from windrow.spark.relation.filters import Tree, weakened
from windrow.spark.relation.recent import Scan, note
from windrow.spark.session_options import session_options

_INVALID_FILTER = "urn:windrow:problem:invalid-filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What a relation reads, whatever a query asks of it; its text travels through Spark.

    Attributes:
        source: The client and the session, by the name that `Sources` gave them.
        table: The table.
        snapshot_id: Its version.
        filter: Rows to keep, as the coordinator understood it.
        limit: How many rows are enough.
        types: All columns, with their types as Spark SQL writes them.
        options: Of each plan, before those that its session sets.
    """

    source: str
    table: str
    snapshot_id: int
    filter: Tree | None
    limit: int | None
    types: dict[str, str]
    options: dict[str, Any]

    def to_text(self) -> str:
        """Return it as JSON; equal ones have the same text."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Who plans the scans of a relation, and who reads them."""

    client: Coordinator
    spark: SparkSession


class Sources:
    """The clients that plan scans, each with a session, until they are closed.

    Relations live in the JVM, which cannot hold a client; so they name it.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._lock = threading.Lock()

    def name_of(self, source: Source) -> str:
        """Return the name of a source; it is kept until its client is closed."""
        with self._lock:
            kept = {n: s for n, s in self._sources.items() if not s.client.is_closed}
            same = (
                name
                for name, known in kept.items()
                if known.client is source.client and known.spark is source.spark
            )
            name = next(same, None) or uuid.uuid4().hex
            self._sources = {**kept, name: source}
            return name

    def find(self, name: str, table: str) -> Source:
        """Return the source of a name.

        Raises:
            ClientClosedError: Its client has been closed.
        """
        source = self._sources.get(name)
        if source is None or source.client.is_closed:
            raise ClientClosedError(table)
        return source


SOURCES = Sources()


def answer(pinned: str, scan: str) -> Any:
    """Return the rows of one scan as the JVM's RDD, or a text that says why there are none.

    Spark calls this in whichever thread plans a query.

    Args:
        pinned: `Pinned.to_text` of the relation.
        scan: What the query asks of it, as `WindrowRelation.java` writes it.
    """
    try:
        asked = json.loads(scan)
        rows = scanned(Pinned(**json.loads(pinned)), asked["columns"], asked["filters"])
        return rows._jdf.queryExecution().toRdd()
    # An exception would reach the user as the JVM's, with its trace and without its own message.
    except Exception as error:
        return remembered(error)


def scanned(
    pinned: Pinned, columns: Sequence[str], filters: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Return the rows of a scan: at least those that pass the filters.

    Args:
        pinned: What the relation reads.
        columns: The columns to return, in this order.
        filters: Spark's, as `WindrowRelation.java` describes them.

    Raises:
        ClientClosedError: The relation's client has been closed.
        ReadError: The files cannot be read.
        ProblemError: The coordinator refuses.
    """
    source = SOURCES.find(pinned.source, pinned.table)
    plan = planned(source, pinned, columns, weakened(filters, pinned.types))
    return read_plan(source.spark, plan.info, plan.groups)


def planned(
    source: Source, pinned: Pinned, columns: Sequence[str], conditions: Sequence[Tree]
) -> SplitPlan:
    """Plan a scan, with the options that its session sets now.

    Args:
        source: Who plans, and who reads.
        pinned: What the relation reads.
        columns: The columns to return.
        conditions: What may be left out because of the query.

    Raises:
        ProblemError: The coordinator refuses.
    """
    given = [] if pinned.filter is None else [pinned.filter]
    try:
        plan = _plan(source, pinned, columns, [*given, *conditions])
    except InvalidRequestError as error:
        # The query's filters may exceed the coordinator's limits: Spark applies them anyway.
        if not conditions or error.problem.type != _INVALID_FILTER:
            raise
        conditions = ()
        plan = _plan(source, pinned, columns, given)
    note(
        Scan(
            table=pinned.table,
            columns=tuple(columns),
            conditions=tuple(conditions),
            plan=plan.info,
        )
    )
    return plan


def _plan(
    source: Source, pinned: Pinned, columns: Sequence[str], conditions: Sequence[Tree]
) -> SplitPlan:
    # Flat, as the depth of a tree is limited.
    args = [
        part for tree in conditions for part in (tree["args"] if tree["op"] == "and" else [tree])
    ]
    return source.client.plan(
        pinned.table,
        filter={"op": "and", "args": args} if len(args) > 1 else args[0] if args else None,
        columns=columns,
        snapshot_id=pinned.snapshot_id,
        limit=pinned.limit,
        session_options=session_options(source.spark),
        **pinned.options,
    )
