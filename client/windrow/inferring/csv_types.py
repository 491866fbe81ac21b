"""Types of CSV columns, by the rules of Spark's inference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date

from windrow.inferring.files import FileLines, UnsureError
from windrow_core.files.limits import refuse_wide

_KNOWN_OPTIONS = ("header", "sep", "delimiter")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
# With an exponent, or without digits after the point, Spark may infer a decimal.
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])?"
)
# Whatever else begins so may be a number, a date or a time in one of the ways that Java reads them.
_MAY_BE_PARSED = re.compile(r"\s|[+-]|\.|[0-9]|[tT][0-9]|[^\x21-\x7e]|$")
# Digits, and then what is in no number, date or time.
_NO_NUMBER = re.compile(
    r"[0-9]{1,3}(/[^:]*|-[^:]*|[0-9]{0,0}(\.[0-9]+){2,}| ?[A-Za-z][^:]*[g-oq-suvwyG-OQ-SUVWY][^:]*)"
)
_NO_NUMBERS = {"nan", "infinity", "inf"}

_RANKS = ("int", "bigint", "double")


def columns_of(
    files: Iterable[FileLines], options: Mapping[str, str], max_fields: int
) -> dict[str, str]:
    """Return the columns of files; see `windrow.inferring.infer_columns`."""
    for name in options:
        if name not in _KNOWN_OPTIONS:
            raise UnsureError(f"option {name!r} may change what is inferred")
    separator = options.get("sep", options.get("delimiter", ","))
    if len(separator) != 1 or separator in '"\\ ':
        raise UnsureError(f"the separator is {separator!r}")
    has_header = options.get("header", "false").lower() == "true"
    first: list[str] | None = None
    names: list[str] = []
    kinds: list[str | None] = []
    for file in files:
        is_first_line = True
        for number, line in file.lines:
            place = f"line {number:,} of {file.path!r}"
            values = _divided(line, separator, place)
            if first is None:
                refuse_wide(len(values), max_fields)
                first = values
                names = _names(values, place) if has_header else _numbered(values)
                kinds = [None] * len(names)
            if len(values) != len(first):
                raise UnsureError(f"{place} has {len(values)} values, and not {len(first)}")
            if has_header and is_first_line and values != first:
                raise UnsureError(f"{place} is not the header of the first file")
            if has_header and values == first:
                is_first_line = False
                continue
            is_first_line = False
            for at, value in enumerate(values):
                if kinds[at] != "string" and value:
                    kinds[at] = _joined(kinds[at], _kind_of(value))
    for name, kind in zip(names, kinds, strict=True):
        if kind is not None and kind.startswith("?"):
            raise UnsureError(f"column {name!r} has values such as {kind[1:]!r}")
    return {name: kind or "string" for name, kind in zip(names, kinds, strict=True)}


def _numbered(values: list[str]) -> list[str]:
    return [f"_c{number}" for number in range(len(values))]


def _names(values: list[str], place: str) -> list[str]:
    if "" in values or len({value.lower() for value in values}) < len(values):
        raise UnsureError(f"{place} is a header with an empty name, or the same one twice")
    return values


def _divided(line: str, separator: str, place: str) -> list[str]:
    if '"' not in line and "\\" not in line:
        return line.split(separator)
    values, at = [], 0
    while True:
        if line.startswith('"', at):
            end = line.find('"', at + 1)
            if end < 0 or "\\" in line[at:end] or line[end + 1 : end + 2] not in ("", separator):
                raise UnsureError(f"{place} has quotes that are not around a whole value")
            values.append(line[at + 1 : end])
            at = end + 1
        else:
            end = line.find(separator, at)
            value = line[at:] if end < 0 else line[at:end]
            if '"' in value or "\\" in value:
                raise UnsureError(f"{place} has a quote or a backslash inside a value")
            values.append(value)
            at += len(value)
        if at == len(line):
            return values
        at += 1


def _kind_of(value: str) -> str:
    """Return the type of a value; `?` and the value if it is uncertain."""
    if _WHOLE.fullmatch(value):
        number = int(value)
        if -(2**31) <= number < 2**31:
            return "int"
        return "bigint" if -(2**63) <= number < 2**63 else f"?{value}"
    if _FRACTION.fullmatch(value):
        return "double"
    if value.lower() in ("true", "false"):
        return "boolean"
    if _DATE.fullmatch(value):
        return "date" if _is_date(value) else f"?{value}"
    if match := _TIMESTAMP.fullmatch(value):
        return "timestamp" if _is_date(match[1]) and _is_time(match[2]) else f"?{value}"
    if value.lower() in _NO_NUMBERS:
        return f"?{value}"
    if not _MAY_BE_PARSED.match(value) or _NO_NUMBER.fullmatch(value):
        return "string"
    return f"?{value}"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    hours, minutes, seconds = map(int, text.split(":"))
    return hours < 24 and minutes < 60 and seconds < 60


def _joined(one: str | None, other: str) -> str:
    if one is None or one == other or other == "string":
        return other
    if one.startswith("?"):
        return one
    if other.startswith("?"):
        return other
    if one in _RANKS and other in _RANKS:
        return max(one, other, key=_RANKS.index)
    # Which of these wins depends on their order.
    times = {"date", "timestamp"}
    if {one, other} == times or (times & {one, other} and {one, other} & {*_RANKS}):
        return f"?{one} and {other}"
    return "string"
