"""The folder of packs: a folder on a disk, or a prefix of an object store."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Collection, Sequence
from contextlib import suppress

from windrow_core.files.objects.requests import Traffic
from windrow_core.files.packs import PACK_PATH, paths_of_run
from windrow_core.files.remote import contents_of, open_remote_file, remote_status
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form, Record
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_service.engines.metadata import table_uuid
from windrow_service.usecases.packs.ports import PackRun
from windrow_service.usecases.tables.ports import StoredTable

_PIECE_BYTES = 2**20


class DiskOrStoreFolder:
    """`PackFolder`; removed are packs that the database names, and what runs have left that it names.

    Args:
        path: The folder: an absolute path, or a URI.
    """

    def __init__(self, path: str) -> None:
        self._path = path.rstrip("/")

    @property
    def path(self) -> str:
        """See `PackFolder.path`."""
        return self._path

    def home_of(self, table: StoredTable) -> str:
        """See `PackFolder.home_of`."""
        return table_uuid(table.info, table.table_id)

    def status(self, path: str) -> FileStatus | None:
        """See `PackFolder.status`."""
        try:
            if is_remote(path):
                return remote_status(path)
            status = os.stat(path)
        except FileNotFoundError:
            return None
        return FileStatus(status.st_size, status.st_mtime_ns)

    def digest(self, path: str) -> str:
        """See `PackFolder.digest`."""
        digest = hashlib.sha256()
        if is_remote(path):
            with open_remote_file(path, None, Traffic()) as remote:
                while piece := remote.file.read(_PIECE_BYTES):
                    digest.update(piece)
        else:
            with open(path, "rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
        return digest.hexdigest()

    def remove_left(self, run: PackRun, paths_to_keep: Collection[str]) -> Sequence[str]:
        """See `PackFolder.remove_left`."""
        form = paths_of_run(run.home, run.run_id)
        _, files = contents_of(f"{self._path}/{run.home}")
        left = {f"{run.home}/{name}": state for name, state in files.items()}
        left = {
            path: state
            for path, state in left.items()
            if form.fullmatch(path) and f"{self._path}/{path}" not in paths_to_keep
        }
        # What is written at this moment is another file than the one that was looked at.
        proofs = Form(form), Record(left)
        if left and is_remote(self._path):
            for error in StoreRoot(self._path).remove_files(left, *proofs):
                raise error
        elif left:
            root = Root.resolved(self._path)
            for path in left:
                root.remove_file(path, *proofs)
        return [f"{self._path}/{path}" for path in left]

    def remove(self, path: str) -> None:
        """See `PackFolder.remove`."""
        name = path.removeprefix(f"{self._path}/")
        if name == path:
            if self.status(path) is not None:
                raise PermissionError(
                    errno.EPERM,
                    "pack lies in another folder than that of packs: set WINDROW_PACKS__FOLDER to its "
                    "folder again, or remove it by hand",
                    path,
                )
            return
        proofs = Form(PACK_PATH), Record({name: None})
        if is_remote(self._path):
            for error in StoreRoot(self._path).remove_files([name], *proofs):
                raise error
            return
        home = name.partition("/")[0]
        if not os.path.isdir(f"{self._path}/{home}"):
            # What is not mounted now may be again, with all rows.
            raise FileNotFoundError(
                errno.ENOENT,
                "folder of packs is missing: mount it again, or make it if it is gone for good",
                f"{self._path}/{home}",
            )
        Root.resolved(self._path).remove_file(name, *proofs)

    def tidy(self, path: str) -> None:
        """See `PackFolder.tidy`."""
        home = path.removeprefix(f"{self._path}/").partition("/")[0]
        with suppress(FileNotFoundError):
            if not is_remote(self._path):
                Root.resolved(self._path).remove_empty(home)
