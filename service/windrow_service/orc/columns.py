"""The columns of an ORC footer: their Spark types, and whether Arrow reads them as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.acid.names import are_named
from windrow_core.files.limits import refuse_deep
from windrow_core.files.schema import meaning_as
from windrow_core.files.types import arrow_types, spark_type

_CATALYST = b"spark.sql.catalyst.type"
# What Hive's first release wrote as `decimal`, without digits.
_OLD_DECIMAL = pa.decimal128(38, 10)
_WRITTEN_BY_JAVA = 0


class Kind(IntEnum):
    """ORC's kinds of types, by their numbers in footers."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


_SCALARS = arrow_types("orc")


@dataclass(frozen=True, slots=True)
class Node:
    """One type in a footer, at the top or inside another.

    Attributes:
        number: Its place among the footer's types, and among the statistics.
        kind: Its kind in ORC.
        type: Its type in Spark.
        meaning: Its meaning beyond that type, such as `char(10)`; empty if it has none.
        alike: Whether Arrow reads all its values as Spark's ORC reader does, as far as the type
            shows.
        key: Whether it is the key of a map.
    """

    number: int
    kind: Kind
    type: pa.DataType
    meaning: str
    alike: bool
    key: bool


@dataclass(frozen=True, slots=True)
class OrcColumn:
    """A top-level column.

    Attributes:
        field: Its name and type; as in `FileSchema`.
        nodes: Its type and all types in it, in the order of their numbers.
        alike: Whether Arrow reads it as Spark's ORC reader does, as far as the types show.
    """

    field: pa.Field
    nodes: Sequence[Node]
    alike: bool


def has_row_names(footer: Any) -> bool:
    """Return whether rows have names, as in transactional tables whose rows can be deleted."""
    top = footer.types[0] if footer.types else None
    return top is not None and are_named([name.decode() for name in top.names])


def columns_of(footer: Any, *, within_rows: bool = False) -> list[OrcColumn]:
    """Return the top-level columns of a footer.

    Args:
        footer: A `messages.FileTail.footer`.
        within_rows: Whether to return the columns that lie beside the names of rows
            (`has_row_names`).

    Raises:
        ValueError: The footer's types do not form columns.
    """
    types = footer.types
    if not types or types[0].kind != Kind.STRUCT:
        raise ValueError("it holds no struct of columns, so Spark cannot read it as a table")
    tree = _Tree(types, by_java=footer.writer == _WRITTEN_BY_JAVA)
    columns = []
    fields = [*tree.fields(0, types[0])]
    if within_rows:
        for number, _ in fields[:-1]:
            tree.walk(number, [])
        fields = tree.enter(fields[-1][0])
    for number, name in fields:
        nodes: list[Node] = []
        tree.walk(number, nodes)
        top = nodes[0]
        # Arrow reads a dot in a name as the path to a field of a struct.
        alike = all(node.alike for node in nodes) and "." not in name
        meaning = next((node.meaning for node in nodes if node.meaning), None)
        columns.append(OrcColumn(meaning_as(pa.field(name, top.type), meaning), nodes, alike))
    tree.finish()
    return columns


class _Tree:
    """Walks the types of a footer, each of which follows the one type that contains it."""

    def __init__(self, types: Any, *, by_java: bool) -> None:
        self._types = types
        self._by_java = by_java
        self._next = 1

    def fields(self, number: int, struct: Any) -> Iterator[tuple[int, str]]:
        if len(struct.subtypes) != len(struct.names):
            raise ValueError(f"its footer is damaged: type {number} has fields without names")
        for subtype, name in zip(struct.subtypes, struct.names, strict=True):
            yield subtype, name.decode()

    def enter(self, number: int) -> list[tuple[int, str]]:
        """Return the fields of a struct, which is not walked itself."""
        if number != self._next or number >= len(self._types):
            raise ValueError("its footer is damaged: its types do not form a tree")
        if self._types[number].kind != Kind.STRUCT:
            raise ValueError(
                "its column 'row' is not a struct, so it does not belong to a transactional table"
            )
        self._next += 1
        return [*self.fields(number, self._types[number])]

    def walk(self, number: int, nodes: list[Node], *, depth: int = 0, key: bool = False) -> Node:
        """Add a type and all types in it."""
        if number != self._next or number >= len(self._types):
            raise ValueError("its footer is damaged: its types do not form a tree")
        refuse_deep(depth)
        self._next += 1
        at = len(nodes)
        message = self._types[number]
        try:
            kind = Kind(message.kind)
        except ValueError:
            raise ValueError(
                f"it holds a type of ORC's kind {message.kind}, which Windrow does not support"
            ) from None
        # Takes its place before the types inside it.
        nodes.append(Node(number, kind, pa.null(), "", False, key))
        type_, meaning, alike = self._described(number, kind, message, nodes, depth + 1)
        nodes[at] = Node(number, kind, type_, meaning, alike, key)
        return nodes[at]

    def finish(self) -> None:
        """Refuse types that no other type contains."""
        if self._next != len(self._types):
            raise ValueError("its footer is damaged: its types do not form a tree")

    def _described(
        self, number: int, kind: Kind, message: Any, nodes: list[Node], depth: int
    ) -> tuple[pa.DataType, str, bool]:
        if kind == Kind.STRUCT:
            fields = [
                pa.field(name, self.walk(inner, nodes, depth=depth).type)
                for inner, name in self.fields(number, message)
            ]
            return pa.struct(fields), "", bool(fields)
        inside = [
            self.walk(inner, nodes, depth=depth, key=kind == Kind.MAP and not at).type
            for at, inner in enumerate(message.subtypes)
        ]
        if kind == Kind.UNION:
            members = [pa.field(str(at), type_) for at, type_ in enumerate(inside)]
            return pa.dense_union(members), "", False
        if len(inside) != {Kind.LIST: 1, Kind.MAP: 2}.get(kind, 0):
            raise ValueError("its footer is damaged: its types do not form a tree")
        if kind == Kind.LIST:
            return pa.list_(inside[0]), "", True
        if kind == Kind.MAP:
            return pa.map_(*inside), "", True
        return self._scalar(kind, message)

    def _scalar(self, kind: Kind, message: Any) -> tuple[pa.DataType, str, bool]:
        if kind == Kind.DECIMAL:
            return _decimal(message)
        plain = _SCALARS[kind.name]
        if kind == Kind.CHAR:
            # Spark pads the values that it reads, and those that it compares with them.
            return plain, f"char({message.length})", False
        name_in_spark = next(
            (one.value.decode() for one in message.attributes if one.key == _CATALYST), ""
        )
        if (by_name := _SCALARS.get(f"{kind.name} {name_in_spark}")) is not None:
            return by_name, "", True
        if name_in_spark not in ("", spark_type(plain)):
            return plain, name_in_spark, False
        if kind == Kind.VARCHAR:
            # Spark cuts values that are too long; Java's writer has already done so.
            return plain, "", self._by_java
        return plain, "", not pt.is_timestamp(plain)


def _decimal(message: Any) -> tuple[pa.DataType, str, bool]:
    precision, scale = message.precision, message.scale
    if not precision:
        return _OLD_DECIMAL, "", False
    if not 1 <= precision <= 38 or scale > precision:
        raise ValueError(f"it holds a decimal({precision},{scale}), which no reader supports")
    return pa.decimal128(precision, scale), "", True
