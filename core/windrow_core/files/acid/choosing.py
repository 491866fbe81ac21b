"""Chooses the folders of a partition that hold the rows that a reader sees, by Hive's rules.

A base holds all rows up to a write id. Deltas hold the rows that later writes added, delete deltas
name the rows that they deleted. A compaction merges several folders into one with a wider range of
write ids; the folders that it replaced stay until somebody cleans up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from windrow_core.files.acid.names import BEFORE_ALL, Folder
from windrow_core.files.acid.write_ids import Share, WriteIds
from windrow_core.files.errors import InventoryError


@dataclass(eq=False)
class AcidFolderError(InventoryError):
    """Folders of a transactional table are not usable.

    Attributes:
        path: The folder or file at fault, relative to the table's location.
        reason: What is wrong, and what to do about it.
    """

    path: str
    reason: str
    message = "{path!r} {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The folders of one partition that are read.

    Attributes:
        base: The base; None if there is none, so that files from before the table became
            transactional are read too.
        deltas: Folders with rows of later writes.
        delete_deltas: Folders that name deleted rows.
    """

    base: Folder | None
    deltas: Sequence[Folder]
    delete_deltas: Sequence[Folder]


def choose(
    root: str,
    folders: Collection[Folder],
    compactions: Collection[str],
    ids: WriteIds | None,
    *,
    unmarked: Collection[str] = (),
    has_originals: bool,
    insert_only: bool,
) -> Chosen:
    """Choose the folders of one partition.

    Args:
        root: The partition's folder, for messages, with `/` at its end; may be empty.
        folders: All bases, deltas and delete deltas in it.
        compactions: Names of the bases whose metadata say that a compaction made them.
        ids: The write ids that are seen; None for all.
        unmarked: Names of bases that do not say whether a compaction or an overwrite made them, as
            none did before Hive 3.
        has_originals: Whether the partition has rows from before it became transactional.
        insert_only: Whether its rows have no identities, so that a folder is read as a whole or not
            at all.

    Raises:
        AcidFolderError: The folders do not determine which rows are seen.
    """
    base = _best_base(root, folders, compactions, unmarked, ids)
    visible = _best_deltas(folders, base.most if base is not None else 0, ids)
    deltas = [folder for folder in visible if folder.kind == "delta"]
    delete_deltas = [folder for folder in visible if folder.kind == "delete_delta"]
    if insert_only:
        _require_whole(root, deltas, delete_deltas, ids)
    if delete_deltas and base is None and not deltas and not has_originals:
        reason = (
            "deletes rows, and its partition has neither a base nor a delta that could hold them: "
            "restore those folders, or remove this one, and refresh again"
        )
        raise AcidFolderError(root + delete_deltas[0].name, reason)
    return Chosen(base=base, deltas=deltas, delete_deltas=delete_deltas)


def _best_base(
    root: str,
    folders: Collection[Folder],
    compactions: Collection[str],
    unmarked: Collection[str],
    ids: WriteIds | None,
) -> Folder | None:
    best: tuple[int, bool, int, Folder] | None = None
    unseen: Folder | None = None
    for folder in folders:
        if folder.kind != "base":
            continue
        is_compacted = folder.visible > 0 or folder.name in compactions
        if not _is_seen(folder, ids, is_compacted=is_compacted):
            # Folders that an overwrite replaced are still there; those that a compaction merged may
            # be gone.
            may_be_compacted = is_compacted or folder.name in unmarked
            if may_be_compacted and (unseen is None or folder.most < unseen.most):
                unseen = folder
        elif best is None or (folder.most, is_compacted, folder.visible) > best[:3]:
            best = folder.most, is_compacted, folder.visible, folder
    if best is None and unseen is not None and ids is not None:
        reason = (
            f"was compacted up to write id {unseen.most}, but the valid write ids end at "
            f"{ids.highest}"
            + (f" with {ids.open[0]} still open" if len(ids.open) else "")
            + ", and no earlier base is left: refresh with newer valid write ids"
        )
        raise AcidFolderError(root + unseen.name, reason)
    return best[3] if best is not None else None


def _is_seen(base: Folder, ids: WriteIds | None, *, is_compacted: bool) -> bool:
    if ids is None or base.most == BEFORE_ALL:
        return True
    return ids.fits_base(base.most) if is_compacted else ids.is_valid(base.most)


def _best_deltas(folders: Collection[Folder], after: int, ids: WriteIds | None) -> list[Folder]:
    """Return the fewest folders that hold all changes after a write id."""
    candidates = [
        folder
        for folder in _newest_versions(folders)
        if folder.kind != "base" and _share(ids, folder.least, folder.most) != "none"
    ]
    candidates.sort(key=lambda one: (one.least, -one.most, one.statement, one.name))
    deltas: list[Folder] = []
    last, has_statements = after, False
    for folder in candidates:
        if folder.most > last:
            if _share(ids, last + 1, folder.most) == "none":
                continue
            last, has_statements = folder.most, folder.statement >= 0
        elif not (
            # All statements of one transaction count, unless a compaction has merged them.
            (folder.most == last and has_statements)
            # A compaction may make a delta and a delete delta of the same range.
            or (deltas and _range(folder) == _range(deltas[-1]))
        ):
            continue
        deltas.append(folder)
    return deltas


def _newest_versions(folders: Collection[Folder]) -> Collection[Folder]:
    """Return folders without those that a later compaction of the same range has replaced."""
    newest: dict[tuple[str, int, int, int], Folder] = {}
    for folder in folders:
        key = (folder.kind, *_range(folder))
        if key not in newest or folder.visible > newest[key].visible:
            newest[key] = folder
    return newest.values()


def _range(folder: Folder) -> tuple[int, int, int]:
    return folder.least, folder.most, folder.statement


def _share(ids: WriteIds | None, least: int, most: int) -> Share:
    return "all" if ids is None else ids.share_of(least, most)


def _require_whole(
    root: str, deltas: Sequence[Folder], delete_deltas: Sequence[Folder], ids: WriteIds | None
) -> None:
    if delete_deltas:
        reason = (
            "deletes single rows, which is impossible in an insert-only table: register the table "
            "as transactional 'full'"
        )
        raise AcidFolderError(root + delete_deltas[0].name, reason)
    for folder in deltas:
        if folder.least < folder.most and ids and ids.has_unfinished(folder.least, folder.most):
            reason = (
                "merges writes that are not all seen, and the rows of an insert-only table do not "
                "say which write they belong to: refresh with newer valid write ids"
            )
            raise AcidFolderError(root + folder.name, reason)


def seen_by(choices: Mapping[str, Chosen]) -> dict[str, Folder]:
    """Return the folders that are read, by path.

    Args:
        choices: The chosen folders of each partition, by the partition's folder.
    """
    return {
        root + folder.name: folder
        for root, one in choices.items()
        for folder in (*((one.base,) if one.base else ()), *one.deltas, *one.delete_deltas)
    }
