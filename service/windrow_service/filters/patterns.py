"""The patterns of LIKE that can be planned."""

from __future__ import annotations

from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.parsed import Value

_ONLY_PREFIX = "only LIKE 'prefix%' can be planned; apply the rest with DataFrame.filter"


def like(pattern: Value, escape: Value | None, text: str) -> tuple[str, bool]:
    r"""Return the text that a pattern asks for, and whether more may follow.

    `_` and `%` mean themselves after the escape character, which is `\` by default.

    Args:
        pattern: The pattern.
        escape: What stands after ESCAPE.
        text: The whole filter.

    Raises:
        InvalidFilterError: The pattern is more than a prefix, or malformed.
    """
    if pattern.kind != "text" or not isinstance(pattern.value, str):
        raise InvalidFilterError("LIKE needs a pattern in quotes", text, pattern.offset)
    mark = "\\" if escape is None else escape.value
    if not isinstance(mark, str) or len(mark) != 1:
        raise InvalidFilterError(
            "ESCAPE needs one character in quotes", text, (escape or pattern).offset
        )
    kept = []
    rest = iter(pattern.value)
    for character in rest:
        if character == mark:
            escaped = next(rest, "")
            if escaped not in {mark, "_", "%"}:
                raise InvalidFilterError(
                    f"in LIKE, {mark} must stand before _, % or itself: double it",
                    text,
                    pattern.offset,
                )
            kept.append(escaped)
        elif character == "%":
            if set(rest) <= {"%"}:
                return "".join(kept), True
            raise InvalidFilterError(_ONLY_PREFIX, text, pattern.offset)
        elif character == "_":
            raise InvalidFilterError(_ONLY_PREFIX, text, pattern.offset)
        else:
            kept.append(character)
    return "".join(kept), False
