"""Types of JSON documents, one a line, by the rules of Spark's inference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from windrow.inferring.files import FileLines, UnsureError
from windrow_core.files.limits import refuse_wide
from windrow_core.files.types import spark_type

# A struct is a dict of these, an array a list of one; None is the type of nulls.
_Kind = Any
_LARGEST = 2**63 - 1
_PRIMITIVES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}


def columns_of(
    files: Iterable[FileLines], options: Mapping[str, str], max_fields: int
) -> dict[str, str]:
    """Return the columns of files; see `windrow.inferring.infer_columns`."""
    if options:
        raise UnsureError(f"option {next(iter(options))!r} may change what is inferred")
    whole: _Kind = {}
    for file in files:
        for number, line in file.lines:
            place = f"line {number:,} of {file.path!r}"
            document = _parsed(line, place)
            if not isinstance(document, dict):
                raise UnsureError(f"{place} is no JSON object")
            whole = _joined(whole, _kind_of(document, place))
            refuse_wide(_count(whole), max_fields)
    columns = {name: _arrow_type(kind) for name, kind in sorted(whole.items())}
    return {name: spark_type(type_) for name, type_ in columns.items() if type_ is not None}


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=_fields, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnsureError(f"{place} is no plain JSON document ({error})") from None


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is there twice")
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _kind_of(value: Any, place: str) -> _Kind:
    if isinstance(value, dict):
        return {name: _kind_of(one, place) for name, one in value.items()}
    if isinstance(value, list):
        kind: _Kind = None
        for one in value:
            kind = _joined(kind, _kind_of(one, place))
        return [kind]
    # Spark takes an empty text for one of any type.
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if not -_LARGEST - 1 <= value <= _LARGEST:
            raise UnsureError(f"{place} has a whole number of more than 64 bits")
        return "bigint"
    return "double" if isinstance(value, float) else "string"


def _count(kind: _Kind) -> int:
    if isinstance(kind, dict):
        return len(kind) + sum(map(_count, kind.values()))
    return 1 + _count(kind[0]) if isinstance(kind, list) else 0


def _joined(one: _Kind, other: _Kind) -> _Kind:
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {name: _joined(one.get(name), kind) for name, kind in other.items()}
    if isinstance(one, list) and isinstance(other, list):
        return [_joined(one[0], other[0])]
    if {repr(one), repr(other)} == {"'bigint'", "'double'"}:
        return "double"
    return "string"


def _arrow_type(kind: _Kind) -> pa.DataType | None:
    """Return the type of a column; None if Spark leaves it out, since nothing was in its structs."""
    if kind is None:
        return pa.string()
    if isinstance(kind, list):
        inner = _arrow_type(kind[0])
        return None if inner is None else pa.list_(inner)
    if isinstance(kind, dict):
        types = {name: _arrow_type(one) for name, one in sorted(kind.items())}
        fields = [(name, type_) for name, type_ in types.items() if type_ is not None]
        return pa.struct(fields) if fields else None
    return _PRIMITIVES[kind]
