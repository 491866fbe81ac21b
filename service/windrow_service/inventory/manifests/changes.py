"""Apply a change of a table's files to its manifests; other manifests stay as they are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.manifests.encoding import MANIFEST_FILES, Manifest, cut_files
from windrow_service.inventory.manifests.fewest import fewest_gained
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.inventory.manifests.row_changes import differing
from windrow_service.inventory.manifests.totals import rows_in, size_counts
from windrow_service.planner.pruning.bounds import Bools, Ints, mask

# Manifests of similar size are merged once there are many of them, as in a log-structured merge
# tree (O'Neil et al. 1996; size-tiered compaction): each row is rewritten about once for each
# 16-fold growth. Only one merge at a time limits what one change has to write.

# How many small manifests of one tier are merged, and the ratio of sizes between tiers.
_FAN_IN = 16
# If more full manifests than this overlap at one path, they are cut anew, without overlap.
_MAX_OVERLAP = 8


def worth_merging(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    """Return the positions of manifests to rewrite as one set of files; often none.

    Args:
        manifests: Manifests of a snapshot.
        manifest_files: Most files of a manifest.
    """
    return (
        _full_tier(manifests, manifest_files)
        or _pile(manifests, manifest_files)
        or _worn(manifests)
    )


def is_worn(file_count: int, removed_count: int) -> bool:
    """Return whether so many rows are removed that the rest is worth rewriting."""
    return 4 * removed_count > file_count + removed_count


def _full_tier(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    tiers: dict[int, list[int]] = {}
    for at, manifest in enumerate(manifests):
        if 2 * manifest.file_count < manifest_files:
            tiers.setdefault((manifest.file_count.bit_length() - 1) // 4, []).append(at)
    for _, tier in sorted(tiers.items()):
        files = sum(manifests[at].file_count for at in tier)
        if len(tier) >= _FAN_IN or files >= manifest_files:
            return tier
    return []


def _pile(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    """Return the full manifests at the path where most of them overlap, if they are too many."""
    full = [
        at for at, manifest in enumerate(manifests) if 2 * manifest.file_count >= manifest_files
    ]
    firsts = sorted(manifests[at].first_path for at in full)
    lasts = sorted(manifests[at].last_path for at in full)
    depths = [bisect_right(firsts, path) - bisect_left(lasts, path) for path in firsts]
    if max(depths, default=0) <= _MAX_OVERLAP:
        return []
    path = firsts[depths.index(max(depths))]
    return [at for at in full if manifests[at].first_path <= path <= manifests[at].last_path]


def _worn(manifests: Sequence[Manifest]) -> list[int]:
    for at, manifest in enumerate(manifests):
        if is_worn(manifest.file_count, len(manifest.removed)):
            return [at]
    return []


# Returns the decoded rows of a manifest, with at least the given columns; None means all.
Decode: TypeAlias = Callable[[Manifest, Sequence[str] | None], pa.Table]

# The columns needed from rows that a change replaces or removes.
_LOOKED_UP = ("path", "size_bytes", "mtime_ns", "row_count", "etag")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The files that a table gains and loses.

    Attributes:
        added: An inventory, sorted by path; a file of the same path is replaced.
        removed: `path` of files to remove, none of them in `added`; `row`, for error messages.
        carried: Columns of `added` that are unknown: a file that keeps its size and time of
            change keeps their values.
    """

    added: pa.Table
    removed: pa.Table
    carried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The manifests that a change needs to read, by position.

    Attributes:
        looked_up: Manifests that may hold files that the change names.
        merged: Manifests to rewrite; see `worth_merging`.
    """

    looked_up: tuple[int, ...]
    merged: tuple[int, ...]

    @property
    def read(self) -> list[int]:
        """All of these positions, ascending."""
        return sorted({*self.looked_up, *self.merged})


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The state of a table after a change.

    Attributes:
        manifests: By first path; without data if they are stored already.
        files_added: New and changed files.
        files_removed: Files that are gone or have changed.
        rows_gained: Rows in the added files, minus those in the removed files; None if not known.
        sizes_gained: `size_counts` of the added files, minus those of the removed files.
        fewest_gained: The fewest files of the folders that the change adds.
    """

    manifests: tuple[Manifest, ...]
    files_added: int
    files_removed: int
    rows_gained: int | None
    sizes_gained: Ints
    fewest_gained: int


@dataclass(frozen=True, slots=True)
class _Gone:
    """Rows of one manifest that are removed, with the sizes and rows of their files."""

    positions: Ints
    size_bytes: int
    row_count: int | None
    size_counts: Ints

    @classmethod
    def of(cls, files: pa.Table, positions: Ints) -> _Gone:
        sizes = files["size_bytes"]
        return cls(positions, _sum(sizes), rows_in(files), size_counts(sizes))


