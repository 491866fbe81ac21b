"""Partitions of a table that are worth compacting, and the causes of its small files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windrow_calls.arguments import checked
from windrow_calls.listing import Listing, Page
from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.models import CompactionPlan, CompactionRequest, TableAdvice
from windrow_core.sizes import parse_size

DEFAULT_TARGET_SIZE = 128 * 2**20


class CompactionCalls(Calls):
    """Calls about the small files that a table already has."""

    def plan_compaction(
        self,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        snapshot_id: int | None = None,
        with_paths: bool = False,
        **options: Any,
    ) -> Listing[CompactionPlan]:
        """Return the partitions that are worth compacting, as a list of batches.

        There is at least one batch, which may be empty; `totals` of each are those of all. All batches are of one snapshot, and
        nothing is rewritten.

        Args:
            table: Name of the table.
            filter: Filter on partition columns only, which selects the partitions to consider.
            snapshot_id: Id of a snapshot; the current one by default.
            with_paths: Whether to include the paths of the files.
            **options: See `windrow_core.models.CompactionRequest`, for example
                `target_file_size="256MB"` or `min_files=10`.

        Example:
            plans = client.plan_compaction("sales.events", target_file_size="256MB")
            plans[0].totals.files, plans[0].totals.becomes
        """
        request = checked(
            CompactionRequest,
            {"filter": filter, "snapshot_id": snapshot_id, "with_paths": with_paths, **options},
        )
        return Listing(self._batches(table, request), "batches")

    def _batches(self, table: str, request: CompactionRequest) -> Iterator[Page]:
        path = f"{table_path(table)}/compaction-plans"
        while True:
            answer = self._transport.call("POST", path, body=request.model_dump_json())
            batch = read_answer(CompactionPlan, answer)
            yield Page([batch], batch.next_offset is None)
            request = request.model_copy(
                update={"snapshot_id": batch.snapshot_id, "offset": batch.next_offset}
            )

    def advise(
        self, table: str, *, target_file_size: int | str = DEFAULT_TARGET_SIZE
    ) -> TableAdvice:
        """Return which writes made a table's files, what went wrong, and what would have helped.

        Args:
            table: Name of the table.
            target_file_size: Target size of a file, in bytes or as text such as `"128MB"`.

        Example:
            for advice in client.advise("sales.events").advice:
                print(advice.problem, advice.remedy)
        """
        size_bytes = parse_size(target_file_size)
        assert isinstance(size_bytes, int)
        answer = self._transport.call(
            "GET", f"{table_path(table)}/advice", params={"target_file_size": size_bytes}
        )
        return read_answer(TableAdvice, answer)
