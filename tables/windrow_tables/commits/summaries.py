"""Summary files of Parquet, which list the files beside and below them for other readers.

Dask, fastparquet, PyArrow and parquet-mr write them. Readers that go by one fail if a file of it is
gone, and miss files that have come.
"""

from __future__ import annotations

from collections.abc import Mapping

from windrow_core.files.listing import SUMMARIES
from windrow_core.files.remote import contents_of
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, is_outside

# Magic bytes, the length of a footer, and magic bytes.
_LEAST_BYTES = 12


class Summaries:
    """The summaries of a table; each folder is listed once.

    Args:
        location: Absolute path, or URI, of the table.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._of_folder: dict[str, str | None] = {}

    def of(self, folder: str, files: Mapping[str, FileStatus] | None = None) -> str | None:
        """Return the path of a summary that lists files of a folder; None if there is none.

        Args:
            folder: The folder, relative to the location; summaries of those above it count.
            files: All files directly in it, if they are at hand.

        Raises:
            OSError: A folder cannot be listed.
        """
        if folder not in self._of_folder:
            absolute = absolute_path(self._location, folder)
            if files is None:
                _, files = contents_of(absolute)
            own = [
                one for one in SUMMARIES if one in files and files[one].size_bytes >= _LEAST_BYTES
            ]
            if own:
                self._of_folder[folder] = f"{absolute}/{own[0]}"
            elif not folder or is_outside(folder):
                self._of_folder[folder] = None
            else:
                self._of_folder[folder] = self.of(folder.rpartition("/")[0])
        return self._of_folder[folder]


def why_unchanged(summary: str) -> str:
    """Return why files that a summary lists stay as they are."""
    return (
        f"{summary!r} lists its files for readers such as Dask and PyArrow, which would fail or miss "
        "rows: remove that summary if nothing reads by it"
    )
