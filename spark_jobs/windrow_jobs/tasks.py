"""The tasks of the inventory job: they list folders and read footers.

This module and `windrow_core.files` are pickled by value, so executors need only NumPy and pyarrow.
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
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from windrow_core.files.access import why_inaccessible
from windrow_core.files.chunks import ChunkFooters, Tail, parse_tails, read_tails
from windrow_core.files.errors import RESTORE, InventoryError, LocationError
from windrow_core.files.isolated import EXIT_STATUS, blame
from windrow_core.files.limits import ReadLimits, bound_memory
from windrow_core.files.listing import FolderEntries, file_table, listed_of
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.files.places import place_of
from windrow_core.files.remote import scan_of
from windrow_core.files.sinks import read_sink_log
from windrow_core.files.status import FileStatus

# Surroundings: files committed by a streaming query, if one writes the table; refused folders with
# reasons. ListedFolders: files and folders directly in some folders; folders that cannot be
# listed, with reasons.
Surroundings: TypeAlias = tuple[bytes | None, list[tuple[str, str]]]
ListedFolders: TypeAlias = tuple[bytes, list[str], list[tuple[str, str]]]
# `FooterGroup`s as (schema, first path, bounded columns, table); unreadable and changed files.
Footers: TypeAlias = tuple[list[tuple[bytes, str, bytes, bytes]], list[tuple[str, str]], list[str]]
# `read` with `Footers`, or why there are none: a file among them is `refused`, the system makes
# them `inaccessible`, or the parser has `failed` and no file is to blame.
Answer: TypeAlias = tuple[Literal["read", "refused", "inaccessible", "failed"], Any]

# Number of files whose footers are read, and held in memory, before they are parsed.
_FILES_AT_A_TIME = 16
_SHOWN_STDERR_BYTES = 1_000


def look_around(location: str, _: None) -> Surroundings:
    """Make sure that a table is not part of another, and read the log of a streaming query."""
    try:
        refuse_part_of_table(location)
        log = read_sink_log(location)
    except LocationError as error:
        return None, [(error.folder, error.reason)]
    return None if log is None else encoded(log), []


def list_folders(location: str, folders: Sequence[str]) -> ListedFolders:
    """List some folders of a table.

    Args:
        location: Absolute path or URI of the table's folder.
        folders: Folders relative to the location.
    """
    scan = scan_of(location)

    def look(folder: str) -> tuple[pa.Table, list[str]]:
        entries = FolderEntries()
        scan(location, folder, entries)
        return file_table(location, entries), entries.folders

    try:
        with ThreadPoolExecutor(place_of(location).listings) as threads:
            answers = list(threads.map(look, folders))
    except LocationError as error:
        return b"", [], [(error.folder, error.reason)]
    files = pa.concat_tables([table for table, _ in answers])
    return encoded(files), [folder for _, below in answers for folder in below], []


def read_footers(location: str, limits: ReadLimits, listing: tuple[int, bytes]) -> Footers:
    """Read the footers of a few files.

    Args:
        location: Absolute path or URI of the table's folder.
        limits: What is read of one file.
        listing: Number of the first file, and the files as `encoded` returns them.
    """
    first_row, files = listing[0], decoded(listing[1])
    answers = []
    for start in range(0, len(files), _FILES_AT_A_TIME):
        some = files.slice(start, _FILES_AT_A_TIME)
        paths, states = listed_of(some)
        tails = list(read_tails(location, paths, states, limits.footer_bytes))
        answers.append(_parsed(first_row + start, paths, states, tails, limits))
    groups, unreadable, changes = zip(*answers, strict=True)
    return [*chain(*groups)], [*chain(*unreadable)], [*chain(*changes)]


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
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    tails: Sequence[Tail],
    limits: ReadLimits,
) -> Footers:
    try:
        kind, answer = _in_child(first_row, paths, states, tails, limits)
    except OSError as error:
        # The files were read, and nothing is known about their footers.
        kind, answer = "inaccessible", why_inaccessible(error)
    if kind == "read":
        footers: Footers = answer
        return footers
    if kind == "inaccessible":
        return [], [(path, answer) for path in paths], []
    if len(paths) > 1:
        # Halve until the file at fault is found.
        half = len(paths) // 2
        first = _parsed(first_row, paths[:half], states[:half], tails[:half], limits)
        second = _parsed(first_row + half, paths[half:], states[half:], tails[half:], limits)
        return first[0] + second[0], first[1] + second[1], first[2] + second[2]
    if kind == "failed":
        raise RuntimeError(f"the footer of {paths[0]!r} was not understood: {answer}")
    return [], [(paths[0], answer)], []


def _in_child(
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    tails: Sequence[Tail],
    limits: ReadLimits,
) -> Answer:
    """Parse in a forked process, since Arrow aborts the process on some damaged footers.

    The tails are read before the fork, since connections to object stores do not survive a fork.
    """
    with tempfile.TemporaryFile() as stderr:
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if child == 0:
            status = 1
            try:
                os.dup2(stderr.fileno(), 2)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                bound_memory()
                with os.fdopen(writing, "wb") as answers:
                    pickle.dump(_answer(first_row, paths, states, tails, limits), answers)
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
            answer: Answer = pickle.loads(content)
            return answer
        end = stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, end - _SHOWN_STDERR_BYTES))
        words = " ".join(stderr.read().decode(errors="replace").split())
        words = words or f"{EXIT_STATUS} {os.waitstatus_to_exitcode(status)}"
        return "refused", blame(words, f"its footer is damaged ({words}): {RESTORE}")


def _answer(
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    tails: Sequence[Tail],
    limits: ReadLimits,
) -> Answer:
    """Parse, and return the outcome; memory that does not suffice ends the process.

    Errors are returned as text, as their classes cannot be pickled here.
    """
    try:
        return "read", _plain(parse_tails(first_row, paths, states, tails, limits))
    except MemoryError:
        # A footer may claim more memory than there is.
        raise
    except InventoryError as error:
        return "refused", str(error)
    except OSError as error:
        return "inaccessible", why_inaccessible(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


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
