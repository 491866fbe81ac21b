"""Which tables other engines can read, as far as definitions tell."""

from __future__ import annotations

from windrow_core.files.formats import LOGGED
from windrow_core.models import TableDefinition
from windrow_service.usecases.tables.ports import StoredTable

_ICEBERG = "iceberg"
_MAIN = "main"
_NAME_REF = "register it without the option `ref`, and name the branch or tag in the engine"
_READ_HERE = "read it with Windrow's client, or write it anew as Parquet files and register these"


def is_iceberg(table: StoredTable) -> bool:
    """Return whether a table has Iceberg's metadata of its own."""
    return table.info.definition.format == _ICEBERG


def unfitness(definition: TableDefinition) -> str | None:
    """Return why other engines cannot read tables of a definition; None if they may."""
    if definition.format == _ICEBERG:
        ref = definition.format_options.get("ref", _MAIN)
        return (
            None
            if ref == _MAIN
            else f"it is read at {ref!r}, and engines read {_MAIN!r}: {_NAME_REF}"
        )
    if definition.transactional == "full":
        return f"its rows are deleted one by one, by names that engines do not know: {_READ_HERE}"
    if definition.format not in ("parquet", *LOGGED):
        return f"it is of format {definition.format!r}, which engines do not read as Iceberg's: {_READ_HERE}"
    defaults = [one.name for one in definition.columns or () if one.default is not None]
    if defaults:
        return (
            f"column {defaults[0]!r} has a default, which engines do not know: write files that "
            "hold the column, or declare it without"
        )
    return None
