"""The files of a table of lines, and their lines as Spark divides them."""

from __future__ import annotations

import bz2
import gzip
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from windrow_core.files.listing import FolderEntries
from windrow_core.files.remote import read_whole_file, scan_of
from windrow_core.files.schemes import is_remote
from windrow_core.files.table_paths import absolute_path

_OPENERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
# What Java takes for blank.
_BLANK = "".join(map(chr, range(33)))
_OTHER_COMPRESSIONS = (".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz")


class UnsureError(Exception):
    """What Spark would infer is uncertain; the message says of what."""


class FileLines(NamedTuple):
    """A file, and its lines that are not blank.

    Attributes:
        path: Path relative to the table's location.
        lines: Number of each line, from 1, and its text.
    """

    path: str
    lines: Iterator[tuple[int, str]]


def listed_files(location: str) -> tuple[list[str], set[str]]:
    """Return the paths of a table's files that are not empty, and its partition columns in lower case."""
    scan, entries, done = scan_of(location), FolderEntries(), 0
    scan(location, "", entries)
    while done < len(entries.folders):
        scan(location, entries.folders[done], entries)
        done += 1
    sizes = zip(entries.paths, entries.sizes_bytes, strict=True)
    paths = sorted(path for path, size_bytes in sizes if size_bytes)
    folders = {part for path in paths for part in path.split("/")[:-1] if "=" in part}
    return paths, {folder.partition("=")[0].lower() for folder in folders}


def lines_of(location: str, path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank."""
    suffix = os.path.splitext(path.lower())[1]
    if suffix in _OTHER_COMPRESSIONS:
        raise UnsureError(f"{path!r} is compressed in a way that is not read here")
    uri = absolute_path(location, path)
    source: Any = io.BytesIO(read_whole_file(uri, 2**40)) if is_remote(uri) else open(uri, "rb")  # noqa: SIM115
    with source:
        content = _OPENERS[suffix](source) if suffix in _OPENERS else source
        # Spark ends lines at CR, LF and CR LF, as this does.
        with io.TextIOWrapper(content, "utf-8", newline=None) as text:
            try:
                for number, line in enumerate(text, 1):
                    if number == 1 and line.startswith("\ufeff"):
                        raise UnsureError(f"{path!r} begins with a byte order mark")
                    if line.strip(_BLANK):
                        yield number, line.removesuffix("\n")
            except (UnicodeDecodeError, EOFError, OSError) as error:
                raise UnsureError(f"{path!r} cannot be read as lines of UTF-8 ({error})") from error
