"""The folder of packs: a folder on a disk, or a prefix of an object store."""

from __future__ import annotations

import hashlib
import os

from windrow_core.files.objects.requests import Traffic
from windrow_core.files.packs import PACK_PATH
from windrow_core.files.remote import open_remote_file, remote_status
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form, Record
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_service.engines.metadata import table_uuid
from windrow_service.usecases.tables.ports import StoredTable

_PIECE_BYTES = 2**20


class DiskOrStoreFolder:
    """`PackFolder`, in which only packs that the database names are removed.

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

    def remove(self, path: str) -> None:
        """See `PackFolder.remove`."""
        name = path.removeprefix(f"{self._path}/")
        proofs = Form(PACK_PATH), Record({name: None})
        if is_remote(self._path):
            for error in StoreRoot(self._path).remove_files([name], *proofs):
                raise error
            return
        try:
            root = Root.resolved(self._path)
        except FileNotFoundError:
            return
        root.remove_file(name, *proofs)
        root.remove_empty(name.partition("/")[0])
