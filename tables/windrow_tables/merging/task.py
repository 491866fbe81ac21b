"""The tasks of a compaction: each merges the files of some partitions.

This package, `windrow_core.files` and the executor's code are pickled by value, so executors need only
NumPy and pyarrow. What travels is plain tuples, since classes pickled by value do not come back as
the same classes.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from windrow_core.files.access import why_inaccessible
from windrow_core.files.permissions import Access, give, narrowest
from windrow_core.files.remote import contents_of
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.files.table_paths import absolute_path
from windrow_tables.executor.spec import SortKey
from windrow_tables.merging.files import ValuesDifferError, merge
from windrow_tables.merging.likeness import likeness, unlike
from windrow_tables.merging.quiet import why_busy
from windrow_tables.merging.sources import Source, Sources, UnfitFileError

_MORE_MEMORY = "give Spark's Python processes more (spark.executor.memoryOverhead)"

# How many remote files a task copies at once: of most of them, a first and small piece is all.
_DOWNLOADS = 64

# Number, home folder, paths of the files. A large partition is several pieces.
Piece: TypeAlias = tuple[int, str, Sequence[str]]


class Job(NamedTuple):
    """What all tasks of a batch have in common.

    Attributes:
        location: Absolute path of the table's folder, or its URI.
        staging: Absolute path, or URI, of a folder for new files; on a local disk, it exists as long
            as tasks are wanted.
        sort: Columns that files are sorted by: name, whether descending, whether nulls are first.
        target_bytes: Target size of a file.
        scale: Expected bytes of merged rows, as a multiple of their bytes now.
        max_footer_bytes: Files with longer footers are left.
        quiet_seconds: A partition that was written to within that time is left.
        own: Texts in the names of files of which that does not count as a write.
    """

    location: str
    staging: str
    sort: Sequence[tuple[str, bool, bool]]
    target_bytes: int
    scale: float
    max_footer_bytes: int
    quiet_seconds: float = 0.0
    own: Sequence[str] = ()


class Outcome(NamedTuple):
    """The outcome of a piece.

    Attributes:
        piece: Its number.
        new_files: New files: path below the staging folder, rows, bytes.
        old_files: Files whose rows are in them: path, and state.
        vanished: Files that do not exist any more.
        left: Why files were left as they are; None if none were.
        stored_bytes: Bytes of the replaced files' column chunks.
        is_busy: Whether it was left because somebody writes to its partition.
        seconds: How long it took.
    """

    piece: int
    new_files: Sequence[tuple[str, int, int]]
    old_files: Sequence[tuple[str, int, int, str | None]]
    vanished: Sequence[str]
    left: str | None
    stored_bytes: int
    is_busy: bool = False
    seconds: float = 0.0


def merge_pieces(job_fields: Sequence[Any], pieces: Sequence[Piece]) -> list[tuple[Any, ...]]:
    """Merge the files of some pieces; return an `Outcome` for each, as plain tuples.

    Each attempt of a task writes into a folder of its own: if Spark runs a task twice, only the
    files of the attempt whose answer arrives count.
    """
    job = Job(*job_fields)
    attempt = uuid.uuid4().hex
    if not is_remote(job.location):
        os.mkdir(os.path.join(job.staging, attempt))
    return [tuple(_outcome(job, attempt, *piece)) for piece in pieces]


def _outcome(job: Job, attempt: str, number: int, home: str, paths: Sequence[str]) -> Outcome:
    began_s = time.monotonic()
    reason = _why_busy(job, {home, *(path.rpartition("/")[0] for path in paths)})
    if reason is not None:
        outcome = Outcome(number, [], [], [], reason, 0, is_busy=True)
    else:
        merge_all = _merged_here if is_remote(job.location) else _merged_there
        outcome = merge_all(job, attempt, number, home, paths)
    return outcome._replace(seconds=time.monotonic() - began_s)


def _why_busy(job: Job, folders: Collection[str]) -> str | None:
    """Ask again, since a batch may have taken long to come to this piece."""
    if job.quiet_seconds:
        for folder in folders:
            _, files = contents_of(absolute_path(job.location, folder))
            if (reason := why_busy(files, job.quiet_seconds, job.own)) is not None:
                return reason
    return None


def _merged_here(job: Job, attempt: str, number: int, home: str, paths: Sequence[str]) -> Outcome:
    """Merge copies of remote files on the local disk, and upload the new files."""
    with tempfile.TemporaryDirectory(prefix="windrow-") as scratch:
        copies = os.path.join(scratch, "copies")
        for folder in (copies, os.path.join(scratch, attempt)):
            os.mkdir(folder)
        # Without links, as the folder of a table.
        here = job._replace(staging=os.path.realpath(scratch))
        outcome, access = _merged(here, attempt, copies, number, home, paths)
        for path, _, _ in outcome.new_files:
            new = os.path.join(scratch, path)
            StoreRoot(job.staging).upload(new, path, ANYTHING, access=access[path])
    return outcome


def _merged_there(job: Job, attempt: str, number: int, home: str, paths: Sequence[str]) -> Outcome:
    """Merge files of a disk in the staging folder."""
    outcome, access = _merged(job, attempt, "", number, home, paths)
    for path, of_sources in access.items():
        if of_sources is not None:
            give(os.path.join(job.staging, path), of_sources)
    return outcome


def _merged(
    job: Job, attempt: str, copies: str, number: int, home: str, paths: Sequence[str]
) -> tuple[Outcome, dict[str, Access | None]]:
    """Merge files; return the outcome, and who may use each new file."""
    sources, vanished, left = _sources(job, copies, paths)
    access: dict[str, Access | None] = {}
    new_files: list[tuple[str, int, int]] = []
    old_sources: list[Source] = []
    sort = [
        SortKey(name=name, descending=descending, nulls_first=nulls_first)
        for name, descending, nulls_first in job.sort
    ]
    groups = _alike(sources)
    for at, group in enumerate(groups):
        if len(group) == 1 and group[0].folder == home:
            left = left or _lonely(groups, group[0])
            continue
        path = os.path.join(attempt, f"{number}-{at}")
        try:
            new = merge(group, sort, job.target_bytes, job.scale, os.path.join(job.staging, path))
        except UnfitFileError as error:
            left = f"{group[0].path} and files like it cannot be merged: {error}"
            continue
        except ValuesDifferError:
            left = (
                f"{group[0].path} and files like it came back with other values, and were kept: "
                "report this error"
            )
            continue
        except MemoryError as error:
            # Arrow's own is one of its errors about content.
            left = f"{group[0].path} and files like it: memory ran out ({error}); {_MORE_MEMORY}"
            continue
        except pa.ArrowException as error:
            left = f"{group[0].path} or a file like it is damaged: {error}"
            continue
        except OSError as error:
            left = f"{error.filename or group[0].path}: {why_inaccessible(error)}"
            continue
        if len(new) >= len(group) and all(one.folder == home for one in group):
            # More rows would not fit into the memory of a task that sorts them.
            left = f"{group[0].path} and files like it are as large as files that are sorted can be"
            continue
        of_sources = [one.access for one in group if one.access is not None]
        for one in new:
            path = os.path.relpath(one.path, job.staging)
            new_files.append((path, one.rows, one.size_bytes))
            access[path] = narrowest(of_sources) if of_sources else None
        old_sources += group
    outcome = Outcome(
        number,
        new_files,
        [(one.path, one.size_bytes, one.mtime_ns, one.etag) for one in old_sources],
        vanished,
        left,
        sum(one.stored_bytes for one in old_sources),
    )
    return outcome, access


def _sources(
    job: Job, copies: str, paths: Sequence[str]
) -> tuple[list[Source], list[str], str | None]:
    """Return the files as they are now, those that are gone, and why others cannot be merged."""
    files = Sources(job.location, job.max_footer_bytes, copies)
    sources, vanished, left = [], [], None
    with ThreadPoolExecutor(_DOWNLOADS if is_remote(job.location) else 1) as threads:
        opening = [(path, threads.submit(files.open, path)) for path in paths]
    for path, source in opening:
        try:
            sources.append(source.result())
        except FileNotFoundError:
            vanished.append(path)
        except UnfitFileError as error:
            left = f"{path} cannot be merged: {error}"
        except OSError as error:
            left = f"{path} cannot be read: {why_inaccessible(error)}"
    return sources, vanished, left


def _alike(sources: Sequence[Source]) -> list[list[Source]]:
    groups: dict[tuple[object, ...], list[Source]] = {}
    for one in sources:
        groups.setdefault(likeness(one), []).append(one)
    return list(groups.values())


def _lonely(groups: Sequence[Sequence[Source]], one: Source) -> str | None:
    """Return why there is no other file that one can be merged with; None if it is the only one."""
    others = [each for group in groups for each in group if each is not one]
    if not others:
        return None
    return f"{one.path} is not like other files: they differ in {unlike(one, others[0])}"
