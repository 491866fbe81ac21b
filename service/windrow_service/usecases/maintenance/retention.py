"""The partitions of a table that its policy does not keep, because they are too old."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_core.cards import count_text
from windrow_core.errors import StatedError
from windrow_core.files.types import spark_type
from windrow_core.models import EffectivePolicy, PartitionRemoval
from windrow_core.sizes import size_text
from windrow_service.filters.tree import to_tree
from windrow_service.planner.maintenance.retention import (
    Ages,
    Keeping,
    ages,
    is_whole,
    keeping,
    last_day,
)
from windrow_service.planner.pruning.expressions import And, Expression, In
from windrow_service.planner.splits import Bools
from windrow_service.usecases.maintenance.partitions import policy_rule
from windrow_service.usecases.maintenance.windows import zone_of
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.partitions import PartitionReader
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.tables.ports import StoredTable, TableStore

# The reason of a table all of whose partitions are young enough.
NOTHING_OLD = "nothing_old"
# More than this of a table, and a round announces it first.
LARGE_SHARE = 0.5
# In one commit; older ones go first, and the others in later ones.
_MAX_VALUES = 1_000
_MAX_TABLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPartitions:
    """Partitions that are to go, in one commit.

    Attributes:
        removal: What goes.
        values: The values of the column, each with its name, such as `ds=2026-01-01`; oldest first.
        filter: A filter that selects these partitions, as a tree.
        text: Why they go.
    """

    removal: PartitionRemoval
    values: Sequence[str]
    filter: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingOld:
    """Why no partition of a table goes: the name of the reason, and the reason in words."""

    reason: str
    text: str


class RetentionFinder:
    """Finds the partitions that are too old; a table that has not changed is looked at once a day."""

    def __init__(
        self,
        tables: TableStore,
        snapshots: SnapshotStore,
        partitions: PartitionReader,
        runner: Runner,
    ) -> None:
        self._tables = tables
        self._snapshots = snapshots
        self._partitions = partitions
        self._runner = runner
        self._outcomes: LRUCache[tuple[object, ...], OldPartitions | NothingOld] = LRUCache(
            _MAX_TABLES
        )

    async def find(
        self,
        table: StoredTable,
        policy: EffectivePolicy,
        now: datetime,
        within: Collection[str] | None = None,
    ) -> OldPartitions | NothingOld:
        """Return what is to go of a table's current snapshot, or why nothing is.

        Args:
            table: The table.
            policy: How it is maintained.
            now: Now, with a time zone.
            within: Only these values, with their names such as `ds=2026-01-01`; any by default.

        Raises:
            StoreUnavailableError: The database is away.
            BusyError: Too much is waiting already.
        """
        obstacle = _obstacle(table, policy)
        if obstacle is not None:
            return obstacle
        zone = zone_of(policy.keep_zone)
        if zone is None:
            return NothingOld(
                reason="retention_unfit",
                text=f"there is no time zone {policy.keep_zone!r} where the coordinator runs",
            )
        info = table.info
        assert policy.keep_days is not None
        assert info.current_snapshot is not None
        span = keeping(now, policy.keep_days, policy.keep_before, zone)
        among = None if within is None else frozenset(within)
        key = (
            table.table_id,
            info.current_snapshot.snapshot_id,
            span.today,
            policy.model_dump_json(),
            among,
        )
        outcome = self._outcomes.get(key)
        if outcome is None:
            snapshot_id = info.current_snapshot.snapshot_id
            _, snapshot = await self._snapshots.get(info.name, snapshot_id)
            numbering = await self._partitions.numbering(info.name, snapshot)
            outcome = await self._runner.run(
                lambda: old_partitions(snapshot, numbering.partitions, policy, span, among)
            )
            self._outcomes[key] = outcome
        if isinstance(outcome, OldPartitions) and await self._tables.shares_protection(
            table.table_id
        ):
            return NothingOld(
                reason="protected",
                text="no partition is dropped, since a table that is protected from deletion has "
                "files in the same folder",
            )
        return outcome


def _obstacle(table: StoredTable, policy: EffectivePolicy) -> NothingOld | None:
    """Return why nothing of a table goes, whatever its partitions are."""
    info, definition = table.info, table.info.definition
    if not policy.enabled:
        return NothingOld(reason="off", text="its policy is off")
    if policy.keep_days is None:
        return NothingOld(reason="keeps_all", text="its policy keeps all partitions")
    if info.deletion_protection:
        return NothingOld(
            reason="protected",
            text="no partition is dropped, since the table is protected from deletion: `windrow "
            f"table unprotect {info.name}` ends that",
        )
    if info.current_snapshot is None:
        return NothingOld(
            reason="no_snapshot",
            text=f"it has no snapshot yet: `windrow table refresh {info.name}` makes one",
        )
    if definition.kind.dropping is not None:
        return NothingOld(reason="retention_unfit", text=definition.kind.dropping)
    if definition.listed_partitions or info.partition_count is not None:
        return NothingOld(
            reason="retention_unfit",
            text="a catalog lists its partitions: drop them there, then `windrow table sync`",
        )
    return None


def old_partitions(
    snapshot: Snapshot,
    partitions: pa.Table,
    policy: EffectivePolicy,
    span: Keeping,
    among: Collection[str] | None = None,
) -> OldPartitions | NothingOld:
    """Return what is to go of a snapshot, or why nothing is.

    Args:
        snapshot: The snapshot.
        partitions: Its partition values, with files, bytes and rows of each.
        policy: How the table is maintained.
        span: The days that the policy keeps.
        among: Only these values, with their names; any by default.
    """
    try:
        expression, applies = _choice(snapshot, partitions, policy)
    except StatedError as error:
        # An error in a filter goes on to show where it is.
        return NothingOld(reason="retention_unfit", text=str(error).partition("\n")[0])
    of_columns = {
        field.name: ages(partitions[field.name].combine_chunks(), span)
        for field in snapshot.partition_schema
    }
    column = _column(snapshot, partitions, of_columns, policy.keep_by)
    if isinstance(column, NothingOld):
        return column
    of_column = of_columns[column]
    others = int(np.count_nonzero(applies & ~of_column.is_date))
    sentinels = int(np.count_nonzero(applies & of_column.is_sentinel))
    is_old = applies & of_column.is_old
    distinct = pc.unique(partitions[column].filter(pa.array(is_old))).to_pylist()
    choice = [one for one in distinct if among is None or _label(column, one) in among]
    stays = _stays_text(others, sentinels, policy)
    if not choice:
        is_day = applies & of_column.is_date & ~of_column.is_sentinel
        return _nothing(partitions[column], is_day, policy, stays)
    if not policy.may_drop_all and (of_column.newest is None or of_column.newest < span.first):
        return _everything(partitions.filter(pa.array(is_old)), column, policy)
    values = sorted(choice, key=_order)[:_MAX_VALUES]
    figures = partitions.filter(pa.array(applies & _is_in(partitions[column], values)))
    rows = figures["row_count"]
    removal = PartitionRemoval(
        column=column,
        before=span.first,
        zone=policy.keep_zone,
        partitions=len(figures),
        files=pc.sum(figures["file_count"]).as_py(),
        size_bytes=pc.sum(figures["size_bytes"]).as_py(),
        rows=None if rows.null_count else pc.sum(rows).as_py(),
        others=others,
        sentinels=sentinels,
        share=_share(partitions, is_old),
        newest=of_column.newest,
        keep_days=policy.keep_days,
        may_drop_all=policy.may_drop_all,
    )
    selection = In(column, tuple(sorted(values)))
    labels = [_label(column, one) for one in values]
    return OldPartitions(
        removal=removal,
        values=labels,
        filter=to_tree(selection if expression is None else And((expression, selection))),
        text=_text(removal, policy, labels) + stays,
    )


def _choice(
    snapshot: Snapshot, partitions: pa.Table, policy: EffectivePolicy
) -> tuple[Expression | None, Bools]:
    """Return the policy's filter, and to which partitions it applies."""
    if policy.filter is None:
        return None, np.ones(len(partitions), np.bool_)
    rule = policy_rule(snapshot, policy.filter)
    columns = [partitions[name].combine_chunks() for name in snapshot.partition_schema.names]
    values = pa.StructArray.from_arrays(columns, fields=list(snapshot.partition_schema))
    nothing = pa.array([{}] * len(partitions), pa.struct([]))
    return rule.expression, rule.marks(pa.table({"partition": values, "stats": nothing}))


