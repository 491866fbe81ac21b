"""Scans: a relation says which columns and filters a query needs, and gets rows of a new plan."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from windrow.calls.coordinator import Coordinator
from windrow.calls.plans import SplitPlan
from windrow.errors import InvalidRequestError
from windrow_core.models import Column, Plan
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.errors import UnfitReadError
from windrow_spark.failures import remembered
from windrow_spark.reading.equalities import without_equalities
from windrow_spark.reading.reader import check_readable, packed_batches, read_plan
from windrow_spark.reading.session_calendars import converts_int96
from windrow_spark.refusals import refusal
from windrow_spark.relation.division import Division, Reader, divide
from windrow_spark.relation.file_names import (
    check_divided,
    check_function,
    check_native_only,
    without_caches,
)
from windrow_spark.relation.filters import Tree, weakened
from windrow_spark.relation.java_classes import hybrid, unpacked
from windrow_spark.relation.native import native_relations
from windrow_spark.relation.recent_scans import Scan, last_scan, note
from windrow_spark.session_options import session_options
from windrow_spark.session_settings import check_settings

_INVALID_FILTER = "urn:windrow:problem:invalid-filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What all scans of a relation have in common; its text travels through Spark.

    Attributes:
        source: The name that `Sources` gave to the client and the session.
        table: The table.
        snapshot_id: Its snapshot.
        filter: The rows to keep, as the coordinator understood the filter.
        limit: How many rows are enough.
        types: All columns, with their types as Spark SQL writes them.
        options: Options of each plan; they take precedence over the session's.
        reader: Which way files are read.
    """

    source: str
    table: str
    snapshot_id: int
    filter: Tree | None
    limit: int | None
    types: dict[str, str]
    options: dict[str, Any]
    reader: Reader

    def to_text(self) -> str:
        """Return it as JSON; equal values have the same text."""
        # Columns keep their order, which is that of positional formats.
        return json.dumps(asdict(self) | {"options": dict(sorted(self.options.items()))})


@dataclass(frozen=True, slots=True)
class Source:
    """The client that plans the scans of a relation, and the session that reads them."""

    client: Coordinator
    spark: SparkSession


