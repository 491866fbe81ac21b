"""Scans: the JVM says which columns, conditions and partitions a query needs, and gets its rows."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidRequestError, WindrowError
from windrow_calls.plans import SplitPlan
from windrow_core.files.figures import MOST_COLUMNS
from windrow_core.models import AddedFiles, Column, Plan
from windrow_core.models.partitions import MAX_PARTITION_RANGES, REGISTRATION
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.hadoop import hadoop_location
from windrow_spark.reading.equalities import without_equalities
from windrow_spark.reading.reader import check_readable, packed_batches, read_plan
from windrow_spark.reading.session_calendars import converts_int96
from windrow_spark.reading.session_times import in_session, zone_of
from windrow_spark.relation import packed, requests
from windrow_spark.relation.bucketed_scans import (
    WHOLE_BUCKETS,
    are_buckets_certain,
    one_group_per_bucket,
)
from windrow_spark.relation.callbacks import Answering
from windrow_spark.relation.division import Division, Reader, divide
from windrow_spark.relation.file_columns import (
    BLOCK_COLUMNS,
    check_named,
    check_native_only,
    uris_of,
    with_file_columns,
    without_caches,
)
from windrow_spark.relation.filters import Tree, weakened
from windrow_spark.relation.inserts import insert
from windrow_spark.relation.java_classes import answers_factory, files_factory, unpacked
from windrow_spark.relation.jvm_sessions import session_of
from windrow_spark.relation.native import arrow_stream, native_relation
from windrow_spark.relation.partitions import partition_rows
from windrow_spark.relation.pins import Pin, label_of
from windrow_spark.relation.recent_scans import Scan, last_scan, note
from windrow_spark.relation.reports import report_later
from windrow_spark.session_options import session_options
from windrow_spark.session_settings import check_settings
from windrow_spark.writing.own_changes import snapshot_since_change
from windrow_tables.errors import UnfitReadError
from windrow_tables.groups.cutting import with_small_first_groups

_INVALID_FILTER = "urn:windrow:problem:invalid-filter"


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


def _opened(jsession: Any, text: str, *others: Any) -> Sequence[Any]:
    """Return the source of a relation in the session that asks, and the pin of which it has the text."""
    pin = Pin(**json.loads(text))
    source = SOURCES.find(pin.source, pin.table)
    return replace(source, spark=session_of(source.spark, jsession)), pin, *others


def _insert(request: requests.Insert, source: Source, pin: Pin, query: Any, name: Any) -> None:
    insert(source.client, source.spark, pin, request, query, name, ANSWERS)


def _partitions(request: requests.Partitions, source: Source, pin: Pin) -> bytes:
    values = source.client.partition_values(pin.table, pin.snapshot_id)
    metadata = values.schema.metadata or {}
    registration = metadata.get(REGISTRATION.encode())
    check_registration(pin, None if registration is None else int(registration))
    zone = zone_of(source.spark, pin.zone) if pin.local_times else ""
    return arrow_stream(partition_rows(values, pin.types, zone))


def _figures(request: requests.Figures, source: Source, pin: Pin) -> bytes | None:
    """Return the rows of each partition, and four figures of each column; None where files are read."""
    if pin.reader == "grouped" or pin.additions is not None or "strategy" in pin.options:
        return None
    if len(request.columns) > MOST_COLUMNS:
        return None
    # The answer has the rows of packs beside the figures of any column.
    columns = list(request.columns) or list(pin.types)[:1]
    values = source.client.partition_values(pin.table, pin.snapshot_id, figures=columns)
    registration = (values.schema.metadata or {}).get(REGISTRATION.encode())
    check_registration(pin, None if registration is None else int(registration))
    packed_rows, *figures = values.columns[-1 - len(columns) :]
    arrays = [packed_rows, *(one for column in figures for one in column.flatten())]
    return arrow_stream(pa.table(arrays, names=[str(at) for at in range(len(arrays))]))


def _buckets(request: requests.Buckets, source: Source, pin: Pin) -> bool:
    pin = replace(pin, options={**pin.options, **WHOLE_BUCKETS})
    return are_buckets_certain(_plan(source, pin, [], []), request.count)


def _uris(request: requests.Uris, source: Source, pin: Pin) -> Any:
    plan = planned(source, pin, [], requests.Files())
    home = hadoop_location(source.spark, plan.info.location)
    uris = source.spark.sparkContext._jvm.java.util.ArrayList()
    for uri in dict.fromkeys(uris_of(plan, home).to_pylist()):
        uris.add(uri)
    return uris


def _files(request: requests.Files, source: Source, pin: Pin) -> Any:
    """Return the files of a scan as the JVM's relation; Spark's own reader reads all of them."""
    plan = planned(source, pin, list(pin.types), request)
    home = hadoop_location(source.spark, plan.info.location)
    check_native_only(plan, home, has_filter=pin.filter is not None)
    division = divided(plan, "native", pin.types, home, filtered=False)
    return _native(source, pin, plan, division.native, home)


def _scan(request: requests.Scan, source: Source, pin: Pin) -> Any:
    """Return the JVM's `ScanAnswer`."""
    if request.buckets:
        pin = replace(pin, options={**pin.options, **WHOLE_BUCKETS}, reader="grouped")
    why_files = packed.why_files(source.spark, pin, request)
    accept: Sequence[Literal["packs"]] = () if why_files else ("packs",)
    plan = planned(source, pin, request.columns, request, request.limit, accept)
    home = hadoop_location(source.spark, plan.info.location)
    filtered = pin.filter is not None
    in_packs = packed.packed_files(
        source.spark, plan, pin.reader, pin.types, home, has_filter=filtered
    )
    last_scan().count_packed(
        in_packs.relation, in_packs.files, why_files or in_packs.reason, in_packs.unreadable
    )
    plan = in_packs.rest
    if request.names or request.metadata:
        check_named(plan.info)
    if request.row_numbers:
        plan = without_caches(plan)
        check_native_only(plan, home, has_filter=filtered)
    reader = _reader_of(pin, request)
    division = divided(plan, reader, pin.types, home, filtered=filtered)
    groups = division.grouped
    if request.buckets and len(groups):
        groups = one_group_per_bucket(groups, request.buckets)
    elif request.first is not None and len(groups):
        groups = with_small_first_groups(groups)
    files = _native(source, pin, plan, division.native, home)
    answer = answers_factory(source.spark).answer(
        _groups(source.spark, plan.info, groups, request, home) if len(groups) else None,
        files,
        in_packs.relation,
        str(last_scan()),
        plan.summary.files_planned,
        plan.summary.size_bytes,
        len(groups),
        len(division.native),
        in_packs.files,
    )
    report_later(source.client, source.spark, last_scan())
    return answer


