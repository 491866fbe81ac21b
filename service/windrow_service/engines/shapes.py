"""How lists and maps lie in files, and what readers make of that.

The format has known several shapes of both. What each reader finds in which was tried: see the matrix
of `docs/how-to/engines.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow_core.files.layouts import REPEATED, Shape, StoredType
from windrow_core.files.schema import fields_in
from windrow_service.engines.clients import DUCKDB, ICEBERGS_JAVA, POLARS, PYICEBERG
from windrow_service.engines.columns import ENTRIES, KEY_VALUE, path_text

_SMALL = (pa.int8(), pa.int16())
_LIST, _MAP, _LOGICAL = "list", "map", "logical"
_NO_SHAPE = "has lists or maps in a shape that is not known"
_ONE_FIELD = "has lists of groups of one field, which DuckDB takes for lists of that field"
_OLD_MAPS = "has maps or lists with old or missing annotations, on which DuckDB fails"
_OTHER_LISTS = (
    "has lists whose group is not called `list`, beside maps or types that Iceberg does not have, where "
    "DuckDB does not find them"
)
_CAST_KEYS = "has maps whose keys are of a type that Iceberg does not have, on which Polars fails"
_REPEATED_MAPS = "has lists of two levels of maps, on which Polars fails"
_OTHER_KEYS = (
    "has maps whose keys and values are not called `key` and `value`, which DuckDB does not find"
)
_NOT_THREE = (
    "has lists of two levels, or maps with old annotations, which Iceberg's client for Java, and so "
    "perhaps Spark, Trino or Flink, reads wrongly or not at all"
)
_NULL_LISTS = "has lists or maps of structs that may be null, and PyIceberg reads null as empty"


@dataclass(frozen=True, slots=True)
class Shapes:
    """What the shapes of some columns of a file mean.

    Attributes:
        names: How the file calls elements, keys, values and groups of entries, by the paths at which
            the table has them.
        unfit: For each reader that would fail, or read other values, why.
    """

    names: dict[str, str] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)

    def add(
        self, column: str, own: StoredType, shape: Shape | None, type_: pa.DataType | None
    ) -> None:
        """Look at a column.

        Args:
            column: Its name.
            own: Its type in the file.
            shape: Its shape; None if it is not known.
            type_: Its type in the table, which has the same children; None if the table lacks it.
        """
        path = (column.lower(),)
        try:
            look = _Look(self, column, type_ is not None)
            look.at(own, shape or [], type_, path)
            look.require(not (look.other_lists and look.remade_types), DUCKDB, _OTHER_LISTS)
        except ValueError:
            for reader in (DUCKDB, ICEBERGS_JAVA):
                self.unfit.setdefault(reader, f"column {column!r} {_NO_SHAPE}")


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at one column; what DuckDB makes anew, and lists that it would not find then, are gathered."""

    shapes: Shapes
    column: str
    is_read: bool
    other_lists: list[str] = field(default_factory=list)
    remade_types: list[str] = field(default_factory=list)

    def at(
        self,
        own: StoredType,
        shape: Shape,
        type_: pa.DataType | None,
        path: tuple[str, ...],
        *,
        remade: bool = True,
    ) -> None:
        """Look at a field; ValueError if type and shape do not fit.

        Args:
            own: Its type in the file.
            shape: Its shape.
            type_: Its type in the table, if it has one.
            path: Where the table has it.
            remade: Whether PyIceberg makes it anew.
        """
        if isinstance(own, str):
            if type_ is not None and not _is_same(own, type_):
                self.remade_types.append(own)
            return
        kind, *parts = own
        name, repetition, annotation, *children = shape
        may_be_null = remade and repetition == "optional"
        if kind == "struct":
            self.require(not annotation, DUCKDB, _OLD_MAPS, opens=False)
            fields = [None] * len(parts) if type_ is None else list(fields_in(type_))
            for (child, one), below, table_field in zip(parts, children, fields, strict=True):
                inner = None if table_field is None else table_field.type
                at = child if table_field is None else table_field.name
                self.at(one, below, inner, (*path, at), remade=remade)
            return
        inner_types = [None] * len(parts) if type_ is None else [f.type for f in fields_in(type_)]
        if kind == "map":
            (entries,) = children
            _, _, _, *below = entries
            self.require(annotation == _MAP and len(below) == 2, DUCKDB, _OLD_MAPS, opens=False)
            is_new = annotation in (_MAP, _LOGICAL) and len(below) == 2
            self.require(is_new, ICEBERGS_JAVA, _NOT_THREE)
            self.remade_types.append(kind)
            names = [one[0] for one in below]
            key = inner_types[0]
            is_cast = key is not None and not _is_same(parts[0][1], key)
            self.require(not is_cast, POLARS, _CAST_KEYS)
            is_usual = names == list(KEY_VALUE) and entries[0] not in KEY_VALUE
            self.require(is_usual, DUCKDB, _OTHER_KEYS)
            self._name((*path, ENTRIES), entries[0])
            of_structs = remade and _is_struct(parts[-1][1])
            self.require(not (may_be_null and of_structs), PYICEBERG, _NULL_LISTS)
            for (_, one), inner_shape, inner, at in zip(
                parts, below, inner_types, KEY_VALUE, strict=True
            ):
                self.at(one, inner_shape, inner, (*path, at), remade=of_structs)
            return
        ((_, element),) = parts
        ((inner),) = inner_types
        of_structs = remade and _is_struct(element)
        self.require(not (may_be_null and of_structs), PYICEBERG, _NULL_LISTS)
        if repetition == REPEATED:
            group: Shape = shape
            is_three = False
        else:
            (group,) = children
            self.require(annotation == _LIST, DUCKDB, _OLD_MAPS, opens=False)
            is_three = _is_three(group, name)
        below = group[3:]
        inner_shape = below[0] if is_three else [group[0], "required", *group[2:]]
        self.require(
            is_three and not group[2] and annotation in (_LIST, _LOGICAL), ICEBERGS_JAVA, _NOT_THREE
        )
        _require_fit(element, inner_shape)
        if is_three:
            self.require(not group[2], DUCKDB, _OLD_MAPS, opens=False)
        else:
            self.require(not (_is_struct(element) and len(below) == 1), DUCKDB, _ONE_FIELD)
            is_map = not isinstance(element, str) and element[0] == "map"
            self.require(not is_map, POLARS, _REPEATED_MAPS, opens=False)
        if group[0] != "list":
            self.other_lists.append(group[0])
        self._name((*path, "element"), group[0])
        self.at(element, inner_shape, inner, (*path, "element"), remade=of_structs)

    def _name(self, path: tuple[str, ...], name: str) -> None:
        if self.is_read:
            self.shapes.names[path_text(path)] = name

    def require(self, is_fit: bool, reader: str, why: str, *, opens: bool = True) -> None:
        """Note why a reader is unfit; if the table lacks the column, only where it fails to open the file."""
        if not is_fit and (self.is_read or not opens):
            self.shapes.unfit.setdefault(reader, f"column {self.column!r} {why}")


def _is_same(own: StoredType, type_: pa.DataType) -> bool:
    """Return whether a plain type in a file is the one that Iceberg has for the table's."""
    return own in (str(type_), f"large_{type_}", f"{type_}_view") and type_ not in _SMALL


def _is_struct(own: StoredType) -> bool:
    return not isinstance(own, str) and own[0] == "struct"


def _is_three(group: Shape, name: str) -> bool:
    """Return whether a repeated group in a list only holds the element, by the format's rules."""
    _, _, _, *below = group
    is_one = len(below) == 1 and below[0][1] != REPEATED
    return is_one and group[0] not in ("array", f"{name}_tuple")


def _require_fit(own: StoredType, shape: Shape) -> None:
    children: Sequence[Shape] = shape[3:]
    if isinstance(own, str):
        fits = not children
    elif own[0] == "struct":
        fits = [one[0] for one in children] == [name for name, _ in own[1:]]
    else:
        fits = bool(children) or shape[1] == REPEATED
    if not fits:
        raise ValueError("the shape is another type's")
