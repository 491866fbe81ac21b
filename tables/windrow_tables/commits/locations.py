"""Locations that can be written, and the staging folders there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from windrow_core.files.access import why_inaccessible
from windrow_core.files.errors import LocationError
from windrow_core.files.listing import SUMMARIES
from windrow_core.files.other_formats import (
    SINK_LOG,
    metadata_folders,
    refuse_file,
    refuse_folder,
    refuse_hidden,
)
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.files.remote import contents_of, names_in
from windrow_core.files.schemes import is_object, is_remote
from windrow_core.models import WRITE_ID_PATTERN, TableInfo
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.remote_staging import RemoteStagingFolder
from windrow_tables.commits.staging import Staging
from windrow_tables.commits.staging_folders import STAGING_ROOT, StagingFolder
from windrow_tables.commits.summaries import Summaries, why_unchanged

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WRITABLE = ("hdfs://", "s3://")


def owner_of(table: TableInfo) -> bytes:
    """Return what marks the staging folders of a table, as this coordinator has registered it.

    Another coordinator has registered the same folder at another moment, a copy of this one's database
    at the same.
    """
    return f"{table.name} {table.created_at.isoformat()}".encode()


def staging_folder(location: str, write_id: str) -> Staging:
    """Return the staging folder of a write, which need not exist.

    Args:
        location: Absolute path, or URI, of the table.
        write_id: The write.
    """
    kind = RemoteStagingFolder if is_remote(location) else StagingFolder
    return kind(location, write_id)


def staging_folders_in(location: str) -> Iterator[Staging]:
    """Yield the staging folders below a location.

    On S3, a folder in which only Hadoop's empty objects are left is none.

    Args:
        location: Absolute path, or URI, of the table.
    """
    folders, _ = contents_of(f"{location}/{STAGING_ROOT}")
    for name in sorted(folders):
        if re.fullmatch(WRITE_ID_PATTERN, name):
            staging = staging_folder(location, name)
            if not is_object(location) or staging.exists():
                yield staging


def local_location(table: TableInfo) -> str:
    """Return the absolute path of a table that can be written here, and lies on a local path.

    Raises:
        UnfitLocationError: It cannot, or lies elsewhere.
    """
    location = writable_location(table)
    if is_remote(location):
        reason = "only tables on local paths can be written in this way"
        raise UnfitLocationError(table.name, location, reason)
    return location


def writable_location(table: TableInfo) -> str:
    """Return the absolute path, or the URI, of a table that can be written here.

    Raises:
        UnfitLocationError: It cannot.
    """
    location = table.definition.location
    kind = table.definition.kind
    if kind.writing is not None:
        raise UnfitLocationError(table.name, location, kind.writing)
    if not kind.files.is_written:
        reason = f"its format is {table.definition.format}, but only Parquet can be written"
        raise UnfitLocationError(table.name, location, reason)
    if location.startswith("file:"):
        location = unquote(re.sub("^file:(//[^/]*)?", "", location))
    if location.startswith(_WRITABLE):
        return location.rstrip("/")
    if _SCHEME.match(location) or not location.startswith("/"):
        raise UnfitLocationError(
            table.name,
            location,
            "files can be moved in only on local paths, HDFS and S3: write with Spark, then refresh "
            "the table",
        )
    return os.path.realpath(location)


def require_plain(table: str, location: str) -> None:
    """Make sure that files put into a table's folder become part of the table."""
    try:
        refuse_part_of_table(location)
        names = names_in(location) or ()
        has_summary = any(name in SUMMARIES for name in names)
        summary = Summaries(location).of("") if has_summary else None
        for name in names:
            refuse_hidden(location, name, is_location=True)
            refuse_folder(location, name)
        for folder in set(metadata_folders()).intersection(names):
            for name in names_in(f"{location}/{folder}") or ():
                refuse_file(f"{location}/{folder}", name)
    except LocationError as error:
        raise UnfitLocationError(table, location, error.reason) from error
    except OSError as error:
        reason = f"it cannot be listed: {why_inaccessible(error)}"
        raise UnfitLocationError(table, location, reason) from error
    if SINK_LOG in names:
        raise UnfitLocationError(
            table,
            location,
            f"it holds the log of a Spark streaming query ({SINK_LOG!r}), which lists the files "
            "that count: write through that query, or to another table",
        )
    if summary is not None:
        raise UnfitLocationError(table, location, why_unchanged(summary))
