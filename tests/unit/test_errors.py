"""Every deliberate error has fields, states the fault, and survives pickling."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from windrow_calls.errors import WindrowError
from windrow_core.errors import StatedError
from windrow_core.models import Problem

PACKAGES = (
    "windrow",
    "windrow_core",
    "windrow_demo",
    "windrow_jobs",
    "windrow_service",
    "windrow_spark",
)
# Importing these raises SystemExit, as they are programs.
PROGRAMS = {"windrow.__main__", "windrow_service.__main__", "windrow_service.openapi"}
SAMPLES: dict[str, Any] = {
    "Path": Path("/folder"),
    "Problem": Problem(type="urn:t", title="t", status=503, detail="wait"),
    "Mapping[str, str]": {"p=1": "is busy"},
    "Sequence[str]": ("why", "why else"),
    "bool": True,
    "dict[str, Any]": {"detail": "wait"},
    "datetime": datetime(2026, 11, 1, tzinfo=timezone.utc),
    "float": 2.5,
    "int": 7,
    "int | None": 3,
    "int | str | None": 3,
    "str": "text {not a field}",
    "str | None": None,
    "tuple[str, ...]": ("a", "b"),
    "tuple[tuple[str, str], ...]": (("path", "reason"),),
}


def error_classes() -> list[type[StatedError]]:
    for package in PACKAGES:
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, package + "."
        ):
            if module.name not in PROGRAMS and "migrations" not in module.name:
                importlib.import_module(module.name)
    found = [StatedError]
    for kind in found:
        found += [
            child for child in kind.__subclasses__() if child.__module__.startswith("windrow")
        ]
    return sorted(set(found[1:]), key=lambda kind: (kind.__module__, kind.__name__))


CLASSES = error_classes()
ids = [f"{kind.__module__}.{kind.__name__}" for kind in CLASSES]


def arguments(kind: type[StatedError]) -> dict[str, Any]:
    """Return an argument of the right type for each parameter of an error's constructor."""
    if kind.__init__ is Exception.__init__:
        return {}
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: SAMPLES[inspect.formatannotation(p.annotation).strip("'")] for p in parameters}


@pytest.mark.parametrize("kind", CLASSES, ids=ids)
def test_the_constructor_accepts_the_fields_that_a_class_adds(kind: type[StatedError]) -> None:
    fields = [text for text in inspect.get_annotations(kind).values() if "ClassVar" not in text]

    assert not fields or "__match_args__" in vars(kind)


@pytest.mark.parametrize("kind", CLASSES, ids=ids)
def test_an_error_survives_pickling_however_it_was_made(kind: type[StatedError]) -> None:
    given = arguments(kind)

    for error in (kind(*given.values()), kind(**given)):
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(again) is kind
            assert (vars(again), str(again)) == (vars(error), str(error))


@pytest.mark.parametrize("kind", CLASSES, ids=ids)
def test_the_text_of_an_error_has_its_remedy_and_no_open_placeholder(
    kind: type[StatedError],
) -> None:
    error = kind(**arguments(kind))

    said = str(error).replace(SAMPLES["str"], "text")

    assert not re.search(r"\{\w*[!:}]", said)
    assert bool(kind.remedy) == ("{remedy}" in kind.message)
    assert not kind.remedy or error.remedy.split("{")[0] in said


@pytest.mark.parametrize("kind", CLASSES, ids=ids)
def test_errors_are_distinguished_by_type_and_fields_not_by_text(
    kind: type[StatedError],
) -> None:
    given = arguments(kind)

    assert len({kind(**given), kind(**given)}) == 2


def test_an_error_without_its_own_message_shows_its_fields() -> None:
    assert str(WindrowError("the disk is full")) == "the disk is full"
