"""Writes to tables: plan one, report its state, and look at earlier ones."""

from __future__ import annotations

from windrow_calls.listing import Listing
from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.models import (
    GainedFiles,
    StreamPage,
    StreamRecord,
    WritePage,
    WritePlan,
    WritePlanRequest,
    WriteRecord,
    WriteUpdate,
)


class WriteCalls(Calls):
    """Calls about writes."""

    def write_plan(self, request: WritePlanRequest) -> WritePlan:
        """Plan how many files a write should make, and how Spark can make exactly that many.

        Args:
            request: The table and the rows of each key, or figures.

        Raises:
            ProblemError: The request contradicts itself or the table, or lacks information; or the
                write would make more files than `max_files`.
        """
        answer = self._transport.call("POST", "/write-plans", body=request.model_dump_json())
        return read_answer(WritePlan, answer)

    def writes(self, table: str, *, open_only: bool = False) -> Listing[WriteRecord]:
        """Return a table's writes, newest first.

        Args:
            table: Name of the table.
            open_only: Whether to leave out finished writes.

        Example:
            newest = client.writes("sales.events")[0]
            newest.state, newest.report.files
        """
        params: dict[str, str | int] = {"open": "true"} if open_only else {}
        path = f"{table_path(table)}/writes"
        return self._transport.listing(WritePage, "writes", path, params)

    def write_record(self, table: str, write_id: str) -> WriteRecord:
        """Return one write with its report, including the outcome by key if that is kept.

        Example:
            newest = client.writes("sales.events")[0]
            client.write_record("sales.events", newest.write_id).report.keys
        """
        return read_answer(WriteRecord, self._transport.call("GET", _path(table, write_id)))

    def streams(self, table: str) -> Listing[StreamRecord]:
        """Return the streaming queries that have written to a table, newest first.

        Each has the newest of its batches whose rows are in the table.

        Args:
            table: Name of the table.

        Example:
            client.streams("sales.events")
        """
        return self._transport.listing(StreamPage, "streams", f"{table_path(table)}/streams")

    def gained_files(self, table: str, since: int | None) -> GainedFiles:
        """Return the folders that have gained files since an older snapshot.

        Args:
            table: Name of the table.
            since: Id of the older snapshot; None means before the first.
        """
        path = f"{table_path(table)}/gained-files"
        answer = self._transport.call("GET", path, params={"since": since or 0})
        return read_answer(GainedFiles, answer)

    def put_write(self, table: str, write_id: str, update: WriteUpdate) -> WriteRecord:
        """Begin a write, renew its lease, or record its next state.

        Raises:
            WriteInProgressError: Another write is moving files into the table.
            WriteLostError: The write has ended, or belongs to another process.
            WriteCancelledError: Somebody has cancelled the write.
            BatchOrderError: Its stream has published other batches than the write follows.
        """
        body = update.model_dump_json()
        answer = self._transport.call("PUT", _path(table, write_id), body=body)
        return read_answer(WriteRecord, answer)

    def cancel_write(self, table: str, write_id: str) -> WriteRecord:
        """Cancel a write that has not begun to move its files into the table.

        Its driver fails with `WriteCancelledError` at its next step.

        Raises:
            ProblemError: The write has begun to move its files, or has ended.

        Example:
            running = client.writes("sales.events", open_only=True)
            client.cancel_write("sales.events", running[0].write_id)
        """
        return read_answer(WriteRecord, self._transport.call("DELETE", _path(table, write_id)))


def _path(table: str, write_id: str) -> str:
    return f"{table_path(table)}/writes/{write_id}"
