"""Packs of a table: what is worth one, and publishing, listing and withdrawing them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from windrow_calls.arguments import checked
from windrow_calls.transport import ARROW_STREAM, Calls, read_answer, table_path
from windrow_core.files.packs import PACK_KEY, PLAN_KEY
from windrow_core.files.streams import stream_of
from windrow_core.models.packs import (
    Pack,
    PackDescription,
    PackingPlan,
    PackingRequest,
    PackingRunRequest,
    PackList,
)


class PackCalls(Calls):
    """Calls about files elsewhere that hold the rows of many small files of a table."""

    def plan_packing(self, table: str, **options: Any) -> PackingPlan:
        """Return which files of a table are worth a pack, in figures; nothing is changed.

        Args:
            table: Name of the table.
            **options: See `windrow_core.models.packs.PackingRequest`, such as
                `max_file_size="256KB"`.

        Example:
            plan = client.plan_packing("sales.events")
            plan.files, plan.core_seconds, plan.repaid_after
        """
        body = checked(PackingRequest, options).model_dump_json()
        answer = self._transport.call("POST", f"{table_path(table)}/packing-plans", body=body)
        return read_answer(PackingPlan, answer)

    def packing_files(self, table: str, **options: Any) -> tuple[PackingPlan, pa.Table]:
        """Return what `plan_packing` does, and the files, with the number of the piece of each."""
        body = checked(PackingRequest, options).model_dump_json()
        path, headers = f"{table_path(table)}/packing-plans", {"Accept": ARROW_STREAM}
        answer = self._transport.call("POST", path, body=body, headers=headers)
        files = pa.ipc.open_stream(answer.content).read_all()
        plan = read_answer(PackingPlan, answer, files.schema.metadata[PLAN_KEY])
        return plan, files.replace_schema_metadata(None)

    def renew_packing_run(
        self, table: str, run: str, snapshot_id: int, lease_seconds: int = 60
    ) -> None:
        """Begin a run of a packer, or say that it is alive.

        Args:
            table: Name of the table.
            run: Its id: 16 random hexadecimal digits, with which the names of its packs begin.
            snapshot_id: The snapshot whose files are packed.
            lease_seconds: How long until the next sign of life at the latest; 0 ends the run, which
                has left nothing but what is published.
        """
        options = {"snapshot_id": snapshot_id, "lease_seconds": lease_seconds}
        body = checked(PackingRunRequest, options).model_dump_json()
        self._transport.call("PUT", f"{table_path(table)}/packing-runs/{run}", body=body)

    def publish_pack(self, table: str, description: PackDescription, sources: pa.Table) -> Pack:
        """Publish a pack; the same one again changes nothing.

        Args:
            table: Name of the table.
            description: The pack.
            sources: The files that it was made of, with `path`, `size_bytes`, `mtime_ns`, `etag` and
                `row_count` as in `packing_files`; `digest`, the SHA-256 of their bytes; and `inode` and
                `changed_ns`, their inode numbers and the times of their last change of any kind, which
                are null where these tell nothing. `figures` is optional; see
                `windrow_core.files.figures`.
        """
        metadata = {PACK_KEY: description.model_dump_json()}
        answer = self._transport.call(
            "POST",
            f"{table_path(table)}/packs",
            body=stream_of(sources.replace_schema_metadata(metadata)),
            headers={"Content-Type": ARROW_STREAM},
        )
        return read_answer(Pack, answer)

    def list_packs(self, table: str) -> list[Pack]:
        """Return the packs of a table, newest first, with those removed in the last 90 days.

        Example:
            [(pack.source_count, pack.size_bytes, pack.state) for pack in client.list_packs("sales.events")]
        """
        answer = self._transport.call("GET", f"{table_path(table)}/packs")
        return read_answer(PackList, answer).packs

    def withdraw_pack(self, table: str, pack_id: str) -> None:
        """Withdraw a pack, whose file is removed soon; the table's files stay as they are.

        Args:
            table: Name of the table.
            pack_id: Id of the pack.

        Example:
            for pack in client.list_packs("sales.events"):
                client.withdraw_pack("sales.events", pack.pack_id)
        """
        self._transport.call("DELETE", f"{table_path(table)}/packs/{pack_id}")
