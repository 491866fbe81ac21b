"""A table's columns as Iceberg's: their ids, their types, and their names in files.

A field's id is made from its name, so that the same name always has the same id, on each replica
and whatever columns come and go: files are read by name, and so are columns. Fields of Delta's column
mapping have the ids of Delta's log, which their files may have, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.file_fields import (
    DEFAULT,
    NAMES_IN_FILES,
    column_id,
    name_in_files,
    named_children,
)
from windrow_core.files.schema import fields_in
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ

# Iceberg reserves the ids of the last two hundred 32-bit numbers.
_IDS = 2**30
_MAX_ID = 2**31 - 201
_FIRST_PARTITION_ID = 1000
_TYPES = {
    pa.bool_(): "boolean",
    # Iceberg has no smaller ones.
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamptz",
    TIMESTAMP_NTZ: "timestamp",
}
# Names of fields, and what lies within each.
NameTree: TypeAlias = dict[str, Any]
# Children of maps, and groups of their entries, which have no name in Iceberg.
KEY_VALUE = ("key", "value")
ENTRIES = ""


def path_text(path: tuple[str, ...]) -> str:
    """Return the key of a path in `InnerNames.by_path`."""
    return json.dumps(path)


@dataclass(frozen=True, slots=True)
class InnerNames:
    """How files call what lies in lists and maps.

    Attributes:
        by_path: The names by `path_text` of the path at which the table has the element, key, value
            or group of entries; the column's name is in lower case.
        with_groups: Whether to name groups of entries: DuckDB looks for those that are not called
            `key_value`, and Iceberg's client for Java refuses ids that come twice.
    """

    by_path: Mapping[str, Sequence[str]]
    with_groups: bool = False

    @property
    def has_groups(self) -> bool:
        """Whether some groups of entries have a name of their own."""
        return any(json.loads(path)[-1] == ENTRIES and self._groups(path) for path in self.by_path)

    def of(self, path: tuple[str, ...], name: str) -> list[str]:
        """Return all names of a field that is called so in Iceberg."""
        return sorted({name, *self.by_path.get(path_text(path), ())})

    def with_group(
        self, path: tuple[str, ...], entries: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return a mapping of what lies in a list or map, with the groups of its entries."""
        groups = self._groups(path_text((*path, ENTRIES))) if self.with_groups else []
        return [*entries, {"names": groups, "fields": entries}] if groups else entries

    def _groups(self, path: str) -> list[str]:
        return [name for name in self.by_path.get(path, ()) if name != "_".join(KEY_VALUE)]


_UNFIT_PARTITIONS = {pa.float32(), pa.float64(), pa.binary()}


class UnfitColumnError(ValueError):
    """A column cannot be described; the text names it, and says what to do."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a snapshot, described as Iceberg's.

    Attributes:
        data: Columns that are stored in the files.
        partition: Partition columns.
        ids: The id of each top-level column, by its name in lower case.
        fields: All of them, as the fields of an Iceberg schema.
        names: How files call the fields of Delta's column mapping, by their ids; empty without it.
    """

    data: pa.Schema
    partition: pa.Schema
    ids: Mapping[str, int]
    fields: Sequence[Mapping[str, Any]]
    names: Mapping[int, str]

    @classmethod
    def of(cls, data: pa.Schema, partition: pa.Schema) -> TableColumns:
        """Describe columns.

        Raises:
            UnfitColumnError: One of them has no equal in Iceberg.
        """
        for field in partition:
            if field.type in _UNFIT_PARTITIONS:
                raise UnfitColumnError(
                    f"partition column {field.name!r} is of type {field.type}, whose values "
                    "engines write in different ways: register it as a string"
                )
        names = _mapped_names(data)
        ids = _Ids(names)
        fields = [ids.field(field, ()) for field in [*data, *partition]]
        by_name = {one["name"].lower(): one["id"] for one in fields}
        return cls(data, partition, by_name, fields, names)

    @property
    def schema_id(self) -> int:
        """A number that is the same for the same columns."""
        return _number(json.dumps(self.fields))

    @property
    def last_id(self) -> int:
        """The greatest id of all fields."""
        return max(self.all_ids, default=0)

    @property
    def all_ids(self) -> set[int]:
        """The ids of all fields, at all depths."""
        return set(_ids_within(self.fields))

    def as_schema(self) -> dict[str, Any]:
        """Return Iceberg's schema."""
        return {"type": "struct", "schema-id": self.schema_id, "fields": self.fields}

    def as_spec(self) -> list[dict[str, Any]]:
        """Return the fields of Iceberg's partition spec."""
        return [
            {
                "name": field.name,
                "transform": "identity",
                "source-id": self.ids[field.name.lower()],
                "field-id": _FIRST_PARTITION_ID + at,
            }
            for at, field in enumerate(self.partition)
        ]


