"""The call that plans a write."""

from __future__ import annotations

from windrow.calls.transport import Transport, read_answer
from windrow.models import WritePlan, WritePlanRequest


class WritePlanCalls:
    """The part of a client that plans writes from figures; `plan_write` plans one of a DataFrame."""

    _transport: Transport

    def write_plan(self, request: WritePlanRequest) -> WritePlan:
        """Say how many files a write should make, and how Spark is to make just those.

        Args:
            request: The table and the rows of each key, or figures.

        Raises:
            ProblemError: The request contradicts itself or the table, says too little, or the
                write would make more files than `max_files`.
        """
        answer = self._transport.call("POST", "/write-plans", body=request.model_dump_json())
        return read_answer(WritePlan, answer)
