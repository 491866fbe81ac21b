"""Staging folders on HDFS and S3, where the lease alone shows that the driver of a write is alive."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import ClassVar

from windrow_core.files.access import why_unwritable
from windrow_core.files.remote import contents_of, read_whole_file
from windrow_core.files.roots.proofs import Mark
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.status import FileStatus
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.intents import INTENT_FILE, Intent, PartitionChange, decoded, encoded
from windrow_tables.commits.preparation import names_like
from windrow_tables.commits.remote_moving import RemoteMoving
from windrow_tables.commits.spellings import Home
from windrow_tables.commits.staging_folders import FORGOTTEN, STAGED, STAGING_ROOT

# Lies in the folder from its beginning to its end.
_MARK = "begun"
# Lies there while its commit is prepared. One that is older is of a driver that died meanwhile.
_TURN = "turn"
_TURN_NS = 3600 * 10**9
_MAX_MARK_BYTES = 4096
_MAX_INTENT_BYTES = 2**31
_UUID = re.compile("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class RemoteClaim:
    """Claims nothing, as there are no locks; see `Claim`."""

    same_machine: ClassVar[bool] = False

    def release(self) -> None:
        """See `Claim.release`."""


@dataclass(frozen=True, slots=True)
class RemoteStagingFolder:
    """The staging folder of one write on a store; see `Staging`.

    Attributes:
        location: URI of the table.
        write_id: The write.
    """

    location: str
    write_id: str

    @property
    def path(self) -> str:
        """URI of the folder."""
        return f"{self.location}/{self._folder}"

    @property
    def data(self) -> str:
        """URI of the folder that new files are written below."""
        return f"{self.path}/data"

    @property
    def _folder(self) -> str:
        return f"{STAGING_ROOT}/{self.write_id}"

    @property
    def _root(self) -> StoreRoot:
        return StoreRoot(self.location)

    def make(self, table: str, owner: bytes) -> RemoteClaim:
        """See `Staging.make`."""
        try:
            return self._claim(owner)
        except OSError as error:
            # The folders above may have been made.
            self.remove()
            raise UnfitLocationError(table, self.location, why_unwritable(error)) from error

    def take(self) -> RemoteClaim:
        """See `Staging.take`."""
        read_whole_file(f"{self.path}/{_MARK}", _MAX_MARK_BYTES)
        return RemoteClaim()

    def claim(self) -> RemoteClaim:
        """See `Staging.claim`."""
        return self._claim(b"")

    def take_turn(self) -> RemoteClaim | None:
        """See `Staging.take_turn`; of two commits at the same moment, each may see the other."""
        turn = f"{self._folder}/{_TURN}"
        with suppress(FileExistsError):
            self._root.write_file(turn, b"")
        # By the clock of the store.
        now_ns = self._states()[_TURN].mtime_ns or 0
        for name in contents_of(f"{self.location}/{STAGING_ROOT}")[0]:
            if name == self.write_id:
                continue
            states = RemoteStagingFolder(self.location, name)._states()
            other = states.get(_TURN)
            is_preparing = other is not None and now_ns - (other.mtime_ns or 0) < _TURN_NS
            if is_preparing or INTENT_FILE in states:
                self._root.remove_files([turn], STAGED)
                return None
        return RemoteClaim()

    def _states(self) -> dict[str, FileStatus]:
        return contents_of(self.path)[1]

    def _claim(self, owner: bytes) -> RemoteClaim:
        # On object stores, the content shows who has made it.
        content = uuid.uuid4().hex.encode() + b"\n" + owner
        self._root.write_file(f"{self._folder}/{_MARK}", content)
        return RemoteClaim()

    def exists(self) -> bool:
        """See `Staging.exists`."""
        return self._root.changed_ns(self._folder) is not None

    def require_ours(self, owner: bytes) -> None:
        """See `Staging.require_ours`."""
        self._root.require(self._folder, Mark(f"{self._folder}/{_MARK}", owner), FORGOTTEN)

    def record(self, intent: Intent) -> None:
        """See `Staging.record`."""
        self._root.write_file(f"{self._folder}/{INTENT_FILE}", encoded(intent))

    def recorded(self) -> Intent | None:
        """See `Staging.recorded`."""
        try:
            content = read_whole_file(f"{self.path}/{INTENT_FILE}", _MAX_INTENT_BYTES)
        except FileNotFoundError:
            return None
        return decoded(self.path, content)

    def forget(self) -> None:
        """See `Staging.forget`."""
        self._root.remove_files([f"{self._folder}/{INTENT_FILE}"], STAGED)

    def clear(self) -> None:
        """See `Staging.clear`."""
        folders, files = contents_of(self.path)
        for folder in folders:
            self._root.remove_tree(f"{self._folder}/{folder}", STAGED)
        others = [f"{self._folder}/{name}" for name in files if name != _MARK]
        self._root.remove_files(others, STAGED)

    def remove(self) -> None:
        """See `Staging.remove`."""
        with suppress(OSError):
            # In this order: an intent without the mark would look like one of another coordinator.
            self.forget()
            self.clear()
            self._root.remove_tree(self._folder, STAGED)
            self._root.remove_empty(STAGING_ROOT)

    def settle(self, paths: Sequence[str], homes: Mapping[str, Home]) -> dict[str, str]:
        """See `Staging.settle`; the new names hold the write's id, and no earlier file had them."""
        new_paths: dict[str, str] = {}
        names: dict[str, set[str]] = {}
        for path in sorted(paths):
            folder, _, name = path.rpartition("/")
            home = homes[folder].folder if folder in homes else folder
            present = names.setdefault(home, set())
            new = next(one for one in names_like(self._own(name)) if one not in present)
            present.add(new)
            new_paths[path] = f"{home}/{new}" if home else new
        return new_paths

    def _own(self, name: str) -> str:
        own = str(uuid.UUID(self.write_id))
        text, number = _UUID.subn(own, name, 1)
        return text if number else f"{own}-{name}"

    def syncing(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        """See `Staging.syncing`; stores keep what has been closed."""
        return nullcontext()

    def sync(self, changes: Sequence[PartitionChange]) -> None:
        """See `Staging.sync`."""

    def moving(self, intent: Intent) -> RemoteMoving:
        """See `Staging.moving`."""
        return RemoteMoving(self._root, self._folder, intent, STAGED)