def _column(
    snapshot: Snapshot, partitions: pa.Table, of_columns: Mapping[str, Ages], keep_by: str | None
) -> str | NothingOld:
    """Return the partition column that has the dates."""
    names = list(of_columns)
    if keep_by is not None:
        column = next((name for name in names if name.lower() == keep_by.lower()), None)
        if column is None:
            text = f"{keep_by!r} is not one of its partition columns: {', '.join(names) or 'none'}"
            return NothingOld(reason="no_dates", text=text)
        if len(of_columns[column].is_date) and not of_columns[column].is_date.any():
            type_ = spark_type(snapshot.partition_schema.field(column).type)
            text = f"no value of {column!r}, which is of type {type_}, can be read as a date"
            return NothingOld(reason="no_dates", text=text)
        return column
    of_dates = [name for name, one in of_columns.items() if one.is_date.any()]
    candidates = [name for name in of_dates if not of_columns[name].doubts]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        text = f"{' and '.join(candidates)} have dates: say with `--keep-by` which of them counts"
        return NothingOld(reason="no_dates", text=text)
    if of_dates:
        name = of_dates[0]
        values = pc.unique(partitions[name]).drop_null().to_pylist()
        example = next(one for one in values if not is_whole(one))
        text = (
            f"{name!r} is text, and not every value is a whole date, such as {example!r}: if it has "
            f"the days, say `--keep-by {name}`"
        )
        return NothingOld(reason="no_dates", text=text)
    text = f"no partition column has dates: {', '.join(names) or 'it has none'}"
    return NothingOld(reason="no_dates", text=text)


