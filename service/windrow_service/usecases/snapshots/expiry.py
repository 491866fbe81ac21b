"""Drop old snapshots, and the manifests that only they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from windrow_service.usecases.ports import Clock, Once
from windrow_service.usecases.snapshots.ports import SnapshotKeeping
from windrow_service.usecases.tables.errors import TableProtectedError
from windrow_service.usecases.tables.ports import TableStore

# Small enough for a short transaction.
_MANIFESTS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSnapshots:
    """Drop snapshots that are old and not among the newest, or beyond the maximum number.

    Attributes:
        tables: The store of tables.
        keeping: Drops snapshots.
        clock: Tells the time.
        keep_last: How many of the newest snapshots stay, unless a caller says otherwise.
        max_age: Age up to which snapshots stay, unless a caller says otherwise.
        max_count: Most snapshots that stay, however new, unless a caller keeps more.
    """

    tables: TableStore
    keeping: SnapshotKeeping
    clock: Clock
    keep_last: int
    max_age: timedelta
    max_count: int

    async def __call__(
        self,
        name: str,
        keep_last: int | None = None,
        max_age: timedelta | None = None,
        once: Once | None = None,
    ) -> Sequence[int]:
        """Drop snapshots of one table; return their ids, ascending.

        The current snapshot stays, and so do those to which an unexpired plan is pinned.

        Raises:
            TableNotFoundError: No table has this name.
            TableProtectedError: The table is protected.
        """
        table = await self.tables.get(name)
        if table.info.deletion_protection:
            raise TableProtectedError(name, "its snapshots cannot be dropped")
        now = self.clock()
        keep_last = self.keep_last if keep_last is None else keep_last
        return await self.keeping.expire(
            table,
            keep_last=keep_last,
            max_count=max(keep_last, self.max_count),
            created_before=now - (self.max_age if max_age is None else max_age),
            now=now,
            once=once,
        )

    async def everywhere(self) -> None:
        """Drop old snapshots of each table that is not protected, then manifests in no snapshot."""
        now = self.clock()
        await self.keeping.expire(
            None,
            keep_last=self.keep_last,
            max_count=self.max_count,
            created_before=now - self.max_age,
            now=now,
        )
        while await self.keeping.collect(_MANIFESTS_AT_ONCE) == _MANIFESTS_AT_ONCE:
            pass
