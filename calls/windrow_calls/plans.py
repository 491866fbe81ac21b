"""Plans of reads: request one with all its groups, explain it, delete it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import httpx
import pyarrow as pa
import pyarrow.compute as pc

from windrow_calls.arguments import checked
from windrow_calls.errors import IncompletePlanError, InvalidArgumentError, WindrowError, error_of
from windrow_calls.listing import Listing
from windrow_calls.transport import ARROW_STREAM, Calls, Transport, read_answer
from windrow_core.cards import SHOWN_ROWS, Card, Grid, Shown, card_of
from windrow_core.models import (
    AddedFiles,
    PastPlan,
    Plan,
    PlanDefaults,
    PlanExplanation,
    PlanHistoryPage,
    PlanOptions,
    PlanRequest,
    PlanStatus,
    PlanSummary,
    Problem,
    ScanReport,
    ScanReports,
)
from windrow_core.models.plan_cards import plan_card
from windrow_core.sizes import size_text

_END_MARKER = b"windrow:end"
_PLAN_KEY = b"windrow:plan"
# A plan that takes longer than 10 s is polled, so that no proxy times out and any replica can
# finish it.
_PATIENT = {"Prefer": "respond-async, wait=10", "Accept": f"{ARROW_STREAM}, application/json"}
_UNLISTED = _PATIENT | {"Prefer": f"{_PATIENT['Prefer']}, unlisted"}
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class SplitPlan(Shown):
    """A plan with all its groups.

    Attributes:
        info: The plan as the coordinator describes it, without groups.
        groups: One row per group: `group_id`, `bucket`, `hosts`, `cached_on`, `size_bytes`,
            `residual_filter` (JSON), `splits` (list of structs); largest group first.
    """

    info: Plan
    groups: pa.Table

    @property
    def summary(self) -> PlanSummary:
        """The plan in figures."""
        return self.info.summary

    def __len__(self) -> int:
        return len(self.groups)


@card_of.register
def _(plan: SplitPlan) -> Card:
    groups = plan.groups.slice(0, SHOWN_ROWS)
    counts = pc.list_value_length(groups["splits"]).to_pylist()
    rows = [
        (str(number), size_text(size_bytes), f"{count:,}", ", ".join(hosts or ()))
        for number, size_bytes, count, hosts in zip(
            groups["group_id"].to_pylist(),
            groups["size_bytes"].to_pylist(),
            counts,
            groups["hosts"].to_pylist(),
            strict=True,
        )
    ]
    titles = ("group>", "size>", "splits>", "hosts…")
    return plan_card(plan.info, [Grid(titles, rows, "Groups", total=len(plan))])


class PlanCalls(Calls):
    """Calls about plans of reads."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        # Their files have changed, as readers have seen.
        self._changed_tables: set[str] = set()

    def plan(
        self,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        partitions: Sequence[tuple[int, int]] | None = None,
        additions: AddedFiles | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        version: str | int | None = None,
        limit: int | None = None,
        max_staleness: int | None = None,
        reuse: bool = False,
        accept: Sequence[Literal["packs"]] = (),
        session_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> SplitPlan:
        """Plan how to read a table.

        Args:
            table: Name of the table.
            filter: SQL text such as `"ds >= '2026-11-01'"`, or a JSON tree.
            partitions: Only these partitions: ranges `(first, end)` of their numbers, from `first`
                up to, but without, `end`, ascending and without overlaps; at most 50,000 ranges.
                `partition_values` returns the numbers, which are those of one snapshot, so
                `snapshot_id` is required. An empty list plans no file.
            additions: Only files that the snapshot has and an older one lacks: those between two
                positions in the order of their paths; see `added_files`. `snapshot_id` is required.
            columns: Columns to read, in this order; all by default.
            snapshot_id: Id of a snapshot; the current one by default.
            version: Instead of `snapshot_id`: a version of a Delta table, or a snapshot id, branch
                or tag of an Iceberg table. `refresh(…, version=…)` must have made a snapshot of it.
            limit: Number of rows that are enough. The plan leaves out files that are not needed for
                that many; it may still hold more rows.
            max_staleness: Seconds. If the table's last refresh is older, the table is refreshed
                first.
            reuse: Whether to reuse the groups of an earlier plan for the same request and snapshot,
                if there is one.
            accept: What the reader can read in place of the table's own files: `"packs"`.
            session_options: Options that the caller's session sets for all its reads.
            **options: See `windrow_core.models.PlanOptions`, for example
                `max_split_size="128MB"` or `parallelism=16`. Options that are left out come from
                `session_options`, then from the table's `plan_options`.

        Raises:
            IncompletePlanError: The groups arrived incomplete.

        Example:
            plan = client.plan("sales.events", filter="country = 'SE'", columns=["id"], parallelism=16)
            plan.summary.files_planned, len(plan)
        """
        fields = {
            "table": table,
            "filter": filter,
            "partitions": partitions,
            "additions": additions,
            "columns": columns,
            "snapshot_id": snapshot_id,
            "version": None if version is None else str(version),
            "limit": limit,
            "max_staleness": max_staleness,
            "reuse": reuse,
            "accept": list(accept),
        }
        with self._waiting(f"{table}: planning"):
            return self._planned(_request(fields, session_options, options), _PATIENT)

    def probe(
        self,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        version: str | int | None = None,
        max_staleness: int | None = None,
        session_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> SplitPlan:
        """Plan one row, which tells columns, snapshot and size; `past_plans` does not list it.

        Args:
            table: As in `plan`, like everything else.
            filter: See there.
            columns: See there.
            snapshot_id: See there.
            version: See there.
            max_staleness: See there.
            session_options: See there.
            **options: See there.

        Example:
            client.probe("sales.events").info.columns
        """
        fields = {
            "table": table,
            "filter": filter,
            "columns": columns,
            "snapshot_id": snapshot_id,
            "version": None if version is None else str(version),
            "limit": 1,
            "max_staleness": max_staleness,
        }
        with self._waiting(f"{table}: looking at its columns"):
            return self._planned(_request(fields, session_options, options), _UNLISTED)

    def look_again(self, table: str) -> None:
        """Let the next plan of a table's current snapshot refresh the table first.

        Readers call this when a file is not the one that was planned.
        """
        self._changed_tables.add(table)

    def look_if_changed(self, table: str) -> bool:
        """Refresh a table if a reader has found a changed file; return whether one has."""
        has_changed = table in self._changed_tables
        if has_changed:
            self.probe(table)
        return has_changed

    def _planned(self, request: PlanRequest, headers: Mapping[str, str]) -> SplitPlan:
        is_current = request.snapshot_id is None and request.version is None
        if not is_current or request.table not in self._changed_tables:
            return self._made(request, headers)
        self._changed_tables.discard(request.table)
        try:
            return self._made(request.model_copy(update={"max_staleness": 0}), headers)
        except WindrowError:
            # Whatever keeps the coordinator from looking need not keep this plan from being made.
            return self._made(request, headers)

    def _made(self, request: PlanRequest, headers: Mapping[str, str]) -> SplitPlan:
        answer = self._transport.call(
            "POST", "/plans", body=request.model_dump_json(exclude_unset=True), headers=headers
        )
        if answer.headers["Content-Type"] == ARROW_STREAM:
            return _read_plan_stream(answer)
        info = self._completed(answer)
        stream = self._transport.call(
            "GET", f"/plans/{info.plan_id}/groups", headers={"Accept": ARROW_STREAM}
        )
        return SplitPlan(info, read_group_stream(info.plan_id, stream.content))

    def _completed(self, answer: httpx.Response) -> Plan:
        """Wait until a replica has made the plan, and return it."""
        while answer.json().get("status") != "completed":
            plan = read_answer(PlanStatus, answer)
            if plan.problem is not None:
                raise error_of(Problem.model_validate(plan.problem))
            time.sleep(_POLL_S)
            answer = self._transport.call("GET", f"/plans/{plan.plan_id}")
        return read_answer(Plan, answer)

    def explain(self, plan_id: str) -> PlanExplanation:
        """Explain a plan, and compare it with the plans of the other strategies for its files.

        Args:
            plan_id: `info.plan_id` of a plan, or its first digits, at least eight.

        Raises:
            InvalidArgumentError: The ids of several plans begin with these digits, or none does.

        Example:
            plan = client.plan("sales.events", filter="ds = '2026-11-01'")
            client.explain(plan.info.plan_id)
        """
        answer = self._transport.call("GET", f"{self._path_of(plan_id)}/explain")
        return read_answer(PlanExplanation, answer)

    def past_plans(
        self,
        *,
        table: str | None = None,
        plan_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[PastPlan]:
        """Return the figures of earlier plans, newest first, including expired ones.

        Plans of other callers need the scope `admin` on their tables.

        Args:
            table: Only plans of this table.
            plan_id: Only plans whose ids begin with these digits, at least eight.
            since: Only plans from this time on, with a time zone.
            until: Only plans before this time, with a time zone.

        Example:
            slow = [one for one in client.past_plans(table="sales.events") if one.seconds > 1]
        """
        limits = {
            "table": table,
            "plan_id": plan_id,
            "since": None if since is None else since.isoformat(),
            "until": None if until is None else until.isoformat(),
        }
        params = {name: value for name, value in limits.items() if value is not None}
        return self._transport.listing(PlanHistoryPage, "plans", "/plans", params)

    def report_scans(self, scans: Sequence[ScanReport]) -> None:
        """Report how long scans of your plans took, for `past_plans`. Drivers do this themselves.

        Args:
            scans: At most 1,000 reports.
        """
        reports = ScanReports(scans=list(scans))
        self._transport.call("POST", "/scan-reports", body=reports.model_dump_json())

    def delete_plan(self, plan_id: str) -> None:
        """Delete a plan before it expires.

        Args:
            plan_id: As for `explain`.

        Example:
            plan = client.plan("sales.events")
            client.delete_plan(plan.info.plan_id)
        """
        self._transport.call("DELETE", self._path_of(plan_id))

    def _path_of(self, plan_id: str) -> str:
        """Return the path of a plan's calls; of its id, lists show the first digits."""
        if re.fullmatch("[0-9a-f]{8,31}", plan_id):
            ids = [one.plan_id for one in self.past_plans(plan_id=plan_id)]
            if len(ids) != 1:
                what = f"{len(ids):,} plans have ids that begin" if ids else "no plan's id begins"
                raise InvalidArgumentError(
                    "plan_id", f"{what} with {plan_id!r}: give all digits of a plan's id"
                )
            (plan_id,) = ids
        elif not re.fullmatch("[0-9a-f]{32}", plan_id):
            raise InvalidArgumentError(
                "plan_id",
                f"{plan_id!r} is not the id of a plan: write its first digits, at least eight, as "
                "`client.past_plans()` lists them",
            )
        return f"/plans/{plan_id}"


def _request(
    fields: Mapping[str, Any],
    session_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> PlanRequest:
    return checked(
        PlanRequest,
        {
            **fields,
            "options": checked(PlanOptions, options, PlanRequest.model_fields),
            "session_options": checked(PlanDefaults, session_options or {}),
            # The groups come as Arrow, all at once.
            "page_size": 0,
        },
    )


def _read_plan_stream(answer: httpx.Response) -> SplitPlan:
    """Return the plan in the metadata of an Arrow stream, with the groups of the stream."""
    try:
        metadata = pa.ipc.read_schema(pa.py_buffer(answer.content)).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IncompletePlanError("of this request", str(error)) from error
    info = read_answer(Plan, answer, metadata.get(_PLAN_KEY, b""))
    groups = read_group_stream(info.plan_id, answer.content)
    return SplitPlan(info, groups.replace_schema_metadata())


def read_group_stream(plan_id: str, body: bytes) -> pa.Table:
    """Return the groups in an Arrow stream."""
    batches: list[pa.RecordBatch] = []
    marker: dict[str, int] | None = None
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            while marker is None:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
                if metadata is not None and _END_MARKER in metadata:
                    marker = json.loads(metadata[_END_MARKER])
                else:
                    batches.append(batch)
            table = pa.Table.from_batches(batches, stream.schema)
    except StopIteration as error:
        raise IncompletePlanError(plan_id, "it has no end marker") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IncompletePlanError(plan_id, str(error)) from error
    if "splits" not in table.schema.names:
        raise IncompletePlanError(plan_id, "it holds something other than split groups")
    splits = sum(len(chunk.flatten()) for chunk in table["splits"].chunks)
    if marker != {"groups": len(table), "splits": splits}:
        raise IncompletePlanError(
            plan_id,
            f"{len(table)} groups of {splits} splits arrived, but its end marker says {marker}",
        )
    return table
