"""The changes of a commit, worked out before anything is moved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from windrow.commits import posix
from windrow.commits.errors import PartitionChangedError, StagedFilesError, UnfitLocationError
from windrow.commits.intents import PartitionChange
from windrow.commits.inventories import list_local
from windrow.files.entries import is_hidden
from windrow.models import TableInfo, WriteMode

# Paths relative to the location; a table also has their `size_bytes` and `mtime_ns` when read.
Replaced: TypeAlias = pa.Table | pa.Array | Sequence[str]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Works out the changes of one write, and links the files that stay into the new folders.

    Attributes:
        table: The table as it is now.
        location: Absolute path of the table.
        data: Absolute path of the folder that the new files were staged in.
        mode: Mode of the write.
    """

    table: TableInfo
    location: str
    data: str
    mode: WriteMode

    def changes(
        self, staged: Iterable[str], replaced: Mapping[str, tuple[int, int] | None]
    ) -> list[PartitionChange]:
        """Return the change of each folder, sorted by folder.

        Args:
            staged: Paths of the new files, relative to `data`.
            replaced: Files to remove, by path relative to the location; size and time of change
                where they are known.

        Raises:
            StagedFilesError: The table already has a file with the name of a new one.
            PartitionChangedError: A file to remove has changed.
            UnfitLocationError: A folder cannot be exchanged.
            OSError: A file cannot be linked.
        """
        added, gone = _by_folder(staged), _by_folder(replaced)
        wanted = set(added) | set(gone)
        if self.mode == "overwrite":
            wanted |= _by_folder(list_local(self.location)["path"].to_pylist()).keys()
        return [
            self._change(
                folder,
                added.get(folder, []),
                {name: replaced[_join(folder, name)] for name in gone.get(folder, [])},
            )
            for folder in sorted(wanted)
        ]

    def _change(
        self, folder: str, added: list[str], replaced: Mapping[str, tuple[int, int] | None]
    ) -> PartitionChange:
        live = os.path.join(self.location, folder)
        present = self._files_in(folder)
        gone = self._gone(folder, present, replaced)
        kept = [name for name in present if name not in gone and not _is_checksum_of(name, gone)]
        for name in added:
            if name in kept:
                reason = "the table already has a file of this name: stage it under another"
                raise StagedFilesError(self.table.name, _join(folder, name), reason)
        if not folder:
            return PartitionChange("", None, tuple(added), (), gone)
        # Hadoop's checksum files are removed together with their files.
        gone |= {name: present[name] for name in present if _is_checksum_of(name, gone)}
        self._check_rights(folder)
        if not added and all(is_hidden(name) for name in kept):
            return PartitionChange(folder, None, (), (), present)
        new = os.path.join(self.data, folder)
        os.makedirs(new, exist_ok=True)
        if os.path.lexists(live):
            for name in kept:
                posix.link(os.path.join(live, name), os.path.join(new, name))
            posix.look_alike(live, new)
        return PartitionChange(folder, posix.inode_of(new), tuple(added), tuple(kept), gone)

    def _files_in(self, folder: str) -> dict[str, tuple[int, int]]:
        """Return size and time of change of each file directly in a folder."""
        found = {}
        try:
            with os.scandir(os.path.join(self.location, folder)) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found[entry.name] = (status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            pass
        return found

    def _gone(
        self,
        folder: str,
        present: Mapping[str, tuple[int, int]],
        replaced: Mapping[str, tuple[int, int] | None],
    ) -> dict[str, tuple[int, int]]:
        if self.mode != "append":
            return {name: known for name, known in present.items() if not is_hidden(name)}
        for name, known in replaced.items():
            now = present.get(name)
            if now is None or known not in (None, now):
                reason = "is gone" if now is None else "was rewritten"
                path = _join(folder, name)
                raise PartitionChangedError(self.table.name, folder, path, reason)
        return {name: present[name] for name in replaced}

    def _check_rights(self, folder: str) -> None:
        parts = folder.split("/")
        paths = [os.path.join(self.location, *parts[:depth]) for depth in range(len(parts) + 1)]
        present = [path for path in paths if os.path.lexists(path)]
        reason = None
        for path in present[1:]:
            if os.path.islink(path):
                reason = f"folder {path!r} is a symbolic link: replace it by the folder itself"
        for path in present[-2:]:
            if not os.access(path, os.W_OK | os.X_OK):
                reason = f"this user may not change folder {path!r}: give it the right to write"
        if reason is not None:
            raise UnfitLocationError(self.table.name, self.location, reason)


def replaced_files(replaces: Replaced | None) -> dict[str, tuple[int, int] | None]:
    """Return the files that a write replaces, by path."""
    if replaces is None:
        return {}
    if isinstance(replaces, pa.Table):
        names = ("path", "size_bytes", "mtime_ns")
        paths, sizes, mtimes = (replaces[name].to_pylist() for name in names)
        return dict(zip(paths, zip(sizes, mtimes, strict=True), strict=True))
    paths = replaces.to_pylist() if isinstance(replaces, pa.Array) else replaces
    return dict.fromkeys(paths)


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    return found


def _is_checksum_of(name: str, gone: Mapping[str, object]) -> bool:
    return name.startswith(".") and name.endswith(".crc") and name[1:-4] in gone


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