def _reader_of(pin: Pin, request: requests.Scan) -> Reader:
    if request.row_numbers:
        return "native"
    # A Python worker whose rows nobody reads to their end is lost, and the next one starts anew.
    if pin.reader == "auto" and (request.limit, request.first) != (None, None):
        return "native"
    return pin.reader


def _newest(request: requests.Newest, source: Source, pin: Pin) -> Any:
    """Return the JVM's list of pin, label and size of a later snapshot; None if there is none."""
    client = source.client
    try:
        snapshot_id = snapshot_since_change(client, pin.table, request.last)
        if snapshot_id is None or snapshot_id <= pin.snapshot_id:
            return None
        columns = list(pin.types)
        plan = client.probe(pin.table, snapshot_id=snapshot_id, columns=columns, **pin.options)
    except WindrowError:
        # The scan of the snapshot that was analysed says what is wrong.
        return None
    info = in_session(source.spark, plan.info)
    if {column.name: column.type for column in info.columns} != pin.types:
        return None
    check_registration(pin, info.registration)
    answer = source.spark.sparkContext._jvm.java.util.ArrayList()
    for one in (
        replace(pin, snapshot_id=snapshot_id).to_text(),
        label_of(pin.table, snapshot_id),
        info.summary.size_bytes + info.summary.bytes_pruned_by_limit,
    ):
        answer.add(one)
    return answer


# The answers to requests of relations, whichever thread of the JVM runs the query.
ANSWERS: Final = Answering(
    _newest, _partitions, _figures, _buckets, _uris, _files, _scan, _insert, context=_opened
)


def _native(source: Source, pin: Pin, plan: SplitPlan, files: pa.Table, home: str | None) -> Any:
    """Return files as the JVM's relation, and count what is read; None if there are none."""
    if home is None or not len(files):
        return None
    spark = source.spark
    columns = [Column(name=name, type=type_) for name, type_ in pin.types.items()]
    slots = plan.info.options.parallelism
    part = native_relation(spark, files_factory(spark), plan.info, home, columns, files, slots)
    last_scan().count_native(part, len(files))
    return part


def _groups(
    spark: SparkSession,
    plan: Plan,
    groups: pa.Table,
    request: requests.Scan,
    home: str | None,
) -> Any:
    """Return the rows of groups of this thread's last scan as the JVM's RDD.

    Args:
        spark: A classic session.
        plan: The coordinator's answer.
        groups: Its groups, as the coordinator streams them.
        request: The scan's.
        home: The table's location as `hadoop_location` returns it.
    """
    check_readable(spark, plan)
    by_name = {column.name: column for column in plan.columns}
    columns = [
        by_name[name].model_copy(update={"type": request.types.get(name, by_name[name].type)})
        for name in request.columns
    ]
    plan = plan.model_copy(update={"columns": columns})
    further = [*request.metadata, *(BLOCK_COLUMNS if request.names else ())]
    if further:
        plan, groups = with_file_columns(plan, groups, further, home)
    count = last_scan().count_groups()
    batches = packed_batches(spark, plan, groups, count)
    if batches is None:
        return read_plan(spark, plan, groups, count)._jdf.queryExecution().toRdd()
    return unpacked(spark, batches, spark_schema(plan.columns), columnar=request.columnar)


