"""What a commit does where the files of its write are staged; local disks and stores differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from windrow_tables.commits.intents import Intent, PartitionChange
from windrow_tables.commits.spellings import Home


class Claim(Protocol):
    """Shows that a process works on a staging folder, as far as the file system can show it."""

    @property
    def same_machine(self) -> bool:
        """Whether the claim itself shows that no other process is alive that works on the folder."""

    def release(self) -> None:
        """Give it up."""


class Moving(Protocol):
    """Moves files as an intent says; each step may be repeated after a crash."""

    def move_in(self, on_moved: Callable[[int], None] = ...) -> None:
        """Give every partition its new files.

        Args:
            on_moved: Called with the number of partitions done.
        """

    def finish(self) -> None:
        """Remove what is left of the old state; call this once the new state is published."""


class Staging(Protocol):
    """The staging folder of one write."""

    @property
    def location(self) -> str:
        """Absolute path, or URI, of the table."""

    @property
    def write_id(self) -> str:
        """The write."""

    @property
    def path(self) -> str:
        """Absolute path, or URI, of the folder."""

    @property
    def data(self) -> str:
        """The same of the folder that new files are written below."""

    def make(self, table: str, owner: bytes) -> Claim:
        """Make the folder, and claim it.

        Args:
            table: Name of the table.
            owner: What `require_ours` looks for.

        Raises:
            UnfitLocationError: The table cannot be written there.
        """

    def take(self) -> Claim | None:
        """Claim the folder of a dead write; None if another process holds its claim.

        Raises:
            FileNotFoundError: Its claim is not there.
        """

    def claim(self) -> Claim:
        """Claim a folder whose claim is not there.

        Raises:
            FileExistsError: Another process has been faster.
            FileNotFoundError: The folder is gone.
        """

    def exists(self) -> bool:
        """Whether there is such a folder."""

    def require_ours(self, owner: bytes) -> None:
        """Make sure that the folder may go although the coordinator does not know its write.

        Args:
            owner: What the folder must have been made with.

        Raises:
            FileNotFoundError: It is gone.
            NotOursError: Another coordinator may know it, or something in it has changed lately.
        """

    def take_turn(self) -> Claim | None:
        """Keep other commits out of the table's folder, before anything in it is looked at.

        The coordinator admits one commit per table, but a folder may have several tables, here or at
        other coordinators. Two commits that replace the same files would leave their rows twice.

        Returns:
            None if another commit is at work there, dead or alive.
        """

    def record(self, intent: Intent) -> None:
        """Record the intent, as a whole or not at all."""

    def recorded(self) -> Intent | None:
        """Return the intent; without one, nothing was moved."""

    def forget(self) -> None:
        """Remove the intent, if there is one."""

    def clear(self) -> None:
        """Remove everything but the claim, as far as that is possible now; there is no intent."""

    def remove(self) -> None:
        """Remove the folder, as far as that is possible now.

        The write must have ended, or not be known to the coordinator.
        """

    def settle(self, paths: Sequence[str], homes: Mapping[str, Home]) -> dict[str, str]:
        """Decide on the paths that staged files will have in the table.

        Args:
            paths: Their paths in `data`.
            homes: Where the files of each staged folder belong.

        Returns:
            The new path of each file that gets another one.
        """

    def syncing(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        """Make files below `data` survive a loss of power while the block runs."""

    def sync(self, changes: Sequence[PartitionChange]) -> None:
        """Make the new folders survive a loss of power."""

    def moving(self, intent: Intent) -> Moving:
        """Return what moves the files of a recorded intent."""
