"""Which partitions of a table are worth compacting, and how its small files came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windrow.calls.arguments import checked
from windrow.calls.transport import Calls, read_answer, table_path
from windrow.models import CompactionPlan, CompactionRequest, TableAdvice
from windrow.sizes import parse_size

DEFAULT_TARGET_SIZE = 128 * 2**20


class CompactionCalls(Calls):
    """The calls that are about small files that a table already has."""

    def plan_compaction(
        self,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        snapshot_id: int | None = None,
        with_paths: bool = False,
        **options: Any,
    ) -> Iterator[CompactionPlan]:
        """Yield the partitions that are worth compacting, a batch at a time.

        There is at least one batch, which may be empty. All are of one snapshot, and nothing is
        rewritten.

        Args:
            table: Its name.
            filter: On partition columns alone: which partitions to look at.
            snapshot_id: A version of the table; the current one by default.
            with_paths: Name the files, too.
            **options: See `windrow.models.CompactionRequest`, for example
                `target_file_size="256MB"` or `min_files=10`.
        """
        request = checked(
            CompactionRequest,
            {"filter": filter, "snapshot_id": snapshot_id, "with_paths": with_paths, **options},
        )
        path = f"{table_path(table)}/compaction-plans"
        while True:
            answer = self._transport.call("POST", path, body=request.model_dump_json())
            page = read_answer(CompactionPlan, answer)
            yield page
            if page.next_offset is None:
                return
            request = request.model_copy(
                update={"snapshot_id": page.snapshot_id, "offset": page.next_offset}
            )

    def advise(
        self, table: str, *, target_file_size: int | str = DEFAULT_TARGET_SIZE
    ) -> TableAdvice:
        """Tell which writes made a table's files, what went wrong, and what would have helped.

        Args:
            table: Its name.
            target_file_size: The size that a file should have; bytes, or text such as `"128MB"`.
        """
        size_bytes = parse_size(target_file_size)
        assert isinstance(size_bytes, int)
        answer = self._transport.call(
            "GET", f"{table_path(table)}/advice", params={"target_file_size": size_bytes}
        )
        return read_answer(TableAdvice, answer)
