"""The tasks of the inventory job: they list folders and read footers.

This module and `windrow.files` are pickled by value, so executors need only NumPy and pyarrow.
Results are plain tuples, since classes pickled by value do not come back as the same classes.
"""

from __future__ import annotations

import os
import pickle
import resource
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from windrow.files.chunks import ChunkFooters, Tail, parse_tails, read_tails
from windrow.files.entries import FolderEntries, file_table, listed_of
from windrow.files.errors import LocationError
from windrow.files.limits import bound_memory
from windrow.files.remote import is_remote, scan_of
from windrow.files.sinks import read_sink_log
from windrow.files.status import FileStatus
from windrow.files.surroundings import refuse_part_of_table

# Surroundings: files committed by a streaming query, if one writes the table; refused folders with
# reasons. ListedFolders: files and folders directly in some folders; folders that cannot be
# listed, with reasons.
Surroundings: TypeAlias = tuple[bytes | None, list[tuple[str, str]]]
ListedFolders: TypeAlias = tuple[bytes, list[str], list[tuple[str, str]]]
# `FooterGroup`s as (schema, first path, bounded columns, table); unreadable and changed files.
Footers: TypeAlias = tuple[list[tuple[bytes, str, bytes, bytes]], list[tuple[str, str]], list[str]]

_REMOTE_LISTING_THREADS = 16
# Number of files whose footers are read, and held in memory, before they are parsed.
_FILES_AT_A_TIME = 16
_SHOWN_STDERR_BYTES = 1_000


def look_around(location: str, _: None) -> Surroundings:
    """Make sure that a table is not part of another, and read the log of a streaming query."""
    try:
        refuse_part_of_table(location)
        committed = read_sink_log(location)
    except LocationError as error:
        return None, [(error.folder, error.reason)]
    return None if committed is None else encoded(committed), []


def list_folders(location: str, folders: Sequence[str]) -> ListedFolders:
    """List some folders of a table.

    Args:
        location: Absolute path or URI of the table's folder.
        folders: Folders relative to the location.
    """
    remote = is_remote(location)
    scan = scan_of(location)

    def look(folder: str) -> tuple[pa.Table, list[str]]:
        entries = FolderEntries()
        scan(location, folder, entries)
        return file_table(location, entries), entries.folders

    try:
        with ThreadPoolExecutor(_REMOTE_LISTING_THREADS if remote else 1) as threads:
            found = list(threads.map(look, folders))
    except LocationError as error:
        return b"", [], [(error.folder, error.reason)]
    files = pa.concat_tables([table for table, _ in found])
    return encoded(files), [folder for _, below in found for folder in below], []


def read_footers(location: str, max_footer_bytes: int, listed: tuple[int, bytes]) -> Footers:
    """Read the footers of a few files.

    Args:
        location: Absolute path or URI of the table's folder.
        max_footer_bytes: Maximum size of a file's footer.
        listed: Number of the first file, and the files as `encoded` returns them.
    """
    first_row, files = listed[0], decoded(listed[1])
    found = []
    for start in range(0, len(files), _FILES_AT_A_TIME):
        some = files.slice(start, _FILES_AT_A_TIME)
        paths, states = listed_of(some)
        tails = list(read_tails(location, paths, states, max_footer_bytes))
        found.append(_parsed(first_row + start, paths, states, tails))
    groups, unreadable, changed = zip(*found, strict=True)
    return [*chain(*groups)], [*chain(*unreadable)], [*chain(*changed)]


def encoded(table: pa.Table) -> bytes:
    """Return a table as compressed bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def decoded(content: bytes) -> pa.Table:
    """Return the table in the bytes from `encoded`."""
    with pa.ipc.open_stream(content) as stream:
        return stream.read_all()


def _parsed(
    first_row: int, paths: Sequence[str], states: Sequence[FileStatus], tails: Sequence[Tail]
) -> Footers:
    answer, output = _in_child(first_row, paths, states, tails)
    if answer is not None:
        return answer
    if len(paths) == 1:
        return [], [(paths[0], f"its footer is damaged ({output})")], []
    # Halve until the damaged file is found.
    half = len(paths) // 2
    first = _parsed(first_row, paths[:half], states[:half], tails[:half])
    second = _parsed(first_row + half, paths[half:], states[half:], tails[half:])
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def _in_child(
    first_row: int, paths: Sequence[str], states: Sequence[FileStatus], tails: Sequence[Tail]
) -> tuple[Footers | None, str]:
    """Parse in a forked process, since Arrow aborts the process on some damaged footers.

    The tails are read before the fork, since connections to object stores do not survive a fork.

    Returns:
        The footers, or None and the last output of the process.
    """
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(stderr.fileno(), 2)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                bound_memory()
                with os.fdopen(writing, "wb") as answers:
                    chunk = parse_tails(first_row, paths, states, tails)
                    pickle.dump(_plain(chunk), answers)
                status = 0
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
            finally:
                # Not sys.exit, which would run the parent's exit handlers.
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            content = answers.read()
        _, status = os.waitpid(child, 0)
        if status == 0:
            footers: Footers = pickle.loads(content)
            return footers, ""
        end = stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, end - _SHOWN_STDERR_BYTES))
        words = " ".join(stderr.read().decode(errors="replace").split())
        return None, words or f"exit status {status}"


def _plain(chunk: ChunkFooters) -> Footers:
    groups = [
        (
            group.files.schema.serialize().to_pybytes(),
            group.files.path,
            group.bounded.serialize().to_pybytes(),
            encoded(group.table),
        )
        for group in chunk.groups
    ]
    return groups, chunk.unreadable, chunk.changed
