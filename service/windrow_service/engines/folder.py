"""The folder in which engines find the metadata that is made for them."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from windrow_core.files.roots.disks import ASIDE, Root
from windrow_core.files.roots.proofs import Form, Mark, NotOursError

_MODE = 0o644
_MARK = "owner"
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE = (
    r"[0-9a-f]{40}(-vectors)?\.(avro|json|puffin)|part-[0-9a-f]{40}\.avro"
    r"|snap-[0-9-]+(packs-[0-9a-f]{32})?\.(avro|json)|packs-[0-9a-f]{40}(-[0-9]+)?\.(avro|json|parquet)"
    rf"|[0-9a-f]{{32}}\.metadata\.json|{ASIDE}"
)
_FOLDERS = re.compile(_UUID)
_FILES = re.compile(f"{_UUID}/({_FILE})")


class MetadataFolder:
    """Files of metadata: a folder for each table, whose files never change. Blocking.

    Others may keep things there too, other coordinators among them. A mark in the folder of each table
    says which installation has made it.

    Args:
        root: An absolute path, which engines have under the same name.
        installation: Id of this coordinator's database, and of its copies.
    """

    def __init__(self, root: Path, installation: str) -> None:
        self._root = root
        self._installation = installation

    def path(self, table: str, name: str) -> str:
        """Return where engines find a file.

        Args:
            table: Name of the table's folder.
            name: Name of the file.
        """
        return str(self._root / table / name)

    def read(self, table: str, name: str) -> str | None:
        """Return the text of a file; None if there is none."""
        try:
            return (self._root / table / name).read_text("utf-8")
        except FileNotFoundError:
            return None

    def size(self, table: str, name: str) -> int | None:
        """Return the length of a file in bytes; None if there is none."""
        try:
            return (self._root / table / name).stat().st_size
        except FileNotFoundError:
            return None

    def write(self, table: str, name: str, content: bytes) -> str:
        """Write a file, so that readers see all of it or nothing; return where it is."""
        os.makedirs(self._root, exist_ok=True)
        root = self._open()
        root.make_folder(table)
        self._mark(root, table)
        proofs = self._mark_of(table), Form(_FILES)
        root.write_file(f"{table}/{name}", content, *proofs, mode=_MODE, lasting=False)
        return self.path(table, name)

    def use(self, table: str, names: Collection[str], min_age_s: float) -> bool:
        """Make sure that files are there, and stay; return False if one is missing.

        Args:
            table: Name of the table's folder.
            names: Names of the files.
            min_age_s: See `clean`.
        """
        # Whoever shares the folder, such as a copy of this database, takes what is old for unused.
        middle = time.time() - min_age_s / 2
        are_there = True
        for name in names:
            path = self.path(table, name)
            try:
                if os.stat(path).st_mtime < middle:
                    os.utime(path)
            except FileNotFoundError:
                are_there = False
        return are_there

    def tables(self) -> list[str]:
        """Return the names of folders that may be those of tables."""
        try:
            entries = self._open().entries()
        except FileNotFoundError:
            return []
        return sorted(
            name
            for name, status in entries
            if stat.S_ISDIR(status.st_mode) and _FOLDERS.fullmatch(name)
        )

    def clean(self, table: str, names: Collection[str], min_age_s: float) -> int:
        """Remove files that nobody needs; return how many.

        Args:
            table: Name of a table's folder.
            names: Names of the files that stay.
            min_age_s: Younger files stay, too.
        """
        root = self._open()
        # An earlier version has made none.
        self._mark(root, table)
        self.use(table, names, min_age_s)
        return sum(
            self._remove(root, f"{table}/{name}", min_age_s)
            for name, status in root.entries(table)
            if name not in names and not stat.S_ISDIR(status.st_mode)
        )

    def remove(self, table: str, min_age_s: float) -> None:
        """Remove the folder of a table that is no more, if this installation has made it.

        Args:
            table: Name of the table's folder.
            min_age_s: It stays if anything in it is younger.
        """
        root = self._open()
        mark = self._mark_of(table)
        with suppress(FileNotFoundError, NotOursError):
            root.require(table, mark, Form(_FOLDERS, min_age_s))
            for name, status in root.entries(table):
                if not stat.S_ISDIR(status.st_mode):
                    self._remove(root, f"{table}/{name}", min_age_s)
            if [name for name, _ in root.entries(table)] == [_MARK]:
                root.remove_file(mark.path, mark)
                root.remove_empty(table)

    def _open(self) -> Root:
        return Root.resolved(str(self._root))

    def _mark_of(self, table: str) -> Mark:
        return Mark(f"{table}/{_MARK}", f"{self._installation} {table}".encode())

    def _mark(self, root: Root, table: str) -> None:
        mark = self._mark_of(table)
        if root.status(mark.path) is None:
            # Another replica may be faster.
            with suppress(FileExistsError):
                root.write_file(mark.path, mark.text, mode=_MODE, lasting=False)

    def _remove(self, root: Root, path: str, min_age_s: float) -> bool:
        table = path.partition("/")[0]
        try:
            return root.remove_file(path, self._mark_of(table), Form(_FILES, min_age_s))
        except NotOursError:
            return False