def plan_change(
    manifests: Sequence[Manifest], change: FileChange, *, manifest_files: int = MANIFEST_FILES
) -> ChangePlan:
    """Return which manifests must be read to apply a change.

    Args:
        manifests: Manifests of the snapshot that the change changes.
        change: The change of files.
        manifest_files: Most files of a manifest.
    """
    paths = _paths(change)
    looked_up = [at for at, one in enumerate(manifests) if _within(one, paths).any()]
    return ChangePlan(tuple(looked_up), tuple(worth_merging(manifests, manifest_files)))


def apply_change(
    manifests: Sequence[Manifest],
    change: FileChange,
    plan: ChangePlan,
    decode: Decode,
    *,
    manifest_files: int = MANIFEST_FILES,
    may_miss: bool = False,
) -> Applied:
    """Return the manifests of the next snapshot.

    Added files make a new manifest; removed files are noted beside the manifest that holds them.
    A change that changes nothing returns the same manifests.

    Args:
        manifests: Manifests of the snapshot that the change changes.
        change: The change of files, under the schema of the manifests.
        plan: The result of `plan_change` for the same arguments.
        decode: Called only for manifests in `plan.read`.
        manifest_files: Most files of a manifest.
        may_miss: Whether files to remove may be missing.

    Raises:
        InvalidInventoryError: A file to remove is missing.
    """
    paths = _paths(change)
    added_count = len(change.added)
    missing = np.arange(len(paths)) >= added_count
    is_new = np.ones(added_count, np.bool_)
    changes: list[pa.Table] = []
    losses: dict[int, _Gone] = {}
    for at in plan.looked_up:
        files = decode(manifests[at], _LOOKED_UP)
        positions, positions_named = _find(manifests[at], files, paths)
        missing[positions_named] = False
        goes = np.ones(len(positions_named), np.bool_)
        same = np.flatnonzero(positions_named < added_count)
        same = same[
            _same_file(_take(files, positions[same]), _take(change.added, positions_named[same]))
        ]
        if len(same):
            before = _take(decode(manifests[at], None), positions[same])
            after = _carry(_take(change.added, positions_named[same]), before, change.carried)
            goes[same] = differing(before, after)
            is_new[positions_named[same]] = False
            changes.append(after.filter(pa.array(goes[same])))
        if goes.any():
            losses[at] = _Gone.of(_take(files, positions[goes]), positions[goes])
    if missing.any() and not may_miss:
        row = int(np.argmax(missing)) - added_count
        raise InvalidInventoryError(
            f"column 'path', row {change.removed['row'][row]}: "
            f"{change.removed['path'][row].as_py()!r} cannot be removed, because the table has no such "
            "file: leave it out"
        )
    gains = pa.concat_tables([change.added.filter(pa.array(is_new)), *changes]).combine_chunks()
    gains = gains.take(pc.sort_indices(gains["path"]))
    return Applied(
        manifests=_rebuild(manifests, losses, gains, plan.merged, decode, manifest_files),
        files_added=len(gains),
        files_removed=sum(len(rows.positions) for rows in losses.values()),
        rows_gained=_difference_in_rows(gains, list(losses.values())),
        sizes_gained=size_counts(gains["size_bytes"])
        - sum((rows.size_counts for rows in losses.values()), np.zeros(64, np.int64)),
        fewest_gained=fewest_gained(manifests, gains),
    )


def _difference_in_rows(gains: pa.Table, losses: Sequence[_Gone]) -> int | None:
    more, less = rows_in(gains), [rows.row_count for rows in losses]
    counts = [count for count in less if count is not None]
    return None if more is None or len(counts) < len(less) else more - sum(counts)


def replace_files(
    manifests: Sequence[Manifest],
    tables: Sequence[pa.Table],
    files: pa.Table,
    *,
    manifest_files: int = MANIFEST_FILES,
    check: Callable[[], None] = lambda: None,
) -> tuple[Manifest, ...]:
    """Return the manifests of a whole inventory, reusing those of the previous snapshot.

    All manifests are cut anew if the columns differ, or if more than a quarter of the files
    is gone or changed.

    Args:
        manifests: Manifests of the previous snapshot; none for a table's first inventory.
        tables: Decoded rows of those manifests.
        files: All current files, sorted by path.
        manifest_files: Most files of a manifest.
        check: Called between columns of manifests that are cut anew; raises to stop.
    """
    if not tables or any(not table.schema.equals(files.schema) for table in tables):
        return tuple(cut_files(files, manifest_files, check))
    ends = np.cumsum([len(table) for table in tables])
    with_numbers = [
        table.append_column("row", pa.array(np.arange(end - len(table), end)))
        for table, end in zip(tables, ends, strict=True)
    ]
    before = merge_files(with_numbers, [manifest.removed for manifest in manifests])
    goes, comes = _difference(before.drop(["row"]), files)
    lost_count = int(np.count_nonzero(goes))
    if is_worn(len(before) - lost_count, lost_count):
        return tuple(cut_files(files, manifest_files, check))
    losing = before.select(["row", "size_bytes", "row_count"]).filter(pa.array(goes))
    lost_rows = losing["row"].to_numpy()
    owner = np.searchsorted(ends, lost_rows, "right")
    losses = {}
    for at in np.unique(owner).tolist():
        mine = owner == at
        positions = lost_rows[mine] - (ends[at] - len(tables[at]))
        losses[at] = _Gone.of(losing.filter(pa.array(mine)), positions)
    decoded = {
        manifest.manifest_id: table for manifest, table in zip(manifests, tables, strict=True)
    }
    return _rebuild(
        manifests,
        losses,
        files.filter(pa.array(comes)),
        worth_merging(manifests, manifest_files),
        lambda manifest, _: decoded[manifest.manifest_id],
        manifest_files,
    )


