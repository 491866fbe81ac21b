"""Lists and maps in Parquet files, in the shapes that writers have given them since the format began.

Arrow writes lists of three levels and maps whose group is called `key_value`. A group whose one child
cannot be null is joined with that child in the footer alone: the levels in the pages stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.files.footers import (
    BINARY,
    COLUMNS,
    INT,
    KEYS,
    LIST,
    METADATA,
    ROW_GROUPS,
    STRUCT,
    Fields,
    edit,
)

# Numbers of fields. Of FileMetaData, of SchemaElement, and of ColumnMetaData:
_SCHEMA = 2
_REPETITION, _NAME, _CHILDREN, _ANNOTATION, _LOGICAL = 3, 4, 5, 6, 10
_PATH = 3
_REQUIRED, _REPEATED = 0, 2
# Old annotations.
MAP, MAP_KEY_VALUE = 1, 2


@dataclass
class Element:
    """An element of a schema, with those below it."""

    fields: Fields
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.fields[_NAME][1].decode())

    @name.setter
    def name(self, name: str) -> None:
        self.fields[_NAME] = BINARY, name.encode()

    def annotate(self, annotation: int | None) -> None:
        """Give the element an old annotation alone, or none."""
        self.fields.pop(_LOGICAL, None)
        self.fields.pop(_ANNOTATION, None)
        if annotation is not None:
            self.fields[_ANNOTATION] = INT, annotation

    def repeat(self) -> None:
        """Make the element one that is repeated."""
        self.fields[_REPETITION] = INT, _REPEATED

    def all_fields(self) -> Iterator[Fields]:
        """Yield it and what lies below it, as footers list them."""
        count = {_CHILDREN: (INT, len(self.children))} if self.children else {}
        yield {**self.fields, **count}
        for child in self.children:
            yield from child.all_fields()

    def leaves(self, above: tuple[bytes, ...] = ()) -> Iterator[list[bytes]]:
        """Yield the path of each leaf below it."""
        for child in self.children:
            path = (*above, child.fields[_NAME][1])
            if child.children:
                yield from child.leaves(path)
            else:
                yield list(path)


def reshape(path: Path, change: Callable[[Element], None]) -> None:
    """Change the schema of a file in place.

    Args:
        path: The file.
        change: Changes the root; levels and order of leaves must stay.
    """

    def changed(footer: Fields) -> None:
        elements = iter(footer[_SCHEMA][1][1])
        root = _tree(elements)
        change(root)
        footer[_SCHEMA] = LIST, (STRUCT, list(root.all_fields()))
        # Arrow's own schema would tell of the shape before.
        footer.pop(KEYS, None)
        paths = list(root.leaves())
        for group in footer[ROW_GROUPS][1][1]:
            for chunk, names in zip(group[COLUMNS][1][1], paths, strict=True):
                chunk[METADATA][1][_PATH] = LIST, (BINARY, names)

    edit(path, changed)


def _tree(elements: Iterator[Fields]) -> Element:
    own = next(elements)
    count = own.get(_CHILDREN, (INT, 0))[1]
    return Element(own, [_tree(elements) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class Drawn:
    """A field that was drawn at random.

    Attributes:
        field: The field, as Arrow writes it.
        change: Gives its element, and those below it, the shapes that were drawn.
        value: Draws a value.
    """

    field: pa.Field
    change: Callable[[Element], None]
    value: Callable[[], Any]


_Parts: TypeAlias = tuple[pa.DataType, Callable[[Element], None], Callable[[], Any]]
_LEAVES: tuple[tuple[pa.DataType, list[Any]], ...] = (
    (pa.int32(), [1, 2, -3]),
    (pa.int16(), [4, -5]),
    (pa.string(), ["", "x", "größe"]),
)
_KINDS = ("list", "list", "map", "struct", "leaf")
_GROUPS = ("list", "list", "bag", "array", "element", "key_value", "v_tuple")
_ELEMENTS = ("element", "item", "array_element", "array")
_ENTRIES = ("key_value", "map", "map", "entries")
_KEYS = (*[("key", "value")] * 4, ("k", "v"), ("value", "key"))
_ANNOTATIONS = ((MAP, None), (MAP, MAP_KEY_VALUE), (MAP_KEY_VALUE, None))


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws fields of lists, maps and structs.

    Attributes:
        types: What types and values are drawn with.
        shapes: What their shapes are drawn with.
    """

    types: Random
    shapes: Random

    def field(self, name: str, depth: int = 3, *, may_be_null: bool = True) -> Drawn:
        """Draw a field.

        Args:
            name: Its name.
            depth: Most levels of lists, maps and structs.
            may_be_null: Whether it may be null, if that is drawn.
        """
        is_nullable = self.types.random() < 0.7 and may_be_null
        kind = self.types.choice(_KINDS)
        make = {"list": self._list, "map": self._map, "struct": self._struct}.get(kind)
        type_, change, one = make(name, depth) if make is not None and depth else self._leaf()

        def value() -> Any:
            return None if is_nullable and self.types.random() < 0.3 else one()

        return Drawn(pa.field(name, type_, nullable=is_nullable), change, value)

    def _leaf(self) -> _Parts:
        type_, some = self.types.choice(_LEAVES)
        return type_, lambda _: None, lambda: self.types.choice(some)

    def _struct(self, _: str, depth: int) -> _Parts:
        fields = [self.field(one, depth - 1) for one in ("a", "b")[: self.types.randint(1, 2)]]

        def change(element: Element) -> None:
            for one, child in zip(fields, element.children, strict=True):
                one.change(child)

        def value() -> Any:
            return {one.field.name: one.value() for one in fields}

        return pa.struct([one.field for one in fields]), change, value

    def _list(self, name: str, depth: int) -> _Parts:
        is_three, is_bare = self.shapes.random() < 0.5, self.shapes.random() < 0.3
        group = self.shapes.choice(_GROUPS).replace("v_", f"{name}_")
        inner = self.shapes.choice(_ELEMENTS)
        element = self.field("element", depth - 1, may_be_null=is_three)

        def change(own: Element) -> None:
            (repeated,) = own.children
            (child,) = repeated.children
            element.change(child)
            if is_three:
                repeated.name, child.name = group, inner
                return
            in_two_levels(group)(own)
            if is_bare and own.fields[_REPETITION][1] == _REQUIRED:
                _without_group(own)

        def value() -> Any:
            return [element.value() for _ in range(self.types.randint(0, 3))]

        return pa.list_(element.field), change, value

    def _map(self, _: str, depth: int) -> _Parts:
        key = self.field("key", 0, may_be_null=False)
        content = self.field("value", depth - 1)
        group, names = self.shapes.choice(_ENTRIES), self.shapes.choice(_KEYS)
        outer, inner = self.shapes.choice(_ANNOTATIONS)

        def change(own: Element) -> None:
            (entries,) = own.children
            content.change(entries.children[1])
            own.annotate(outer)
            entries.annotate(inner)
            entries.name = group
            for child, name in zip(entries.children, names, strict=True):
                child.name = name

        def value() -> Any:
            return list(
                {key.value(): content.value() for _ in range(self.types.randint(0, 2))}.items()
            )

        return pa.map_(key.field, content.field), change, value


