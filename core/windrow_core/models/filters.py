"""Wire models of filters: a tree of JSON objects, or SQL text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from windrow_core.models.base import ColumnName, Request, Scalar


class Comparison(Request):
    """`column op value`, for example `amount > 5`."""

    op: Literal["eq", "ne", "lt", "le", "gt", "ge"]
    column: ColumnName
    value: Scalar


class In(Request):
    """`column IN (values)`."""

    op: Literal["in"]
    column: ColumnName
    values: Annotated[list[Scalar], Field(min_length=1, max_length=10_000)]


class Between(Request):
    """`column BETWEEN low AND high`, both ends inclusive."""

    op: Literal["between"]
    column: ColumnName
    low: Scalar
    high: Scalar


class IsNull(Request):
    """`column IS NULL` or `column IS NOT NULL`."""

    op: Literal["is_null", "is_not_null"]
    column: ColumnName


class StartsWith(Request):
    """`column LIKE 'prefix%'`."""

    op: Literal["starts_with"]
    column: ColumnName
    prefix: str


class Not(Request):
    """`NOT arg`."""

    op: Literal["not"]
    arg: FilterTree


class Junction(Request):
    """`args` joined by AND or by OR."""

    op: Literal["and", "or"]
    args: Annotated[list[FilterTree], Field(min_length=1, max_length=10_000)]


FilterTree = Annotated[
    Comparison | In | Between | IsNull | StartsWith | Not | Junction, Field(discriminator="op")
]

# Room for two lists of 10,000 values of 40 characters; the coordinator limits the tokens.
_MAX_CHARACTERS = 2**20

# Without a discriminator, errors in a tree would also complain that it is not a string.
Filter = Annotated[
    Annotated[str, StringConstraints(max_length=_MAX_CHARACTERS), Tag("text")]
    | Annotated[FilterTree, Tag("tree")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "tree"),
]


Not.model_rebuild()
Junction.model_rebuild()
