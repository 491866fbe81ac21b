"""What the formats of files allow: who knows their rows, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

_Format = TypeVar("_Format", bound=str)

# Of these a refresh knows names and sizes alone: there is nothing to read short of all rows.
LISTED = frozenset({"csv", "json", "text"})

# Tables that keep a log of which files they have; their files are Parquet. By the tool that
# compacts them.
LOGGED = {"delta": "Delta's OPTIMIZE", "iceberg": "Iceberg's rewrite_data_files"}

# In the figures of their logs.
SMALL_FILE_BYTES = 32 * 2**20

# Only Spark's own reader gives their rows.
READ_BY_SPARK = frozenset({*LISTED, "avro"})

# Options by which a record may be more than a line.
_OVER_LINES = ("multiLine", "wholetext", "lineSep")


def files_of(format: _Format) -> _Format | Literal["parquet"]:
    """Return the format of the files of a table whose format is given."""
    return "parquet" if format in LOGGED else format


def must_be_told(format: str, options: Mapping[str, str]) -> bool:
    """Tell whether the columns of a table must be declared, as its files do not say them.

    Lines of text are one column, unless a SerDe of Hive's divides them.
    """
    return format in ("csv", "json") or "serde" in options


def begins_at_any_line(options: Mapping[str, str]) -> bool:
    """Tell whether a reader of text can start at any line, as the options of its table say."""
    return all(options.get(name, "false").lower() == "false" for name in _OVER_LINES)
