"""The interface of file formats on the executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_spark.executor.errors import InaccessibleFileError, UnreadableFileError
from windrow_spark.executor.layouts import Layout
from windrow_spark.executor.spec import Split

# Arrow's errors for bytes that are not of a format; UnicodeDecodeError is a ValueError.
FORMAT_ERRORS = (pa.ArrowException, OSError, ValueError)


_MORE_MEMORY = (
    "give Spark's Python processes more memory (spark.executor.memoryOverhead), or run fewer tasks "
    "at a time"
)


class FileFormat(ABC):
    """Opens and decodes files; a reader is whatever `opened` returns.

    Attributes:
        name: Its name in messages.
        has_short_footers: Whether the end of a small file is enough to count its rows.
    """

    name: ClassVar[str]
    has_short_footers: ClassVar[bool]

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

    @abstractmethod
    def row_count(self, reader: Any) -> int:
        """Return the number of rows that a file's footer states."""

    @abstractmethod
    def describes(self, layout: Layout, reader: Any) -> bool:
        """Tell whether an open file may have a layout; `Layout.fits` makes sure after decoding."""

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
