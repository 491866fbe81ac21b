"""A sample of every error that the coordinator answers, whichever module defines it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import windrow_service

_OF_FASTAPI = "RequestValidationError"
# By the type of a parameter, as its annotation says it.
SAMPLES: dict[str, Any] = {
    "bool": True,
    "int": 7,
    "str": "text",
    "tuple[str, ...]": ("a", "b"),
    "tuple[tuple[str, str], ...]": (("path", "reason"),),
    "str | None": None,
    "int | None": None,
    "datetime": datetime(2026, 11, 1, tzinfo=timezone.utc),
    "dict[str, Any]": {
        "type": "urn:windrow:problem:busy",
        "title": "Busy",
        "status": 503,
        "detail": "wait",
    },
    # Of FastAPI's RequestValidationError.
    "collections.abc.Sequence[typing.Any]": [
        {"type": "missing", "loc": ("body", "columns", 0), "msg": "Field required"},
        {"type": "value_error", "loc": ("query", "limit"), "msg": "Value error, no number"},
    ],
}


def sample_of(error_type: type[Exception]) -> Exception:
    """Return an error of this type, made with arguments of the right types."""
    if _takes_anything(error_type):
        return error_type("reason")
    parameters = inspect.signature(error_type).parameters.values()
    return error_type(*(SAMPLES[_type_of(parameter)] for parameter in parameters))


def samples_of(error_type: type[Exception]) -> list[Exception]:
    """Return errors of this type with few and with many arguments, each argument another value.

    The list is empty if a parameter has a type without a sample.
    """
    if _takes_anything(error_type):
        return [error_type("reason")]
    samples = []
    for is_full in (False, True):
        positional, by_keyword = [], {}
        for at, parameter in enumerate(inspect.signature(error_type).parameters.values()):
            is_optional = parameter.default is not parameter.empty
            type_ = _type_of(parameter)
            if is_optional and (not is_full or type_ not in (*SAMPLES, "str | None")):
                continue
            if type_ not in SAMPLES:
                return []
            value = _distinct(type_, at, is_full)
            if parameter.kind is parameter.KEYWORD_ONLY:
                by_keyword[parameter.name] = value
            else:
                positional.append(value)
        samples.append(error_type(*positional, **by_keyword))
    return samples


def error_types(package_prefix: str = "windrow") -> Iterator[type[Exception]]:
    """Yield the coordinator's classes of errors without subclasses, and FastAPI's."""
    for module in pkgutil.walk_packages(windrow_service.__path__, "windrow_service."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    pending: list[type[Exception]] = [Exception]
    all_types = set(pending)
    while pending:
        for error_type in pending.pop().__subclasses__():
            if error_type not in all_types:
                all_types.add(error_type)
                pending.append(error_type)
                defined_in = error_type.__module__
                is_ours = defined_in.startswith(package_prefix) and not error_type.__subclasses__()
                if is_ours or error_type.__name__ == _OF_FASTAPI:
                    yield error_type


def _takes_anything(error_type: type[Exception]) -> bool:
    """Return whether a class leaves its arguments to Python's own exceptions."""
    return not inspect.isfunction(error_type.__init__)


def _type_of(parameter: inspect.Parameter) -> str:
    return inspect.formatannotation(parameter.annotation).strip("'")


def _distinct(type_: str, at: int, is_full: bool) -> Any:
    """Return a value of a type for the parameter at a position."""
    if type_ == "bool":
        return is_full
    if type_.endswith(" | None"):
        return _distinct(type_.removesuffix(" | None"), at, is_full) if is_full else None
    value = SAMPLES[type_]
    if type_ == "str":
        return f"{value}{at}"
    return value + at if type_ == "int" else value
