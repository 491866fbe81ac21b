"""Makes the packs of some files, in one process, with one pack of each kind in memory."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.files.access import why_inaccessible
from windrow_core.files.arrays import flat
from windrow_core.files.packs import pack_name, paths_of_run
from windrow_core.files.permissions import Access, give
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form, Record
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of
from windrow_tables.executor.errors import StaleFileError, TaskReadError
from windrow_tables.executor.files import read_whole, source_mark
from windrow_tables.merging.files import ValuesDifferError
from windrow_tables.merging.likeness import likeness
from windrow_tables.merging.sources import Heads, UnfitFileError
from windrow_tables.packs.contents import Content
from windrow_tables.packs.rights import Rights
from windrow_tables.packs.writing import Extras, PackWriter

# Packs in the making, each of another kind of file or of files with other rights.
_MOST_KINDS = 8
# A file that was changed just now may change again within the same tick of its clock.
_SETTLED_S = 2.0
_YOUNG = "it was written just now"
_MARK = re.compile("[0-9a-f]{1,16}-[0-9a-f]{1,16}")
_CHANGED = "it has changed since the last refresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingJob:
    """How the packs of a table are made.

    Attributes:
        location: The table's folder: an absolute path, or a URI.
        folder: Where packs lie: an absolute path, or a URI.
        home: Name of the table's folder there.
        run: Id of the run, by which the coordinator knows what it writes.
        partition: The partition columns.
        min_sources: Fewest files that are worth a pack.
    """

    location: str
    folder: str
    home: str
    run: str
    partition: pa.Schema
    min_sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePack:
    """A pack that was written and compared, and that nobody uses yet.

    Attributes:
        path: Where it is: an absolute path, or a URI.
        digest: SHA-256 of its bytes, in hexadecimal digits.
        size_bytes: Its size.
        row_count: Number of its rows.
        kind: A digest of what its sources have in common.
        sources: Numbers of its sources among the files, in its order.
        digests: For each, SHA-256 of its bytes.
        marks: For each, its inode number and the time of its last change of any kind; None where
            these tell nothing.
        figures: For each, those of columns of whole numbers, as `FIGURE`.
    """

    path: str
    digest: str
    size_bytes: int
    row_count: int
    kind: str
    sources: Sequence[int]
    digests: Sequence[bytes]
    marks: Sequence[tuple[int, int] | None]
    figures: pa.Table


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A file that is in no pack: its number among the files, and why."""

    source: int
    reason: str


def make_packs(job: PackingJob, files: pa.Table) -> tuple[list[MadePack], list[LeftFile]]:
    """Make the packs of some files.

    Args:
        job: How they are made.
        files: The files, in the order in which packs have them, with the columns `path`,
            `size_bytes`, `mtime_ns`, `etag`, `row_count` and `partition` of the inventory.

    Returns:
        The packs, and the files that are in none.

    Raises:
        OSError: A pack cannot be written.
    """
    maker = _Maker(job, files)
    try:
        for number in range(len(files)):
            maker.add(number)
        maker.finish()
    except BaseException:
        for pack in maker.packs:
            remove_pack(job, pack)
        raise
    return maker.packs, maker.left


def _numbers_in(mark: str) -> tuple[int, int] | None:
    """Return the numbers in the mark of a file of a disk; None where it tells nothing."""
    inode, _, changed_ns = mark.partition("-")
    return (int(inode, 16), int(changed_ns, 16)) if _MARK.fullmatch(mark) else None


def remove_pack(job: PackingJob, pack: MadePack) -> None:
    """Remove a pack that was made and not published.

    Raises:
        OSError: It cannot be removed.
    """
    name = pack.path.removeprefix(f"{job.folder}/")
    proofs = Form(paths_of_run(job.home, job.run)), Record({name: None})
    if is_remote(job.folder):
        StoreRoot(job.folder).remove_files([name], *proofs)
    else:
        Root.resolved(job.folder).remove_file(name, *proofs)


