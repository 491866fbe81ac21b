"""A round of maintenance: look at all tables that have a policy, and decide what to rewrite."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from windrow_core.errors import StatedError
from windrow_core.files.places import place_of
from windrow_core.models import (
    BudgetLeft,
    EffectivePolicy,
    MaintenanceBudget,
    MaintenanceRound,
    Policy,
    TableMaintenance,
    WorkPrediction,
)
from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.choose import choose, representatives
from windrow_service.planner.maintenance.columns import (
    REASONS,
    Choice,
    Reason,
    Rewrites,
    Rules,
    TablePolicies,
)
from windrow_service.planner.maintenance.corrections import Receipts, corrections
from windrow_service.planner.maintenance.reading import expected_events
from windrow_service.planner.splits import Ints
from windrow_service.planner.upkeep.compaction import most_small_bytes
from windrow_service.planner.writes.keys import Floats
from windrow_service.usecases.maintenance.costs import MOST_RECEIPTS, Rewrite, receipts_of
from windrow_service.usecases.maintenance.ledger import (
    NOTHING,
    Ledger,
    past_of_folders,
    rewritten_at,
    share_debt,
)
from windrow_service.usecases.maintenance.packing import (
    EVERY_FOLDER,
    PackingFinder,
    Tail,
    together,
)
from windrow_service.usecases.maintenance.partitions import PartitionFinder, SmallParts
from windrow_service.usecases.maintenance.policies import maintenance_of
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.reads import PastReads, daily_reads
from windrow_service.usecases.maintenance.realised import realised_gain
from windrow_service.usecases.maintenance.removals import DecideRemoval, Earlier
from windrow_service.usecases.maintenance.request import MAX_FOLDERS
from windrow_service.usecases.maintenance.texts import Case, chosen, left_alone
from windrow_service.usecases.maintenance.windows import is_open
from windrow_service.usecases.maintenance.work import (
    Decisions,
    NewWork,
    SharedState,
    Skip,
    WorkBody,
    WorkRecord,
    WorkStore,
)
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.tables.ports import StoredTable, TableStore

_PAGE = 200
_HOUR = timedelta(hours=1)
_DAY_S = 86_400.0
_HORIZON_DAYS = 30
# A byte limit that no cluster reaches in an hour.
_ANY_BYTES = 1e15
_NEVER_S = 365 * _DAY_S


@dataclass(slots=True, kw_only=True)
class _Table:
    """A table that a policy applies to, and what is known about it."""

    table: StoredTable
    policy: EffectivePolicy
    since: datetime
    parts: SmallParts
    work: Sequence[WorkRecord]
    at: int = 0
    columns: dict[str, Any] = field(default_factory=dict)


class Decide:
    """Decide what to rewrite; only one round at a time may store what it decides."""

    def __init__(
        self,
        tables: TableStore,
        policies: PolicyStore,
        finder: PartitionFinder,
        packable: PackingFinder,
        reads: PastReads,
        decide_removal: DecideRemoval,
        store: WorkStore,
        runner: Runner,
        clock: Clock,
    ) -> None:
        self._tables = tables
        self._policies = policies
        self._finder = finder
        self._packable = packable
        self._reads = reads
        self._decide_removal = decide_removal
        self._store = store
        self._runner = runner
        self._clock = clock
        self._ledger = Ledger(store)

    async def __call__(self, holder: str) -> MaintenanceRound | None:
        """Run one round; return its figures, or None if another holder decides by now.

        Raises:
            StoreUnavailableError: The database is away, full or read-only.
        """
        began_s, now = time.monotonic(), self._clock()
        policies = [one.info for one in await self._policies.list()]
        budget = (await self._policies.budget()).info
        state = await self._store.shared()
        await self._ledger.update(now)
        await self._reads.update(now)
        skips: list[Skip] = []
        removals: list[NewWork] = []
        is_paused = budget.pause or budget.core_seconds_per_hour == 0
        tables = [
            one async for one in self._gathered(policies, removals, skips, now, is_paused=is_paused)
        ]
        await self._realise()
        full = _refilled(budget, state, now)
        work, more_skips, left = await self._runner.run(lambda: self._decided(tables, full, now))
        if budget.pause:
            work, more_skips, left = [], [_pause_of(one) for one in tables], full
        figures = MaintenanceRound(
            began_at=now,
            seconds=round(time.monotonic() - began_s, 3),
            tables=len(tables) + len({one.table for one in skips}),
            partitions=sum(len(one.parts) for one in tables),
            items=len(removals) + len(work),
            excess_files=sum(one.parts.small.excess_files for one in tables),
            left=BudgetLeft(
                core_seconds=round(left.seconds, 3),
                size_bytes=None if budget.bytes_per_hour is None else left.size_bytes,
            ),
        )
        decisions = Decisions(
            # Files that go need not be rewritten first.
            work=[*removals, *work],
            skips=[*skips, *more_skips],
            refill=(full.seconds - state.left_seconds, full.size_bytes - state.left_bytes),
            round=figures,
        )
        return figures if await self._store.decide(holder, decisions, now) else None

    async def _gathered(
        self,
        policies: Sequence[Policy],
        removals: list[NewWork],
        skips: list[Skip],
        now: datetime,
        *,
        is_paused: bool,
    ) -> AsyncIterator[_Table]:
        """Yield the tables with partitions to rewrite; add what is dropped, and what left alone."""
        after, more = "", bool(policies)
        while more:
            page = await self._tables.page(after, _PAGE, Names(every=True))
            more = page.more
            for table in page:
                after = table.info.name
                maintenance = maintenance_of(after, policies)
                if not maintenance.sources:
                    continue
                if maintenance.policy.enabled and maintenance.policy.keep_days is not None:
                    decision = await self._removal(
                        table, maintenance, policies, now, is_paused=is_paused
                    )
                    if isinstance(decision, NewWork):
                        removals.append(decision)
                    else:
                        skips.append(decision)
                reason = _unfit(table, maintenance.policy)
                if reason is not None:
                    skips.append(Skip(table=after, reason=reason[0], text=reason[1]))
                    continue
                parts = await self._parts(table, maintenance.policy)
                if isinstance(parts, Skip):
                    skips.append(parts)
                    continue
                source = maintenance.sources["enabled"]
                yield _Table(
                    table=table,
                    policy=maintenance.policy,
                    since=next(one.created_at for one in policies if one.pattern == source),
                    parts=parts,
                    work=self._ledger.of(after),
                )

    async def _parts(self, table: StoredTable, policy: EffectivePolicy) -> SmallParts | Skip:
        """Return the partitions with files to rewrite or to pack, or why there are none."""
        name = table.info.name
        try:
            if policy.pack:
                parts: SmallParts = await self._packable.find(table, policy)
            else:
                parts = await self._finder.find(table, policy)
        except StatedError as error:
            # An error in a filter goes on to show where it is.
            return Skip(table=name, reason="unfit", text=str(error).partition("\n")[0])
        if isinstance(parts, Tail):
            await self._packable.withdraw(table, parts)
            if len(parts) and parts.is_full:
                text = (
                    "the existing packs save more reading for their bytes, and there is no room for more: "
                    "raise the limit with `windrow policy set … --pack-max-bytes`"
                )
                return Skip(table=name, reason="pack_full", text=text)
        if not len(parts):
            what = "too few small files are outside of packs"
            text = what if policy.pack else "no partition has small files to merge"
            return Skip(table=name, reason="nothing_small", text=f"nothing to do: {text}")
        return parts

    async def _removal(
        self,
        table: StoredTable,
        maintenance: TableMaintenance,
        policies: Sequence[Policy],
        now: datetime,
        *,
        is_paused: bool,
    ) -> NewWork | Skip:
        name, of = table.info.name, set(maintenance.sources.values())
        changes = [one.updated_at for one in policies if one.pattern in of]
        earlier = Earlier(
            since=max([table.info.created_at, *changes]),
            announcements=self._ledger.announcements(name),
            work=self._ledger.removals(name),
        )
        policy = maintenance.policy
        try:
            return await self._decide_removal(table, policy, earlier, now, is_paused=is_paused)
        except StatedError as error:
            return Skip(table=name, reason="retention_unfit", text=str(error))

    async def _realise(self) -> None:
        """Record what finished work has gained, once later plans tell."""
        for record in self._ledger.unmeasured():
            table = record.table
            work = [*self._ledger.of(table), *self._ledger.removals(table)]
            gain = realised_gain(record, work, self._reads.of(table))
            if gain is not None:
                await self._store.realise(record.number, gain)

    def _decided(
        self, tables: Sequence[_Table], budget: Budget, now: datetime
    ) -> tuple[list[NewWork], list[Skip], Budget]:
        for at, one in enumerate(tables):
            one.at = at
            one.columns = _columns(one, self._reads, now)
        if not tables:
            return [], [], budget
        names = tables[0].columns.keys()
        columns = {name: np.concatenate([one.columns[name] for one in tables]) for name in names}
        factors = corrections(_receipts(tables), len(tables))
        policies = _policies(tables, budget, now, factors.piece)
        rewrites = Rewrites(
            **columns
            | {
                "cost_seconds": columns["cost_seconds"] * factors.cost[columns["table"]],
                "gain_seconds": columns["gain_seconds"] * factors.gain[columns["table"]],
            }
        )
        choice = choose(rewrites, policies, budget, Rules())
        return (
            _work(tables, rewrites, policies, choice),
            _skips(tables, rewrites, choice),
            choice.left,
        )


def _pause_of(one: _Table) -> Skip:
    text = "all maintenance is paused: `windrow policy budget --resume` resumes it"
    return Skip(table=one.table.info.name, reason="paused", text=text)


def _unfit(table: StoredTable, policy: EffectivePolicy) -> tuple[str, str] | None:
    """Return why a table is left alone without looking at its files; None if it is not."""
    name = table.info.name
    if not policy.enabled:
        return "off", "its policy is off"
    if table.info.current_snapshot is None:
        return "no_snapshot", f"it has no snapshot yet: `windrow table refresh {name}` makes one"
    place = place_of(table.info.definition.location)
    if policy.pack:
        if place.hides_readers and not policy.pack_rights_are_stated:
            return "no_consent", (
                "who may read it cannot be seen on an object store: make sure that nobody else may "
                "read the folder of packs, and say so with `windrow policy set … "
                "--pack-rights-are-stated`"
            )
    elif place.shows_both and not policy.readers_may_see_both:
        return "no_consent", (
            "it is on HDFS or S3, where readers that list folders may find old and new files for a "
            "while: allow that with `windrow policy set … --readers-may-see-both`"
        )
    return None


def _refilled(budget: MaintenanceBudget, state: SharedState, now: datetime) -> Budget:
    hour_bytes = _ANY_BYTES if budget.bytes_per_hour is None else float(budget.bytes_per_hour)
    full = Budget(
        seconds=state.left_seconds,
        size_bytes=state.left_bytes,
        hour_seconds=budget.core_seconds_per_hour,
        hour_bytes=hour_bytes,
    )
    # The first round has what an hour brings.
    hours = 1.0 if state.left_at is None else max((now - state.left_at) / _HOUR, 0.0)
    return full.refilled(hours)


def _columns(one: _Table, reads: PastReads, now: datetime) -> dict[str, Any]:
    parts, small, at = one.parts, one.parts.small, one.parts.small.partition
    now_ns = int(now.timestamp() * 1e9)
    past = past_of_folders(one.work)
    folders, is_tail = parts.folders.to_pylist(), isinstance(parts, Tail)
    # A tail has files of such folders only if their packs become fewer, which is not for a folder alone.
    exempt = set() if is_tail else set(one.policy.exempt_folders)
    pasts = [past.get(EVERY_FOLDER if is_tail else folder, NOTHING) for folder in folders]

    def days_since(moment_ns: Ints) -> Any:
        return np.maximum(now_ns - moment_ns, 0) / (_DAY_S * 1e9)

    def seconds_since(at: datetime | None) -> float:
        return _NEVER_S if at is None else max((now - at).total_seconds(), 0.0)

    quiet = days_since(parts.last_ns)
    events = daily_reads(reads.of(one.table.info.name), parts, now)
    expectation = expected_events(
        np.zeros(len(parts), np.int64),
        days_since(parts.first_ns),
        events,
        _HORIZON_DAYS,
    )
    least = one.policy.reads_per_day
    is_known = expectation.per_day >= least
    of_partitions = {
        "reads_per_day": np.maximum(expectation.per_day, least),
        "lasting_days": np.where(is_known, expectation.lasting_days, _HORIZON_DAYS),
        "next_write_days": np.where(quiet > 3 * parts.gap_days, np.inf, parts.gap_days),
        "quiet_seconds": quiet * _DAY_S,
        "rewritten_bytes": np.array([one.rewritten_bytes for one in pasts], np.int64),
        "failures": np.array([one.failures for one in pasts], np.int64),
        "failure_seconds": np.array([seconds_since(one.failure_at) for one in pasts]),
        "idle_runs": np.array([one.idle_runs for one in pasts], np.int64),
        "run_seconds": np.array([seconds_since(one.run_at) for one in pasts]),
        "is_excluded": parts.is_excluded
        | np.array([folder in exempt for folder in folders], np.bool_),
        "is_running": np.array([one.is_running for one in pasts], np.bool_),
    }
    columns = {
        "table": np.full(len(small), one.at, np.int64),
        "partition": at,
        "small_bytes": small.small_bytes,
        "files": small.files,
        "becomes": small.becomes,
        "size_bytes": small.size_bytes,
        "cost_seconds": small.cost_seconds,
        "gain_seconds": small.gain_seconds,
        "gathering_days": days_since(small.oldest_ns),
        "written_bytes": np.maximum(parts.all_bytes[at], small.size_bytes),
    } | {name: column[at] for name, column in of_partitions.items()}
    return together(columns, one.policy.min_age_seconds) if is_tail else columns


def _policies(
    tables: Sequence[_Table], budget: Budget, now: datetime, piece_seconds: Floats
) -> TablePolicies:
    policies = [one.policy for one in tables]
    waits = [rewritten_at(one.work) or one.since for one in tables]
    return TablePolicies(
        target_bytes=np.array([one.target_file_size for one in policies], np.int64),
        is_off=np.zeros(len(tables), np.bool_),
        is_open=np.array([is_open(one.windows, now) for one in policies], np.bool_),
        min_quiet_seconds=np.array([one.min_age_seconds for one in policies], np.float64),
        min_ratio=np.array([one.min_gain for one in policies], np.float64),
        max_share=np.array([one.max_share for one in policies], np.float64),
        share_debt=np.array(
            [share_debt(one.work, budget, one.policy.max_share, now) for one in tables]
        ),
        waiting_days=np.array(
            [max((now - at).total_seconds(), 0.0) / _DAY_S for at in waits], np.float64
        ),
        piece_seconds=piece_seconds,
    )


def _receipts(tables: Sequence[_Table]) -> Receipts:
    done = (
        [record for record in one.work if record.state == "done"][-MOST_RECEIPTS:] for one in tables
    )
    return receipts_of(
        Rewrite(
            one.at, body.target_file_size, body.outcome, body.gain, packs=body.packing is not None
        )
        for one, records in zip(tables, done, strict=True)
        for body in (record.body for record in records)
        if body.outcome is not None
    )


def _work(
    tables: Sequence[_Table], rewrites: Rewrites, policies: TablePolicies, choice: Choice
) -> list[NewWork]:
    """Return the batches of a choice."""
    work = []
    for batch in range(int(choice.batch.max(initial=-1)) + 1):
        rows = choice.order[choice.batch == batch][:MAX_FOLDERS]
        one = tables[int(rewrites.table[rows[0]])]
        tail = one.parts if isinstance(one.parts, Tail) else None
        savings = float(choice.saved_seconds[rows].sum())
        cost = float(policies.piece_seconds[one.at] + rewrites.cost_seconds[rows].sum())
        gains = rewrites.gain_seconds[rows]
        gain, each_day = float(gains.sum()), float(gains @ rewrites.reads_per_day[rows])
        small_bytes = int(rewrites.small_bytes[rows[0]])
        has_all = small_bytes >= most_small_bytes(one.policy.target_file_size)
        prediction = WorkPrediction(
            partitions=len(rows) if tail is None else len(tail),
            files=int(rewrites.files[rows].sum()),
            becomes=int(rewrites.becomes[rows].sum()),
            size_bytes=int(rewrites.size_bytes[rows].sum()),
            cost_seconds=cost,
            gain_seconds=gain,
            reads_per_day=each_day / gain,
            lasting_days=savings / each_day,
            saved_seconds=savings,
            score=savings / cost,
        )
        folders = [one.parts.folders[at].as_py() for at in rewrites.partition[rows].tolist()]
        body = WorkBody(
            folders=folders if tail is None else [EVERY_FOLDER],
            folder_bytes=rewrites.size_bytes[rows].tolist(),
            target_file_size=one.policy.target_file_size,
            small_file_size=None if has_all else small_bytes,
            min_files=one.policy.min_files,
            min_age_seconds=one.policy.min_age_seconds,
            readers_may_see_both=one.policy.readers_may_see_both,
            prediction=prediction,
            packing=None if tail is None else tail.request,
            text=chosen(prediction, None if has_all else small_bytes, packs=tail is not None),
        )
        work.append(NewWork(table=one.table.info.name, body=body))
    return work


def _skips(tables: Sequence[_Table], rewrites: Rewrites, choice: Choice) -> list[Skip]:
    rows_of: dict[tuple[int, Reason], list[int]] = defaultdict(list)
    for row in representatives(rewrites, choice).tolist():
        rows_of[int(rewrites.table[row]), REASONS[choice.reason[row]]].append(row)
    skips = []
    for (at, reason), some in rows_of.items():
        # Work that a worker has, or had until it died, has a receipt of its own.
        if reason in ("chosen", "running"):
            continue
        one, rows = tables[at], np.array(some)
        waits = choice.wait_seconds[rows]
        first = float(np.nanmin(waits)) if np.isfinite(waits).any() else None
        case = Case(
            policy=one.policy,
            partitions=len(rows),
            files=int(rewrites.files[rows].sum()),
            example=(
                "its part outside of packs"
                if isinstance(one.parts, Tail)
                else one.parts.folders[int(rewrites.partition[rows[0]])].as_py()
            ),
            wait_seconds=first,
            score=float(choice.score[rows].max()),
        )
        name = one.table.info.name
        skips.append(Skip(table=name, reason=reason, text=left_alone(reason, case)))
    return skips
