"""The folders that a table has for partition values, whichever way these are spelled there."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, escape, is_hidden, unescape
from windrow_core.files.partition_values import identities
from windrow_core.files.remote import contents_of
from windrow_core.files.table_paths import absolute_path

_Values: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Home:
    """Where the rows of one combination of partition values belong.

    Attributes:
        folder: The folder for new files.
        others: Further folders of the table that hold files with the same values.
    """

    folder: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spellings:
    """Finds a table's folders by the values of its partition columns.

    `month=09` and `month=9` are the same folder to a column of integers, and `d=a%2fb` and
    `d=a%2Fb` to one of text. Only the folders that may hold a wanted value are listed.

    Attributes:
        location: Absolute path, or URI, of the table.
        names: Names of the partition columns.
        types: Their types.
        members: The folders that are part of the table; None if all below the location are.
    """

    location: str
    names: Sequence[str]
    types: Sequence[pa.DataType]
    members: Collection[str] | None = None

    def homes(self, new_folders: Iterable[str]) -> dict[str, Home]:
        """Return where the files of each folder belong.

        If several folders have the values, the first of these that applies decides: it holds
        files; it is spelled as the new files' folder, which is how Spark spells it if Spark wrote
        them; it holds more files; its path comes first. A new folder lies in the folders that its
        first columns' values have already, and its keys are spelled as those of other folders.

        Args:
            new_folders: Folders of new files, relative to the folder that they were staged in.
        """
        by_values: dict[_Values, list[str]] = {}
        folders = sorted(set(new_folders))
        for folder, values in zip(folders, self._values_of(folders), strict=True):
            by_values.setdefault(values, []).append(folder)
        levels = self._folders_with(by_values)
        keys = _Keys(self.location, self.names)
        homes: dict[str, Home] = {}
        for values, same in by_values.items():
            present = levels[-1].get(values, []) if levels else []
            if self.members is not None:
                present = [folder for folder in present if folder in self.members]
            home = self._among(present, same) or Home(keys.new(same[0], values, levels))
            homes |= dict.fromkeys(same, home)
        return homes

    def folders_with(self, values: Mapping[str, str | None]) -> list[str]:
        """Return the table's folders whose files have some values, sorted.

        Args:
            values: The value of some of the partition columns, by name, as a text that is not
                escaped; None for null.
        """
        above = [""]
        for level in range(len(self.names)):
            choices = self._choices(values, level)
            above = [
                folder
                for parent in above
                for value, folder in self._below(parent, level)
                if not choices or value in choices
            ]
        if self.members is not None:
            above = [folder for folder in above if folder in self.members]
        return sorted(folder for folder in above if self._file_count(folder))

    def folder_without(
        self, values: Mapping[str, str | None], folders: Iterable[str]
    ) -> str | None:
        """Return the first of some folders that has other values; None if there is none.

        Args:
            values: As `folders_with` takes them.
            folders: Folders with a level for each partition column.
        """
        folders = sorted(folders)
        for folder, own in zip(folders, self._values_of(folders), strict=True):
            for level, value in enumerate(own):
                choices = self._choices(values, level)
                if choices and value not in choices:
                    return folder
        return None

    def _choices(self, values: Mapping[str, str | None], level: int) -> list[Hashable]:
        """Return the only value that a column may have, or nothing if it may have any."""
        key = self.names[level].lower()
        texts = [
            None if text is None else escape(text)
            for name, text in values.items()
            if name.lower() == key
        ]
        return identities(texts, self.types[level])

    def _values_of(self, folders: Sequence[str]) -> list[_Values]:
        if not (self.names and folders):
            return [()] * len(folders)
        columns = []
        for level, type_ in zip(_levels(folders), self.types, strict=True):
            texts = [part.partition("=")[2] for part in level]
            columns.append(identities([_or_null(text) for text in texts], type_))
        return list(zip(*columns, strict=True))

    def _folders_with(self, combinations: Collection[_Values]) -> list[dict[_Values, list[str]]]:
        """Return, for each level, the folders whose values begin a wanted combination."""
        levels: list[dict[_Values, list[str]]] = []
        above: Mapping[_Values, list[str]] = {(): [""]}
        for level in range(len(self.names)):
            begins = {values[: level + 1] for values in combinations}
            folders: dict[_Values, list[str]] = {}
            for values, parents in above.items():
                for parent in parents:
                    for value, folder in self._below(parent, level):
                        if (*values, value) in begins:
                            folders.setdefault((*values, value), []).append(folder)
            levels.append(folders)
            above = folders
        return levels

    def _below(self, parent: str, level: int) -> Iterable[tuple[Hashable, str]]:
        folder_names = subfolders(self.location, parent, self.names[level])
        texts = [_or_null(name.partition("=")[2]) for name in folder_names]
        values = identities(texts, self.types[level])
        return zip(values, (_join(parent, name) for name in folder_names), strict=True)

    def _among(self, present: Sequence[str], spellings: Collection[str]) -> Home | None:
        if len(present) < 2:
            return Home(present[0]) if present else None
        files = {folder: self._file_count(folder) for folder in present}
        first, *others = sorted(
            present,
            key=lambda folder: (not files[folder], folder not in spellings, -files[folder], folder),
        )
        return Home(first, tuple(sorted(folder for folder in others if files[folder])))

    def _file_count(self, folder: str) -> int:
        _, files = contents_of(absolute_path(self.location, folder))
        return sum(not is_hidden(name) for name in files)


@dataclass(slots=True)
class _Keys:
    """Names new folders; the first folder of each level shows how the table spells its key."""

    location: str
    names: Sequence[str]
    keys: list[str] = field(default_factory=list)
    folder: str = ""

    def new(
        self, spelling: str, values: _Values, levels: Sequence[dict[_Values, list[str]]]
    ) -> str:
        """Return the path of a folder that the table lacks.

        Args:
            spelling: The folder as the new files' writer spelled it.
            values: Its values.
            levels: For each level, the table's folders by values.
        """
        folder = ""
        for level, part in enumerate(spelling.split("/") if self.names else ()):
            matches = levels[level].get(values[: level + 1], [])
            inside = [one for one in matches if one.rpartition("/")[0] == folder]
            own = _join(folder, part)
            text = part.partition("=")[2]
            other = min(inside) if inside else _join(folder, f"{self._key(level, part)}={text}")
            folder = own if own in inside else other
        return folder

    def _key(self, level: int, part: str) -> str:
        while len(self.keys) <= level:
            depth = len(self.keys)
            there = subfolders(self.location, self.folder, self.names[depth])
            if not there:
                return part.partition("=")[0]
            self.keys.append(there[0].partition("=")[0])
            self.folder = _join(self.folder, there[0])
        return self.keys[level]


def subfolders(location: str, parent: str, name: str) -> list[str]:
    """Return the names of the folders in a folder that hold values of a column, sorted.

    Args:
        location: Absolute path, or URI, of the table.
        parent: The folder, relative to the location.
        name: Name of the column, compared without regard to case.
    """
    key = name.lower()
    folders, _ = contents_of(absolute_path(location, parent))
    return sorted(
        folder
        for folder in folders
        if "=" in folder
        and not is_hidden(folder)
        and unescape(folder.partition("=")[0]).lower() == key
    )


def _levels(folders: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(folder.split("/") for folder in folders), strict=True))


def _or_null(text: str) -> str | None:
    return None if text == HIVE_DEFAULT_PARTITION else text


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
