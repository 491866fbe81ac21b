"""Formats of files: what is known of them without reading rows, and which readers read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

FormatName: TypeAlias = Literal["parquet", "orc", "avro", "csv", "json", "text"]

# Smaller files count as small in the figures of logs.
SMALL_FILE_BYTES = 32 * 2**20

# Options that allow a record to be more than one line.
_OVER_LINES = ("multiLine", "wholetext", "lineSep")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A format of files.

    Attributes:
        name: Its name.
        has_lines: Whether its records are lines: to know more of a file than name and size, a refresh
            would have to read all of its rows.
        is_grouped: Whether tasks read its files in groups; others only Spark's own reader reads.
        states_columns: Whether files state their columns, so that none need be declared.
        has_defaults: Whether Spark gives rows of files that lack a column the column's default.
        is_written: Whether Windrow writes, merges and packs its files, and other engines read them
            as an Iceberg table's.
        has_excerpts: Whether some columns of a file are read without the others, by their names.
        only_read_by: The column of inventories with the names of those columns of a file that only
            one of the readers reads as Spark does; None if there are none.
        has_positions: Whether readers may find columns by their places, instead of their names.
        has_blocks: Whether splits name the blocks of their files that they cover.
    """

    name: FormatName
    has_lines: bool = False
    is_grouped: bool = True
    states_columns: bool = True
    has_defaults: bool = True
    is_written: bool = False
    has_excerpts: bool = False
    only_read_by: Literal["grouped_columns", "native_columns"] | None = None
    has_positions: bool = False
    has_blocks: bool = False

    def must_be_told(self, options: Mapping[str, str]) -> bool:
        """Return whether the columns of a table must be declared, because its files do not state them.

        Lines of text are one column, unless one of Hive's SerDes divides them.
        """
        return not self.states_columns or "serde" in options


PARQUET = FileFormat(
    name="parquet", is_written=True, has_excerpts=True, only_read_by="grouped_columns"
)
ORC = FileFormat(name="orc", only_read_by="native_columns", has_positions=True, has_blocks=True)

FORMATS: Mapping[str, FileFormat] = MappingProxyType(
    {
        one.name: one
        for one in (
            PARQUET,
            ORC,
            FileFormat(name="csv", has_lines=True, is_grouped=False, states_columns=False),
            FileFormat(name="json", has_lines=True, is_grouped=False, states_columns=False),
            FileFormat(name="avro", is_grouped=False, has_defaults=False),
            FileFormat(name="text", has_lines=True, is_grouped=False, has_defaults=False),
        )
    }
)


def begins_at_any_line(options: Mapping[str, str]) -> bool:
    """Return whether a reader of text can start at any line, given the options of the table."""
    return all(options.get(name, "false").lower() == "false" for name in _OVER_LINES)
