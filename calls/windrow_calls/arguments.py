"""Checks of callers' arguments; errors name the parameter and the values that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from windrow_calls.errors import InvalidArgumentError
from windrow_core.models import CACHE_RULE_PATTERN, TABLE_NAME_PATTERN

AnyModel = TypeVar("AnyModel", bound=BaseModel)
_MAX_SHOWN_CHARACTERS = 60
_TABLE_NAMES = "use letters, digits, '_' and '-', with up to two dots, such as sales.events"
_FORMS = (["text"], ["tree"])
RULE_NAMES = "use letters, digits, '_', '-' and '.', such as november"
_OF_PATTERNS = {TABLE_NAME_PATTERN: _TABLE_NAMES, CACHE_RULE_PATTERN: RULE_NAMES}
# What a value must be, by the first word of the kind of pydantic's error, or by the whole kind.
_RULES = {
    "int": "it must be a whole number",
    "float": "it must be a number",
    "bool": "it must be True or False",
    "string": "it must be a text",
    "list": "it must be a list",
    "tuple": "it must be a list",
    "dict": "it must be a mapping, such as {{'name': …}}",
    "model": "it must be a mapping, such as {{'name': …}}",
    "datetime": "it must be a time with a zone, such as datetime.now(timezone.utc)",
    "timezone": "it must be a time with a zone, such as datetime.now(timezone.utc)",
    "union": "it must be SQL such as \"ds >= '2026-11-01'\", or a JSON tree",
    "missing": "it is missing",
    "string_unicode": "it must be text of valid unicode characters",
    "string_too_short": "it must not be empty",
    "string_too_long": "it must have at most {max_length:,} characters",
    "too_short": "it must have at least {min_length}",
    "too_long": "it must have at most {max_length:,}",
    "greater_than_equal": "it must be at least {ge}",
    "greater_than": "it must be more than {gt}",
    "less_than_equal": "it must be at most {le}",
    "less_than": "it must be less than {lt}",
}


def checked(
    model: type[AnyModel],
    arguments: Mapping[str, Any],
    also: Iterable[str] = (),
    *,
    prefix: str = "",
) -> AnyModel:
    """Return the arguments as a model.

    Args:
        model: Model of the request to the coordinator.
        arguments: Arguments by parameter name.
        also: Names of other parameters that the caller may have meant.
        prefix: Text that the caller writes before each name.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        names = [prefix + name for name in [*model.model_fields, *also]]
        issues = error.errors(include_url=False)
        reasons = [_reason(issue, prefix, names) for issue in issues]
        raise InvalidArgumentError(_name(issues[0], prefix), "; ".join(reasons)) from None


def check_table(name: object) -> None:
    """Make sure that a table can have a name.

    Raises:
        InvalidArgumentError: It cannot, or is no text.
    """
    if not isinstance(name, str):
        raise InvalidArgumentError(
            "table", f"the name of a table is a text, not {_kind(name)}: are the arguments swapped?"
        )
    if not re.fullmatch(TABLE_NAME_PATTERN, name):
        hint = ": are name and location swapped?" if "/" in name else f": {_TABLE_NAMES}"
        raise InvalidArgumentError("table", f"{_shown(name)} is not the name of a table{hint}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Make sure that an argument is one of a few texts.

    Raises:
        InvalidArgumentError: It is not.
    """
    texts = list(choices)
    if value not in texts:
        *others, last = map(repr, texts)
        raise InvalidArgumentError(
            name,
            f"{name}={_shown(value)}: it must be {', '.join(others)} or {last}"
            + _hint(str(value), texts),
        )


def check_first(value: object, attribute: str, what: str, call: str) -> None:
    """Make sure that the first argument of a call is what it should be.

    Args:
        value: The argument.
        attribute: Something that it has.
        what: What it should be.
        call: The call as it should be.

    Raises:
        InvalidArgumentError: It is something else.
    """
    if isinstance(value, str) or not hasattr(value, attribute):
        where = call.partition("(")[2].partition(",")[0]
        raise InvalidArgumentError(
            where, f"{_shown(value)} is not {what}, which comes first, as in {call}"
        )


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) > _MAX_SHOWN_CHARACTERS:
        text = f"{text[: _MAX_SHOWN_CHARACTERS - 3]}..."
    return text


def values_of_texts(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return texts that are numbers as numbers; other texts, such as `64MB`, stay as they are."""
    return {name: _value(text.strip()) for name, text in texts.items()}


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _name(issue: ErrorDetails, prefix: str) -> str:
    parts = [str(part) for part in issue["loc"]]
    if parts[:1] == ["filter"] and parts[1:2] in _FORMS:
        # The two forms of a filter are parts of the model, and not of what callers write.
        del parts[1]
    return prefix + ".".join(parts) if parts else ""


def _reason(issue: ErrorDetails, prefix: str, names: list[str]) -> str:
    name = _name(issue, prefix)
    if issue["type"] == "extra_forbidden":
        return f"there is no parameter {name!r}{_hint(name, names)}"
    if not name:
        return issue["msg"].removeprefix("Value error, ")
    rule = _rule(issue)
    if issue["type"] == "missing":
        return f"{name}: {rule}"
    value = _shown(issue["input"])
    hint = ""
    if issue["type"] in ("literal_error", "enum"):
        hint = _hint(str(issue["input"]), issue["ctx"]["expected"].split("'")[1::2])
    return f"{name}={value}: {rule}{hint}"


def _rule(issue: ErrorDetails) -> str:
    """Return what a value must be; validators of our own say it in their message."""
    kind, context = issue["type"], issue.get("ctx", {})
    if kind.startswith("model") and issue["loc"][1:] == ("tree",):
        kind = "union"
    if kind == "string_pattern_mismatch":
        return _OF_PATTERNS.get(context["pattern"], "use other characters")
    rule = _RULES.get(kind) or _RULES.get(kind.partition("_")[0])
    if rule is not None:
        return rule.format_map(context)
    return issue["msg"].replace("Input should be", "it must be").removeprefix("Value error, ")


def _hint(text: str, names: Iterable[str]) -> str:
    close = get_close_matches(text, list(names), n=1)
    return f": did you mean {close[0]!r}?" if close else ""
