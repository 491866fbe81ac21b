"""The client: one method per thing a caller wants of a coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from windrow.calls.arguments import checked
from windrow.calls.caching import CacheCalls
from windrow.calls.compaction import CompactionCalls
from windrow.calls.snapshots import SnapshotCalls
from windrow.calls.split_plans import SplitPlan, read_group_stream
from windrow.calls.transport import Transport, read_answer, table_path
from windrow.calls.workers import WorkerCalls
from windrow.calls.write_plans import WritePlanCalls
from windrow.calls.writes import WriteCalls
from windrow.errors import RefreshFailedError, error_of
from windrow.frame_writes import FrameWriteCalls
from windrow.models import (
    Plan,
    PlanExplanation,
    PlanOptions,
    PlanRequest,
    PlanStatus,
    Problem,
    RefreshProgress,
    RefreshStatus,
    ServiceConfig,
    TableDefinition,
    TableInfo,
    TablePage,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ARROW_STREAM = "application/vnd.apache.arrow.stream"
_POLL_S = 0.1
# Longer plans are polled, so that no proxy loses patience, and no plan dies with its replica.
_PATIENT = {"Prefer": "respond-async, wait=10"}
_PLAN_POLL_S = 0.5
_MAX_POLL_S = 1.0
# The coordinator that runs a refresh may be stopped; another then begins anew.
_ATTEMPTS = 5
_ABANDONED = "urn:windrow:problem:refresh-abandoned"

Filter = str | Mapping[str, Any]


class Client(
    CacheCalls,
    CompactionCalls,
    FrameWriteCalls,
    SnapshotCalls,
    WorkerCalls,
    WriteCalls,
    WritePlanCalls,
):
    """Talks to one coordinator. Use it as a context manager, or call `close`.

    Every method raises `windrow.errors.ProblemError` (or a class under it) when the
    coordinator refuses, and `CoordinatorUnreachableError` when it does not answer.

    Args:
        transport: Carries the requests.
        on_close: Called after the transport is closed.
    """

    def __init__(self, transport: Transport, *, on_close: Callable[[], None] | None = None) -> None:
        self._transport = transport
        self._on_close = on_close

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and the coordinator if it is embedded."""
        self._transport.close()
        if self._on_close is not None:
            self._on_close()

    def config(self) -> ServiceConfig:
        """Return the coordinator's defaults and limits."""
        return read_answer(ServiceConfig, self._transport.call("GET", "/config"))

    # --- tables ---------------------------------------------------------------

    def register_table(
        self,
        name: str,
        location: str,
        format: str = "parquet",
        *,
        columns: Mapping[str, str] | None = None,
        partition_columns: Mapping[str, str] | None = None,
        bucket_spec: Mapping[str, Any] | None = None,
        sort_columns: Sequence[str | Mapping[str, Any]] = (),
        bloom_columns: Sequence[str] = (),
    ) -> TableInfo:
        """Register a table, or change its definition.

        Args:
            name: For example `sales.events`.
            location: Folder of the table, as the coordinator sees it.
            format: `parquet`; or `orc`, `csv`, `json`, `text`, whose inventory is published and
                planned, but neither refreshed nor read.
            columns: Names and Spark SQL types; taken from the files by default.
            partition_columns: Names and types, in the order of the folders; inferred by default.
            bucket_spec: `{"columns": [...], "count": n}` of a bucketed table.
            sort_columns: What every file is sorted by: names, or
                `{"name": …, "descending": …, "nulls_first": …}`.
            bloom_columns: Columns that each refresh builds Bloom filters for, so that `=` and
                `IN` find the few files that hold a value.
        """
        definition = checked(
            TableDefinition,
            {
                "location": location,
                "format": format,
                "columns": _wire_columns(columns),
                "partition_columns": _wire_columns(partition_columns),
                "bucket_spec": bucket_spec,
                "sort_columns": [
                    {"name": column} if isinstance(column, str) else column
                    for column in sort_columns
                ],
                "bloom_columns": bloom_columns,
            },
        )
        answer = self._transport.call("PUT", table_path(name), body=definition.model_dump_json())
        return read_answer(TableInfo, answer)

    def table(self, name: str) -> TableInfo:
        """Return one table with its current snapshot."""
        return read_answer(TableInfo, self._transport.call("GET", table_path(name)))

    def table_version(self, name: str) -> str:
        """Return a table's ETag, which is another once its definition or snapshot is: `if_match`."""
        return self._transport.call("GET", table_path(name)).headers["ETag"]

    def tables(self) -> Iterator[TableInfo]:
        """Yield the registered tables by name, a page at a time."""
        for page in self._transport.pages(TablePage, "/tables"):
            yield from page.tables

    def delete_table(self, name: str) -> None:
        """Forget a table; its files stay."""
        self._transport.call("DELETE", table_path(name))

    def refresh(
        self,
        name: str,
        *,
        full: bool = False,
        on_progress: Callable[[RefreshProgress], None] | None = None,
    ) -> RefreshStatus:
        """List a table's files again, and wait until the new snapshot is published.

        Args:
            name: The table.
            full: List every folder, not only those whose time of change is another. A file
                that was written in place is found so alone.
            on_progress: Called several times a second while it runs.

        One refresh of a table runs at a time: if there is one already, this waits for that. It
        goes on if this program is stopped; `cancel_refresh` stops it.

        Raises:
            RefreshFailedError: The files are not a table that can be read, or the refresh was
                cancelled; nothing was published, and the previous snapshot is still there.
        """
        path = _refresh_of(name)
        headers = {"Prefer": "respond-async"}
        params: dict[str, str | int] = {"full": "true"} if full else {}
        attempt = 1
        while True:
            answer = self._transport.call("POST", path, params=params, headers=headers)
            status = self._follow(read_answer(RefreshStatus, answer), on_progress)
            if status.problem is None:
                return status
            problem = Problem.model_validate(status.problem)
            if problem.type != _ABANDONED or attempt == _ATTEMPTS:
                raise RefreshFailedError(problem)
            attempt += 1

    def cancel_refresh(self, name: str) -> RefreshStatus:
        """Stop the refresh of a table that runs, whoever started it, and wait for its end.

        Returns:
            How it ended: `cancelled`, or `done` if it was just being published.

        Raises:
            NotFoundError: No refresh of the table runs.
        """
        answer = self._transport.call("DELETE", _refresh_of(name))
        return self._follow(read_answer(RefreshStatus, answer), None)

    def _follow(
        self, status: RefreshStatus, on_progress: Callable[[RefreshProgress], None] | None
    ) -> RefreshStatus:
        poll_s = _POLL_S
        while status.status == "running":
            if on_progress is not None:
                on_progress(status.progress)
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _MAX_POLL_S)
            answer = self._transport.call("GET", _refresh_of(status.table))
            status = read_answer(RefreshStatus, answer)
        if on_progress is not None:
            on_progress(status.progress)
        return status

    # --- plans ----------------------------------------------------------------

    def plan(
        self,
        table: str,
        *,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        limit: int | None = None,
        max_staleness: int | None = None,
        reuse: bool = False,
        **options: Any,
    ) -> SplitPlan:
        """Plan how to read a table.

        Args:
            table: Its name.
            filter: SQL text such as `"ds >= '2026-11-01'"`, or a JSON tree.
            columns: Columns to read, in this order; all by default.
            snapshot_id: A version of the table; the current one by default.
            limit: How many rows are enough. The plan leaves out files that are not needed for
                so many; it still may hold more rows.
            max_staleness: Seconds. If the table's files were looked at longer ago, the table is
                refreshed first.
            reuse: Take the groups of a plan that was made before for the same request and
                snapshot, if there is one.
            **options: See `windrow.models.PlanOptions`, for example
                `max_split_size="128MB"` or `parallelism=16`.

        Raises:
            IncompletePlanError: The groups did not arrive whole.
        """
        request = checked(
            PlanRequest,
            {
                "table": table,
                "filter": filter,
                "columns": columns,
                "snapshot_id": snapshot_id,
                "limit": limit,
                "max_staleness": max_staleness,
                "reuse": reuse,
                "options": checked(PlanOptions, options, PlanRequest.model_fields),
                # The groups follow as Arrow, all at once.
                "page_size": 0,
            },
        )
        answer = self._transport.call(
            "POST", "/plans", body=request.model_dump_json(), headers=_PATIENT
        )
        info = self._completed(answer)
        stream = self._transport.call(
            "GET", f"/plans/{info.plan_id}/groups", headers={"Accept": _ARROW_STREAM}
        )
        return SplitPlan(info, read_group_stream(info.plan_id, stream.content))

    def _completed(self, answer: httpx.Response) -> Plan:
        """Wait until a plan is made, by whichever replica, and return it."""
        while answer.json().get("status") != "completed":
            plan = read_answer(PlanStatus, answer)
            if plan.problem is not None:
                raise error_of(Problem.model_validate(plan.problem))
            time.sleep(_PLAN_POLL_S)
            answer = self._transport.call("GET", f"/plans/{plan.plan_id}")
        return read_answer(Plan, answer)

    def explain(self, plan_id: str) -> PlanExplanation:
        """Say why a plan is as it is, beside what the other strategies would make of its files.

        Args:
            plan_id: `info.plan_id` of a plan.
        """
        answer = self._transport.call("GET", f"/plans/{quote(plan_id, safe='')}/explain")
        return read_answer(PlanExplanation, answer)

    def delete_plan(self, plan_id: str) -> None:
        """Forget a plan before it expires."""
        self._transport.call("DELETE", f"/plans/{quote(plan_id, safe='')}")

    def read(
        self,
        spark: SparkSession,
        table: str,
        *,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        limit: int | None = None,
        max_staleness: int | None = None,
        **options: Any,
    ) -> DataFrame:
        """Read a table on Spark, one task per split group.

        The plan is made now; rows are read when the DataFrame is used. A file that has
        changed since then fails the job with an error that names it.

        Args:
            spark: The session that runs the tasks.
            table: Its name.
            filter: Rows to keep, as in `plan`.
            columns: Columns to read, in this order; all by default. Asking for few is what
                makes it fast: Spark cannot take columns away from this reader afterwards. None
                at all (`[]`) is enough to count rows, which `count()` of what this returns
                does; a count in SQL, or of what was made of it, needs it said here.
            snapshot_id: A version of the table; the current one by default.
            limit: Most rows to return, no matter which; at most 2,147,483,647.
            max_staleness: Seconds, as in `plan`.
            **options: As in `plan`; `parallelism` is Spark's default parallelism if not given.
        """
        from windrow.spark import default_parallelism, read_plan

        options.setdefault("parallelism", default_parallelism(spark))
        plan = self.plan(
            table,
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            limit=limit,
            max_staleness=max_staleness,
            **options,
        )
        rows = read_plan(spark, plan.info, plan.groups)
        return rows if limit is None else rows.limit(limit)


def _refresh_of(table: str) -> str:
    return f"{table_path(table)}/refresh"


def _wire_columns(columns: Mapping[str, str] | None) -> list[dict[str, str]] | None:
    if columns is None:
        return None
    return [{"name": name, "type": type_} for name, type_ in columns.items()]
