"""Base classes and field types of the wire models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    VERSION,
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, core_schema

from windrow_core.cards import Shown, count_text
from windrow_core.sizes import parse_size

# Building all models takes longer than connecting, and a client uses few of them. Before 2.14, threads
# that build a model at the same time get in each other's way.
_IS_BUILT_LATER = tuple(map(int, VERSION.split(".")[:2])) >= (2, 14)

TABLE_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,127}){0,2}$"


@dataclass(frozen=True, slots=True)
class Whole:
    """Limits a field to whole numbers of a range; the error message states the whole range."""

    low: int
    high: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return how pydantic checks the field."""
        number = core_schema.no_info_before_validator_function(
            _number, core_schema.int_schema(ge=self.low, le=self.high)
        )
        return _refusing(number, f"a whole number from {self.low:,} to {self.high:,}")


@dataclass(frozen=True, slots=True)
class Size(Whole):
    """Makes a field a number of bytes, given as a number or as text such as `64MB`."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return how pydantic checks the field."""
        number = core_schema.int_schema(ge=self.low, le=self.high)
        return _refusing(
            core_schema.no_info_before_validator_function(parse_size, number),
            f"bytes from {self.low:,} to {self.high:,}, or text such as '64MB'",
        )


def _number(value: object) -> object:
    # Pydantic accepts `false` as 0 and "5" as 5; the contract allows neither.
    if isinstance(value, bool | str):
        raise ValueError("not a number")
    return value


def _refusing(schema: CoreSchema, what: str) -> CoreSchema:
    return core_schema.custom_error_schema(
        schema, custom_error_type="out_of_range", custom_error_message=f"it must be {what}"
    )


ByteSize = Annotated[int, Size(1, 2**50)]
TableName = Annotated[str, StringConstraints(pattern=TABLE_NAME_PATTERN, max_length=256)]
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(
            "it must be a number that a double has, of at most "
            f"{count_text(MAX_DIGITS, 'digit')}: write others as text, such as 'Infinity' or 'NaN'"
        )
    return value


# The longest whole number that Python reads.
MAX_DIGITS = 4_300
Scalar = Annotated[bool | int | float | str | None, AfterValidator(_finite)]


def _stop_lists_at_errors(part: Any) -> None:
    if isinstance(part, dict):
        if part.get("type") == "list":
            part["fail_fast"] = True
        inner: Any = part.values()
    else:
        inner = part if isinstance(part, list | tuple) else ()
    for each in inner:
        _stop_lists_at_errors(each)


class Request(Shown, BaseModel):
    """Base of requests: frozen; unknown fields are errors.

    Of a list, only the first wrong item is an error: lists are long, and an error takes a hundred
    times the memory of an item.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=_IS_BUILT_LATER)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return how pydantic checks the model."""
        schema = handler(source)
        _stop_lists_at_errors(schema)
        return schema


class Answer(Shown, BaseModel):
    """Base of the coordinator's answers: frozen; readers ignore unknown fields."""

    model_config = ConfigDict(frozen=True, defer_build=_IS_BUILT_LATER)
