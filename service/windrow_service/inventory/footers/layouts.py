"""Footers of files of which a table's log says the rest."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.errors import RESTORE, UnreadableFootersError
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_core.files.rows import ROW_COLUMN
from windrow_service.inventory.footers.reading import read_with
from windrow_service.inventory.progress import ProgressMeter

_OF_FOOTERS = ("row_count", "layout")


def with_layouts(location: str, files: pa.Table, limits: ReadLimits = USUAL_LIMITS) -> pa.Table:
    """Return files with the layouts and the numbers of rows that their footers state.

    Args:
        location: Absolute path of the table's folder, or its URI.
        files: n files of Parquet, with the columns `path`, `size_bytes`, `row_count` and `layout`.
        limits: What is read of one file.

    Raises:
        UnreadableFootersError: Files are not Parquet, or access is denied.
        FileChangedError: Files are gone, or their lengths are not those given.
    """
    if not len(files):
        return files
    at = int(pc.index(files["size_bytes"], 0).as_py())
    if at >= 0:
        raise UnreadableFootersError(((files["path"][at].as_py(), f"it is empty: {RESTORE}"),))
    # Writers of logs state times that a copy of the table does not keep.
    times = pa.nulls(len(files), pa.int64())
    listing = files.select(["path", "size_bytes"]).append_column("mtime_ns", times)
    groups = read_with(location, listing, ProgressMeter(None, None), None, limits)
    footers = pa.concat_tables(
        group.table.select(["row", *_OF_FOOTERS]).unify_dictionaries() for group in groups
    ).sort_by("row")
    for name in _OF_FOOTERS:
        field = ROW_COLUMN[name].field
        files = files.set_column(
            files.schema.get_field_index(name), field, footers[name].cast(field.type)
        )
    return files
