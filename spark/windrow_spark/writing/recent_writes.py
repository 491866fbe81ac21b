"""The latest writes by Spark's statements: what was asked for, and the result."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow_core.cards import Card, Cell, Shown, ShownList, card_of, row_of
from windrow_core.models import WriteMode, WriteReport

_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Write(Shown):
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


@card_of.register
def _(write: Write) -> Card:
    report = card_of(write.report)
    return Card(f"Write to {write.table}", [("mode", write.mode), *report.facts], report.grids)


@row_of.register
def _(write: Write) -> Mapping[str, Cell]:
    report = write.report
    return {
        "table": write.table,
        "mode": write.mode,
        "rows>": f"{report.rows:,}",
        "files>": f"{report.files:,}",
        "small files>": f"{report.small_files:,}",
    }


_writes: deque[Write] = deque(maxlen=_KEPT)


def note(write: Write) -> None:
    """Keep a write as the latest of this process."""
    _writes.append(write)


def recent_writes(table: str | None = None) -> list[Write]:
    """Return the latest writes of statements in this process, at most 100, the newest first.

    Args:
        table: Name of a table, to return only its writes.

    Example:
        windrow.spark.recent_writes("sales.events")
    """
    writes = (write for write in reversed(_writes.copy()) if table in (None, write.table))
    return ShownList(writes, "writes")
