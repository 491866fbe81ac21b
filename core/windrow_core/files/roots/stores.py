"""Files on HDFS and object stores: made below a root, and removed there if they are ours.

Each change can be repeated by any process. Object stores have no folders, and cannot rename: there,
files are copied, and their staged ones stay until the staging folder is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from windrow_core.files import hadoop
from windrow_core.files.objects.requests import ListedObject, Traffic, requests
from windrow_core.files.objects.stores import bucket_and_key
from windrow_core.files.permissions import Access
from windrow_core.files.places import HDFS, OBJECTS, Place, place_of
from windrow_core.files.remote import contents_of, read_whole_file, remote_status
from windrow_core.files.roots.proofs import NotOursError, OutsideError, Proof, parts_of, require
from windrow_core.files.status import FileStatus

_Item = TypeVar("_Item")

# Each change is one or two requests.
_THREADS = 16
# Of a file that is copied to HDFS, so much is in memory at a time.
PIECE_BYTES = 8 * 2**20
# What S3 copies in one request.
MAX_COPIED_BYTES = 5 * 2**30


@dataclass(frozen=True, slots=True)
class StoreRoot:
    """A folder below which files are changed; paths below it are relative, and "" is the root.

    Attributes:
        uri: The folder, as a canonical URI.
    """

    uri: str

    def uri_of(self, path: str) -> str:
        """Return the URI of something below the root.

        Raises:
            OutsideError: The path could lead elsewhere.
        """
        if "://" in path:
            raise OutsideError(self.uri, path, "it is a URI of its own")
        parts = parts_of(self.uri, path)
        return "/".join((self.uri.rstrip("/"), *parts))

    def require(self, path: str, *proofs: Proof) -> None:
        """Make sure that something is ours.

        Raises:
            FileNotFoundError: There is nothing.
            NotOursError: A proof does not hold.
        """
        self.uri_of(path)
        require(self.uri, _Entry(self, path), *proofs)

    def write_file(self, path: str, content: bytes) -> None:
        """Make a small file as a whole or not at all.

        Raises:
            FileExistsError: There is one; on an object store, one with another content.
            OSError: It cannot be made.
        """
        self._store.write_file(self.uri_of(path), content)

    def upload(self, source: str, path: str, *proofs: Proof, access: Access | None = None) -> None:
        """Copy a file of the local disk.

        Args:
            source: Path of the file.
            path: The path that it gets. On HDFS it must be free; on object stores, what lies there is
                replaced.
            proofs: That what may lie there is ours.
            access: Who may use the copy; object stores decide that by themselves.
        """
        uri = self.uri_of(path)
        require(self.uri, _Entry(self, path), *proofs)
        self._store.upload(source, uri, access)

    def bring(self, moves: Collection[tuple[str, str]], *proofs: Proof) -> Iterator[None]:
        """Give files of ours other paths, which no file had before; yield when each has its path.

        A file that is not there has been moved before, and perhaps removed since. On object stores the
        file also stays where it was.

        Args:
            moves: The path of each file now and then, below the root.
            proofs: That the file is ours.

        Raises:
            NotOursError: A proof does not hold; then none has been moved.
            OSError: A file cannot be moved.
        """
        for source, _ in moves:
            require(self.uri, _Entry(self, source), *proofs)
        uris = [(self.uri_of(source), self.uri_of(target)) for source, target in moves]
        self._store.make_folders({target.rpartition("/")[0] for _, target in uris})
        return _in_threads(lambda move: _bring(self._store, *move), uris)

    def remove_files(self, paths: Iterable[str], *proofs: Proof) -> list[NotOursError]:
        """Remove files that exist, if they are ours; return why others stay."""
        uris, errors = [], []
        listings: dict[str, Mapping[str, FileStatus]] = {}
        for path in paths:
            uri = self.uri_of(path)
            try:
                require(self.uri, _Entry(self, path, listings), *proofs)
                uris.append(uri)
            except FileNotFoundError:
                continue
            except NotOursError as error:
                errors.append(error)
        self._store.remove_files(uris)
        return errors

    def remove_tree(self, path: str, *proofs: Proof) -> None:
        """Remove a folder of ours with all that it holds, if it exists.

        Raises:
            NotOursError: A proof does not hold.
        """
        uri = self.uri_of(path)
        if not path:
            raise OutsideError(self.uri, path, "it is the root itself")
        require(self.uri, _Entry(self, path), *proofs)
        self._store.remove_tree(uri)

    def remove_empty(self, path: str) -> None:
        """Remove a folder, and those above it up to the root, as long as they are empty.

        Args:
            path: The folder, which need not exist.
        """
        with suppress(hadoop.FolderNotEmptyError):
            while path:
                self._store.remove_folder(self.uri_of(path))
                path = path.rpartition("/")[0]

    def changed_ns(self, path: str) -> int | None:
        """Return when a folder changed, in nanoseconds since 1970; None if there is none.

        On object stores, this is when the newest object directly in it was made, or beneath it if there
        is none. Objects without bytes, which Hadoop makes to stand for folders, do not count.
        """
        return self._store.changed_ns(self.uri_of(path))

    @property
    def _store(self) -> _Hdfs | _Objects:
        return _STORES[place_of(self.uri)]


@dataclass(frozen=True, slots=True)
class _Entry:
    """What proofs look at; see `Entry`. A folder is listed once, however many of its files are asked for."""

    root: StoreRoot
    path: str
    listings: dict[str, Mapping[str, FileStatus]] = field(default_factory=dict)

    def state(self) -> FileStatus:
        """See `Entry.state`."""
        folder, _, name = self.path.rpartition("/")
        if folder not in self.listings:
            self.listings[folder] = contents_of(self.root.uri_of(folder))[1]
        if name not in self.listings[folder]:
            raise FileNotFoundError(self.root.uri_of(self.path))
        return self.listings[folder][name]

    def newest_ns(self) -> int:
        """See `Entry.newest_ns`."""
        newest_ns = self.root._store.newest_ns(self.root.uri_of(self.path))
        return self.state().mtime_ns or 0 if newest_ns is None else newest_ns

    def content_of(self, path: str, most_bytes: int) -> bytes | None:
        """See `Entry.content_of`."""
        try:
            return read_whole_file(self.root.uri_of(path), most_bytes)
        except FileNotFoundError:
            return None


class _Hdfs:
    """HDFS, where a file may be given another path."""

    def write_file(self, uri: str, content: bytes) -> None:
        # Of an earlier attempt, which has not got so far as to give it its name.
        aside = f"{uri}.new"
        hadoop.remove(aside)
        hadoop.create(aside, [content])
        hadoop.rename(aside, uri)

    def upload(self, source: str, uri: str, access: Access | None) -> None:
        with open(source, "rb") as file:
            hadoop.create(uri, iter(lambda: file.read(PIECE_BYTES), b""), access)

    def make_folders(self, uris: Iterable[str]) -> None:
        for _ in _in_threads(hadoop.make_folder, uris):
            pass

    def bring(self, source: str, target: str) -> None:
        hadoop.rename(source, target)

    def remove_files(self, uris: Iterable[str]) -> None:
        for _ in _in_threads(hadoop.remove, uris):
            pass

    def remove_tree(self, uri: str) -> None:
        hadoop.remove(uri, recursive=True)

    def remove_folder(self, uri: str) -> None:
        hadoop.remove(uri)

    def changed_ns(self, uri: str) -> int | None:
        try:
            return hadoop.status_of(uri).mtime_ns
        except FileNotFoundError:
            return None

    def newest_ns(self, uri: str) -> int | None:
        states = [hadoop.status_of(uri)]
        with suppress(NotADirectoryError):
            states += [state for _, state in hadoop.entries_of(uri, recursive=True)[1]]
        return max(state.mtime_ns or 0 for state in states)


class _Objects:
    """Object stores. Folders are there as long as there are files in them."""

    def write_file(self, uri: str, content: bytes) -> None:
        requests().create(uri, content, Traffic())

    def upload(self, source: str, uri: str, access: Access | None) -> None:
        requests().upload(Path(source), uri, Traffic())

    def make_folders(self, uris: Iterable[str]) -> None:
        pass

    def bring(self, source: str, target: str) -> None:
        # A file that readers may know already must not change, not even its time.
        if not _exists(target):
            requests().copy(source, target, Traffic())

    def remove_files(self, uris: Iterable[str]) -> None:
        if some := list(uris):
            requests().remove(some, Traffic())

    def remove_tree(self, uri: str) -> None:
        bucket, _ = bucket_and_key(uri)
        self.remove_files(f"{bucket}/{one.key}" for one in requests().list_all(uri, Traffic()))

    def remove_folder(self, uri: str) -> None:
        pass

    def changed_ns(self, uri: str) -> int | None:
        _, direct = requests().list_one(uri, Traffic())
        return _newest_ns(direct) or self.newest_ns(uri)

    def newest_ns(self, uri: str) -> int | None:
        return _newest_ns(requests().list_all(uri, Traffic()))


_STORES: Mapping[Place, _Hdfs | _Objects] = {HDFS: _Hdfs(), OBJECTS: _Objects()}


def _bring(store: _Hdfs | _Objects, source: str, target: str) -> None:
    try:
        store.bring(source, target)
    except FileNotFoundError:
        # Or the folder is missing that it was to go to.
        if _exists(source):
            raise


def _exists(uri: str) -> bool:
    try:
        remote_status(uri)
    except FileNotFoundError:
        return False
    return True


def _newest_ns(objects: Iterable[ListedObject]) -> int | None:
    moments = [one.state.mtime_ns or 0 for one in objects if one.state.size_bytes]
    return max(moments, default=None)


def _in_threads(change: Callable[[_Item], None], items: Iterable[_Item]) -> Iterator[None]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="windrow-changes") as threads:
        yield from threads.map(change, items)
