"""Wire models of erasures: rows that are deleted from a table, with proof."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from windrow_core.models.base import Answer, ColumnName, Request, Scalar
from windrow_core.models.filters import Filter
from windrow_core.models.plans import FileField
from windrow_core.models.tables import Column

# Metadata of a stream of keys: the request as JSON, without its values.
ERASURE_KEY = b"windrow:erasure"


class ErasureRequest(Request):
    """Which rows of a table are to be erased: those with some keys, or those of a condition."""

    key: ColumnName | None = Field(
        default=None,
        description="The column of the keys, or a path such as `payload.user.id`; lists are entered.",
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
