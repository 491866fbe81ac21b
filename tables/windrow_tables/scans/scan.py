"""A scan: one plan of a table, read by threads of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_calls.installed import require_package
from windrow_calls.plans import SplitPlan
from windrow_core.cards import Card, Grid, card_of
from windrow_core.files.errors import UnknownTypeError
from windrow_core.files.places import place_of
from windrow_core.files.type_texts import canonical_type
from windrow_core.models import Column, Plan
from windrow_core.models.plan_cards import plan_card
from windrow_core.sizes import parse_size
from windrow_tables.errors import UnfitReadError
from windrow_tables.executor.errors import StaleFileError
from windrow_tables.executor.rebasing import Calendars
from windrow_tables.executor.spec import MIB, ReadSpec
from windrow_tables.groups.checks import check_files, check_groups
from windrow_tables.groups.cutting import by_pack, shares_of, with_small_first_groups
from windrow_tables.groups.descriptors import descriptors_of
from windrow_tables.groups.specs import PlanSchemas, residual_columns, spec_of
from windrow_tables.host_cache.opening import FOLDER_VARIABLE
from windrow_tables.scans.rows import Rows, required
from windrow_tables.scans.splits import ScanSplit, read
from windrow_tables.scans.threads import Batches, Source

if TYPE_CHECKING:
    import duckdb

# A thread reads about as much at a time: enough to make up for beginning, and little to wait for at
# the end.
_PIECE_BYTES = 16 * MIB
_PIECES_PER_THREAD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How many threads read, and how far ahead.

    Attributes:
        threads: The number of threads.
        buffer_bytes: Most bytes of batches that wait for their consumer, unless it is one batch.
    """

    threads: int
    buffer_bytes: int


