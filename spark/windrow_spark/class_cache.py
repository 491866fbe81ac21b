"""Compiled classes, kept in a folder of the user's for the next driver.

Whatever goes wrong with the folder, classes are compiled as if there were none: a driver without a home,
a full disk, a folder that others may write to, an entry that is damaged.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form

_FOLDERS = ("windrow", "windrow/classes")
_FOLDER = _FOLDERS[-1]
_PATH = re.compile(rf"{_FOLDER}/[0-9a-f]{{64}}\.zip")
_OURS = Form(_PATH)
# A newer version makes other entries. One that is in use is made again in seconds.
_OLD = Form(_PATH, min_age_s=30 * 86_400)
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Those of a driver have 0.5 MB.
_MOST_BYTES = 16_000_000
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def users_caches() -> Path | None:
    """Return the folder for caches of this user's; None if the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None


def check(caches: Path) -> None:
    """Make sure that classes can be kept in a folder for caches.

    Raises:
        OSError: It cannot be used, or others may write to it.
    """
    _opened(caches)


def kept(caches: Path, key: str) -> dict[str, bytes] | None:
    """Return the code of classes by their names; None if they are to be compiled.

    Args:
        caches: A folder for caches.
        key: A SHA-256 of all that they depend on, in hex.
    """
    path = f"{_FOLDER}/{key}.zip"
    try:
        root = _opened(caches)
        status = root.status(path)
        if status is None or not _is_ours(status) or status.st_size > _MOST_BYTES:
            return None
        with zipfile.ZipFile(io.BytesIO(root.content(path, _MOST_BYTES))) as archive:
            sizes = [entry.file_size for entry in archive.infolist()]
            # Each entry has a checksum, which reading compares.
            names = archive.namelist() if sum(sizes) <= _MOST_BYTES else []
            return {name: archive.read(name) for name in names} or None
    except (OSError, *_DAMAGE):
        return None


def keep(caches: Path, key: str, classes: Mapping[str, bytes]) -> None:
    """Keep classes for the next driver, if possible, and remove those that are a month old."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, code in classes.items():
            archive.writestr(name, code)
    with suppress(OSError):
        root = _opened(caches)
        path = f"{_FOLDER}/{key}.zip"
        root.write_file(path, content.getvalue(), _OURS, mode=0o600, lasting=False)
        for name, _ in root.entries(_FOLDER):
            with suppress(OSError):
                root.remove_file(f"{_FOLDER}/{name}", _OLD)


def _opened(caches: Path) -> Root:
    """Open a folder for caches, and make ours in it unless it exists.

    Raises:
        OSError: It cannot be used, or others may write to it.
    """
    caches.mkdir(mode=0o700, parents=True, exist_ok=True)
    root = Root.resolved(str(caches))
    root.make_folder(_FOLDER, 0o700)
    for folder in _FOLDERS:
        status = root.status(folder)
        if status is None or not _is_ours(status):
            raise PermissionError(f"others may write to {caches / folder}")
    return root


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _BY_OTHERS
