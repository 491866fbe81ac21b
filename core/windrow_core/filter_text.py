"""Filters as SQL, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MAX_VALUES = 10
_KEYWORDS = {"and", "between", "false", "in", "is", "like", "not", "null", "or", "true"}


def filter_text(filter: object) -> str:
    """Return a filter as SQL: a JSON tree as a mapping, a model or JSON text, or SQL text as it is.

    Lists of more than ten values are cut.
    """
    if isinstance(filter, str):
        if filter[:1] != "{":
            return filter
        try:
            filter = json.loads(filter)
        except ValueError:
            # Histories keep only the beginning of long filters.
            return str(filter)
    tree: Any = filter if isinstance(filter, Mapping) else filter.model_dump()  # type: ignore[attr-defined]
    try:
        return _text(tree)
    except (KeyError, TypeError):
        # A tree of a later version.
        return json.dumps(tree)


def text_without_values(tree: Mapping[str, Any]) -> str:
    """Return a filter as SQL, with a question mark for each value."""
    kind = tree["op"]
    if kind in ("and", "or"):
        parts = (text_without_values(arg) for arg in tree["args"])
        return f" {kind.upper()} ".join(f"({part})" for part in parts)
    if kind == "not":
        return f"NOT ({text_without_values(tree['arg'])})"
    column = _name(tree["column"])
    if kind == "in":
        return f"{column} IN (values: {len(tree['values']):,})"
    if kind == "between":
        return f"{column} BETWEEN ? AND ?"
    if kind == "starts_with":
        return f"{column} LIKE ?"
    return f"{column} {_SIGNS[kind]} ?" if kind in _SIGNS else _text(tree)


def _text(tree: Mapping[str, Any]) -> str:
    kind = tree["op"]
    if kind in ("and", "or"):
        args = [_within(arg) for arg in tree["args"]]
        return f" {kind.upper()} ".join(args)
    if kind == "not":
        return f"NOT ({_text(tree['arg'])})"
    column = _name(tree["column"])
    if kind in _SIGNS:
        return f"{column} {_SIGNS[kind]} {_literal(tree['value'])}"
    if kind == "in":
        values = [_literal(value) for value in tree["values"]]
        left = len(values) - _MAX_VALUES
        more = [f"… {left:,} more"] if left > 0 else []
        return f"{column} IN ({', '.join(values[:_MAX_VALUES] + more)})"
    if kind == "between":
        return f"{column} BETWEEN {_literal(tree['low'])} AND {_literal(tree['high'])}"
    if kind == "starts_with":
        prefix = re.sub(r"([\\%_])", r"\\\1", tree["prefix"])
        return f"{column} LIKE {_literal(prefix + '%')}"
    return f"{column} {kind.upper().replace('_', ' ')}"


def _within(arg: Mapping[str, Any]) -> str:
    text = _text(arg)
    return f"({text})" if arg["op"] in ("and", "or") else text


def _name(column: str) -> str:
    if re.fullmatch(r"[^\W\d]\w*", column) and column.lower() not in _KEYWORDS:
        return column
    return "`" + column.replace("`", "``") + "`"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return repr(value)
