"""The folder in which engines find the metadata that is made for them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from tempfile import NamedTemporaryFile

_MODE = 0o644


class MetadataFolder:
    """Files of metadata: a folder for each table, whose files never change. Blocking.

    Args:
        root: An absolute path, which engines have under the same name.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

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
        target = self._root / table / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), _MODE)
        os.replace(file.name, target)
        return str(target)

    def touch(self, table: str, name: str) -> bool:
        """Make a file as young as if it were written now; return False if there is none."""
        try:
            os.utime(self._root / table / name)
        except FileNotFoundError:
            return False
        return True

    def tables(self) -> list[str]:
        """Return the names of the tables' folders."""
        try:
            return sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir())
        except FileNotFoundError:
            return []

    def clean(self, table: str, names: Collection[str], min_age_s: float) -> int:
        """Remove files that nobody needs; return how many.

        Args:
            table: Name of the table's folder.
            names: Names of the files that stay.
            min_age_s: Younger files stay, too.
        """
        latest = time.time() - min_age_s
        count = 0
        for entry in os.scandir(self._root / table):
            if entry.name not in names and entry.stat().st_mtime < latest:
                os.unlink(entry.path)
                count += 1
        return count

    def remove(self, table: str) -> None:
        """Remove a table's folder."""
        shutil.rmtree(self._root / table, ignore_errors=True)
