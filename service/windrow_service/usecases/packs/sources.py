"""Files that packs are made of, some of which are read again each day."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.files.table_paths import absolute_path
from windrow_service.usecases.packs.ports import PackFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSample:
    """Reads some of the files that a pack is made of.

    What tells a file from its replacement, its time or inode number, may be copied, and some file
    systems have none that tells. Its bytes tell always.

    Attributes:
        folder: Reads files.
        max_files: Most files of a pack that are read at a time.
        max_bytes: Most bytes of them.
    """

    folder: PackFolder
    max_files: int = 200
    max_bytes: int = 64 * 2**20

    def first_difference(self, location: str, sources: pa.Table) -> str | None:
        """Return a file that has other bytes than when it was packed; None if there is none. Blocking.

        Files that are gone, or of another size, time or ETag, are left to the next refresh.

        Args:
            location: The table's folder.
            sources: The files of a pack, with `digest`.

        Raises:
            OSError: A file cannot be read.
        """
        numbers = random.sample(range(len(sources)), min(self.max_files, len(sources)))
        left = self.max_bytes
        for row in sources.take(pa.array(numbers, pa.int64())).to_pylist():
            left -= row["size_bytes"]
            if left < 0:
                break
            path = absolute_path(location, row["path"])
            if not self._is_same(path, row):
                continue
            try:
                digest = self.folder.digest(path)
            except FileNotFoundError:
                continue
            # It may have been replaced while it was read.
            if digest != row["digest"].hex() and self._is_same(path, row):
                return str(row["path"])
        return None

    def _is_same(self, path: str, row: dict[str, object]) -> bool:
        status = self.folder.status(path)
        return status is not None and (status.size_bytes, status.mtime_ns, status.etag) == (
            row["size_bytes"],
            row["mtime_ns"],
            row["etag"],
        )
