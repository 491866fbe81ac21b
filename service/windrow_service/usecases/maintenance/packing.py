"""Files of tables that rounds of maintenance may pack, in place of rewriting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from cachetools import LRUCache

from windrow_core.models import EffectivePolicy
from windrow_core.models.packs import PackingRequest
from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.packs import READ_SECONDS
from windrow_service.planner.upkeep.packs import Packing, pack_seconds, worth_keeping
from windrow_service.usecases.maintenance.partitions import SmallFiles, SmallParts
from windrow_service.usecases.packs.coverage import UsablePacks
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import types_of
from windrow_service.usecases.tables.ports import StoredTable

# What work that packs names in place of a partition: packs join partitions. No worker finds such a
# folder, so that one of an earlier version rewrites nothing.
EVERY_FOLDER = "*"
_MINUTE_NS, _DAY_NS = 60 * 10**9, 86_400 * 10**9
_MAX_FOLDERS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tail(SmallParts):
    """The files of a table that are worth a pack, by partition; `all_bytes` are those of the table.

    Attributes:
        request: Which files they are.
        becomes: Number of packs that they become.
        excess: Packs that there are and that have no room within the policy's bytes.
        is_full: Whether packs of these files would have none.
    """

    request: PackingRequest
    becomes: int
    excess: Sequence[str]
    is_full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingFinder:
    """Finds the files that may be packed; a table that has not changed costs nothing."""

    snapshots: SnapshotStore
    plan: PlanPacking
    _tails: LRUCache[tuple[object, ...], Tail] = field(
        default_factory=lambda: LRUCache(_MAX_FOLDERS, getsizeof=lambda tail: 1 + len(tail))
    )

    async def find(self, table: StoredTable, policy: EffectivePolicy) -> Tail:
        """Return the files of a table's current snapshot that are worth a pack.

        Raises:
            PacksDisabledError: No folder for packs is set.
            UnpackableTableError: No packs are made of tables like this one.
            InvalidFilterError: The policy's filter does not fit the table's columns.
            InvalidPackingError: The policy's filter names other than partition columns.
            TableNotFoundError: The table was deleted meanwhile.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        info = table.info
        assert info.current_snapshot is not None
        _, snapshot = await self.snapshots.get(info.name, info.current_snapshot.snapshot_id)
        usable = await self.plan.packs(table, snapshot)
        request = _request(policy)
        key = (
            table.table_id,
            snapshot.info.snapshot_id,
            None if usable is None else usable.key,
            request.model_dump_json(),
            policy.pack_max_bytes,
        )
        tail = self._tails.get(key)
        if tail is None:
            # How long ago files were written changes by the minute.
            any_age = request.model_copy(update={"min_age_seconds": 0})
            packing = await self.plan.files_to_pack(table, snapshot, usable, any_age)
            types = types_of(snapshot)
            tail = _tail(packing, usable, request, policy, types)
            if self._tails.getsizeof(tail) <= self._tails.maxsize:
                self._tails[key] = tail
        return tail

    async def withdraw(self, table: StoredTable, tail: Tail) -> None:
        """Withdraw the packs that have no room."""
        for pack_id in tail.excess:
            because = "other packs save more reading for their bytes, and the policy limits these"
            await self.plan.packs.store.withdraw(pack_id, table.info.name, because)


def _request(policy: EffectivePolicy) -> PackingRequest:
    least = PackingRequest().min_files
    return PackingRequest(
        min_files=max(policy.min_files, least),
        filter=policy.filter,
        exempt_folders=policy.exempt_folders,
        min_age_seconds=policy.min_age_seconds,
    )


