"""How diskcache stores bytes here: plainly, nothing of it ever unpickled."""

from __future__ import annotations

import os
from typing import Any


def plain_disk(diskcache: Any) -> Any:
    """Return a `Disk` that neither pickles nor unpickles: the folder may hold anything."""

    class PlainDisk(diskcache.Disk):  # type: ignore[misc]
        def put(self, key: Any) -> Any:
            if type(key) is not str:
                raise TypeError("keys are text")
            return key, True

        def get(self, key: Any, raw: Any) -> Any:
            if not raw or type(key) is not str:
                raise OSError("a key that is not text")
            return key

        def store(self, value: Any, read: bool, key: Any = None) -> Any:
            if not read:
                if type(value) is not bytes or len(value) >= self.min_file_size:
                    raise TypeError("small values are bytes, and large ones files")
                return super().store(value, read, key=key)
            # A whole file, which takes its place at once.
            filename, full_path = self.filename(key, value)
            os.makedirs(os.path.dirname(full_path), 0o700, exist_ok=True)
            os.rename(value, full_path)
            return os.stat(full_path).st_size, diskcache.core.MODE_BINARY, filename, None

        def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
            if mode == diskcache.core.MODE_BINARY:
                return super().fetch(mode, filename, value, read)
            if mode == diskcache.core.MODE_RAW and type(value) is bytes:
                return value
            raise OSError("an entry that holds something else than bytes")

    return PlainDisk
