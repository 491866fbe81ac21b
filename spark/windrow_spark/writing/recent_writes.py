"""The latest writes by statements of Spark's: what was asked for, and what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow_core.models import WriteMode, WriteReport

_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that a statement of SQL or a writer of Spark's made.

    Attributes:
        table: The table.
        mode: `append`, or `overwrite_partitions`, which replaces rows.
        replace: The partitions that were replaced whether or not they got new rows, by values of
            partition columns; `{}` if all were, None if only those with new rows were.
        options: The options that were set.
        report: What was planned and what was written, as `client.write` returns it.
    """

    table: str
    mode: WriteMode
    replace: Mapping[str, str | None] | None
    options: Mapping[str, Any]
    report: WriteReport


_writes: deque[Write] = deque(maxlen=_KEPT)


def note(write: Write) -> None:
    """Keep a write as the latest of this process."""
    _writes.append(write)


def recent_writes(table: str | None = None) -> list[Write]:
    """Return the latest writes of statements in this process, at most 100, the newest first.

    Args:
        table: Name of a table, to return only its writes.
    """
    return [write for write in reversed(_writes.copy()) if table in (None, write.table)]