class Scan(Rows):
    """Rows of a table at one snapshot, read without Spark; `Client.scan` makes it.

    Each method that returns rows reads the planned files anew, and fails with an error that names
    the file if one has changed since. The coordinator is not asked again. Rows come in no order.

    Args:
        plan: The plan of the rows.
        reading: How it is read.
        on_stale: Called if a file has changed since.
    """

    def __init__(self, plan: SplitPlan, reading: Reading, on_stale: Callable[[], None]) -> None:
        groups = plan.groups
        if "cached_on" in groups.column_names and not os.environ.get(FOLDER_VARIABLE):
            groups = groups.drop_columns(["cached_on"])
        self._info = plan.info
        self._groups = groups
        self._spec = _spec_of(plan.info, groups)
        self._reading = reading
        self._on_stale = on_stale

    @property
    def schema(self) -> pa.Schema:
        """See `Rows.schema`."""
        return self._spec.output_schema

    @property
    def plan(self) -> Plan:
        """The plan: its `snapshot_id`, and the figures of its `summary`."""
        return self._info

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows batch by batch, in bounded memory.

        Threads read ahead, and end with the last batch, at the first error, or when the reader is
        deleted.

        Example:
            for batch in client.scan("sales.events").to_reader():
                print(batch.num_rows)
        """
        sources = [
            self._noting_stale(partial(read, self._spec, each)) for each in self._descriptors()
        ]
        batches = Batches(sources, self._reading.threads, self._reading.buffer_bytes)
        limit = self._info.limit
        rows = batches if limit is None else _first_rows(batches, limit)
        return pa.RecordBatchReader.from_batches(self.schema, rows)

    def _noting_stale(self, source: Source) -> Source:
        def noting() -> Generator[pa.RecordBatch, None, None]:
            try:
                yield from source()
            except StaleFileError:
                self._on_stale()
                raise

        return noting

    def to_duckdb(
        self, name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Register the rows with DuckDB, and return the connection.

        Each query that names them reads them again, with all columns of this scan, in bounded
        memory. DuckDB applies the conditions of the query, and prunes no files by them.

        Args:
            name: Their name in SQL.
            connection: A connection; by default a new one to a database in memory.

        Example:
            duck = client.scan("sales.events").to_duckdb("events")
            duck.sql("SELECT country, sum(amount) FROM events GROUP BY country").show()
        """
        engine = required("duckdb")
        own: duckdb.DuckDBPyConnection = engine.connect() if connection is None else connection
        own.register(name, self)
        return own

    def splits(self, count: int) -> list[ScanSplit]:
        """Divide the rows into parts, for workers in other processes or on other hosts.

        Two scans of one snapshot with the same arguments are divided in the same way.

        Args:
            count: The number of parts.

        Returns:
            As many parts, with about as much to read in each; some without rows if there are fewer
            files. Together they have each row once.

        Example:
            parts = client.scan("sales.events").splits(8)
            sum(part.read().num_rows for part in parts)
        """
        if count < 1:
            raise InvalidArgumentError("count", f"a scan has at least one part, not {count}")
        if self._info.limit is not None:
            raise InvalidArgumentError(
                "limit",
                "workers read parts without knowing of each other, so they cannot keep a limit of "
                "all rows: scan without limit",
            )
        most_per_s = self._info.options.requests_per_second
        limits = replace(
            self._spec.limits,
            requests_per_second=None if most_per_s is None else most_per_s / count,
        )
        spec = replace(self._spec, limits=limits).packed()
        alone, in_packs = (shares_of(some, count) for some in by_pack(self._groups))
        return [
            ScanSplit(
                spec,
                [each.content for some in shares for each in descriptors_of(some)],
                sum(sum(some["size_bytes"].to_pylist()) for some in shares),
            )
            for shares in zip(alone, in_packs, strict=True)
        ]

    def _descriptors(self) -> list[bytes]:
        """Return what the threads are to read, in this order."""
        groups = self._groups
        if not len(groups):
            return []
        # Those of a transactional table share files that name deleted rows.
        if not self._spec.names_rows:
            pieces = max(
                self._reading.threads * _PIECES_PER_THREAD,
                -(-self._info.summary.size_bytes // _PIECE_BYTES),
            )
            groups, in_packs = by_pack(groups)
            # Each share of a pack decodes some rows that belong to others.
            shares = shares_of(groups, pieces) + shares_of(in_packs, self._reading.threads)
            groups = pa.concat_tables(shares)
        if self._info.limit is not None:
            groups = with_small_first_groups(groups)
        return [each.content for each in descriptors_of(groups)]


@card_of.register
def _(scan: Scan) -> Card:
    card = plan_card(scan.plan)
    rows = [(field.name, str(field.type)) for field in scan.schema]
    title = f"Scan of {scan.plan.table}"
    return replace(card, title=title, grids=[*card.grids, Grid(("column", "type"), rows)])


def open_scan(
    client: Coordinator,
    table: str,
    threads: int | None,
    buffer_size: int | str,
    arguments: Mapping[str, Any],
) -> Scan:
    """Plan a table, and return a scan of the plan.

    Args:
        client: Plans it.
        table: Name of the table.
        threads: How many threads read; None for as many as this process has cores.
        buffer_size: Most bytes of batches that wait for their consumer, or text such as `64MB`.
        arguments: Those of `client.plan`.
    """
    reading = Reading(threads=threads or _cores(), buffer_bytes=_bytes_of(buffer_size))
    if arguments.get("columns") == []:
        raise InvalidArgumentError("columns", "a scan has at least one column: name one")
    session_options = {"parallelism": reading.threads}
    plan = client.plan(table, accept=["packs"], session_options=session_options, **arguments)
    check_files(plan.info)
    check_groups(plan.info, plan.groups)
    location = plan.info.location
    if (package := place_of(location).package) is not None:
        require_package(*package)
    return Scan(plan, reading, partial(client.look_again, table))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _bytes_of(buffer_size: int | str) -> int:
    if isinstance(buffer_size, int):
        return buffer_size
    try:
        size_bytes = parse_size(buffer_size)
    except ValueError as error:
        raise InvalidArgumentError("buffer_size", str(error)) from error
    assert isinstance(size_bytes, int)
    return size_bytes


def _spec_of(plan: Plan, groups: pa.Table) -> ReadSpec:
    # The order of rows is not kept, so what only the sort order needs is not read.
    names = residual_columns(groups)
    extra = [column for column in plan.hidden_columns if column.name in names]
    plan = plan.model_copy(update={"hidden_columns": extra, "sort_columns": []})
    kinds = (plan.columns, plan.hidden_columns, plan.partition_columns)
    # As in Spark 4 by default. Only Spark has the offsets of old local times, and the zone of files
    # that name none: such times are refused.
    spec = spec_of(plan, PlanSchemas(*map(_schema_of, kinds)), lambda: Calendars(zone=""))
    return replace(spec, keeps_rows=True)


def _schema_of(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, _type_of(column)) for column in columns])


def _type_of(column: Column) -> pa.DataType:
    try:
        return canonical_type(column.type)
    except UnknownTypeError as error:
        raise UnfitReadError(
            f"column {column.name!r} is {column.type}, which has no type in Arrow here",
            "leave it out of the requested columns",
        ) from error


def _first_rows(batches: Batches, limit: int) -> Iterator[pa.RecordBatch]:
    """Yield as many rows, and end the threads."""
    left = limit
    try:
        for batch in batches:
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return
    finally:
        batches.close()
