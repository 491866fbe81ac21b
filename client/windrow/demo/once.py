"""Tables that are generated once and then reused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from windrow.demo.errors import ForeignFolderError

# Begins with '_', so that neither Spark nor the coordinator takes it for data.
_MARKER = "_windrow.json"


def write_once(
    folder: Path, stamp: Mapping[str, object], write: Callable[[Path], None], *, file_count: int
) -> bool:
    """Let `write` fill a folder unless it has done so before.

    A folder whose writing was interrupted, whose stamp differs, or in which files are missing
    is emptied and written anew.

    Args:
        folder: Where the table lies; made if need be.
        stamp: What was asked of the writer: changes when the table does. JSON values.
        write: Fills the folder.
        file_count: Data files that it writes.

    Returns:
        Whether it was written now.

    Raises:
        ForeignFolderError: The folder holds something that was not written through here.
    """
    marker = folder / _MARKER
    complete = {"complete": True, **stamp}
    if marker.exists():
        if _content(marker) == complete and count_files(folder) == file_count:
            return False
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise ForeignFolderError(folder)
    folder.mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps({"complete": False}))
    write(folder)
    finished = folder / f"{_MARKER}.new"
    finished.write_text(json.dumps(complete))
    finished.replace(marker)
    return True


def count_files(folder: Path) -> int:
    """Count the Parquet files under a folder."""
    return sum(name.endswith(".parquet") for _, _, files in os.walk(folder) for name in files)


def _content(marker: Path) -> object:
    try:
        return json.loads(marker.read_text())
    except ValueError:
        return None