class Sources:
    """The clients that plan scans, each with a session, until they are closed.

    Relations live in the JVM, which cannot hold a client, so they refer to it by name.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._lock = threading.Lock()

    def name_of(self, source: Source) -> str:
        """Return the name of a source; it is kept until its client is closed."""
        with self._lock:
            sources = {n: s for n, s in self._sources.items() if not s.client.is_closed}
            same = (
                name
                for name, other in sources.items()
                if other.client is source.client and other.spark is source.spark
            )
            name = next(same, None) or uuid.uuid4().hex
            self._sources = {**sources, name: source}
            return name

    def find(self, name: str, table: str) -> Source:
        """Return the source with a name."""
        source = self._sources.get(name)
        if source is None or source.client.is_closed:
            raise UnfitReadError(
                f"the client that read table {table!r} is closed, and each query needs a plan",
                "keep the client open as long as its tables are queried, or read the table again",
            )
        return source


SOURCES = Sources()


def answer(pin: str, scan: str) -> Any:
    """Return the rows of one scan as the JVM's RDD, or a text that says why there are none.

    Spark calls this in whichever thread plans a query.

    Args:
        pin: `Pin.to_text` of the relation.
        scan: The columns and filters of the query, as `WindrowRelation.java` writes them; or that
            it inserts rows.
    """
    try:
        request = json.loads(scan)
        relation = Pin(**json.loads(pin))
        if "inserts" in request:
            raise refusal("write", {"table": relation.table})
        function = request["function"]
        if function:
            check_function(relation.table, function)
        if request["divided"]:
            return _parts(relation, request["columns"], request["conditions"], function)
        if function:
            check_divided(relation.table, function)
        rows = scanned(relation, request["columns"], request["conditions"])
        # Spark shows this name, also as the description of jobs.
        return rows.setName(str(last_scan()))
    # An exception would reach the user as the JVM's, with its trace and without its own message.
    except Exception as error:
        return remembered(error)


def scanned(pin: Pin, columns: Sequence[str], filters: Sequence[Tree]) -> Any:
    """Return the rows of a scan as the JVM's RDD: at least those that pass the filters.

    Args:
        pin: What the relation reads.
        columns: The columns to return, in this order.
        filters: Spark's filters, as `WindrowRelation.java` writes them.
    """
    source = SOURCES.find(pin.source, pin.table)
    plan = _GROUPED_PLANS.take(pin, columns, filters)
    if plan is None:
        plan = planned(source, pin, columns, weakened(filters, pin.types))
    return rows_of(source.spark, plan.info, plan.groups)


def _parts(
    pin: Pin,
    columns: Sequence[str],
    filters: Sequence[Tree],
    function: str | None,
) -> Any:
    """Return the parts of a scan as the JVM's list; empty if all files are read in groups.

    The first item is the scan's description. If a function asks for the files of the rows, Spark's
    own reader reads all of them.
    """
    source = SOURCES.find(pin.source, pin.table)
    spark = source.spark
    parts = spark.sparkContext._jvm.java.util.ArrayList()
    plan = planned(source, pin, columns, weakened(filters, pin.types))
    filtered = pin.filter is not None
    if function:
        plan = without_caches(plan)
    reader: Reader = "native" if function else pin.reader
    division = divided(plan, reader, pin.types, filtered=filtered)
    if function:
        check_native_only(plan, division, function, filtered=filtered)
    if not len(division.native) and not function:
        _GROUPED_PLANS.keep(pin, columns, filters, plan)
        return parts
    parts.add(str(last_scan()))
    slots = plan.info.options.parallelism
    factory = hybrid(spark)
    columns_of_files = [Column(name=name, type=type_) for name, type_ in pin.types.items()]
    if len(division.native):
        relations = native_relations(
            spark, factory, plan.info, columns_of_files, division.native, slots
        )
        last_scan().count_native(relations)
        for relation in relations:
            parts.add(relation)
    # A scan without files has a part too, so that Spark does not ask for its rows undivided.
    if len(division.grouped) or not len(division.native):
        rows = rows_of(spark, plan.info, division.grouped)
        schema = spark_schema(plan.info.columns).json()
        label = f"PlannedGroups({len(division.grouped)} groups)"
        session = spark._jsparkSession
        groups = session.baseRelationToDataFrame(factory.groups(session, schema, rows, label))
        parts.add(groups.queryExecution().optimizedPlan())
    return parts


def rows_of(spark: SparkSession, plan: Plan, groups: pa.Table) -> Any:
    """Return the rows of groups of this thread's last scan as the JVM's RDD.

    Args:
        spark: A classic session.
        plan: The coordinator's answer.
        groups: Its groups, as the coordinator streams them.
    """
    # Without groups it does not matter whether the table can be read in groups.
    if len(groups):
        check_readable(spark, plan)
    count = last_scan().count_groups()
    batches = packed_batches(spark, plan, groups, count)
    if batches is None:
        rows = (
            read_plan(spark, plan, groups, count)
            if len(groups)
            else spark.createDataFrame([], spark_schema(plan.columns))
        )
        return rows._jdf.queryExecution().toRdd()
    return unpacked(spark, batches, spark_schema(plan.columns))


def divided(
    plan: SplitPlan, reader: Reader, types: Mapping[str, str], *, filtered: bool
) -> Division:
    """Divide the files of a scan of a relation; see `divide`.

    Args:
        plan: The scan's plan.
        reader: Which way files are read.
        types: All columns of the relation, with their types as Spark SQL writes them.
        filtered: Whether there is a filter that the query itself does not apply.
    """
    columns = [Column(name=name, type=type_) for name, type_ in types.items()]
    partition = {column.name for column in plan.info.partition_columns}
    fields = [f for f in arrow_schema(spark_schema(columns)) if f.name not in partition]
    names = {column.name for column in plan.info.columns}
    return divide(
        plan,
        reader,
        filtered=filtered,
        output=[field.type for field in fields if field.name in names],
        types=[field.type for field in fields],
    )


class _GroupedPlans:
    """Plans of scans that have just been found to be read in groups only.

    Spark first asks how a scan is divided; if it is not, Spark asks for its rows right away.
    """

    def __init__(self) -> None:
        self._plans: dict[Any, SplitPlan] = {}
        self._lock = threading.Lock()

    def keep(self, pin: Pin, columns: Sequence[str], filters: Any, plan: SplitPlan) -> None:
        """Keep a plan until it is taken, or dropped because there are too many."""
        with self._lock:
            if len(self._plans) >= _MAX_GROUPED_PLANS:
                self._plans.clear()
            self._plans[self._key(pin, columns, filters)] = plan

    def take(self, pin: Pin, columns: Sequence[str], filters: Any) -> SplitPlan | None:
        """Return the plan of a scan, and forget it."""
        with self._lock:
            plan = self._plans.pop(self._key(pin, columns, filters), None)
        if plan is None:
            return None
        by_name = {column.name: column for column in plan.info.columns}
        ordered = [by_name[name] for name in columns]
        return SplitPlan(plan.info.model_copy(update={"columns": ordered}), plan.groups)

    def _key(self, pin: Pin, columns: Sequence[str], filters: Any) -> Any:
        # The second time, Spark gives columns and filters in another order.
        conditions = frozenset(json.dumps(tree, sort_keys=True) for tree in filters)
        return threading.get_ident(), pin.to_text(), frozenset(columns), conditions


_MAX_GROUPED_PLANS = 64
_GROUPED_PLANS = _GroupedPlans()


def planned(
    source: Source, pin: Pin, columns: Sequence[str], conditions: Sequence[Tree]
) -> SplitPlan:
    """Plan a scan, with the options that its session sets now.

    Args:
        source: The client that plans, and the session that reads.
        pin: What the relation reads.
        columns: The columns to return.
        conditions: Conditions from the query's filters.
    """
    conditions_of_user = [] if pin.filter is None else [pin.filter]
    try:
        plan = _plan(source, pin, columns, [*conditions_of_user, *conditions])
    except InvalidRequestError as error:
        # The query's filters may exceed the coordinator's limits: Spark applies them anyway.
        if not conditions or error.problem.type != _INVALID_FILTER:
            raise
        conditions = ()
        plan = _plan(source, pin, columns, conditions_of_user)
    check_settings(source.spark, plan.info)
    note(
        Scan(
            table=pin.table,
            columns=tuple(columns),
            conditions=tuple(conditions),
            plan=plan.info,
            context=source.spark.sparkContext,
        )
    )
    return plan


def _plan(
    source: Source, pin: Pin, columns: Sequence[str], conditions: Sequence[Tree]
) -> SplitPlan:
    if converts_int96(source.spark):
        times = {name for name, type_ in pin.types.items() if type_ == "timestamp"}
        conditions = [without_equalities(tree, times) for tree in conditions]
    # Flattened, because the depth of a tree is limited.
    args = [
        part for tree in conditions for part in (tree["args"] if tree["op"] == "and" else [tree])
    ]
    return source.client.plan(
        pin.table,
        filter={"op": "and", "args": args} if len(args) > 1 else args[0] if args else None,
        columns=columns,
        snapshot_id=pin.snapshot_id,
        limit=pin.limit,
        session_options=session_options(source.spark),
        **pin.options,
    )
