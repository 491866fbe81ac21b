"""The columns of an inventory: one row per data file, as an Arrow table.

Listings, readers of footers and logs, published inventories, manifests and plans take from here
which columns there are, their types, and their values where nothing is known. Beside these columns,
a row has `partition`, `stats` and `bloom`, whose fields depend on the table: see
`inventory_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import lists_of
from windrow_core.files.types import has_order

# A deletion vector, or a file that names deleted rows.
DELETE = pa.struct(
    [
        # `vector`: the bitmap at `[offset, offset + length)` of the file `path`, or in `inline` as
        # Base64. `positions`: a Parquet file of paths and positions.
        pa.field("kind", pa.string(), nullable=False),
        # Like the paths of data files: relative to the table's location, or absolute.
        pa.field("path", pa.string()),
        pa.field("inline", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        # Length of the file `path`; null if the log does not state it.
        pa.field("size_bytes", pa.int64()),
        # Number of rows that it deletes; null if the log does not state it.
        pa.field("row_count", pa.int64()),
    ]
)

# Where an inventory that is taken from folders has a column from. What only a `publisher` knows,
# unchanged files keep; `log` is the log of a Delta or Iceberg table, so that folders show nothing.
Source: TypeAlias = Literal["listing", "path", "footer", "publisher", "log"]


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of inventories.

    Attributes:
        name: Its name.
        type: Its type.
        source: Where an inventory that is taken from folders has it from.
        meaning: Its meaning.
        nullable: Whether null means "unknown"; otherwise 0, false or an empty list does.
        publishing: Whether those who publish inventories must, may, or cannot send it.
        kept_without: A column of published inventories without which unchanged files keep their
            value of this column; empty if they never do.
    """

    name: str
    type: pa.DataType
    source: Source
    meaning: str
    nullable: bool = True
    publishing: Literal["required", "optional", "refused"] = "optional"
    kept_without: str = ""

    @property
    def field(self) -> pa.Field:
        """The column as a field of a schema."""
        return pa.field(self.name, self.type, self.nullable)

    def unknown(self, count: int) -> pa.Array:
        """Return the values of `count` files about which nothing is known."""
        if self.nullable:
            return pa.nulls(count, self.type)
        if pt.is_list(self.type):
            return lists_of(pa.array([], self.type.value_type), count)
        return pa.array(np.zeros(count, np.int8)).cast(self.type)


# In the order in which inventories have them; a new column is the last one.
ROW_COLUMNS = (
    RowColumn(
        "path",
        pa.string(),
        "listing",
        "relative to the table's location, with `/`, not URL-decoded; unique; ascending",
        nullable=False,
        publishing="required",
    ),
    RowColumn(
        "size_bytes",
        pa.int64(),
        "listing",
        "length of the file",
        nullable=False,
        publishing="required",
    ),
    RowColumn(
        "mtime_ns",
        pa.int64(),
        "listing",
        "last change, nanoseconds since 1970",
        nullable=False,
        publishing="required",
    ),
    RowColumn(
        "row_count",
        pa.int64(),
        "footer",
        "rows in the file",
        publishing="required",
    ),
    RowColumn(
        "bucket",
        pa.int32(),
        "path",
        "bucket number; null if the file has none",
    ),
    RowColumn(
        "hosts",
        pa.list_(pa.string()),
        "publisher",
        "hosts that hold a replica, as `name` or, in Hadoop's topology notation, `/rack/name`",
        nullable=False,
    ),
    RowColumn(
        "row_group_offsets",
        pa.list_(pa.int64()),
        "footer",
        "byte offset where each row group (ORC: stripe; text: block) starts, ascending",
        nullable=False,
    ),
    RowColumn(
        "delete_count",
        pa.int32(),
        "publisher",
        "delete files that apply to the file",
        nullable=False,
    ),
    RowColumn(
        "delete_bytes",
        pa.int64(),
        "publisher",
        "bytes of the delete files that apply to the file",
        nullable=False,
    ),
    RowColumn(
        "stats_see_nan",
        pa.bool_(),
        "footer",
        "whether float statistics prove that no NaN is present",
        nullable=False,
        kept_without="stats",
    ),
    RowColumn(
        "grouped_columns",
        pa.list_(pa.string()),
        "footer",
        "columns of the file that Spark's own Parquet reader may read differently from the grouped "
        "reader, in lower case",
        kept_without="grouped_columns",
    ),
    RowColumn(
        "native_columns",
        pa.list_(pa.string()),
        "footer",
        "ORC: columns of the file that only Spark's own reader reads correctly, in lower case; null "
        "for other formats",
        kept_without="native_columns",
    ),
    RowColumn(
        "first_row_id",
        pa.int64(),
        "footer",
        "number of the file's first row within its bucket, for files of a transactional table whose "
        "rows have no names of their own; else null",
    ),
    RowColumn(
        "deletes",
        pa.list_(DELETE),
        "log",
        "deletion vectors and position delete files that apply to the file, as the table's log names "
        "them",
    ),
    RowColumn(
        "etag",
        pa.string(),
        "listing",
        "ETag of an object, as listed, without quotes; null for files of other stores and of tables "
        "with logs",
        kept_without="etag",
    ),
    RowColumn(
        "outline",
        pa.dictionary(pa.int32(), pa.string()),
        "footer",
        "what the file's footer has in common with others, if excerpts of the file can be read; else "
        "null",
        publishing="refused",
        kept_without="outline",
    ),
    RowColumn(
        "chunks",
        pa.list_(pa.int32()),
        "footer",
        "where its column chunks lie, in the form that `windrow_core.files.excerpts.chunk_ranges` "
        "describes; null where `outline` is null",
        publishing="refused",
        kept_without="outline",
    ),
    RowColumn(
        "layout",
        pa.dictionary(pa.int32(), pa.string()),
        "footer",
        "how the columns of a Parquet file are stored, in the form that "
        "`windrow_core.files.layouts` describes; null if not known, and of other formats",
        kept_without="layout",
    ),
)
ROW_COLUMN = {column.name: column for column in ROW_COLUMNS}