def _share(partitions: pa.Table, goes: Bools) -> float:
    """Return which share of a table goes: of its partitions, files or bytes, whichever is most."""
    going = partitions.filter(pa.array(goes))
    shares = [len(going) / max(len(partitions), 1)]
    for name in ("file_count", "size_bytes"):
        some, whole = (pc.sum(one[name]).as_py() or 0 for one in (going, partitions))
        shares.append(some / max(whole, 1))
    return round(max(shares), 4)


def _nothing(
    values: pa.ChunkedArray, is_day: Bools, policy: EffectivePolicy, stays: str
) -> NothingOld:
    text = f"no partition is older than {_days(policy)}"
    if is_day.any():
        oldest = min(values.filter(pa.array(is_day)).unique().to_pylist(), key=_order)
        text += f": the oldest is {_value_text(oldest)}"
    return NothingOld(reason=NOTHING_OLD, text=text + stays)


def _everything(old: pa.Table, column: str, policy: EffectivePolicy) -> NothingOld:
    newest = _label(column, max(old[column].unique().to_pylist(), key=_order))
    files = count_text(pc.sum(old["file_count"]).as_py(), "file")
    return NothingOld(
        reason="retention_all",
        text=f"all of its days are older than {_days(policy)}, even the newest, {newest}: "
        f"{count_text(len(old), 'partition')} with {files} would be dropped. Make sure that the "
        "clocks are right, then allow it with `windrow policy set … --may-drop-all`",
    )


def _text(removal: PartitionRemoval, policy: EffectivePolicy, labels: Sequence[str]) -> str:
    span = labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
    share = f", {100 * removal.share:.0f} % of the table" if removal.share > LARGE_SHARE else ""
    return (
        f"{count_text(removal.partitions, 'partition')} with {count_text(removal.files, 'file')} "
        f"({size_text(removal.size_bytes)}{share}), {span}, would be dropped: older than "
        f"{_days(policy)}, before {removal.before} in {removal.zone}"
    )


def _days(policy: EffectivePolicy) -> str:
    return count_text(policy.keep_days or 0, "day")


def _stays_text(others: int, sentinels: int, policy: EffectivePolicy) -> str:
    return "".join(
        f"; {count:,} {what} {'stays' if count == 1 else 'stay'}"
        for count, what in (
            (others, "without a date"),
            (sentinels, f"before {policy.keep_before}"),
        )
        if count
    )


def _is_in(column: pa.ChunkedArray, values: Sequence[Any]) -> Bools:
    value_set = pa.array(values, column.type)
    return np.asarray(pc.is_in(column, value_set=value_set).to_numpy(), np.bool_)


def _order(value: Any) -> tuple[Any, Any]:
    """Sort values of one type by their days."""
    return (last_day(value), value) if isinstance(value, str) else (value, value)


def _label(column: str, value: Any) -> str:
    return f"{column}={_value_text(value)}"


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