def _mapped_names(fields: Iterable[pa.Field]) -> dict[int, str]:
    """Return how files call fields at all depths, by the ids of Delta's column mapping."""
    names: dict[int, str] = {}
    beside: set[str] = set()
    for field in fields:
        metadata, number = field.metadata or {}, column_id(field)
        if DEFAULT in metadata or (NAMES_IN_FILES in metadata) != (number is not None):
            raise UnfitColumnError(
                f"what files have for column {field.name!r} is not known: refresh the table in full "
                "(`windrow table refresh --full`)"
            )
        pairs = list(_mapped_names(fields_in(field.type)).items())
        if number is not None:
            pairs.append((number, name_in_files(field)))
        for one, name in pairs:
            if one in names or not 0 < one < _MAX_ID:
                raise UnfitColumnError(
                    f"column {field.name!r} has the id {one}, which another one has, or Iceberg does not "
                    "allow: read the table with Windrow's client"
                )
            names[one] = name
        if number is not None and name_in_files(field).lower() in beside:
            raise UnfitColumnError(
                f"column {field.name!r} has a name in files that another one has: read the table with "
                "Windrow's client"
            )
        beside.add(name_in_files(field).lower())
    return names


def mapped_fields(
    fields: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
    spellings: Mapping[str, Sequence[str]],
    within: NameTree,
    inner: InnerNames,
) -> list[dict[str, Any]]:
    """Return Iceberg's name mapping of a table with Delta's column mapping.

    Partition columns are not in it: their values are not in the files, where other columns may have
    their names.

    Args:
        fields: Fields of a schema.
        names: How files call fields, by their ids.
        spellings: By names in lower case, how files spell their columns.
        within: What lies in columns of files that the table lacks, by their names in lower case.
        inner: How files call what lies in lists and maps.
    """
    in_files = [field for field in fields if field["id"] in names]
    own = {names[field["id"]].lower() for field in in_files}
    ids = _Ids({*names, *_ids_within(fields)})
    others = {name: some for name, some in sorted(spellings.items()) if name not in own}
    return _other_fields(others, within, ids) + [
        _mapped_field(field, (field["name"].lower(),), names, inner) for field in in_files
    ]


