"""The interface of file formats on the executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.excerpts.gathered import Gathered
from windrow_tables.executor.errors import InaccessibleFileError, UnreadableFileError
from windrow_tables.executor.layouts import Layout
from windrow_tables.executor.spec import Split

# Arrow's errors for bytes that are not of a format; UnicodeDecodeError is a ValueError.
FORMAT_ERRORS = (pa.ArrowException, OSError, ValueError)


_MORE_MEMORY = (
    "give Spark's Python processes more memory (spark.executor.memoryOverhead), or run fewer tasks "
    "at a time"
)


# Takes the number of a file.
Lead: TypeAlias = Callable[[int], tuple[Layout, Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Join:
    """Small files of one layout that can be decoded together.

    Attributes:
        files: Their numbers, ascending.
        row_counts: The rows of each.
        decoded_bytes: The bytes of each without compression, as its footer declares.
        layout: Their layout.
        decoded: Decodes the files from one place in the join to another.
    """

    files: Sequence[int]
    row_counts: Sequence[int]
    decoded_bytes: Sequence[int]
    layout: Layout
    decoded: Callable[[int, int], pa.Table]

    def parts(
        self, start: int, end: int, max_rows: int, max_bytes: int
    ) -> Iterator[tuple[int, int]]:
        """Cut the files from one place to another into parts of bounded size, or of one file."""
        rows = size_bytes = 0
        for at in range(start, end):
            rows += self.row_counts[at]
            size_bytes += self.decoded_bytes[at]
            if at > start and (rows > max_rows or size_bytes > max_bytes):
                yield start, at
                start, rows, size_bytes = at, self.row_counts[at], self.decoded_bytes[at]
        yield start, end


class FileFormat(ABC):
    """Opens and decodes files; a reader is whatever `opened` returns.

    Attributes:
        name: Its name in messages.
        has_short_footers: Whether the end of a small file is enough to count its rows.
        has_joins: Whether small files are ever decoded together.
    """

    name: ClassVar[str]
    has_short_footers: ClassVar[bool]
    has_joins: ClassVar[bool]

    @abstractmethod
    def opened(self, path: str, file: Any, buffer_bytes: int) -> Any:
        """Return a reader of a file.

        Args:
            path: The file, for messages.
            file: An Arrow file.
            buffer_bytes: How much to read at once; 0 if it is in memory.

        Raises:
            UnreadableFileError: It is not of this format.
        """

    def opened_pack(self, path: str, file: Any, buffer_bytes: int) -> Any:
        """Do what `opened` does, with a file whose bytes are compared with their checksums.

        What is read of a damaged pack, unlike of a damaged file, can be read elsewhere.

        Raises:
            UnreadableFileError: It is not of this format, or files of this format are in no packs.
        """
        raise UnreadableFileError(path, "files of this format are in no packs")

    @abstractmethod
    def row_count(self, reader: Any) -> int:
        """Return the number of rows that a file's footer states."""

    @abstractmethod
    def describes(self, layout: Layout, reader: Any) -> bool:
        """Return whether an open file may have a layout; `Layout.fits` makes sure after decoding."""

    @abstractmethod
    def find_layout(self, path: str, reader: Any) -> Layout:
        """Work out the layout of an open file.

        Raises:
            AmbiguousColumnError: Several columns of the file could be the wanted one.
            ColumnTypeError: The file's type cannot be read as the table's.
            UnreadableFileError: The file's schema cannot be read.
        """

    @abstractmethod
    def decoded(self, reader: Any, layout: Layout) -> pa.Table:
        """Return the selected columns of a whole file; at least one is selected."""

    def joins(self, files: Gathered, lead: Lead) -> Iterator[Join]:
        """Yield joins of small files, if the format has any.

        Args:
            files: The files.
            lead: Opens the first file of a join, and returns its layout and a reader of it.
        """
        return iter(())

    @abstractmethod
    def tables(
        self, split: Split, reader: Any, layout: Layout, max_rows: int, max_bytes: int
    ) -> Iterator[pa.Table]:
        """Yield the selected columns of a split, as tables of bounded size.

        Without selected columns, tables have the right number of rows.

        Raises:
            UnreadableFileError: The file is damaged.
        """


def rows_only(row_count: int) -> pa.Table:
    """Return a table with this number of rows, and a column without meaning."""
    return pa.table({"": pa.nulls(row_count)})


def unreadable(path: str, error: Exception, format: str) -> UnreadableFileError:
    """Return the error that says that `path` is not of its format, or why it cannot be read."""
    if isinstance(error, MemoryError):
        # Arrow's own is among its errors about formats.
        reason = f"{str(error) or 'memory ran out'}: {_MORE_MEMORY}"
        return InaccessibleFileError(path, reason)
    if is_of_system(error):
        # Raised by a file that Arrow reads bit by bit.
        return InaccessibleFileError(path, why_inaccessible(error))
    return UnreadableFileError(path, " ".join(str(error).split()) or type(error).__name__, format)