def _rebuild(
    manifests: Sequence[Manifest],
    losses: Mapping[int, _Gone],
    gains: pa.Table,
    merges: Sequence[int],
    decode: Decode,
    manifest_files: int,
) -> tuple[Manifest, ...]:
    if not losses and not len(gains):
        return tuple(manifests)
    left: dict[int, Manifest] = {}
    for at, manifest in enumerate(manifests):
        rows = losses.get(at)
        rest = manifest.without(rows.positions, rows.size_bytes) if rows else manifest
        if rest is not None:
            left[at] = rest
    new = cut_files(gains, manifest_files)
    old = [left.pop(at) for at in merges if at in left]
    if old:
        tables = [decode(manifest, None) for manifest in old]
        new += cut_files(merge_files(tables, [m.removed for m in old]), manifest_files)
    return tuple(
        sorted(
            (*left.values(), *new),
            key=lambda manifest: (manifest.first_path, manifest.last_path, manifest.manifest_id),
        )
    )


def _difference(before: pa.Table, after: pa.Table) -> tuple[Bools, Bools]:
    """Return which rows of one inventory, and which of the next, are missing in the other one."""
    matches = pc.index_in(after["path"], value_set=before["path"].combine_chunks())
    comes = mask(matches.is_null())
    goes = np.ones(len(before), np.bool_)
    goes[matches.drop_null().to_numpy()] = False
    both_before, both_after = np.flatnonzero(~goes), np.flatnonzero(~comes)
    # Both are sorted by path, so rows with the same path correspond.
    differs = np.zeros(len(both_before), np.bool_)
    for name in after.schema.names:
        # Column by column, because filtering copies.
        columns = (_only(before.select([name]), ~goes), _only(after.select([name]), ~comes))
        differs |= differing(*columns)
    goes[both_before[differs]] = True
    comes[both_after[differs]] = True
    return goes, comes


def _find(manifest: Manifest, files: pa.Table, paths: pa.Array) -> tuple[Ints, Ints]:
    """Return the live rows of a manifest with one of the paths, and the position of each path."""
    near = np.flatnonzero(_within(manifest, paths))
    matches = pc.index_in(files["path"], value_set=paths.take(pa.array(near)))
    positions = pc.indices_nonzero(matches.is_valid()).to_numpy().astype(np.int64)
    positions = positions[~np.isin(positions, manifest.removed)]
    return positions, near[matches.take(pa.array(positions)).to_numpy()]


def _within(manifest: Manifest, paths: pa.Array) -> Bools:
    above = pc.greater_equal(paths, manifest.first_path)
    return mask(pc.and_(above, pc.less_equal(paths, manifest.last_path)))


def _same_file(one: pa.Table, other: pa.Table) -> Bools:
    same = np.ones(len(one), np.bool_)
    for name in ("size_bytes", "mtime_ns"):
        same &= one[name].to_numpy() == other[name].to_numpy()
    # An ETag that is unknown on either side proves nothing.
    return same & ~mask(pc.fill_null(pc.not_equal(one["etag"], other["etag"]), False))


def _carry(after: pa.Table, before: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        at = after.schema.get_field_index(name)
        if at >= 0:
            after = after.set_column(at, after.schema.field(at), before[name])
    return after


def _paths(change: FileChange) -> pa.Array:
    chunks = [*change.added["path"].chunks, *change.removed["path"].chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _take(table: pa.Table, rows: Ints) -> pa.Table:
    return table.take(pa.array(rows))


def _only(table: pa.Table, rows: Bools) -> pa.Table:
    return table if rows.all() else table.filter(pa.array(rows))


def _sum(column: pa.ChunkedArray) -> int:
    return int(column.to_numpy().sum())
