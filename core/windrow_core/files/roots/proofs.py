"""Proofs that a file or folder is ours, and the errors for what is not."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from windrow_core.files.status import FileStatus

_MOST_MARK_BYTES = 4096
# A path below a root may have at most so many parts.
_MOST_PARTS = 200


class OutsideError(OSError):
    """A path does not lie below its root, or a link leads away from there."""

    def __init__(self, root: str, path: str, why: str) -> None:
        super().__init__(f"{path!r} is not used below {root!r}: {why}")


class NotOursError(OSError):
    """Nothing proves that a file or folder is ours, so it stays as it is."""

    def __init__(self, root: str, path: str, why: str) -> None:
        super().__init__(
            f"{path!r} below {root!r} stays as it is, since {why}: remove it yourself if nobody "
            "needs it"
        )
        self.why = why


class Entry(Protocol):
    """A file or folder that is there, as proofs look at it."""

    @property
    def path(self) -> str:
        """Its path below the root."""

    def state(self) -> FileStatus | None:
        """Return its state, that of a link itself; None for a folder."""

    def newest_ns(self) -> int:
        """Return the last change of it, or of anything below it, in nanoseconds since 1970."""

    def content_of(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of another small file below the root; None if there is none."""


class Proof(Protocol):
    """Shows that something is ours."""

    def refusal(self, entry: Entry) -> str | None:
        """Return why it may not be ours; None if it is."""


@dataclass(frozen=True, slots=True)
class Form:
    """Its path below the root has a form that only we give, and it is old enough.

    Attributes:
        pattern: What the whole path matches.
        min_age_s: Seconds for which nothing has changed it, or anything below it.
    """

    pattern: re.Pattern[str]
    min_age_s: float = 0.0

    def refusal(self, entry: Entry) -> str | None:
        """See `Proof.refusal`."""
        if self.pattern.fullmatch(entry.path) is None:
            return "it does not have a name that Windrow gives"
        if self.min_age_s and time.time() - entry.newest_ns() / 1e9 < self.min_age_s:
            return f"it has changed within the last {self.min_age_s / 3600:g} hours"
        return None


# For a root that this process has made, or that holds nothing but what Windrow makes.
ANYTHING = Form(re.compile("(?s:.+)"))


@dataclass(frozen=True, slots=True)
class Mark:
    """A file that lies with it says that this installation has made it.

    Attributes:
        path: Path of the mark below the root.
        text: The mark's last line.
    """

    path: str
    text: bytes

    def refusal(self, entry: Entry) -> str | None:
        """See `Proof.refusal`."""
        content = entry.content_of(self.path, _MOST_MARK_BYTES)
        if content is not None and content.rpartition(b"\n")[2] == self.text:
            return None
        return "it has no mark of this installation"


@dataclass(frozen=True, slots=True)
class Record:
    """A record names it, and it is as the record says.

    Attributes:
        states: The states of files by their paths below the root; None for a folder, or for a file
            whose state does not matter.
    """

    states: Mapping[str, FileStatus | None]

    def refusal(self, entry: Entry) -> str | None:
        """See `Proof.refusal`."""
        if entry.path not in self.states:
            return "no record names it"
        state = self.states[entry.path]
        if state is not None and entry.state() != state:
            return "it has changed since it was recorded"
        return None


@dataclass(frozen=True, slots=True)
class Consent:
    """The caller has named it, and agreed."""

    def refusal(self, entry: Entry) -> str | None:
        """See `Proof.refusal`."""
        return None


def require(root: str, entry: Entry, *proofs: Proof) -> None:
    """Make sure that something is ours.

    Raises:
        NotOursError: There is no proof, or one does not hold.
    """
    why = "there is no proof that it is ours" if not proofs else None
    for proof in proofs:
        why = why or proof.refusal(entry)
    if why is not None:
        raise NotOursError(root, entry.path, why)


def parts_of(root: str, path: str) -> list[str]:
    """Return the names that a path below a root consists of; none for "", which is the root.

    Raises:
        OutsideError: It could lead elsewhere.
    """
    if not path:
        return []
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise OutsideError(root, path, "it is not a plain path that is relative to there")
    if len(parts) > _MOST_PARTS:
        raise OutsideError(root, path, f"it has more than {_MOST_PARTS} parts")
    return parts
