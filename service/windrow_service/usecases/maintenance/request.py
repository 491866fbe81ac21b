"""Work that somebody asks for: all small files of a table, or of one partition, at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from windrow_core.files.places import place_of
from windrow_core.models import EffectivePolicy, WorkPrediction
from windrow_service.planner.maintenance.columns import Rules
from windrow_service.planner.maintenance.corrections import Corrections, corrections
from windrow_service.planner.splits import Ints
from windrow_service.usecases.audit import actor
from windrow_service.usecases.maintenance.costs import MOST_RECEIPTS, Rewrite, receipts_of
from windrow_service.usecases.maintenance.partitions import PartitionFinder, SmallParts
from windrow_service.usecases.maintenance.policies import maintenance_of
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.texts import requested
from windrow_service.usecases.maintenance.work import NEWEST, NewWork, WorkBody, WorkStore
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.errors import TableNotRefreshedError
from windrow_service.usecases.tables.ports import TableStore
from windrow_service.usecases.upkeep.errors import InvalidCompactionError

# Partitions of one piece of work; others that rounds choose follow in the next one.
MAX_FOLDERS = 1_000
_HORIZON_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWork:
    """Let the small files of a table be merged before all other work.

    Windows, quiet time, gain and budget do not matter for it, since somebody wants it now; what it
    costs counts against the budget all the same.
    """

    tables: TableStore
    policies: PolicyStore
    finder: PartitionFinder
    work: WorkStore
    runner: Runner
    clock: Clock

    async def __call__(
        self, name: str, folder: str | None = None, *, readers_may_see_both: bool = False
    ) -> int:
        """Return how many pieces of work wait now; 0 if no files can be merged.

        Args:
            name: The table.
            folder: Only this partition; otherwise all but those that the policy leaves alone.
            readers_may_see_both: Consent for tables on HDFS and S3, unless the policy has it.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            InvalidCompactionError: The table is on HDFS or S3, and nobody has consented.
            TransactionalTableError: Hive compacts the table.
            LoggedTableError: The table's own engine compacts it.
            FormatNotCompactableError: The table's files are not Parquet.
            InvalidFilterError: The policy's filter does not fit the table's columns.
            InvalidPolicyError: The policy's filter names other than partition columns.
            BusyError: Too much is waiting already.
        """
        table = await self.tables.get(name)
        if table.info.current_snapshot is None:
            raise TableNotRefreshedError(name)
        policies = [one.info for one in await self.policies.list()]
        policy = maintenance_of(name, policies).policy
        consent = policy.readers_may_see_both or readers_may_see_both
        if place_of(table.info.definition.location).shows_both and not consent:
            raise InvalidCompactionError(
                f"table {name!r} is on HDFS or S3, where readers that list folders may find old and "
                "new files for a while: allow that with `windrow policy set … "
                "--readers-may-see-both`"
            )
        parts, principal = await self.finder.find(table, policy), actor().principal
        costs = await self.costs(name, policy.target_file_size)
        # Off the event loop: a table may have very many partitions.
        bodies = await self.runner.run(
            lambda: [
                _body(parts, some, policy, principal, costs, consent=consent)
                for some in _batches(parts, _rows(parts, policy, folder), Rules())
            ]
        )
        work = [NewWork(table=name, body=body) for body in bodies]
        return await self.work.request(work, self.clock()) if work else 0

    async def costs(self, name: str, target_bytes: int) -> Corrections:
        """Return what rewrites of a table cost and gain, judging by receipts; row 0 has it.

        Args:
            name: The table.
            target_bytes: Target size of a file.
        """
        everything = Names(every=True)
        own = await self.work.page(NEWEST, MOST_RECEIPTS, everything, name, states=("done",))
        others = await self.work.page(NEWEST, 4 * MOST_RECEIPTS, everything, states=("done",))
        rewrites = (
            Rewrite(number, target_bytes, one.outcome, one.gain, packs=one.packing is not None)
            for number, page in enumerate((own, others))
            for one in page
            if one.outcome is not None and (number == 0 or one.table != name)
        )
        return corrections(receipts_of(rewrites), 2)

    async def withdraw(self, name: str, number: int | None = None) -> int:
        """Withdraw what was asked for and still waits; return how many pieces of work that was.

        Args:
            name: The table.
            number: Only the work with this number.

        Raises:
            TableNotFoundError: No table has this name.
        """
        await self.tables.get(name)
        return await self.work.withdraw(name, self.clock(), number)


def _rows(parts: SmallParts, policy: EffectivePolicy, folder: str | None) -> Ints:
    """Return the rewrites of all small files, those that gain most for each second first."""
    folders, small = parts.folders.to_pylist(), parts.small
    if folder is not None:
        choice = [one == folder for one in folders]
    else:
        exempt = set(policy.exempt_folders)
        choice = [
            one not in exempt and not is_excluded
            for one, is_excluded in zip(folders, parts.is_excluded.tolist(), strict=True)
        ]
    # Of the ways to rewrite a partition, the one that takes most files.
    order = np.lexsort((small.small_bytes, small.partition))
    is_last = np.diff(small.partition[order], append=-1) != 0
    rows = order[is_last]
    rows = rows[np.array(choice, np.bool_)[small.partition[rows]]]
    rows = rows[small.becomes[rows] < small.files[rows]]
    ratio = small.gain_seconds[rows] / np.maximum(small.cost_seconds[rows], 1e-6)
    return np.asarray(rows[np.argsort(-ratio, kind="stable")], np.int64)


def _batches(parts: SmallParts, rows: Ints, rules: Rules) -> Iterator[Sequence[int]]:
    """Yield rows in order, within the bounds of a batch unless a single one exceeds them."""
    batch: list[int] = []
    files = size_bytes = 0
    for row in rows.tolist():
        of_files, of_bytes = int(parts.small.files[row]), int(parts.small.size_bytes[row])
        is_full = (
            len(batch) == MAX_FOLDERS
            or files + of_files > rules.max_batch_files
            or size_bytes + of_bytes > rules.max_batch_bytes
        )
        if batch and is_full:
            yield batch
            batch, files, size_bytes = [], 0, 0
        batch.append(row)
        files, size_bytes = files + of_files, size_bytes + of_bytes
    if batch:
        yield batch


def _body(
    parts: SmallParts,
    rows: Sequence[int],
    policy: EffectivePolicy,
    principal: str,
    costs: Corrections,
    *,
    consent: bool,
) -> WorkBody:
    small = parts.small
    cost = costs.cost_of(float(small.cost_seconds[rows].sum()))
    gain = float(small.gain_seconds[rows].sum() * costs.gain[0])
    # How often it is really read is not looked up.
    savings = gain * policy.reads_per_day * _HORIZON_DAYS
    prediction = WorkPrediction(
        partitions=len(rows),
        files=int(small.files[rows].sum()),
        becomes=int(small.becomes[rows].sum()),
        size_bytes=int(small.size_bytes[rows].sum()),
        cost_seconds=cost,
        gain_seconds=gain,
        reads_per_day=policy.reads_per_day,
        lasting_days=_HORIZON_DAYS,
        saved_seconds=savings,
        score=savings / cost,
    )
    return WorkBody(
        folders=[parts.folders[at].as_py() for at in small.partition[rows].tolist()],
        folder_bytes=small.size_bytes[rows].tolist(),
        target_file_size=policy.target_file_size,
        min_files=policy.min_files,
        readers_may_see_both=consent,
        prediction=prediction,
        text=requested(prediction, principal),
    )
