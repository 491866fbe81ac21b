"""Intents: what a commit is about to move, recorded so that anybody can finish it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow_core.files.listing import is_hidden
from windrow_core.files.roots.proofs import OutsideError, parts_of
from windrow_core.files.status import FileStatus
from windrow_core.models import StreamBatch, WriteKind, WriteMode, WriteReport
from windrow_tables.commits.errors import UnreadableIntentError, UnsafeIntentError

INTENT_FILE = "intent.json"
# Raise this when the meaning of an intent changes.
_VERSION = 1


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What a commit changes in one folder of data files.

    Attributes:
        folder: Path relative to the location; empty for the location itself, whose files are
            moved one by one.
        inode: Inode of the staged folder that replaces this one; None if the folder is removed,
            or is the location itself.
        added: Names of new files.
        kept: Names of files, hidden ones too, that are also linked in the staged folder.
        gone: State of each file to remove, by name.
    """

    folder: str
    inode: int | None
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    gone: Mapping[str, FileStatus] = field(default_factory=dict)

    @property
    def loses_data(self) -> bool:
        """Whether a data file is removed."""
        return any(not is_hidden(name) for name in self.gone)

    def path(self, name: str) -> str:
        """Return the path of a file in the folder, relative to the location."""
        return f"{self.folder}/{name}" if self.folder else name


@dataclass(frozen=True, slots=True)
class Intent:
    """One commit.

    Attributes:
        write_id: The write.
        table: The table's name.
        kind: Kind of the write.
        mode: Mode of the write.
        whole: Whether all files of the table are published, not only what changed.
        partitions: The partitions that change; all others stay as they are.
        report: Report of the write.
        batch: The batches of a stream that the write contains.
        sources: On stores, where the path of each new file lies in the staging folder; on local
            disks, it is the same.
    """

    write_id: str
    table: str
    kind: WriteKind
    mode: WriteMode
    whole: bool
    partitions: tuple[PartitionChange, ...]
    report: WriteReport
    batch: StreamBatch | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def added(self) -> list[str]:
        """Return the paths of all new data files."""
        return [one.path(name) for one in self.partitions for name in one.added]

    def gone(self) -> list[str]:
        """Return the paths of removed data files that no new file of that name replaces."""
        return [
            one.path(name)
            for one in self.partitions
            for name in one.gone.keys() - set(one.added)
            if not is_hidden(name)
        ]


def encoded(intent: Intent) -> bytes:
    """Return an intent as the content of a file."""
    document = {
        "version": _VERSION,
        "write_id": intent.write_id,
        "table": intent.table,
        "kind": intent.kind,
        "mode": intent.mode,
        "whole": intent.whole,
        "partitions": [
            {
                "folder": one.folder,
                "inode": one.inode,
                "added": one.added,
                "kept": one.kept,
                "gone": {name: _state(status) for name, status in one.gone.items()},
            }
            for one in intent.partitions
        ],
        "report": intent.report.model_dump(mode="json"),
    }
    if intent.batch is not None:
        document["batch"] = intent.batch.model_dump(mode="json")
    if intent.sources:
        document["sources"] = dict(intent.sources)
    return json.dumps(document).encode()


def decoded(staging: str, content: bytes) -> Intent:
    """Return the intent that a file in a staging folder contains.

    Whoever can write to the table's folder can write intents, so nothing is followed that leads out of
    the table, or to what is none of its files.

    Args:
        staging: Absolute path, or URI, of the folder.
        content: The file's content.

    Raises:
        UnreadableIntentError: It is of another version, or damaged.
        UnsafeIntentError: It names what no commit moves.
    """
    try:
        document = json.loads(content)
        if document["version"] != _VERSION:
            raise UnreadableIntentError(staging, f"its version is {document['version']}")
        intent = Intent(
            write_id=document["write_id"],
            table=document["table"],
            kind=document["kind"],
            mode=document["mode"],
            whole=document["whole"],
            partitions=tuple(map(_change, document["partitions"])),
            report=WriteReport.model_validate(document["report"]),
            batch=_batch(document.get("batch")),
            sources=dict(document.get("sources", {})),
        )
        _require_safe(staging, intent)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableIntentError(staging, str(error)) from error
    return intent


def _require_safe(staging: str, intent: Intent) -> None:
    reason = None
    if intent.write_id != staging.rpartition("/")[2]:
        reason = f"it is of write {intent.write_id!r}, not of the one whose folder it lies in"
    for one in intent.partitions:
        reason = reason or _why_no_folder(one.folder)
        for name in (*one.added, *one.kept, *one.gone):
            if _is_outside(name) or "/" in name:
                reason = reason or f"{name!r} is no name of a file"
        for name in one.added if reason is None else ():
            if is_hidden(name):
                reason = f"{name!r} is no name of a data file"
    for path in (*intent.sources, *intent.sources.values()):
        if _is_outside(path):
            reason = reason or f"{path!r} is no path of the table"
    if reason is not None:
        raise UnsafeIntentError(intent.table, staging, reason)


def _why_no_folder(folder: str) -> str | None:
    """Return why a folder cannot be one of the table's with data files; an empty one is its own."""
    if folder == "":
        return None
    if _is_outside(folder):
        return f"{folder!r} is no path of the table"
    if any(is_hidden(part, is_folder=True) for part in folder.split("/")):
        return f"folder {folder!r} holds no data files"
    return None


def _is_outside(path: str) -> bool:
    """Return whether a path may lead out of the folder that it is relative to, or names the folder."""
    try:
        return not path or "://" in path or not parts_of("", path)
    except OutsideError:
        return True


def _batch(document: Mapping[str, Any] | None) -> StreamBatch | None:
    return None if document is None else StreamBatch.model_validate(document)


def _state(status: FileStatus) -> Sequence[object]:
    """Return a state as earlier versions read it, if it has no ETag."""
    return status if status.etag is not None else status[:2]


def _change(document: Mapping[str, Any]) -> PartitionChange:
    return PartitionChange(
        folder=document["folder"],
        inode=document["inode"],
        added=tuple(document["added"]),
        kept=tuple(document["kept"]),
        gone={name: FileStatus(*state) for name, state in document["gone"].items()},
    )
