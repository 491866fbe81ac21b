"""The folder of a host's cache: its host, its layout and its permissions."""

from __future__ import annotations

import json
import os
import re
from typing import Final, NamedTuple

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form

# Changes whenever the meaning of the folder's contents changes.
_LAYOUT = 2
_ABOUT = "worker.json"
_AGENT_LOCK = "agent.lock"
_WRITABLE_BY_OTHERS = 0o022
_FILES, _INCOMING, _DATABASE, _DAMAGED = "files", "incoming", "entries.db", "damaged"
# Whatever has another name in the folder of a cache is not the cache's.
CACHED: Final = Form(
    re.compile(
        rf"{_FILES}/([0-9a-f]{{2}}/[0-9a-f]{{32}}|{re.escape(_DATABASE)}(-wal|-shm|-journal)?)"
        rf"|{_INCOMING}/[0-9a-f]{{32}}|{_DAMAGED}|{re.escape(_ABOUT)}"
    )
)


class UnusableFolderError(Exception):
    """A folder cannot be used as a cache; the text says why, and what to do."""


class CacheFolder(NamedTuple):
    """A folder that an agent manages.

    Attributes:
        path: Absolute path.
        host: Host of the cache, by the name that Spark uses.
        capacity_bytes: Maximum size of the cache.
        version: Changes whenever an agent makes the cache again.
    """

    path: str
    host: str
    capacity_bytes: int
    version: tuple[int, int]

    @property
    def files(self) -> str:
        """Folder of the database, and of files that are too large for it."""
        return os.path.join(self.path, _FILES)

    @property
    def database(self) -> str:
        """The database of entries."""
        return os.path.join(self.files, _DATABASE)

    def file(self, name: str) -> str:
        """Return the path of an entry's file."""
        return os.path.join(self.path, self.below(name))

    def below(self, name: str) -> str:
        """Return the path of an entry's file below the folder."""
        return f"{_FILES}/{name[:2]}/{name}"

    def root(self) -> Root:
        """Open the folder, to change what is in it."""
        return Root.resolved(self.path)

    @property
    def incoming(self) -> str:
        """Folder of files that are being fetched."""
        return os.path.join(self.path, _INCOMING)

    @property
    def locks(self) -> str:
        """Folder of lock files."""
        return os.path.join(self.path, "locks")

    @property
    def agent_lock(self) -> str:
        """File that the agent keeps locked."""
        return os.path.join(self.path, _AGENT_LOCK)

    @property
    def damaged(self) -> str:
        """File that marks the database as damaged."""
        return os.path.join(self.path, _DAMAGED)


def require_private(path: str) -> None:
    """Make sure that only this user can write to a folder."""
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        raise UnusableFolderError(
            f"cache folder {path!r} belongs to another user (uid {status.st_uid}, not "
            f"{os.geteuid()}): run the agent and the executors as one user"
        )
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise UnusableFolderError(
            f"cache folder {path!r} can be written to by other users: chmod 700 it"
        )


def find_folder(path: str) -> CacheFolder:
    """Return a folder as its agent has announced it."""
    about = os.path.join(path, _ABOUT)
    try:
        require_private(path)
        status = os.stat(about)
        with open(about, "rb") as file:
            about_cache = json.load(file)
        layout, host, capacity_bytes = (
            about_cache["layout"],
            about_cache["host"],
            about_cache["capacity_bytes"],
        )
    except FileNotFoundError:
        raise UnusableFolderError(
            f"cache folder {path!r} does not exist yet: `windrow worker run` makes it"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableFolderError(f"cache folder {path!r} cannot be read: {error}") from error
    if layout != _LAYOUT:
        raise UnusableFolderError(
            f"cache folder {path!r} is of another version of Windrow (layout {layout}, not "
            f"{_LAYOUT}): run the agent of this version"
        )
    return CacheFolder(path, host, capacity_bytes, (status.st_ino, status.st_mtime_ns))


def make_folder(path: str, host: str, capacity_bytes: int) -> CacheFolder:
    """Create what is missing in a cache folder; only for its agent.

    Executors use the folder only after `announce`.
    """
    path = os.path.abspath(path)
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        require_private(path)
        if (names := set(os.listdir(path))) and _AGENT_LOCK not in names:
            raise UnusableFolderError(
                f"folder {path!r} holds something other than a cache: name an empty one"
            )
        folder = CacheFolder(path, host, capacity_bytes, (0, 0))
        # Made first, since it distinguishes a cache from other folders.
        os.close(os.open(folder.agent_lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        for below in (folder.incoming, folder.locks):
            os.makedirs(below, 0o700, exist_ok=True)
    except OSError as error:
        raise UnusableFolderError(
            f"cache folder {path!r} cannot be made ({error.strerror}): name another"
        ) from error
    return folder


def announce(folder: CacheFolder) -> None:
    """Publish the folder's host and capacity; executors use the folder from then on."""
    content = {"layout": _LAYOUT, "host": folder.host, "capacity_bytes": folder.capacity_bytes}
    folder.root().write_file(_ABOUT, json.dumps(content).encode(), CACHED, lasting=False)