def write_drawn(path: Path, seed: str, number: int = 0) -> None:
    """Write a file with a column `v` of a type, in a shape, with values that are drawn at random.

    Args:
        path: The file.
        seed: What is drawn depends on it, and the type on it alone.
        number: The number of the file, on which the shape depends.
    """
    one = Drawing(Random(seed), Random(f"{seed} {number}")).field("v")
    values = pa.array([one.value() for _ in range(5)], one.field.type)
    pq.write_table(pa.table([values], pa.schema([one.field])), path)
    reshape(path, lambda root: one.change(root.children[0]))


def in_two_levels(name: str = "array") -> Callable[[Element], None]:
    """Return what makes a list whose elements are not null one of two levels."""

    def change(own: Element) -> None:
        (repeated,) = own.children
        (child,) = repeated.children
        child.name = name
        child.repeat()
        own.children = [child]

    return change


def renamed(*names: str) -> Callable[[Element], None]:
    """Return what renames the one child of a list or map, and its children."""

    def change(own: Element) -> None:
        (group,) = own.children
        for element, name in zip([group, *group.children], names, strict=False):
            element.name = name

    return change


def repeated_alone(own: Element) -> None:
    """Make a list that is not null, nor its elements, a repeated field without any group."""
    in_two_levels()(own)
    _without_group(own)


def _without_group(own: Element) -> None:
    (child,) = own.children
    own.fields = {**child.fields, _NAME: own.fields[_NAME]}
    own.children = child.children