def divided(
    plan: SplitPlan,
    reader: Reader,
    types: Mapping[str, str],
    home: str | None,
    *,
    filtered: bool,
) -> Division:
    """Divide the files of a scan of a relation; see `divide`.

    Args:
        plan: The scan's plan.
        reader: Which way files are read.
        types: All columns of the relation, with their types as Spark SQL writes them.
        home: The table's location as `hadoop_location` returns it.
        filtered: Whether there is a filter that the query itself does not apply.
    """
    columns = [Column(name=name, type=type_) for name, type_ in types.items()]
    partition = {column.name for column in plan.info.partition_columns}
    fields = [f for f in arrow_schema(spark_schema(columns)) if f.name not in partition]
    names = {column.name for column in plan.info.columns}
    return divide(
        plan,
        reader,
        home=home,
        filtered=filtered,
        output=[field.type for field in fields if field.name in names],
        types=[field.type for field in fields],
    )


def planned(
    source: Source,
    pin: Pin,
    columns: Sequence[str],
    request: requests.Files,
    limit: int | None = None,
    accept: Sequence[Literal["packs"]] = (),
) -> SplitPlan:
    """Plan a scan, with the options that its session sets now.

    Args:
        source: The client that plans, and the session that reads.
        pin: What the relation reads.
        columns: The columns to return.
        request: Which files may have rows.
        limit: How many rows are enough.
        accept: What may be read in place of files, as in `Client.plan`.
    """
    ranges = len(request.partitions or ())
    if ranges > MAX_PARTITION_RANGES:
        raise UnfitReadError(
            f"the query's conditions leave {ranges:,} separate ranges of partitions of table "
            f"{pin.table!r}, and a plan may name {MAX_PARTITION_RANGES:,}",
            "add a condition on the first partition column, or read the table in several queries",
        )
    # Spark itself compares partitions with times of the session.
    types = {name: type_ for name, type_ in pin.types.items() if name not in pin.local_times}
    conditions = weakened(request.conditions, types)
    partitions = request.partitions
    conditions_of_user = [] if pin.filter is None else [pin.filter]
    began = time.perf_counter()
    try:
        plan = _plan(
            source, pin, columns, [*conditions_of_user, *conditions], partitions, limit, accept
        )
    except InvalidRequestError as error:
        # The query's filters may exceed the coordinator's limits: Spark applies them anyway.
        if not conditions or error.problem.type != _INVALID_FILTER:
            raise
        conditions = []
        plan = _plan(source, pin, columns, conditions_of_user, partitions, limit, accept)
    took_s = time.perf_counter() - began
    check_settings(source.spark, plan.info)
    note(
        Scan(
            table=pin.table,
            columns=tuple(columns),
            conditions=tuple(conditions),
            plan=plan.info,
            context=source.spark.sparkContext,
            planning_seconds=took_s,
        )
    )
    return plan


def _plan(
    source: Source,
    pin: Pin,
    columns: Sequence[str],
    conditions: Sequence[Tree],
    partitions: Sequence[tuple[int, int]] | None = None,
    limit: int | None = None,
    accept: Sequence[Literal["packs"]] = (),
) -> SplitPlan:
    if converts_int96(source.spark):
        times = {name for name, type_ in pin.types.items() if type_ == "timestamp"}
        conditions = [without_equalities(tree, times) for tree in conditions]
    # Flattened, because the depth of a tree is limited.
    args = [
        part for tree in conditions for part in (tree["args"] if tree["op"] == "and" else [tree])
    ]
    plan = source.client.plan(
        pin.table,
        filter={"op": "and", "args": args} if len(args) > 1 else args[0] if args else None,
        columns=columns,
        snapshot_id=pin.snapshot_id,
        additions=None if pin.additions is None else AddedFiles.model_validate(pin.additions),
        session_options=session_options(source.spark),
        partitions=partitions,
        limit=limit,
        accept=accept,
        **pin.options,
    )
    check_registration(pin, plan.info.registration)
    return replace(plan, info=in_session(source.spark, plan.info)) if pin.local_times else plan


def check_registration(pin: Pin, registration: int | None) -> None:
    """Refuse an answer about another table that has been given the name of a relation's."""
    if registration != pin.registration:
        raise UnfitReadError(
            f"table {pin.table!r} has been registered again since it was read",
            "read it again, or create its view again",
        )
