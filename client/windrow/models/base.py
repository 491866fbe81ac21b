"""What all wire models share: their bases, names and sizes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from windrow.sizes import parse_size

TABLE_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,127}){0,2}$"

ByteSize = Annotated[int, BeforeValidator(parse_size), Field(ge=1, le=2**50)]
TableName = Annotated[str, StringConstraints(pattern=TABLE_NAME_PATTERN, max_length=256)]
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Scalar = bool | int | float | str | None


class Request(BaseModel):
    """Base of what a caller sends: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """Base of what the coordinator answers; a reader ignores fields it does not know."""

    model_config = ConfigDict(frozen=True)
