"""Moving the files of a commit into a table on a store: new names first, old files last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from windrow_core.files import changes
from windrow_core.files.remote import contents_of
from windrow_core.files.table_paths import absolute_path
from windrow_spark.commits.intents import Intent, PartitionChange


@dataclass(frozen=True, slots=True)
class RemoteMoving:
    """Moves files as an intent says; see `Moving`.

    New files get names that no file had before, so a step that another process has done already
    is told by its outcome.

    Attributes:
        location: URI of the table.
        data: URI of the folder that new files were staged in.
        intent: The intent.
    """

    location: str
    data: str
    intent: Intent

    def move_in(self, on_moved: Callable[[int], None] = lambda _: None) -> None:
        """See `Moving.move_in`."""
        steps = changes.bring_all(
            [
                (absolute_path(self.data, self.intent.sources[path]), self._live(path))
                for path in self.intent.added()
            ]
        )
        for done, change in enumerate(self.intent.partitions, 1):
            for _ in islice(steps, len(change.added)):
                pass
            on_moved(done)

    def finish(self) -> None:
        """See `Moving.finish`; files that have changed meanwhile are no longer the old ones."""
        for change in self.intent.partitions:
            if change.gone:
                self._remove(change)

    def _remove(self, change: PartitionChange) -> None:
        folder = self._live(change.folder)
        _, present = contents_of(folder)
        changes.remove_all(
            f"{folder}/{name}" for name, state in change.gone.items() if present.get(name) == state
        )
        if not change.added:
            changes.remove_empty(folder, self.location)

    def _live(self, path: str) -> str:
        return absolute_path(self.location, path)
