"""Match the columns of ORC files to those of their table, by name or by position.

Hive's first writers called all columns `_col0`, `_col1` and so on. Spark's ORC reader matches the
columns of such a file by position. If `orc.force.positional.evolution` is set, it does so for every
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.assemble import with_named
from windrow_core.files.chunks import FooterGroup
from windrow_core.files.errors import SchemaConflictError, UnreadableFootersError
from windrow_core.files.schema import FileSchema, fields_in
from windrow_core.files.types import TIMESTAMP_NTZ, spark_type

FORCED_OPTION = "orc.force.positional.evolution"

_NAMELESS = "_col"


def are_nameless(names: Sequence[str]) -> bool:
    """Return whether a file's columns have names for which Spark matches them by position."""
    return bool(names) and all(name.startswith(_NAMELESS) for name in names)


def by_position(format_options: Mapping[str, str]) -> bool:
    """Return whether the columns of all files are matched by position."""
    return any(
        name.lower() == FORCED_OPTION and value.lower() == "true"
        for name, value in format_options.items()
    )


def positioned(
    groups: Sequence[FooterGroup], declared: pa.Schema | None, *, by_force: bool
) -> list[FooterGroup]:
    """Return footers, with the names of the declared columns if files are matched by position.

    Args:
        groups: Footers.
        declared: The data columns that the table declares, in order.
        by_force: Whether all files are matched by position.
    """
    if declared is None:
        if by_force and groups:
            reason = f"{FORCED_OPTION} needs declared columns: declare them in the files' order"
            raise UnreadableFootersError(((groups[0].files.path, reason),), "orc")
        return list(groups)
    return [
        _renamed(group, declared) if by_force or are_nameless(group.files.schema.names) else group
        for group in groups
    ]


def require_readable(groups: Sequence[FooterGroup], data: pa.Schema, *, by_force: bool) -> None:
    """Refuse files whose columns Spark's ORC reader would not read as the table's.

    Args:
        groups: Footers, with the table's names for their columns.
        data: The data columns of the table.
        by_force: Whether all files are matched by position.
    """
    types = {field.name.lower(): field.type for field in data}
    order = [name.lower() for name in data.names]
    for group in groups:
        schema, path = group.files.schema, group.files.path
        names = [name.lower() for name in schema.names]
        if not by_force and are_nameless(schema.names) and names != order[: len(names)]:
            reason = (
                f"its columns have no names ({schema.names[0]}, …), while those of other files "
                "do: declare the table's columns in the order of this file's"
            )
            raise UnreadableFootersError(((path, reason),), "orc")
        for field in schema:
            target = types.get(field.name.lower(), field.type)
            if any(_is_date_as_time(*pair) for pair in _pairs(field.type, target)):
                source, table = spark_type(field.type), spark_type(target)
                raise SchemaConflictError(field.name, source, path, table, "")


def _renamed(group: FooterGroup, declared: pa.Schema) -> FooterGroup:
    schema = group.files.schema
    if len(schema) > len(declared):
        reason = (
            f"its columns are matched by position, and it has {len(schema)} where the table declares "
            f"{len(declared)}: declare all of them, in its order"
        )
        raise UnreadableFootersError(((group.files.path, reason),), "orc")
    if schema.names == declared.names[: len(schema)]:
        return group
    names = dict(zip(schema.names, declared.names, strict=False))
    return replace(
        group,
        files=FileSchema(_with_names(schema, names), group.files.path),
        bounded=_with_names(group.bounded, names),
        # The grouped reader matches by name.
        table=with_named(
            group.table, "native_columns", sorted(name.lower() for name in names.values())
        ),
    )


def _with_names(schema: pa.Schema, names: dict[str, str]) -> pa.Schema:
    return pa.schema([field.with_name(names[field.name]) for field in schema])


def _pairs(source: pa.DataType, target: pa.DataType) -> Iterator[tuple[pa.DataType, pa.DataType]]:
    """Yield each type inside a type, and the type that it becomes in another one."""
    yield source, target
    inside = {field.name.lower(): field.type for field in fields_in(target)}
    by_place = None if pt.is_struct(source) else list(inside.values())
    for at, field in enumerate(fields_in(source)):
        other = by_place[at] if by_place else inside.get(field.name.lower())
        if other is not None:
            yield from _pairs(field.type, other)


def _is_date_as_time(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(pt.is_date(source) and target == TIMESTAMP_NTZ)
