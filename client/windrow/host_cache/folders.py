"""The folder of a host's cache: whose it is, and that nobody else can write to it."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

# Another once what is below the folder means something else.
_LAYOUT = 1
_ABOUT = "worker.json"
_AGENT_LOCK = "agent.lock"
_WRITABLE_BY_OTHERS = 0o022


class UnusableFolderError(Exception):
    """A folder cannot be used as a cache; the text says why, and what to do."""


class CacheFolder(NamedTuple):
    """A folder that an agent tends.

    Attributes:
        path: Absolute.
        host: Whose cache it is, by the name that Spark knows the host by.
        capacity_bytes: Most bytes that it may take.
        made: Another when an agent has made it anew.
    """

    path: str
    host: str
    capacity_bytes: int
    made: tuple[int, int]

    @property
    def files(self) -> str:
        """Where diskcache keeps entries."""
        return os.path.join(self.path, "files")

    @property
    def incoming(self) -> str:
        """Where files lie that are being fetched."""
        return os.path.join(self.path, "incoming")

    @property
    def locks(self) -> str:
        """Where lock files lie."""
        return os.path.join(self.path, "locks")

    @property
    def agent_lock(self) -> str:
        """A file that the agent holds the lock of."""
        return os.path.join(self.path, _AGENT_LOCK)

    @property
    def damaged(self) -> str:
        """A file that is there once somebody found the database broken."""
        return os.path.join(self.path, "damaged")


def require_private(path: str) -> None:
    """Make sure that this user alone can write to a folder.

    Raises:
        UnusableFolderError: Others can, or it is another user's.
        OSError: It cannot be looked at.
    """
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise UnusableFolderError(
            f"cache folder {path!r} belongs to another user (uid {found.st_uid}, and this is "
            f"{os.geteuid()}): run the agent and the executors as one user"
        )
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise UnusableFolderError(
            f"cache folder {path!r} can be written to by other users: chmod 700 it"
        )


def find_folder(path: str) -> CacheFolder:
    """Return what a folder says of itself.

    Raises:
        UnusableFolderError: It is not a folder that an agent has made, or not safe to use.
    """
    about = os.path.join(path, _ABOUT)
    try:
        require_private(path)
        found = os.stat(about)
        with open(about, "rb") as file:
            said = json.load(file)
        layout, host, capacity_bytes = said["layout"], said["host"], said["capacity_bytes"]
    except FileNotFoundError:
        raise UnusableFolderError(
            f"cache folder {path!r} is not there yet: `windrow worker run` makes it"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableFolderError(f"cache folder {path!r} cannot be read: {error}") from error
    if layout != _LAYOUT:
        raise UnusableFolderError(
            f"cache folder {path!r} is of another version of Windrow (layout {layout}, and this "
            f"is {_LAYOUT}): run the agent of this version"
        )
    return CacheFolder(path, host, capacity_bytes, (found.st_ino, found.st_mtime_ns))


def make_folder(path: str, host: str, capacity_bytes: int) -> CacheFolder:
    """Make what is below a folder, and nothing of it anew; only its agent may.

    `announce` is what lets executors use it.

    Raises:
        UnusableFolderError: It holds something else, or is not safe to use.
    """
    path = os.path.abspath(path)
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        require_private(path)
        if (names := set(os.listdir(path))) and _AGENT_LOCK not in names:
            raise UnusableFolderError(
                f"folder {path!r} holds something else than a cache: name an empty one"
            )
        folder = CacheFolder(path, host, capacity_bytes, (0, 0))
        # First of all, as it tells a cache from other folders.
        os.close(os.open(folder.agent_lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        for below in (folder.incoming, folder.locks):
            os.makedirs(below, 0o700, exist_ok=True)
    except OSError as error:
        raise UnusableFolderError(
            f"cache folder {path!r} cannot be made ({error.strerror}): name another"
        ) from error
    return folder


def announce(folder: CacheFolder) -> None:
    """Say whose a folder is, from when on executors use it."""
    about = os.path.join(folder.path, _ABOUT)
    said = {"layout": _LAYOUT, "host": folder.host, "capacity_bytes": folder.capacity_bytes}
    with open(f"{about}.new", "w") as file:
        json.dump(said, file)
    os.replace(f"{about}.new", about)
