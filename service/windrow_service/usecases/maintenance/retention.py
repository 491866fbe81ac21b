"""The partitions of a table that its policy does not keep, because they are too old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_core.cards import count_text
from windrow_core.errors import StatedError
from windrow_core.files.formats import LOGGED
from windrow_core.files.types import spark_type
from windrow_core.models import EffectivePolicy, PartitionRemoval
from windrow_core.sizes import size_text
from windrow_service.filters.tree import to_tree
from windrow_service.planner.maintenance.retention import Ages, ages, first_day, last_day
from windrow_service.planner.pruning.expressions import And, Expression, In
from windrow_service.planner.splits import Bools
from windrow_service.usecases.maintenance.partitions import policy_rule
from windrow_service.usecases.maintenance.windows import zone_of
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.partitions import PartitionReader
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.tables.ports import StoredTable

# The reason of a table all of whose partitions are young enough.
NOTHING_OLD = "nothing_old"
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
        self, snapshots: SnapshotStore, partitions: PartitionReader, runner: Runner
    ) -> None:
        self._snapshots = snapshots
        self._partitions = partitions
        self._runner = runner
        self._outcomes: LRUCache[tuple[object, ...], OldPartitions | NothingOld] = LRUCache(
            _MAX_TABLES
        )

    async def find(
        self, table: StoredTable, policy: EffectivePolicy, now: datetime
    ) -> OldPartitions | NothingOld:
        """Return what is to go of a table's current snapshot, or why nothing is.

        Args:
            table: The table.
            policy: How it is maintained.
            now: Now, with a time zone.

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
        first = first_day(now, policy.keep_days, zone)
        key = (
            table.table_id,
            info.current_snapshot.snapshot_id,
            first,
            policy.keep_days,
            policy.keep_by,
            policy.keep_zone,
            repr(policy.filter),
        )
        outcome = self._outcomes.get(key)
        if outcome is None:
            snapshot_id = info.current_snapshot.snapshot_id
            _, snapshot = await self._snapshots.get(info.name, snapshot_id)
            numbering = await self._partitions.numbering(info.name, snapshot)
            outcome = await self._runner.run(
                lambda: _outcome(snapshot, numbering.partitions, policy, first, zone)
            )
            self._outcomes[key] = outcome
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
    if definition.transactional is not None or definition.format in LOGGED:
        what = "its own engine drops partitions, since the table is "
        kind = "transactional" if definition.transactional is not None else definition.format
        return NothingOld(reason="retention_unfit", text=what + kind)
    if definition.listed_partitions or info.partition_count is not None:
        return NothingOld(
            reason="retention_unfit",
            text="a catalog lists its partitions: drop them there, then `windrow table sync`",
        )
    return None


def _outcome(
    snapshot: Snapshot, partitions: pa.Table, policy: EffectivePolicy, first: date, zone: tzinfo
) -> OldPartitions | NothingOld:
    try:
        expression, applies = _choice(snapshot, partitions, policy)
    except StatedError as error:
        # An error in a filter goes on to show where it is.
        return NothingOld(reason="retention_unfit", text=str(error).partition("\n")[0])
    of_columns = {
        field.name: ages(partitions[field.name].combine_chunks(), first, zone)
        for field in snapshot.partition_schema
    }
    column = _column(snapshot, of_columns, policy.keep_by)
    if isinstance(column, NothingOld):
        return column
    of_column = of_columns[column]
    others = int(np.count_nonzero(applies & ~of_column.is_date))
    old = np.flatnonzero(applies & of_column.is_old)
    if not len(old):
        return _nothing(partitions[column], applies & of_column.is_date, policy, others)
    distinct = pc.unique(partitions[column].take(pa.array(old))).to_pylist()
    values = sorted(distinct, key=_order)[:_MAX_VALUES]
    goes = applies & _is_in(partitions[column], values)
    figures = partitions.filter(pa.array(goes))
    rows = figures["row_count"]
    removal = PartitionRemoval(
        column=column,
        before=first,
        zone=policy.keep_zone,
        partitions=len(figures),
        files=pc.sum(figures["file_count"]).as_py(),
        size_bytes=pc.sum(figures["size_bytes"]).as_py(),
        rows=None if rows.null_count else pc.sum(rows).as_py(),
        others=others,
    )
    selection = In(column, tuple(sorted(values)))
    return OldPartitions(
        removal=removal,
        values=[_label(column, one) for one in values],
        filter=to_tree(selection if expression is None else And((expression, selection))),
        text=_text(removal, policy, _label(column, values[0]), _label(column, values[-1])),
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
    snapshot: Snapshot, of_columns: Mapping[str, Ages], keep_by: str | None
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
    candidates = [name for name, one in of_columns.items() if one.is_date.any()]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        text = f"{' and '.join(candidates)} have dates: say with `--keep-by` which of them counts"
        return NothingOld(reason="no_dates", text=text)
    text = f"no partition column has dates: {', '.join(names) or 'it has none'}"
    return NothingOld(reason="no_dates", text=text)


def _nothing(
    values: pa.ChunkedArray, is_date: Bools, policy: EffectivePolicy, others: int
) -> NothingOld:
    text = f"no partition is older than {_days(policy)}"
    if is_date.any():
        oldest = min(values.filter(pa.array(is_date)).unique().to_pylist(), key=_order)
        text += f": the oldest is {_value_text(oldest)}"
    return NothingOld(reason=NOTHING_OLD, text=text + _kept(others))


def _text(removal: PartitionRemoval, policy: EffectivePolicy, oldest: str, newest: str) -> str:
    span = oldest if oldest == newest else f"{oldest} to {newest}"
    return (
        f"{count_text(removal.partitions, 'partition')} with {count_text(removal.files, 'file')} "
        f"({size_text(removal.size_bytes)}), {span}, would be dropped: older than {_days(policy)}, before {removal.before} in {removal.zone}{_kept(removal.others)}"
    )


def _days(policy: EffectivePolicy) -> str:
    return count_text(policy.keep_days or 0, "day")


def _kept(others: int) -> str:
    if not others:
        return ""
    return f"; {others:,} without a date {'stays' if others == 1 else 'stay'}"


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
