"""Translate Spark's filters into trees that are TRUE for every row that Spark keeps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from windrow_core.files.types import COLUMN_TYPES

Tree = dict[str, Any]
# Turns a value in Spark's internal form into a literal; `UnsureError` if that is not certain.
_Literal = Callable[[Any], bool | int | float | str]

# The most values that a tree may have; Spark applies longer lists itself.
_MAX_VALUES = 10_000


class UnsureError(Exception):
    """A filter has no certain translation."""


def weakened(trees: Sequence[Tree], types: Mapping[str, str]) -> list[Tree]:
    """Return conditions that hold for every row for which all of Spark's filters are TRUE.

    Conditions without a certain translation are left out, since Spark applies all its filters to
    the rows again.

    Args:
        trees: Spark's filters, as `Conditions.java` writes them: trees whose literals have
            Spark's internal form.
        types: The relation's columns, with their types as Spark SQL writes them.
    """
    return [weaker for tree in trees if (weaker := _weaker(tree, types)) is not None]


def _weaker(tree: Tree, types: Mapping[str, str]) -> Tree | None:
    """Return a tree that is TRUE wherever a filter is TRUE; None if no such tree is certain."""
    if "args" in tree:
        sides = [_weaker(arg, types) for arg in tree["args"]]
        certain = [side for side in sides if side is not None]
        if not certain or (tree["op"] == "or" and len(certain) < len(sides)):
            return None
        return _joined(tree["op"], certain)
    try:
        return exact(tree, types)
    except UnsureError:
        return None


def exact(tree: Tree, types: Mapping[str, str]) -> Tree:
    """Return a tree with the same outcome as a filter: TRUE, FALSE or NULL.

    Below NOT nothing can be left out: a weaker condition inside makes a stronger one outside.

    Args:
        tree: As for `weakened`; a part may have its `text`, which errors show.
        types: As for `weakened`.

    Raises:
        UnsureError: A part has no certain translation.
    """
    if "args" in tree:
        return _joined(tree["op"], [exact(arg, types) for arg in tree["args"]])
    if "arg" in tree:
        return {"op": "not", "arg": exact(tree["arg"], types)}
    part = {key: value for key, value in tree.items() if key != "text"}
    try:
        return _leaf(part, types)
    except UnsureError as error:
        raise UnsureError(tree.get("text", error)) from error


def _leaf(tree: Tree, types: Mapping[str, str]) -> Tree:
    """Return a tree with the same outcome as a comparison."""
    column = _name(tree.get("column", ""))
    if tree["op"] is None or column not in types:
        raise UnsureError(column)
    keys = tree.keys() - {"op", "column"}
    if not keys:
        return tree | {"column": column}
    (key,) = keys
    literal = _literal_of(types[column])
    if key == "prefix" and literal is not _text:
        raise UnsureError(column)
    values = tree[key] if key == "values" else [tree[key]]
    if not 1 <= len(values) <= _MAX_VALUES:
        raise UnsureError(column)
    literals = [None if value is None else literal(value) for value in values]
    return {"op": tree["op"], "column": column, key: literals if key == "values" else literals[0]}


def _joined(op: str, args: Sequence[Tree]) -> Tree:
    # Spark nests conditions in pairs, but the depth of a tree is limited.
    flat = [part for arg in args for part in (arg["args"] if arg["op"] == op else (arg,))]
    return flat[0] if len(flat) == 1 else {"op": op, "args": flat}


def _name(attribute: str) -> str:
    """Return a column's name; Spark quotes names that are not identifiers."""
    if len(attribute) > 1 and attribute.startswith("`") and attribute.endswith("`"):
        return attribute[1:-1].replace("``", "`")
    return attribute


# --- literals ---------------------------------------------------------------


def _literal_of(type_: str) -> _Literal:
    kind = re.split(r"[(<]", type_.strip().lower(), maxsplit=1)[0]
    try:
        return _LITERALS[kind]
    except KeyError:
        raise UnsureError(type_) from None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnsureError(value)
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnsureError(value)
    return value


def _double(value: Any) -> float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnsureError(value)
    # In JSON, numbers that are not finite are text, both from Spark and to the coordinator.
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _decimal(value: Any) -> str:
    if not isinstance(value, str):
        raise UnsureError(value)
    return value


def _text(value: Any) -> str:
    # This character may replace bytes that are not UTF-8; Spark compares the original bytes.
    if not isinstance(value, str) or "\ufffd" in value:
        raise UnsureError(value)
    return value


# The first day of the Gregorian calendar, in days and microseconds since 1970. Spark passes dates and
# times in the older calendar, where it follows October 4: ten days that this lacks become later ones.
_FIRST_DAY = -141_427
_DAY_US = 86_400_000_000
# Zones differ by less than a day from UTC.
_MOVED_US = range((_FIRST_DAY - 1) * _DAY_US, (_FIRST_DAY + 11) * _DAY_US)


def _from_number(text: Callable[[int], str], value: Any) -> str:
    number = _integer(value)
    if number == _FIRST_DAY or number in _MOVED_US:
        raise UnsureError(value)
    try:
        return text(number)
    except OverflowError:
        raise UnsureError(value) from None


def _literals() -> Iterator[tuple[str, _Literal]]:
    for row in COLUMN_TYPES:
        literal = _PLAIN.get(row.arrow)
        if row.text is not None:
            literal = partial(_from_number, row.text)
        if literal is not None:
            yield from dict.fromkeys((row.name, *row.synonyms), literal).items()
    yield from {"decimal": _decimal, "char": _text, "varchar": _text}.items()


_PLAIN: dict[pa.DataType, _Literal] = {
    pa.bool_(): _boolean,
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), _integer),
    **dict.fromkeys((pa.float32(), pa.float64()), _double),
    pa.string(): _text,
    pa.binary(): _decimal,
}
_LITERALS = dict(_literals())
