"""Plans of writes as they travel."""

from __future__ import annotations

from windrow.models import KeyFiles, WriteOutcome
from windrow_service.planner.writes.decide import Judged
from windrow_service.planner.writes.exact import ExactTasks
from windrow_service.usecases.writes.keys import KeyTable


def key_files(counted: KeyTable, tasks: ExactTasks) -> KeyFiles:
    """Return the files and tasks of each key."""
    return KeyFiles(
        columns=counted.columns,
        values=counted.travelling(),
        buckets=None if counted.buckets is None else counted.buckets.tolist(),
        rows=counted.rows.tolist(),
        files=tasks.files.tolist(),
        first_task=tasks.first.tolist(),
    )


def wire_outcome(judged: Judged, target_bytes: int | None) -> WriteOutcome:
    """Return what a scheme comes to, in bytes as well where the target is known in bytes."""
    outcome = judged.outcome

    def in_bytes(targets: float) -> int | None:
        return None if target_bytes is None else round(targets * target_bytes)

    return WriteOutcome.model_validate(
        {
            "scheme": judged.scheme,
            "serves": judged.serves,
            "reason": judged.reason,
            "tasks": outcome.tasks,
            "scale": outcome.scale,
            "salts": outcome.salts,
            "files": outcome.files,
            "small_files": outcome.small_files,
            "mean_file": outcome.mean_file,
            "largest_file": outcome.largest_file,
            "largest_task": outcome.largest_task,
            "mean_file_bytes": in_bytes(outcome.mean_file),
            "largest_file_bytes": in_bytes(outcome.largest_file),
            "largest_task_bytes": in_bytes(outcome.largest_task),
            "efficiency": outcome.efficiency,
            "collisions": outcome.collisions,
            "severe_collisions": outcome.severe,
            "most_keys_in_a_task": outcome.most_keys,
            "exact": outcome.exact,
        }
    )
