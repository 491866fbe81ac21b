"""Intents: what a commit is about to move, recorded so that anybody can finish it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow_core.files.listing import is_hidden
from windrow_core.files.status import FileStatus
from windrow_core.models import StreamBatch, WriteKind, WriteMode, WriteReport
from windrow_spark.commits.errors import UnreadableIntentError
from windrow_spark.commits.posix import remove_file, write_atomically

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
    """Return the intent that a file in a staging folder contains."""
    try:
        document = json.loads(content)
        if document["version"] != _VERSION:
            raise UnreadableIntentError(staging, f"its version is {document['version']}")
        return Intent(
            write_id=document["write_id"],
            table=document["table"],
            kind=document["kind"],
            mode=document["mode"],
            whole=document["whole"],
            partitions=tuple(map(_change, document["partitions"])),
            report=WriteReport.model_validate(document["report"]),
            batch=_batch(document.get("batch")),
            sources=document.get("sources", {}),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableIntentError(staging, str(error)) from error


def record(staging: str, intent: Intent) -> None:
    """Write an intent into a local staging folder, atomically and durably."""
    write_atomically(os.path.join(staging, INTENT_FILE), encoded(intent))


def recorded(staging: str) -> Intent | None:
    """Return the intent in a local staging folder.

    Without an intent, nothing was moved, and the result is None.
    """
    try:
        with open(os.path.join(staging, INTENT_FILE), "rb") as file:
            return decoded(staging, file.read())
    except FileNotFoundError:
        return None


def forget(staging: str) -> None:
    """Remove the intent in a staging folder, if there is one."""
    remove_file(os.path.join(staging, INTENT_FILE))


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
