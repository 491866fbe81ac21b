"""What an inventory is taken of, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow_core.files.formats import PARQUET, FileFormat
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_core.models import LogFigures
from windrow_service.inventory.listing.partition_lists import ListedPartitions
from windrow_service.inventory.listing.relisting import PLAIN_FOLDERS, Folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The files of a table at one moment.

    Attributes:
        files: `inventory_schema(data_schema, partition_schema)`, sorted by the bytes of the
            path.
        data_schema: Columns that the files hold, or that were declared.
        added_count: Files that were not in the previous inventory, or have changed since.
        removed_count: Files of the previous inventory that are gone, or have changed since.
        folder_count: Folders that were listed.
        footers_read: Files whose footer was read; the others were carried over.
        folders: State of folders and files for the next inventory; None if it would be of no
            use.
        delete_files: `DELETE_FILES` of a transactional table whose rows can be deleted; else None.
        table_version: Name of this version in the table's own log; None if it has no log.
        log: Figures from the log; None if the table has no log.
    """

    files: pa.Table
    data_schema: pa.Schema
    partition_schema: pa.Schema
    added_count: int
    removed_count: int
    folder_count: int
    footers_read: int
    folders: bytes | None = None
    delete_files: pa.Table | None = None
    table_version: str | None = None
    log: LogFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousInventory:
    """The result of an earlier inventory of the same table, under the same definition.

    Attributes:
        files: Sorted by path, like `Inventory.files`.
        has_all_columns: Whether `data_schema` was read from every one of the files, so that a
            column which it lacks is in none of them. False if columns were declared or files were
            published: then nothing is known about other columns.
        folders: State of folders and files, as `Inventory.folders` of this or an earlier
            inventory of the table; None if nothing is known.
        full: Whether to list all folders, also if their times are trusted. This is necessary if
            `folders` is from an earlier inventory.
        made_at_ns: When this inventory became the table's; None if unknown.
        table_version: As in `Inventory`.
    """

    files: pa.Table
    data_schema: pa.Schema
    partition_schema: pa.Schema
    has_all_columns: bool = False
    folders: bytes | None = None
    full: bool = False
    made_at_ns: int | None = None
    table_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is looked at: a table, as far as its inventory depends on its definition.

    Attributes:
        location: Absolute path of the table's folder, or its URI.
        columns: The table's declared columns, which every file must fit; read from the files
            if None. They may include partition columns, to declare their types.
        partition_types: All of the table's partition columns; read from the folders if None.
        bucket_count: From the table's bucket spec; None if it has none.
        file_format: Format of the files; those with lines are not opened.
        format_options: How Spark reads them.
        bloom: Columns to keep Bloom filters for; a file whose filters were not carried over
            is read for them.
        folders: How its folders are read.
        limits: What is read of one file.
        partition_list: The only partitions of the table; None if its folders are its partitions.
        trusts_folders: Whether folders whose times have not changed are not listed again, until a
            file is found that was rewritten in place.
    """

    location: str
    columns: pa.Schema | None = None
    partition_types: pa.Schema | None = None
    bucket_count: int | None = None
    file_format: FileFormat = PARQUET
    format_options: Mapping[str, str] = field(default_factory=dict)
    bloom: Sequence[str] = ()
    folders: Folders = PLAIN_FOLDERS
    limits: ReadLimits = USUAL_LIMITS
    partition_list: ListedPartitions | None = None
    trusts_folders: bool = False
