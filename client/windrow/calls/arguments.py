"""Checks of callers' arguments; errors name the parameter and the values that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from windrow.errors import InvalidArgumentError

AnyModel = TypeVar("AnyModel", bound=BaseModel)
_MAX_SHOWN_CHARACTERS = 60


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
    return prefix + ".".join(str(part) for part in issue["loc"]) if issue["loc"] else ""


def _reason(issue: ErrorDetails, prefix: str, names: list[str]) -> str:
    name = _name(issue, prefix)
    if issue["type"] == "extra_forbidden":
        return f"there is no parameter {name!r}{_hint(name, names)}"
    if not name:
        return issue["msg"].removeprefix("Value error, ")
    rule = issue["msg"].replace("Input should be", "it must be").removeprefix("Value error, ")
    value = repr(issue["input"])
    if len(value) > _MAX_SHOWN_CHARACTERS:
        value = f"{value[: _MAX_SHOWN_CHARACTERS - 3]}..."
    hint = ""
    if issue["type"] in ("literal_error", "enum"):
        hint = _hint(str(issue["input"]), issue["ctx"]["expected"].split("'")[1::2])
    return f"{name}={value}: {rule}{hint}"


def _hint(text: str, names: Iterable[str]) -> str:
    close = get_close_matches(text, list(names), n=1)
    return f": did you mean {close[0]!r}?" if close else ""
