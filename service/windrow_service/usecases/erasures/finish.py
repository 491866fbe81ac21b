"""Finish an erasure: erase what the coordinator keeps, and sign a receipt."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from typing import Any

from windrow_core.cards import count_text
from windrow_core.files.places import place_of
from windrow_core.models.erasures import ErasureReceipt, ErasureReport
from windrow_service.usecases.audit import actor
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.erasures.plan import require_erasable
from windrow_service.usecases.erasures.ports import ErasureStore
from windrow_service.usecases.erasures.remains import Remains
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.ports import TableStore

_BACKUPS = "backups of the table's folder and of the coordinator's database: let them expire"
_PACKERS = (
    "packers that were at work: they publish nothing, and what they still write is removed as soon as "
    "the coordinator sees it"
)
_VERSIONS = "older versions of objects, if the store keeps them: delete noncurrent versions there"
_READERS = "what readers have copied, their own caches among them"
_ANSWERS = (
    "answers to repeated requests and descriptions for engines of deleted tables, for a day, and "
    "records of writes, which name partition values"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishErasure:
    """Erase what is left of rows that have gone from a table's files, and sign a receipt.

    Attributes:
        tables: The store of tables.
        store: Plans, and the audit log.
        remains: Manifests, snapshots, packs and host caches.
        describe: Descriptions for other engines; None if there are none.
        clock: The time.
        installation: Id of the database.
        key: Signs receipts; all replicas have the same key.
    """

    tables: TableStore
    store: ErasureStore
    remains: Remains
    describe: DescribeTable | None
    clock: Clock
    installation: str
    key: str

    async def __call__(self, name: str, report: ErasureReport) -> ErasureReceipt:
        """Erase the rest, record a receipt in the audit log, and return it.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnerasableTableError: No rows are erased from tables like this one.
            RemainsError: Something cannot be erased now; the same request again goes on.
        """
        require_erasable((await self.tables.get(name)).info)
        rewritten = await self.remains.rewrite_manifests(name)
        table = await self.tables.get(name)
        # Snapshots stay as long as plans are pinned to them.
        plans = await self.store.forget_plans(table)
        snapshots, snapshot = await self.remains.drop_snapshots(table)
        packers = await self.remains.remove_unpublished(table)
        packs, packs_left = await self.remains.remove_packs(table, snapshot)
        descriptions = 0 if self.describe is None else await self.describe.forget_old(table)
        not_reached = [*packs_left, *([_PACKERS] if packers else [])]
        not_reached += await self._not_reached(name, report)
        location = table.info.definition.location
        body = report.model_dump() | {
            "receipt_id": uuid.uuid4().hex,
            "installation": self.installation,
            "table": name,
            "registration": table.table_id,
            "location": location,
            "erased_by": actor().principal,
            "snapshot_id": snapshot.info.snapshot_id,
            "snapshots_dropped": snapshots,
            "manifests_rewritten": rewritten,
            "plans_dropped": plans,
            "packs_removed": packs,
            "descriptions_removed": descriptions,
            "last_byte_at": self.clock(),
            "not_reached": not_reached,
            "signature": "",
        }
        receipt = ErasureReceipt.model_validate(body)
        receipt = receipt.model_copy(update={"signature": self._signature(receipt)})
        await self.store.note(table, receipt)
        return receipt

    def is_genuine(self, receipt: ErasureReceipt) -> bool:
        """Return whether this coordinator has signed a receipt, and nobody has changed it."""
        # As bytes: other texts than ASCII cannot be compared.
        return hmac.compare_digest(receipt.signature.encode(), self._signature(receipt).encode())

    async def _not_reached(self, name: str, report: ErasureReport) -> list[str]:
        table = await self.tables.get(name)
        _, snapshot = await self.remains.snapshots.get(name, None)
        hosts = await self.remains.hosts_with_old_files(table, snapshot)
        texts = [
            f"the cache of host {host}: stop its agent (`windrow worker run`), remove the folder of "
            "the cache, and start it again"
            for host in hosts
        ]
        if report.waiting_batches:
            texts.append(
                "batches of streams that wait in the table's folder: erase again once they are in"
            )
        if others := await self.store.sharing(table):
            texts.append(
                f"{count_text(others, 'other table')} over the same files, with snapshots, plans and "
                "packs: erase there, too"
            )
        left = await self.store.scrub()
        texts += [left] if left is not None else []
        if place_of(table.info.definition.location).has_versions:
            texts.append(_VERSIONS)
        return [*texts, _BACKUPS, _READERS, _ANSWERS]

    def _signature(self, receipt: ErasureReceipt) -> str:
        fields: Any = receipt.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        key = hmac.new(self.key.encode(), b"windrow:erasure-receipt", hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