def _other_fields(
    spellings: Mapping[str, Sequence[str]], within: NameTree, ids: _Ids, above: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Return entries of a name mapping for fields that the table lacks: PyIceberg asks for all."""
    entries = []
    for name, some in spellings.items():
        path, inner = (*above, name), within.get(name, {})
        entry = {"field-id": ids.of(path), "names": list(some)}
        if inner:
            entry["fields"] = _other_fields({one: [one] for one in inner}, inner, ids, path)
        entries.append(entry)
    return entries


def _mapped_field(
    field: Mapping[str, Any], path: tuple[str, ...], names: Mapping[int, str], inner: InnerNames
) -> dict[str, Any]:
    children = [
        _mapped_field(one, (*path, one["name"]), names, inner) for one in _children(field["type"])
    ]
    return {
        "field-id": field["id"],
        "names": inner.of(path, names.get(field["id"], field["name"])),
        **({"fields": inner.with_group(path, children)} if children else {}),
    }


def joined_trees(trees: Iterable[NameTree]) -> NameTree:
    """Return all names that some trees have."""
    union: NameTree = {}
    for tree in trees:
        for name, inner in tree.items():
            union[name] = joined_trees([union[name], inner]) if name in union else inner
    return union


def name_mapping(
    fields: Sequence[Mapping[str, Any]],
    spellings: Mapping[str, Sequence[str]],
    within: NameTree,
    inner: InnerNames,
) -> list[dict[str, Any]]:
    """Return Iceberg's name mapping, by which columns are found in files without ids.

    It also has the columns of files that the table lacks.

    Args:
        fields: Fields of a schema.
        spellings: By names in lower case, how files spell their columns.
        within: What lies in columns of files that the table lacks, by their names in lower case.
        inner: How files call what lies in lists and maps.
    """
    own = {field["name"].lower() for field in fields}
    ids = _Ids(set(_ids_within(fields)))
    others = {name: some for name, some in sorted(spellings.items()) if name not in own}
    return _other_fields(others, within, ids) + [
        {
            **_mapped_field(field, (field["name"].lower(),), {}, inner),
            "names": sorted({field["name"], *spellings.get(field["name"].lower(), ())}),
        }
        for field in fields
    ]


def _children(type_: Any) -> list[dict[str, Any]]:
    if isinstance(type_, str):
        return []
    if type_["type"] == "struct":
        return list(type_["fields"])
    names = ("element",) if type_["type"] == "list" else KEY_VALUE
    return [
        {
            "id": type_[f"{name}-id"],
            "name": name,
            "type": type_["element" if name == "element" else name],
        }
        for name in names
    ]


def _ids_within(fields: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for field in fields:
        yield int(field["id"])
        yield from _ids_within(_children(field["type"]))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % _IDS


class _Ids:
    """Gives fields their ids."""

    def __init__(self, others: Collection[int] = ()) -> None:
        self._ids: set[int] = {0, *others}

    def field(self, field: pa.Field, above: tuple[str, ...]) -> dict[str, Any]:
        path = (*above, field.name.lower())
        number = column_id(field)
        return {
            "id": self.of(path) if number is None else number,
            "name": field.name,
            "required": False,
            "type": self._type(field.type, path),
        }

    def of(self, path: tuple[str, ...]) -> int:
        text = json.dumps(path)
        number = _number(text)
        # In a thousand columns, two share a number once in two thousand tables.
        while number in self._ids:
            text += "+"
            number = _number(text)
        self._ids.add(number)
        return number

    def _type(self, type_: pa.DataType, path: tuple[str, ...]) -> Any:
        if type_ in _TYPES:
            return _TYPES[type_]
        if pt.is_decimal128(type_) and 0 <= type_.scale <= type_.precision:
            return f"decimal({type_.precision}, {type_.scale})"
        children = named_children(type_)
        if pt.is_struct(type_) and children:
            return {"type": "struct", "fields": [self.field(one, path) for _, one in children]}
        if pt.is_list(type_):
            (element,) = (self.field(one.with_name(name), path) for name, one in children)
            return {
                "type": "list",
                "element-id": element["id"],
                "element": element["type"],
                "element-required": False,
            }
        if pt.is_map(type_):
            key, value = (self.field(one.with_name(name), path) for name, one in children)
            return {
                "type": "map",
                "key-id": key["id"],
                "key": key["type"],
                "value-id": value["id"],
                "value": value["type"],
                "value-required": False,
            }
        raise UnfitColumnError(
            f"column {'.'.join(path)!r} is of type {type_}, which Iceberg does not have: declare "
            "the table's columns without it"
        )
