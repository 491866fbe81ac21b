"""Moving the files of a commit into a table on a store: new names first, old files last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from windrow_core.files.roots.proofs import Proof, Record
from windrow_core.files.roots.stores import StoreRoot
from windrow_tables.commits.intents import Intent, PartitionChange


@dataclass(frozen=True, slots=True)
class RemoteMoving:
    """Moves files as an intent says; see `Moving`.

    New files get names that no file had before, so a step that another process has done already
    is told by its outcome.

    Attributes:
        root: The table's folder.
        staging: The write's staging folder, below it.
        intent: The intent recorded there.
        proof: Proves that something lies in a staging folder.
    """

    root: StoreRoot
    staging: str
    intent: Intent
    proof: Proof

    def move_in(self, on_moved: Callable[[int], None] = lambda _: None) -> None:
        """See `Moving.move_in`."""
        steps = self.root.bring(
            [
                (f"{self.staging}/data/{self.intent.sources[path]}", path)
                for path in self.intent.added()
            ],
            self.proof,
        )
        for done, change in enumerate(self.intent.partitions, 1):
            for _ in islice(steps, len(change.added)):
                pass
            on_moved(done)

    def finish(self) -> None:
        """See `Moving.finish`."""
        for change in self.intent.partitions:
            if change.gone:
                self._remove(change)

    def _remove(self, change: PartitionChange) -> None:
        states = {change.path(name): state for name, state in change.gone.items()}
        # Files that have changed meanwhile are no longer the old ones.
        self.root.remove_files(states, Record(states))
        if not change.added:
            self.root.remove_empty(change.folder)
