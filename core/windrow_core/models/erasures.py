"""Wire models of erasures: rows that are deleted from a table, with proof."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, model_validator

from windrow_core.models.base import Answer, ColumnName, Request, Scalar, Whole
from windrow_core.models.filters import Filter
from windrow_core.models.plans import FileField
from windrow_core.models.tables import Column

# Metadata of a stream of keys: the request as JSON, without its values.
ERASURE_KEY = b"windrow:erasure"


class ErasureRequest(Request):
    """Which rows of a table are to be erased: those with some keys, or those of a condition."""

    key: ColumnName | None = Field(
        default=None,
        description="The column of the keys, or a path such as `payload.user.id`; lists are searched.",
    )
    values: Annotated[list[Scalar], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="The keys, as numbers or texts."
    )
    filter: Filter | None = Field(
        default=None, description="Instead of keys, a condition; rows for which it is TRUE go."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> ErasureRequest:
        if (self.key is None) == (self.filter is None):
            raise ValueError("give either a key or a filter")
        if self.key is None and self.values is not None:
            raise ValueError("values need a key")
        return self


class ErasurePlan(Answer):
    """The files of a table that may hold rows to erase, in figures; nothing is changed or stored."""

    table: str
    snapshot_id: int
    location: str
    key_fields: list[str] = Field(description="The fields of structs that lead to the keys.")
    filter: Any = Field(default=None, description="The condition as a JSON tree of typed values.")
    columns: list[Column] = Field(description="The columns in the files that decide.")
    partition_columns: list[Column] = Field(description="The partition columns that decide.")
    file_fields: dict[str, FileField] = Field(
        description="How files hold columns that are not found by name alone."
    )
    files_total: int
    size_bytes_total: int
    files: int = Field(description="Files that may hold such rows.")
    size_bytes: int
    row_count: int | None = Field(description="Their rows; null if those of one are unknown.")


def _as_text(moment: object) -> object:
    if not isinstance(moment, str | datetime):
        raise ValueError("write the time as text, such as 2026-11-01T00:00:00Z")
    return moment


_Count = Annotated[int, Whole(0, 2**63 - 1)]
# Otherwise numbers would be seconds since 1970.
_Moment = Annotated[AwareDatetime, BeforeValidator(_as_text)]


class ErasureReport(Request):
    """What was erased from the files of a table; the coordinator erases the rest, and signs it."""

    rule: Annotated[str, Field(max_length=65_536)] = Field(
        description="Which rows, without a value: the column of the keys, or the condition with a "
        "question mark for each value."
    )
    keys: _Count | None = Field(
        default=None, description="Number of distinct keys; null for a condition."
    )
    started_at: _Moment
    files_total: _Count
    files_read: _Count = Field(description="Files that could hold such rows.")
    files_rewritten: _Count
    files_removed: _Count
    rows_removed: _Count
    bytes_before: _Count
    bytes_after: _Count
    files_checked: _Count = Field(
        description="Files that could still hold such rows afterwards, and were read once more."
    )
    rows_left: Annotated[int, Whole(0, 0)] = Field(description="Rows found then.")
    waiting_batches: _Count = Field(
        default=0, description="Streams whose batches wait in the table's folder."
    )


class ErasureReceipt(ErasureReport):
    """Proof of an erasure, signed by the coordinator."""

    receipt_id: str
    installation: str = Field(description="Id of the coordinator's database.")
    table: str
    registration: int
    location: str
    erased_by: str = Field(description="Name of the caller's token.")
    snapshot_id: int = Field(description="The oldest snapshot that is left.")
    snapshots_dropped: int
    manifests_rewritten: int
    plans_dropped: int
    packs_removed: int
    descriptions_removed: int = Field(description="Files that described the table to engines.")
    last_byte_at: _Moment = Field(description="When the last of all these was gone.")
    not_reached: list[str] = Field(description="What may still hold such rows, and the remedy.")
    signature: str = Field(description="HMAC-SHA256 with a key that only the coordinator has.")


class ReceiptCheck(Answer):
    """Whether this coordinator has signed a receipt."""

    receipt_id: str
    is_genuine: bool