class _Maker:
    def __init__(self, job: PackingJob, files: pa.Table) -> None:
        self.packs: list[MadePack] = []
        self.left: list[LeftFile] = []
        self._job = job
        columns = files.select(["path", "size_bytes", "mtime_ns", "etag", "row_count"])
        self._files = list(zip(*(one.to_pylist() for one in columns.columns), strict=True))
        self._home = home_of(job.location)
        self._extras = Extras.of(job.partition)
        self._partition = self._extras.partition(flat(files["partition"]))
        self._heads, self._rights = Heads(), Rights()
        # By likeness and rights; the one that has waited longest for another file comes first.
        self._writers: dict[object, tuple[PackWriter, Access | None]] = {}
        self._digests: dict[int, bytes] = {}
        self._marks: dict[int, tuple[int, int] | None] = {}

    def add(self, number: int) -> None:
        """Add a file to a pack."""
        try:
            self._add(number)
        except StaleFileError:
            self.left.append(LeftFile(number, _CHANGED))
        except (TaskReadError, UnfitFileError) as error:
            self.left.append(LeftFile(number, str(error)))
        except OSError as error:
            self.left.append(LeftFile(number, why_inaccessible(error)))

    def finish(self) -> None:
        """Finish all packs."""
        for key in list(self._writers):
            self._finish(key)

    def _add(self, number: int) -> None:
        path, size_bytes, mtime_ns, etag, row_count = self._files[number]
        if time.time() - mtime_ns / 1e9 < _SETTLED_S:
            raise UnfitFileError(_YOUNG)
        absolute = absolute_path(self._job.location, path)
        home = home_for(self._job.location, self._home, absolute)
        state = FileStatus(size_bytes, mtime_ns, etag)
        mark = source_mark(home, absolute, state)
        data = read_whole(home, absolute, state)
        if mark is None or source_mark(home, absolute, state) != mark:
            raise UnfitFileError(_YOUNG)
        content = Content.of(data, self._heads)
        if content.rows != row_count:
            raise UnfitFileError(_CHANGED)
        access = None
        if not is_remote(absolute):
            access = self._rights.readers_of(os.path.realpath(absolute))
        key = likeness(content), access
        writer, _ = self._writers.pop(key, (None, None))
        if writer is None:
            if len(self._writers) == _MOST_KINDS:
                self._finish(next(iter(self._writers)))
            writer = PackWriter(content, self._extras, self._partition)
        self._writers[key] = writer, access
        writer.add(number, content)
        self._digests[number] = content.digest
        self._marks[number] = None if is_remote(absolute) else _numbers_in(mark)
        if writer.is_full:
            self._finish(key)

    def _finish(self, key: object) -> None:
        writer, access = self._writers.pop(key)
        sources = writer.sources
        if len(sources) < self._job.min_sources:
            reason = f"only {len(sources):,} files are like it"
            self.left += [LeftFile(one, reason) for one in sources]
            return
        try:
            content = writer.finish()
        except ValuesDifferError:
            reason = "its rows came back with other values: report this error"
            self.left += [LeftFile(one, reason) for one in sources]
            return
        digest = hashlib.sha256(content).hexdigest()
        self.packs.append(
            MadePack(
                path=self._keep(pack_name(self._job.run, digest), content.to_pybytes(), access),
                digest=digest,
                size_bytes=len(content),
                row_count=writer.row_count,
                kind=hashlib.sha256(repr(key).encode()).hexdigest(),
                sources=sources,
                digests=[self._digests.pop(one) for one in sources],
                marks=[self._marks.pop(one) for one in sources],
                figures=writer.figures(),
            )
        )

    def _keep(self, name: str, content: bytes, access: Access | None) -> str:
        """Write a pack, and return where it is."""
        folder, path = self._job.folder, f"{self._job.home}/{name}"
        if is_remote(folder):
            StoreRoot(folder).write_file(path, content)
        else:
            try:
                os.makedirs(folder, exist_ok=True)
                root = Root.resolved(folder)
                root.make_folder(self._job.home)
                root.write_file(path, content, mode=0o400)
            except OSError as error:
                # Of a full disk, the system does not say which one it is.
                raise OSError(error.errno, error.strerror, f"{folder}/{path}") from error
            if access is not None:
                give(os.path.join(folder, path), access)
        return absolute_path(folder, path)
