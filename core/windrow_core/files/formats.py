"""Properties of file formats: whether their rows are known, and which reader reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

_Format = TypeVar("_Format", bound=str)

# Formats of which a refresh knows only names and sizes: to know more, it would have to read all
# rows.
LISTED = frozenset({"csv", "json", "text"})

# Tables that keep a log of their files, which are Parquet; each with the tool that compacts it.
LOGGED = {"delta": "Delta's OPTIMIZE", "iceberg": "Iceberg's rewrite_data_files"}

# Smaller files count as small in the figures of these logs.
SMALL_FILE_BYTES = 32 * 2**20

# Formats that only Spark's own reader reads.
READ_BY_SPARK = frozenset({*LISTED, "avro"})

# Formats in which Spark gives rows of files that lack a column the column's default.
WITH_DEFAULTS = ("parquet", "orc", "csv", "json")

# Options that allow a record to be more than one line.
_OVER_LINES = ("multiLine", "wholetext", "lineSep")


def files_of(format: _Format) -> _Format | Literal["parquet"]:
    """Return the format of the files of a table that has this format."""
    return "parquet" if format in LOGGED else format


def must_be_told(format: str, options: Mapping[str, str]) -> bool:
    """Return whether the columns of a table must be declared, because its files do not state them.

    Lines of text are one column, unless one of Hive's SerDes divides them.
    """
    return format in ("csv", "json") or "serde" in options


def begins_at_any_line(options: Mapping[str, str]) -> bool:
    """Return whether a reader of text can start at any line, given the options of the table."""
    return all(options.get(name, "false").lower() == "false" for name in _OVER_LINES)
