"""Erasures: which files of a table may hold rows to erase, and receipts."""

from __future__ import annotations

import pyarrow as pa

from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.files.streams import stream_of
from windrow_core.models.erasures import (
    ERASURE_KEY,
    ErasurePlan,
    ErasureReceipt,
    ErasureReport,
    ErasureRequest,
    ReceiptCheck,
)

_STREAM = "application/vnd.apache.arrow.stream"


class ErasureCalls(Calls):
    """Calls about rows that are erased from tables."""

    def erasure_files(
        self, table: str, request: ErasureRequest, keys: pa.Array | None = None
    ) -> tuple[ErasurePlan, pa.Table]:
        """Return which files of a table may hold rows to erase, in figures and one by one.

        Args:
            table: Name of the table.
            request: What is to be erased.
            keys: The keys, where it names their column; they are sent in place of its values.
        """
        headers = {"Accept": _STREAM}
        if keys is None:
            body = request.model_dump_json(exclude_none=True).encode()
        else:
            description = request.model_dump_json(exclude_none=True, exclude={"values"})
            body = stream_of(
                pa.table({"key": keys}).replace_schema_metadata({ERASURE_KEY: description})
            )
            headers["Content-Type"] = _STREAM
        path = f"{table_path(table)}/erasure-plans"
        answer = self._transport.call("POST", path, body=body, headers=headers)
        files = pa.ipc.open_stream(answer.content).read_all()
        plan = read_answer(ErasurePlan, answer, files.schema.metadata[ERASURE_KEY])
        return plan, files.replace_schema_metadata(None)

    def finish_erasure(self, table: str, report: ErasureReport) -> ErasureReceipt:
        """Erase what the coordinator stores of rows erased from files, and get a receipt.

        Args:
            table: Name of the table.
            report: What was erased from its files.
        """
        body = report.model_dump_json()
        answer = self._transport.call("POST", f"{table_path(table)}/erasures", body=body)
        return read_answer(ErasureReceipt, answer)

    def verify_receipt(self, receipt: ErasureReceipt) -> bool:
        """Return whether the coordinator has signed a receipt, and nobody has changed it.

        Args:
            receipt: The receipt.

        Example:
            receipt = client.erase("sales.events", key="user_id", values=[7]).receipt
            client.verify_receipt(receipt)
        """
        body = receipt.model_dump_json()
        answer = self._transport.call("POST", "/erasures/verify", body=body)
        return read_answer(ReceiptCheck, answer).is_genuine
