"""The columns of an inventory: one row per data file, as an Arrow table.

| column | type | meaning |
|---|---|---|
| `path` | string | relative to the table's location, with `/`, not URL-decoded; unique; ascending |
| `size_bytes` | int64 | length of the file |
| `mtime_ns` | int64 | last change, nanoseconds since 1970 |
| `row_count` | int64, null | rows in the file; null if unknown |
| `bucket` | int32, null | bucket number; null if the file has none |
| `hosts` | list<string> | hosts that hold a replica, as `name` or, in Hadoop's topology notation, `/rack/name`; empty if unknown |
| `row_group_offsets` | list<int64> | byte offset where each row group (ORC: stripe; text: block) starts, ascending |
| `delete_count` | int32 | delete files that apply to the file |
| `delete_bytes` | int64 | bytes of the delete files that apply to the file |
| `stats_see_nan` | bool | whether float statistics prove that no NaN is present |
| `grouped_columns` | list<string>, null | columns of the file that Spark's own Parquet reader may read differently from the grouped reader, in lower case; null if unknown |
| `native_columns` | list<string>, null | ORC: columns of the file that only Spark's own reader reads correctly, in lower case; null if unknown, and for other formats |
| `first_row_id` | int64, null | number of the file's first row within its bucket, for files of a transactional table whose rows have no names of their own; else null |
| `deletes` | list<struct>, null | deletion vectors and position delete files that apply to the file, as the table's log names them: see `DELETE` |
| `etag` | string, null | ETag of an object, as listed, without quotes; null if unknown, and for files of other stores and of tables with logs |
| `outline` | dictionary of string, null | what the file's footer has in common with others, if excerpts of the file can be read; else null |
| `chunks` | list<int32>, null | where its column chunks lie, in the form that `windrow_core.files.excerpts.chunk_ranges` describes; null where `outline` is null |
| `partition` | struct | one typed field per partition column; null for Hive's default partition |
| `stats` | struct of struct<min, max, null_count> | one field per data column whose type is ordered |
| `bloom` | struct of large_binary | one field per column with Bloom filters; absent if no column has them |

In `stats`, a null `min`, `max` or `null_count` means "unknown".
A file whose values are all null has null bounds and `null_count == row_count`.
Bounds may be wider than the values (truncated strings), never narrower.
In `bloom`, null means "not built yet", and an empty filter means "too many distinct values".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.excerpts.chunk_ranges import CHUNKS, OUTLINE
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

FIXED_FIELDS: tuple[pa.Field, ...] = (
    pa.field("path", pa.string(), nullable=False),
    pa.field("size_bytes", pa.int64(), nullable=False),
    pa.field("mtime_ns", pa.int64(), nullable=False),
    pa.field("row_count", pa.int64()),
    pa.field("bucket", pa.int32()),
    pa.field("hosts", pa.list_(pa.string()), nullable=False),
    pa.field("row_group_offsets", pa.list_(pa.int64()), nullable=False),
    pa.field("delete_count", pa.int32(), nullable=False),
    pa.field("delete_bytes", pa.int64(), nullable=False),
    pa.field("stats_see_nan", pa.bool_(), nullable=False),
    pa.field("grouped_columns", pa.list_(pa.string())),
    pa.field("native_columns", pa.list_(pa.string())),
    pa.field("first_row_id", pa.int64()),
    pa.field("deletes", pa.list_(DELETE)),
    pa.field("etag", pa.string()),
    pa.field("outline", OUTLINE),
    pa.field("chunks", CHUNKS),
)
# Large fields that only plans of files on object stores need.
EXCERPT_FIELDS = ("outline", "chunks")


def bloom_columns(inventory: pa.Schema) -> tuple[str, ...]:
    """Return the columns for which an inventory has Bloom filters."""
    at = inventory.get_field_index("bloom")
    return tuple(inventory.field(at).type.names) if at >= 0 else ()


def most_rows(files: pa.Table) -> npt.NDArray[np.int64]:
    """Return the rows of each file; if unknown, its bytes, because a row takes at least one."""
    known = pc.coalesce(files["row_count"], files["size_bytes"])
    return np.asarray(known, np.int64)


def inventory_schema(data: pa.Schema, partition: pa.Schema, bloom: Sequence[str] = ()) -> pa.Schema:
    """Return the schema of an inventory.

    Args:
        data: The table's columns that are stored in its files.
        partition: The table's partition columns, with their types.
        bloom: The data columns that have Bloom filters.
    """
    stats = [
        pa.field(
            field.name,
            pa.struct([("min", field.type), ("max", field.type), ("null_count", pa.int64())]),
        )
        for field in data
        if has_order(field.type)
    ]
    filters = pa.struct([(name, pa.large_binary()) for name in bloom])
    return pa.schema(
        [
            *FIXED_FIELDS,
            pa.field("partition", pa.struct(list(partition)), nullable=False),
            pa.field("stats", pa.struct(stats), nullable=False),
            *([pa.field("bloom", filters, nullable=False)] if bloom else []),
        ]
    )
