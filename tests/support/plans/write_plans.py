"""Write plans made by hand, for tests of their execution on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from windrow_core.models import Column, KeyFiles, TableInfo, WritePlan

_NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)


def plan_of(
    scheme: str,
    tasks: int,
    columns: Mapping[str, str],
    *,
    salt_columns: Sequence[str] = ("id",),
    salts: int | None = None,
    keys: KeyFiles | None = None,
) -> WritePlan:
    """Return a plan of a scheme; purely informative fields are made up."""
    outcome = {
        "scheme": scheme,
        "serves": True,
        "reason": "it was asked for",
        "tasks": tasks,
        "files": tasks,
        "small_files": 0,
        **dict.fromkeys(("mean_file", "largest_file", "largest_task", "efficiency"), 1.0),
        **dict.fromkeys(("mean_file_bytes", "largest_file_bytes", "largest_task_bytes"), None),
        **dict.fromkeys(("collisions", "severe_collisions"), 0.0),
        "most_keys_in_a_task": 1,
        "exact": True,
    }
    return WritePlan.model_validate(
        {
            "table": "events",
            "snapshot_id": None,
            "target_file_bytes": None,
            "target_file_rows": 1_000,
            "basis": "rows",
            "row_size": None,
            "rows": None,
            **dict.fromkeys(("files", "files_low", "files_high"), tasks),
            "scheme": scheme,
            "tasks": tasks,
            "salts": salts,
            "partition_columns": _columns(columns),
            "salt_columns": list(salt_columns),
            "keys": keys,
            "outcome": outcome,
        }
    )


def exact_keys(
    columns: Mapping[str, str], files: Mapping[tuple[Any, ...], int], *, bucketed: bool = False
) -> tuple[KeyFiles, int]:
    """Return keys with consecutive tasks, and the number of tasks.

    Args:
        columns: Names and types of the partition columns.
        files: Number of files by key; a key is its values, followed by its bucket if there is one.
        bucketed: Whether keys end with a bucket.
    """
    values: list[list[Any]] = [list(column) for column in zip(*files, strict=True)]
    buckets = values.pop() if bucketed else None
    first_task: list[int] = []
    tasks = 0
    for count in files.values():
        first_task.append(tasks)
        tasks += count
    keys = KeyFiles(
        columns=_columns(columns),
        values=values,
        buckets=buckets,
        rows=[1] * len(files),
        files=list(files.values()),
        first_task=first_task,
    )
    return keys, tasks


def table_of(location: str, **definition: Any) -> TableInfo:
    """Return a table without files."""
    return TableInfo.model_validate(
        {
            "name": "events",
            "definition": {"location": location, **definition},
            "created_at": _NOW,
            "updated_at": _NOW,
        }
    )


def _columns(columns: Mapping[str, str]) -> list[Column]:
    return [Column(name=name, type=type_) for name, type_ in columns.items()]
