"""Read the footers of a table's files in parallel."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial

import pyarrow as pa

from windrow_core.files.beginnings import other_kind
from windrow_core.files.chunks import ChunkFooters, FooterGroup, joined, read_chunk
from windrow_core.files.errors import OtherFormatError
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_service.avro import headers as avro
from windrow_service.inventory.footers.chunked import in_chunks
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.orc import reading as orc

_READERS = {"parquet": read_chunk, "orc": orc.read_chunk, "avro": avro.read_chunk}
_ACID_READER = partial(orc.read_chunk, names_rows=True)


def refuse_other_format(
    location: str, files: pa.Table, table_format: str, cause: Exception | None = None
) -> None:
    """Refuse files that all have another format than their table, as far as a few of them tell.

    Args:
        location: Absolute path of the table's folder, or its URI.
        files: `LISTING_SCHEMA` of the files.
        table_format: The table's format.
        cause: What has gone wrong because of that.
    """
    if len(files) and (kind := other_kind(location, files["path"], table_format)):
        raise OtherFormatError(files["path"][0].as_py(), table_format, kind) from cause


def read_with(
    location: str,
    files: pa.Table,
    meter: ProgressMeter,
    executor: Executor | None,
    limits: ReadLimits = USUAL_LIMITS,
    table_format: str = "parquet",
    *,
    names_rows: bool = False,
) -> list[FooterGroup]:
    """Read the footers of n files, each with one read of the file's end.

    Args:
        location: Absolute path of the table's folder, or its URI.
        files: n rows of a `Listing`.
        meter: Gets the progress, and may be cancelled.
        executor: Where the footers are parsed; it stays open. Keeping an `IsolatedExecutor` saves
            starting processes. Threads would parse one footer at a time, and some damaged
            footers would crash the process. If None, a new `IsolatedExecutor` is used.
        limits: What is read of one file.
        table_format: Format of the files.
        names_rows: Whether the rows of the table can be deleted one by one; see `orc.read_chunk`.

    Returns:
        One group for each distinct schema, ordered by the path of its first file; each file is in
        exactly one group. None if there are no files.

    Raises:
        UnreadableFootersError: Files are not of the format, or access is denied.
        FileChangedError: Files differ from the listing.
        InventoryCancelledError: The meter was cancelled.
    """
    reader = _ACID_READER if names_rows else _READERS[table_format]
    meter.enter(phase="reading footers", footers_total=files.num_rows)
    chunks = in_chunks(
        files,
        partial(reader, location, limits=limits),
        lambda unreadable: ChunkFooters(unreadable=unreadable),
        lambda count: meter.add(footers_read=count),
        executor,
        meter.check_cancelled,
        table_format=table_format,
    )
    meter.report()
    return joined(group for chunk in chunks for group in chunk.groups)
