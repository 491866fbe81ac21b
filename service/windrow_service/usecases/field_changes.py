"""The fields in which two definitions differ, as texts, for the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from windrow_core.filter_text import filter_text

# Of the two texts of a field; the rest is cut, around the first difference.
_MOST_CHARACTERS = 1_000
_BEFORE_DIFFERENCE = 100


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field and its values; a value is None if it was not set, or is not any more."""

    name: str
    before: str | None
    after: str | None


def field_changes(
    before: Mapping[str, object] | None, after: Mapping[str, object] | None
) -> list[FieldChange]:
    """Return the fields whose values differ between two definitions.

    Args:
        before: A definition as JSON; None before it was made.
        after: A definition as JSON; None after it was deleted.
    """
    old, new = dict(_texts(before or {})), dict(_texts(after or {}))
    return [
        FieldChange(name, *_excerpts(old.get(name), new.get(name)))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _texts(definition: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields that are set, those of objects as `object.field`."""
    for name, value in definition.items():
        if name == "filter" and value is not None:
            yield prefix + name, filter_text(value)
        elif isinstance(value, Mapping):
            yield from _texts(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            if value:
                yield prefix + name, ", ".join(map(_item, value))
        elif value is not None:
            yield prefix + name, _text(value)


def _item(value: object) -> str:
    """Return an item of a list; a column as `amount bigint`, followed by what else is set."""
    if not isinstance(value, Mapping):
        return _text(value)
    rest = {name: one for name, one in value.items() if name not in ("name", "type")}
    parts = [str(value[name]) for name in ("name", "type") if name in value]
    parts += [f"{name}={_text(one)}" for name, one in rest.items() if one not in (None, False)]
    return " ".join(parts)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _excerpts(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    old, new = before or "", after or ""
    if max(len(old), len(new)) <= _MOST_CHARACTERS:
        return before, after
    pairs = enumerate(zip(old, new, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
    begin = max(0, same - _BEFORE_DIFFERENCE)
    return _cut(before, begin), _cut(after, begin)


def _cut(text: str | None, begin: int) -> str | None:
    if text is None:
        return None
    end = begin + _MOST_CHARACTERS
    return "…" * (begin > 0) + text[begin:end] + "…" * (end < len(text))