def _tail(
    packing: Packing,
    usable: UsablePacks | None,
    request: PackingRequest,
    policy: EffectivePolicy,
    types: Mapping[str, pa.DataType],
) -> Tail:
    files = packing.files
    folders = numbered_folders(files)
    folder, count = np.asarray(folders.indices, np.int64), len(folders.dictionary)
    sizes, times = (np.asarray(files[name], np.int64) for name in ("size_bytes", "mtime_ns"))
    of_files = np.bincount(folder, minlength=count)
    of_bytes = np.bincount(folder, sizes, count).astype(np.int64)
    # Of a file that is packed anew, a read saves nothing more.
    new = np.bincount(folder[packing.is_new], minlength=count)
    last = np.zeros(count, np.int64)
    np.maximum.at(last, folder, times)
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, folder, times)
    # As if files had come evenly: one that has been left for long does not make the others old.
    mean = np.bincount(folder, times, count) / np.maximum(of_files, 1)
    newest = int(times.max(initial=0))
    becomes = int(packing.piece.max(initial=-1)) + 1
    examples = np.zeros(count, np.int64)
    examples[folder] = np.arange(len(files))
    excess, is_full = _without_room(packing, usable, policy.pack_max_bytes)
    nothing = pa.array([{}] * count, pa.struct([]))
    return Tail(
        folders=folders.dictionary,
        small=SmallFiles(
            partition=np.arange(count),
            small_bytes=np.full(count, request.max_file_size),
            files=of_files,
            becomes=np.full(count, becomes),
            size_bytes=of_bytes,
            cost_seconds=pack_seconds(of_files, of_bytes),
            gain_seconds=np.asarray(new * READ_SECONDS, np.float64),
            oldest_ns=(2 * mean - newest).astype(np.int64),
        ),
        all_bytes=np.full(count, packing.packed_bytes + int(sizes.sum())),
        first_ns=first,
        last_ns=last,
        gap_days=np.full(count, _gap_days(times)),
        is_excluded=np.zeros(count, np.bool_),
        examples=pa.table(
            {"partition": files["partition"].take(pa.array(examples)), "stats": nothing}
        ),
        types=types,
        request=request,
        becomes=becomes,
        excess=excess,
        is_full=is_full,
    )


def _gap_days(times: Any) -> float:
    """Return the mean time between writes; infinite if all files were written together."""
    writes = len(np.unique(times // _MINUTE_NS))
    return float(np.ptp(times) / _DAY_NS / (writes - 1)) if writes > 1 else np.inf


def _without_room(
    packing: Packing, usable: UsablePacks | None, max_bytes: int | None
) -> tuple[list[str], bool]:
    """Return the packs that have no room within a limit of bytes, and whether new ones have none."""
    if max_bytes is None:
        return [], False
    packs = [] if usable is None else list(usable.packs.values())
    sizes = np.array([one.size_bytes for one in packs], np.int64)
    # Packs that new ones will take the room of are read until these are there.
    live = packing.live.astype(np.float64)
    stays = worth_keeping(live * READ_SECONDS, sizes, max_bytes)
    excess = [one.pack_id for one, is_kept in zip(packs, stays, strict=True) if not is_kept]
    # New packs take of each byte of a file what those that are there do.
    part = sizes.sum() / packing.packed_bytes if packing.packed_bytes else 1.0
    new_bytes = np.array([packing.size_bytes * min(part, 1.0)], np.int64)
    files = np.append(live, len(packing.files))
    # Those that are packed anew go in any case.
    sizes = np.where(packing.is_joined, 0, sizes)
    stays = worth_keeping(files * READ_SECONDS, np.concatenate((sizes, new_bytes)), max_bytes)
    return excess, not stays[-1]


def together(columns: Mapping[str, Any], min_quiet_seconds: float) -> dict[str, Any]:
    """Return what is known about the partitions of a tail as that of one rewrite.

    Args:
        columns: Columns of `Rewrites`, with a row for each partition.
        min_quiet_seconds: Partitions that were written to more recently are not packed yet.
    """
    of = columns["quiet_seconds"] >= min_quiet_seconds
    if not of.any():
        of = np.ones(len(of), np.bool_)
    rows = {name: column[of] for name, column in columns.items()}
    gain, each_day = rows["gain_seconds"], rows["gain_seconds"] * rows["reads_per_day"]
    means = {
        "reads_per_day": _mean(rows["reads_per_day"], gain),
        "lasting_days": _mean(rows["lasting_days"], each_day),
        "gathering_days": _mean(rows["gathering_days"], rows["files"]),
    }
    sums = {name: rows[name].sum() for name in ("files", "size_bytes", "cost_seconds")}
    totals = {"gain_seconds": gain.sum(), "quiet_seconds": rows["quiet_seconds"].max()}
    least = {"next_write_days": rows["next_write_days"].min()}
    ones = {name: column[0] for name, column in rows.items()}
    one = ones | means | sums | totals | least | {"partition": 0}
    return {name: np.array([value]) for name, value in one.items()}


def _mean(values: Any, weights: Any) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total else 0.0
