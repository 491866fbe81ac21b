"""Changes of remote files: made, moved and removed; each can be repeated by any process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from windrow_core.files import hadoop
from windrow_core.files.remote import remote_status

_Item = TypeVar("_Item")

# Each change is one or two requests.
_THREADS = 16
_PIECE_BYTES = 8 * 2**20


def write_once(uri: str, content: bytes) -> None:
    """Make a small file as a whole or not at all.

    Raises:
        FileExistsError: There is one.
        OSError: It cannot be made.
    """
    aside = f"{uri}.new"
    hadoop.remove(aside)
    hadoop.create(aside, [content])
    hadoop.rename(aside, uri)


def upload(path: str, uri: str) -> None:
    """Copy a file of the local disk to a path that is free."""
    with open(path, "rb") as file:
        hadoop.create(uri, iter(lambda: file.read(_PIECE_BYTES), b""))


def bring_all(moves: Collection[tuple[str, str]]) -> Iterator[None]:
    """Give files other paths, which no file had before; yield when each one has its path.

    A file that is not there has been moved before, and perhaps removed since.

    Args:
        moves: The path of each file now and then, as URIs.

    Raises:
        OSError: A file cannot be moved.
    """
    for _ in _in_threads(hadoop.make_folder, {target.rpartition("/")[0] for _, target in moves}):
        pass
    return _in_threads(lambda move: _bring(*move), moves)


def _bring(source: str, target: str) -> None:
    try:
        hadoop.rename(source, target)
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


def remove_all(uris: Iterable[str]) -> None:
    """Remove files that exist."""
    for _ in _in_threads(hadoop.remove, uris):
        pass


def remove_folder(uri: str) -> None:
    """Remove a folder with all that it holds, if it exists."""
    hadoop.remove(uri, recursive=True)


def remove_empty(uri: str, topmost: str) -> None:
    """Remove a folder, and those above it, as long as they are empty.

    Args:
        uri: The folder, which need not exist.
        topmost: A folder above it that stays.
    """
    with suppress(hadoop.FolderNotEmptyError):
        while uri != topmost:
            hadoop.remove(uri)
            uri = uri.rpartition("/")[0]


def changed_ns(uri: str) -> int | None:
    """Return when a folder changed, in nanoseconds since 1970; None if there is none."""
    try:
        return hadoop.status_of(uri).mtime_ns
    except FileNotFoundError:
        return None


def _in_threads(change: Callable[[_Item], None], items: Iterable[_Item]) -> Iterator[None]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="windrow-changes") as threads:
        yield from threads.map(change, items)
