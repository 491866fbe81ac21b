"""The files of a Delta table's log, and how to find those that make up a version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from windrow_core.files.places import place_of
from windrow_core.files.remote import names_between, read_whole_file
from windrow_service.delta.errors import DeltaLogError, DeltaVersionError

LOG = "_delta_log"
_LAST_CHECKPOINT = "_last_checkpoint"
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(
    r"([0-9]{20})\.checkpoint"
    r"(?:|\.([0-9]{10})\.([0-9]{10})|\.[0-9a-f-]{36})\.(?:parquet|json)"
)
_MAX_PARTS = 10_000
_MAX_POINTER_BYTES = 2**20
# Most bytes of all commits that are read at a time.
_MAX_COMMIT_BYTES = 2**28
_READING_THREADS = 16
# Of a commit's beginning, which says when it was made.
BEGINNING_BYTES = 2**18
# Names of commits and checkpoints begin with a number of this many digits.
_DIGITS = 20
_BEHIND_DIGITS = chr(ord("9") + 1)


class LogGoneError(Exception):
    """A file of the log is missing; the log may have been cleaned up, or listed halfway, meanwhile."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The version of a checkpoint, and the names of its files."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits that follow one another.

    Attributes:
        first: Version of the first of them.
        bodies: Their contents.
    """

    first: int
    bodies: tuple[bytes, ...]

    @property
    def last(self) -> int:
        """Version of the last commit; if there are no commits, the version before `first`."""
        return self.first + len(self.bodies) - 1


def uri_of(location: str, name: str) -> str:
    """Return the path or URI of a file of the log."""
    return f"{location.rstrip('/')}/{LOG}/{name}"


def commits_from(location: str, first: int, last: int) -> Commits:
    """Read commits.

    Args:
        location: Location of the table.
        first: Version to begin with.
        last: Version to end with.

    Raises:
        LogGoneError: One of them does not exist.
        DeltaLogError: One cannot be read, or they are too large.
    """
    bodies: list[bytes] = []
    left = _MAX_COMMIT_BYTES
    with ThreadPoolExecutor(_READING_THREADS) as threads:
        for start in range(first, last + 1, _READING_THREADS):
            names = [
                f"{version:020}.json"
                for version in range(start, min(start + _READING_THREADS, last + 1))
            ]
            read = threads.map(partial(read_of, location, max_bytes=left), names)
            for name, body in zip(names, read, strict=True):
                if body is None:
                    raise LogGoneError(name)
                bodies.append(body)
                left -= len(body)
                if left < 0:
                    raise DeltaLogError(
                        location,
                        f"has commits of more than {_MAX_COMMIT_BYTES:,} bytes since its last "
                        "checkpoint: write one",
                    )
                require_text(location, name, body)
    return Commits(first, tuple(bodies))


def require_text(location: str, name: str, body: bytes) -> None:
    """Refuse a file of JSON that is not UTF-8: parsers disagree on what it says."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise DeltaLogError(
            uri_of(location, name), "is damaged: it has text that is not UTF-8; restore it"
        ) from error


def first_commit(location: str, first: int, newest: int) -> int:
    """Return the first version whose commit the log still has; `newest` + 1 if it has none.

    Args:
        location: Location of the table.
        first: A version before which there are no commits.
        newest: The newest version; all commits from the first one to this exist.
    """
    low, high = first, newest + 1
    while low < high:
        # Usually, nothing has been cleaned up since.
        middle = low if low == first else (low + high) // 2
        if read_of(location, f"{middle:020}.json", 0) is not None:
            high = middle
        else:
            low = middle + 1
    return low


def beginning_of(location: str, version: int) -> bytes | None:
    """Return the first bytes of a commit, where it describes itself; None if it is gone."""
    body = read_of(location, f"{version:020}.json", BEGINNING_BYTES)
    return None if body is None else body[:BEGINNING_BYTES]


def read_of(location: str, name: str, max_bytes: int) -> bytes | None:
    """Return a file of the log, but at most `max_bytes` + 1 bytes; None if it does not exist."""
    try:
        return read_whole_file(uri_of(location, name), max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(location, name, error) from error


def unreadable(location: str, name: str, error: Exception) -> DeltaLogError:
    """Return the error for a file of the log that cannot be read."""
    return DeltaLogError(uri_of(location, name), place_of(location).why_unreadable(error))


def hinted_version(location: str) -> int:
    """Return the version of a checkpoint that the log points at, from which to list it."""
    body = read_of(location, _LAST_CHECKPOINT, _MAX_POINTER_BYTES)
    try:
        version = json.loads(body or b"null")["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        # The pointer is only a hint, and may be half written.
        return 0
    return version if type(version) is int and 0 <= version < 10**19 else 0


def _in_parts(version: int, parts: int) -> Checkpoint:
    names = (
        f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)
    )
    return Checkpoint(version, tuple(names))


@dataclass(frozen=True, slots=True)
class LogListing:
    """What the log holds: complete checkpoints by version, and versions of commits."""

    checkpoints: tuple[Checkpoint, ...]
    commits: tuple[int, ...]

    @property
    def first(self) -> int:
        """The first version that can be read, unless commits are missing."""
        if self.commits[:1] == (0,) or not self.checkpoints:
            return 0
        return self.checkpoints[0].version

    @property
    def newest(self) -> int:
        """The last version that has a commit or a checkpoint."""
        return max([*self.commits[-1:], *(one.version for one in self.checkpoints[-1:])], default=0)

    def checkpoint_at(self, version: int | None) -> Checkpoint | None:
        """Return the newest checkpoint up to a version; None stands for the newest version."""
        candidates = [one for one in self.checkpoints if version is None or one.version <= version]
        return candidates[-1] if candidates else None


def list_log(location: str, start: int = 0) -> LogListing:
    """List the log.

    Args:
        location: Location of the table.
        start: The first version to list.
    """
    folder = f"{location.rstrip('/')}/{LOG}"
    try:
        names = names_between(folder, f"{start:0{_DIGITS}}", _BEHIND_DIGITS)
    except OSError as error:
        raise unreadable(location, "", error) from error
    if names is None:
        raise DeltaLogError(
            location, f"has no log: there is no folder {LOG!r} in it; correct the table's location"
        )
    return LogListing(
        tuple(_complete(names)),
        tuple(sorted(int(match[1]) for match in map(_COMMIT.fullmatch, names) if match)),
    )


def _complete(names: Sequence[str]) -> Iterator[Checkpoint]:
    """Yield the checkpoints that have all their parts, one per version, ascending."""
    parts_of: dict[int, list[tuple[int, str]]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts_of.setdefault(int(match[1]), []).append((int(match[3] or 1), name))
    for version, entries in sorted(parts_of.items()):
        for parts in sorted({parts for parts, _ in entries}):
            part_names = sorted(name for count, name in entries if count == parts)
            if parts == 1:
                yield Checkpoint(version, (part_names[0],))
                break
            if parts <= _MAX_PARTS and _in_parts(version, parts).names == tuple(part_names):
                yield Checkpoint(version, tuple(part_names))
                break


def refuse_missing(location: str, version: int, listing: LogListing) -> NoReturn:
    """Refuse a version that the log no longer has, or does not have yet."""
    if version > listing.newest:
        raise DeltaVersionError(location, str(version), f"the newest version is {listing.newest}")
    raise DeltaVersionError(
        location, str(version), f"its log was cleaned up, and begins at version {listing.first} now"
    )
