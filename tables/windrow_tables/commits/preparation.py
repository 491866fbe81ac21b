"""The changes of a commit, worked out before anything is moved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from windrow_core.files.errors import LocationError
from windrow_core.files.listing import is_hidden, listed_of
from windrow_core.files.other_formats import refuse_folder, refuse_hidden
from windrow_core.files.permissions import look_alike
from windrow_core.files.remote import contents_of
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Proof
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, is_outside, path_in
from windrow_core.models import TableInfo, WriteMode
from windrow_tables.commits.errors import (
    PartitionChangedError,
    StagedFilesError,
    UnfitLocationError,
)
from windrow_tables.commits.intents import PartitionChange
from windrow_tables.commits.inventories import list_files
from windrow_tables.commits.spellings import Home
from windrow_tables.commits.summaries import Summaries, why_unchanged

# Paths relative to the location; a table also has their states when they were read.
Replaced: TypeAlias = pa.Table | pa.Array | Sequence[str]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Works out the changes of one write; the files that stay are linked into new local folders.

    Attributes:
        table: The table as it is now.
        location: Absolute path, or URI, of the table.
        data: The same of the folder that the new files were staged in.
        mode: Mode of the write.
    """

    table: TableInfo
    location: str
    data: str
    mode: WriteMode

    def changes(
        self,
        new_paths: Iterable[str],
        old_files: Mapping[str, FileStatus | None],
        homes: Iterable[Home] = (),
        region: Iterable[str] = (),
    ) -> list[PartitionChange]:
        """Return the change of each folder; folders of the same values follow each other.

        Args:
            new_paths: Paths of the new files, relative to `data`.
            old_files: Files to remove, by path relative to the location; their states where they
                are known.
            homes: The folders of the new files, with further ones of the same values.
            region: Folders whose files are removed although no new ones may come in their place.
        """
        additions, removals = _by_folder(new_paths), _by_folder(old_files)
        folders = set(additions) | set(removals)
        if self.mode == "overwrite":
            folders |= _by_folder(list_files(self.location)["path"].to_pylist()).keys()
        summaries = Summaries(self.location)
        beside = {other: home.folder for home in homes for other in home.others}
        if self.mode == "overwrite_partitions":
            folders |= beside.keys() | set(region)
        return [
            self._change(
                folder,
                additions.get(folder, []),
                {name: old_files[_join(folder, name)] for name in removals.get(folder, [])},
                summaries,
            )
            # The new rows come first, so that none are missing in between.
            for folder in sorted(
                folders, key=lambda one: (beside.get(one, one), one in beside, one)
            )
        ]

    def _change(
        self,
        folder: str,
        new_names: list[str],
        old_files: Mapping[str, FileStatus | None],
        summaries: Summaries,
    ) -> PartitionChange:
        if is_outside(folder):
            reason = f"its partition {folder!r} lies elsewhere, where nothing is changed"
            raise UnfitLocationError(self.table.name, self.location, reason)
        path = absolute_path(self.location, folder)
        folders, present = contents_of(path)
        try:
            for name in (*folders, *present):
                refuse_hidden(path, name, is_location=not folder)
                refuse_folder(path, name)
        except LocationError as error:
            raise UnfitLocationError(self.table.name, self.location, str(error)) from error
        summary = summaries.of(folder, present)
        if summary is not None:
            raise UnfitLocationError(self.table.name, self.location, why_unchanged(summary))
        removals = self._gone(folder, present, old_files)
        links = [
            name for name in present if name not in removals and not _is_checksum_of(name, removals)
        ]
        for name in new_names:
            if name in links:
                reason = "the table already has a file of this name: stage it under another"
                raise StagedFilesError(self.table.name, _join(folder, name), reason)
        if not folder or is_remote(self.location):
            return PartitionChange(folder, None, tuple(new_names), (), removals)
        live = os.path.join(self.location, folder)
        # Hadoop's checksum files are removed together with their files.
        removals |= {name: present[name] for name in present if _is_checksum_of(name, removals)}
        self._check_rights(folder)
        if not new_names and not links:
            return PartitionChange(folder, None, (), (), removals)
        root, new = Root(self.location), path_in(self.location, f"{self.data}/{folder}")
        root.make_folder(new)
        if os.path.lexists(live):
            with root.opened(folder) as model, root.opened(new) as copy:
                # Nobody else is to reach the files before the folder is like the old one.
                os.chmod(copy, 0o700)
                for name in links:
                    root.link(f"{folder}/{name}", f"{new}/{name}")
                look_alike(model, copy)
        return PartitionChange(folder, root.inode(new), tuple(new_names), tuple(links), removals)

    def _gone(
        self,
        folder: str,
        present: Mapping[str, FileStatus],
        old_files: Mapping[str, FileStatus | None],
    ) -> dict[str, FileStatus]:
        if self.mode != "append":
            return {name: state for name, state in present.items() if not is_hidden(name)}
        for name, state in old_files.items():
            now = present.get(name)
            if now is None or (state is not None and state.difference(now) is not None):
                reason = "is gone" if now is None else "was rewritten"
                path = _join(folder, name)
                raise PartitionChangedError(self.table.name, folder, path, reason)
        return {name: present[name] for name in old_files}

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


def move_home(root: Root, data: str, homes: Mapping[str, Home], proof: Proof) -> dict[str, str]:
    """Move staged files to the folders where their rows belong.

    Args:
        root: The table's folder.
        data: The folder that they were staged in, below it.
        homes: Where the files of each staged folder belong.
        proof: Proves that something lies in a staging folder.

    Returns:
        The new path of each data file that was moved.
    """
    new_paths = {}
    for folder, home in sorted(homes.items()):
        if folder == home.folder:
            continue
        source, target = _join(data, folder), _join(data, home.folder)
        root.make_folder(target)
        target_names = {name for name, _ in root.entries(target)}
        names = {name for name, _ in root.entries(source)}
        for name in sorted(names):
            if is_hidden(name):
                continue
            # One task of Spark gives its files of all partitions the same name.
            new = next(one for one in names_like(name) if one not in target_names)
            for old, other in ((f".{name}.crc", f".{new}.crc"), (name, new)):
                if old in names:
                    root.move(f"{source}/{old}", f"{target}/{other}", proof)
            new_paths[_join(folder, name)] = _join(home.folder, new)
    return new_paths


def names_like(name: str) -> Iterator[str]:
    """Yield names for a file, the likeliest first, of which one is not taken."""
    yield name
    for number in count(2):
        yield f"{number}-{name}"


def replaced_files(replaces: Replaced | None) -> dict[str, FileStatus | None]:
    """Return the files that a write replaces, by path."""
    if replaces is None:
        return {}
    if isinstance(replaces, pa.Table):
        return dict(zip(*listed_of(replaces), strict=True))
    paths = replaces.to_pylist() if isinstance(replaces, pa.Array) else replaces
    return dict.fromkeys(paths)


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        names.setdefault(folder, []).append(name)
    return names


def _is_checksum_of(name: str, names: Mapping[str, object]) -> bool:
    return name.startswith(".") and name.endswith(".crc") and name[1:-4] in names


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}".strip("/")
