"""Tables that are generated once and then reused, and folders that each run begins anew."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form, Mark
from windrow_demo.errors import DemoError

# Starts with '_', so that neither Spark nor the coordinator reads it as data.
_MARKER = "_windrow.json"
_OWN = Form(re.compile(re.escape(_MARKER)))


def write_once(
    folder: Path,
    stamp: Mapping[str, object],
    write: Callable[[Path], None],
    *,
    file_count: int | None,
) -> bool:
    """Let `write` fill a folder unless it has done so before.

    A folder is emptied and written again if writing it was interrupted, its stamp differs, or
    files are missing.

    Args:
        folder: Folder of the table; created if needed.
        stamp: Parameters of the table, as JSON values; a change means a different table.
        write: Fills the folder.
        file_count: Number of Parquet files that `write` makes, if it is known before.

    Returns:
        Whether the folder was written by this call.

    Raises:
        DemoError: The folder holds something that this function did not write.
    """
    marker = folder / _MARKER
    complete = {"complete": True, **stamp}
    if marker.exists():
        is_whole = file_count is None or count_files(folder) == file_count
        if _content(marker) == complete and is_whole:
            return False
    begin_anew(folder)
    write(folder)
    _mark(folder, complete)
    return True


def begin_anew(folder: Path) -> Path:
    """Return an empty folder, but for a mark, of which an earlier run may have left something.

    Raises:
        DemoError: The folder holds something that the demo did not write.
    """
    content = _content(folder / _MARKER)
    if isinstance(content, dict) and "complete" in content:
        mark = Mark(f"{folder.name}/{_MARKER}", (folder / _MARKER).read_bytes())
        Root.resolved(str(folder.parent)).remove_tree(folder.name, mark)
    elif folder.exists() and any(folder.iterdir()):
        raise DemoError(
            f"{folder} holds files that the demo did not write, so it was not changed: choose "
            "another folder for the data, or move it away"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _mark(folder, {"complete": False})
    return folder


def _mark(folder: Path, content: Mapping[str, object]) -> None:
    root = Root.resolved(str(folder))
    root.write_file(_MARKER, json.dumps(content).encode(), _OWN, lasting=False)


def count_files(folder: Path) -> int:
    """Count the Parquet files under a folder."""
    return sum(name.endswith(".parquet") for _, _, files in os.walk(folder) for name in files)


def _content(marker: Path) -> object:
    try:
        return json.loads(marker.read_text())
    except (FileNotFoundError, ValueError):
        return None
