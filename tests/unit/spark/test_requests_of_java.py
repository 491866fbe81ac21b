from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import windrow_spark
from windrow_spark.acceleration import requests as of_acceleration
from windrow_spark.relation import requests as of_relation
from windrow_spark.sql import requests as of_catalog

ROOT = Path(windrow_spark.__file__).parent
ROOMS = {"relation": of_relation, "sql": of_catalog, "acceleration": of_acceleration}
# What Java hands back as it got it.
HANDED_ON = {"name", "location", "folders", "replaces"}

METHOD = re.compile(
    r"^( +)(?:@\w+ )?(?:(?:public|private|static|final|synchronized) )*([\w.<>\[\]]+ )?(\w+)"
    r"\(([^{}();]*)\)(?: throws [\w, ]+)? \{\n(.*?)^\1\}",
    re.M | re.S,
)
# A key of a request or of an object in it. Other maps have no literals as first arguments, or these.
KEYS = re.compile(r'\.(?:put|putArray|putObject|set)\(\s*(?:\w+ \? )?("\w+"(?: : "\w+")?)')
CALL = re.compile(r"(?:\b(\w+)\.)?\b(\w+)\(")
USE = re.compile(r'\b(?:(\w+)\.)?(\w+)\(\s*(?:[\w."]+\([^()]*\) \? )?("\w+"(?: : "\w+")?)')


class Method(NamedTuple):
    """A method of a Java class that makes requests, or parts of them."""

    file: str
    name: str
    parameters: str
    result: str
    body: str

    @property
    def takes_use(self) -> bool:
        return "String use" in self.parameters

    @property
    def builds(self) -> bool:
        return "ObjectNode" in self.result + self.parameters or self.takes_use


def methods_of(room: str) -> list[Method]:
    """Return the methods of a room's Java files; those of nested classes, too."""
    return [
        Method(path.stem, name, parameters, result or "", body)
        for path in sorted((ROOT / room).glob("*.java"))
        for _, result, name, parameters, body in METHOD.findall(path.read_text())
    ]


def requests_of(room: str) -> dict[str, set[str]]:
    """Return the keys of each request that a room's Java files make, by its `use`."""
    methods = methods_of(room)
    # Acceleration describes statements as relations do.
    known = methods + ([] if room == "relation" else methods_of("relation"))
    found: dict[str, set[str]] = {}
    for method in methods:
        for use in uses_in(method, known):
            found.setdefault(use, set()).update(keys_of(method, known) - {"use"})
    return found


def uses_in(method: Method, known: list[Method]) -> Iterator[str]:
    """Yield what the `use` of requests is that a method begins."""
    yield from re.findall(r'\.put\("use", "(\w+)"\)', method.body)
    for owner, name, literals in USE.findall(method.body):
        called = resolved(method, owner, name, known)
        if called is not None and called.takes_use:
            yield from re.findall(r'"(\w+)"', literals)


def keys_of(method: Method, known: list[Method], above: tuple[Method, ...] = ()) -> set[str]:
    """Return the keys that a method puts into a request, and those of the methods that help it."""
    keys = {key for keys in KEYS.findall(method.body) for key in re.findall(r"\w+", keys)}
    for owner, name in CALL.findall(method.body):
        called = resolved(method, owner, name, known)
        if called is not None and called.builds and called not in (method, *above):
            keys |= keys_of(called, known, (method, *above))
    return keys


def resolved(method: Method, owner: str, name: str, known: list[Method]) -> Method | None:
    """Return the method that another one calls: of the same file, of the owner's, or the only one."""
    named = [one for one in known if one.name == name]
    theirs = [one for one in named if one.file.lower() == owner.lower()]
    own = [one for one in named if one.file == method.file and not owner]
    candidates = theirs or own or (named if len({one.file for one in named}) == 1 else [])
    builders = [one for one in candidates if one.builds]
    return builders[0] if builders else None


def dataclasses_of(module: ModuleType, used: Collection[str]) -> dict[str, set[str]]:
    """Return the keys of each request by its name, as Python's dataclasses have them.

    Args:
        module: Has the dataclasses.
        used: The requests that are used; other dataclasses may be what several have in common.
    """
    kinds = [
        one
        for one in vars(module).values()
        if dataclasses.is_dataclass(one) and one.__module__ == module.__name__
    ]
    return {
        kind.__name__.lower(): {
            key
            for field in dataclasses.fields(kind)
            for key in (field.name, *parts_of(module, str(field.type)))
        }
        for kind in kinds
        if kind.__name__.lower() in used
        or not any(other is not kind and issubclass(other, kind) for other in kinds)
    }


def parts_of(module: ModuleType, type_: str) -> set[str]:
    """Return the keys of the objects that a field is made of."""
    named = (vars(module).get(name) for name in re.findall(r"\w+", type_))
    return {
        key
        for one in named
        if getattr(one, "__total__", None) is not None
        for key in one.__annotations__
    } - HANDED_ON


@pytest.mark.parametrize("room", ROOMS)
def test_java_asks_with_the_names_and_keys_of_pythons_dataclasses(room: str) -> None:
    requests = requests_of(room)

    assert requests == dataclasses_of(ROOMS[room], requests)


@pytest.mark.parametrize("room", ROOMS)
def test_java_puts_no_other_keys_into_requests(room: str) -> None:
    texts = [path.read_text() for path in (ROOT / room).glob("*.java")]
    put = {key for text in texts for key in re.findall(r'\brequest\.put\w*\(\s*"(\w+)"', text)}

    assert put <= set().union(*requests_of(room).values())
