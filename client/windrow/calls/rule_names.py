"""Names of cache rules that were given none: the same filter has the same name."""

from __future__ import annotations

import hashlib
import re

from windrow.models import Filter

# What is quoted, and what tokens are apart by: space and comments.
_PARTS = re.compile(
    r"""(?P<quoted>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|(?:\s|--[^\n]*|/\*.*?\*/)+""",
    re.DOTALL,
)
_DIGITS = 12


def rule_name(filter: Filter) -> str:
    """Return the name of a rule with this filter."""
    return f"rule-{hashlib.sha256(plain(filter).encode()).hexdigest()[:_DIGITS]}"


def plain(filter: Filter) -> str:
    """Return a filter such that two are equal if they differ only in space and comments."""
    if not isinstance(filter, str):
        return filter.model_dump_json()
    spaced = _PARTS.sub(lambda part: part["quoted"] or " ", filter).strip()
    # Names and keywords need a space between them, and nothing else does.
    return _PARTS.sub(lambda part: part["quoted"] or _space(part), spaced)


def _space(part: re.Match[str]) -> str:
    around = part.string[part.start() - 1] + part.string[part.end()]
    return " " if re.fullmatch(r"\w\w", around) else ""