FIXED_FIELDS: tuple[pa.Field, ...] = tuple(column.field for column in ROW_COLUMNS)
# Manifests that were written long ago have only the first ten.
NEWER_COLUMNS = ROW_COLUMNS[10:]
# Large columns that only plans of files on object stores need.
EXCERPT_FIELDS = ("outline", "chunks")
# What plans do without, unless they are plans of files on object stores.
EXTRA_FIELDS = (*EXCERPT_FIELDS, "layout")
# Lists of names of columns that only one of the readers reads in the table's type.
NAME_LISTS = ("grouped_columns", "native_columns")
# The fields of each column's statistics.
STATS = ("min", "max", "null_count")


def columns_from(source: Source) -> tuple[RowColumn, ...]:
    """Return the columns that an inventory taken from folders has from a source."""
    return tuple(column for column in ROW_COLUMNS if column.source == source)


LISTING_SCHEMA = pa.schema([column.field for column in columns_from("listing")])
FOOTER_COLUMNS = tuple(column.name for column in columns_from("footer"))


def stats_field(field: pa.Field) -> pa.Field:
    """Return the field of a column within `stats`.

    A null `min`, `max` or `null_count` means "unknown". A file whose values are all null has null
    bounds and `null_count == row_count`. Bounds may be wider than the values (truncated strings),
    never narrower.
    """
    types = (field.type, field.type, pa.int64())
    return pa.field(field.name, pa.struct(list(zip(STATS, types, strict=True))))


def inventory_schema(data: pa.Schema, partition: pa.Schema, bloom: Sequence[str] = ()) -> pa.Schema:
    """Return the schema of an inventory.

    Args:
        data: The table's columns that are stored in its files. Those whose type is ordered have a
            field in `stats`; see `stats_field`.
        partition: The table's partition columns, with their types; null stands for Hive's default
            partition.
        bloom: The data columns that have Bloom filters: null means "not built yet", and an empty
            filter "too many distinct values". Without any, there is no column `bloom`.
    """
    stats = [stats_field(field) for field in data if has_order(field.type)]
    filters = pa.struct([(name, pa.large_binary()) for name in bloom])
    return pa.schema(
        [
            *FIXED_FIELDS,
            pa.field("partition", pa.struct(list(partition)), nullable=False),
            pa.field("stats", pa.struct(stats), nullable=False),
            *([pa.field("bloom", filters, nullable=False)] if bloom else []),
        ]
    )


def rows_of(
    columns: Mapping[str, pa.Array | pa.ChunkedArray], schema: pa.Schema, count: int
) -> pa.Table:
    """Return `count` rows with a schema; columns that are not given are unknown.

    Args:
        columns: Columns of `count` values; those that the schema lacks are left out.
        schema: Columns of inventories, and others that are given.
        count: Number of files.
    """
    arrays = [
        columns[name] if name in columns else ROW_COLUMN[name].unknown(count)
        for name in schema.names
    ]
    return pa.table(arrays, schema=schema)


def bloom_columns(inventory: pa.Schema) -> tuple[str, ...]:
    """Return the columns for which an inventory has Bloom filters."""
    at = inventory.get_field_index("bloom")
    return tuple(inventory.field(at).type.names) if at >= 0 else ()


def most_rows(files: pa.Table) -> npt.NDArray[np.int64]:
    """Return the rows of each file; if unknown, its bytes, because a row takes at least one."""
    return np.asarray(pc.coalesce(files["row_count"], files["size_bytes"]), np.int64)
