"""Lists one folder: names, sizes and times of change of its files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.access import NOT_READABLE, why_inaccessible
from windrow_core.files.acid.names import METADATA_FILE, VERSION_FILE, folder_of
from windrow_core.files.errors import LocationError
from windrow_core.files.other_formats import (
    metadata_folders,
    refuse_file,
    refuse_folder,
    refuse_hidden,
)
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, is_outside

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
SUMMARIES = ("_metadata", "_common_metadata")
_ESCAPED = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


@dataclass(slots=True)
class FolderEntries:
    """The entries of one or more folders, without hidden names.

    Attributes:
        folders: Folders, relative to the location.
        paths: Files, relative to the location; `sizes_bytes` and `mtimes_ns` go with them.
        inodes: Inode numbers of files on a local disk. Empty elsewhere, as are `ctimes_ns`.
        ctimes_ns: When content, links, owner or mode of each last changed, nanoseconds since 1970.
        etags: For objects: their ETags, without quotes; None if unknown. Empty elsewhere.
        hold_links: Whether a symbolic link was among them.
        acid_folders: Folders with names that Hive gives in transactional tables; None if the table
            is not transactional, so that such folders are refused.
    """

    folders: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    sizes_bytes: list[int] = field(default_factory=list)
    mtimes_ns: list[int] = field(default_factory=list)
    inodes: list[int] = field(default_factory=list)
    ctimes_ns: list[int] = field(default_factory=list)
    etags: list[str | None] = field(default_factory=list)
    hold_links: bool = False
    acid_folders: list[str] | None = None

    def note_folder(self, within: str, folder: str) -> None:
        """Record a folder if it has a name that Hive gives in transactional tables.

        Args:
            within: Absolute path or URI of the folder that it lies in.
            folder: The folder, relative to the location.
        """
        name = folder.rpartition("/")[2]
        if self.acid_folders is None:
            refuse_folder(within, name)
        elif folder_of(name) is not None:
            self.acid_folders.append(folder)

    def is_read(self, name: str) -> bool:
        """Return whether a hidden file is listed nevertheless."""
        return self.acid_folders is not None and name in (METADATA_FILE, VERSION_FILE)


# The interface for other file systems: adds the content of a folder (relative; "" is the location
# itself) to the entries, or raises LocationError.
ScanFolder: TypeAlias = Callable[[str, str, FolderEntries], None]


def is_hidden(name: str, *, is_folder: bool = False) -> bool:
    """Return whether Spark ignores a file or folder of this name.

    A partition folder such as `_col=1` is not hidden, but a file that is being copied is. Spark
    looks for Parquet's summary files, and so into every folder whose name begins like theirs.
    """
    if is_folder and name.startswith(SUMMARIES):
        return False
    if name.startswith("."):
        return True
    return (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def escape(text: str) -> str:
    """Return a partition value as Spark writes it into a folder's name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Decode a folder's name as Hive and Spark do: %XX is a code point, everything else stays."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def scan_local_folder(location: str, folder: str, entries: FolderEntries) -> None:
    """Add the content of a folder on a local disk to `entries`; a `ScanFolder`.

    Raises:
        LocationError: The folder, or something in it, cannot be read.
    """
    absolute = absolute_path(location, folder)
    prefix = f"{folder}/" if folder else ""
    inside = folder if is_outside(folder) else location
    holds_metadata = absolute.rpartition("/")[2] in metadata_folders()
    try:
        with os.scandir(absolute) as content:
            for entry in content:
                if is_hidden(entry.name) and not entries.is_read(entry.name):
                    refuse_hidden(absolute, entry.name, is_location=not folder)
                    if not (entry.name.startswith(SUMMARIES) and entry.is_dir()):
                        continue
                elif holds_metadata:
                    refuse_file(absolute, entry.name)
                _add_entry(inside, prefix, entry, entries)
    except FileNotFoundError as error:
        if not folder:
            raise LocationError(location, "does not exist; give an existing folder") from error
    except NotADirectoryError as error:
        if not folder:
            raise LocationError(
                location, "is not a folder; give the folder that holds the files"
            ) from error
    except PermissionError as error:
        raise LocationError(absolute, NOT_READABLE) from error
    except OSError as error:
        # The entry itself is at fault where symbolic links lead in a circle.
        what = absolute if error.filename is None else os.fsdecode(error.filename)
        raise LocationError(what, f"cannot be listed: {why_inaccessible(error)}") from error


def _add_entry(inside: str, prefix: str, entry: os.DirEntry[str], entries: FolderEntries) -> None:
    if entry.is_symlink():
        entries.hold_links = True
        _check_link(inside, entry)
    elif entry.is_dir():
        entries.note_folder(os.path.dirname(entry.path), prefix + entry.name)
        entries.folders.append(prefix + entry.name)
        return
    try:
        status = entry.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise LocationError(entry.path, "is neither a file nor a folder; remove it")
    entries.paths.append(prefix + entry.name)
    entries.sizes_bytes.append(status.st_size)
    entries.mtimes_ns.append(status.st_mtime_ns)
    entries.inodes.append(status.st_ino)
    entries.ctimes_ns.append(status.st_ctime_ns)


def _check_link(folder: str, link: os.DirEntry[str]) -> None:
    # A link to a folder may lead in a circle. A link to the outside would let anyone who can write
    # to the table read files that only the coordinator may read.
    if link.is_dir():
        raise LocationError(
            link.path,
            "is a symbolic link to a folder, which is not followed; put the files themselves there",
        )
    inside = os.path.realpath(folder)
    if os.path.commonpath([inside, os.path.realpath(link.path)]) != inside:
        raise LocationError(
            link.path,
            "is a symbolic link that leads out of the table's location; put the file itself there",
        )


def file_table(location: str, entries: FolderEntries) -> pa.Table:
    """Return the files among entries, with `LISTING_SCHEMA`."""
    try:
        paths = pa.array(entries.paths, pa.string())
    except UnicodeEncodeError as error:
        name = next(path for path in entries.paths if not _is_utf8(path))
        raise LocationError(
            absolute_path(location, os.fsencode(name).decode("utf-8", "backslashreplace")),
            "has a name that is not UTF-8; rename it",
        ) from error
    columns = [paths, pa.array(entries.sizes_bytes, pa.int64())]
    columns.append(pa.array(entries.mtimes_ns, pa.int64()))
    columns.append(pa.array(entries.etags or [None] * len(paths), pa.string()))
    return pa.table(columns, schema=LISTING_SCHEMA)


def listed_of(files: pa.Table) -> tuple[list[str], list[FileStatus]]:
    """Return the paths of n files, and their states.

    Args:
        files: n rows with the columns of `LISTING_SCHEMA`.
    """
    # Plans leave out ETags if there are none.
    names = [name for name in FileStatus._fields if name in files.column_names]
    states = (files[name].to_pylist() for name in names)
    return files["path"].to_pylist(), list(map(FileStatus, *states))


def without_empty(files: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Divide listed files into non-empty files and files of 0 bytes."""
    is_empty = pc.equal(files["size_bytes"], 0)
    return files.filter(pc.invert(is_empty)), files.filter(is_empty)


def in_folders(empty: pa.Table) -> pa.Table:
    """Return the files of 0 bytes whose folders Spark takes for partitions.

    Spark ignores the files themselves, and altogether the files directly in the location.
    """
    return empty.filter(pc.match_substring(empty["path"], "/"))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
