"""Runs of packers, which say that they are alive, so that what one that was killed has left is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from windrow_core.models.packs import PackingRunRequest
from windrow_service.usecases.packs.errors import PacksDisabledError
from windrow_service.usecases.packs.ports import PackFolder, PackRun, PackStore
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.ports import TableStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewRun:
    """Begin a run of a packer, note a sign of its life, or end it.

    Attributes:
        tables: The store of tables.
        packs: The store of packs.
        folder: Where packs lie; None if there are to be none.
        clock: The time.
        longest: Longest lease: what a killed packer has left stays for as long.
    """

    tables: TableStore
    packs: PackStore
    folder: PackFolder | None
    clock: Clock
    longest: timedelta

    async def __call__(self, name: str, run_id: str, request: PackingRunRequest) -> None:
        """Note a sign of life; without lease, the run has left nothing and is forgotten.

        Raises:
            PacksDisabledError: No folder for packs is set.
            TableNotFoundError: No table has this name.
            PackingRunOverError: The run is over, or its snapshot was dropped.
        """
        if self.folder is None:
            raise PacksDisabledError
        table = await self.tables.get(name)
        if not request.lease_seconds:
            await self.packs.end_run(table.table_id, run_id)
            return
        lease = min(timedelta(seconds=request.lease_seconds), self.longest)
        run = PackRun(
            run_id=run_id,
            table_id=table.table_id,
            home=self.folder.home_of(table),
            lease_until=self.clock() + lease,
        )
        await self.packs.renew_run(table, run, request.snapshot_id)
