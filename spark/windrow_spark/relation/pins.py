"""What all scans of a relation have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from windrow_spark.relation.division import Reader
from windrow_spark.relation.filters import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What all scans of a relation have in common; its text travels through Spark.

    Attributes:
        source: The name that `Sources` gave to the client and the session.
        table: The table.
        registration: The number of its registration; None if the coordinator does not tell it.
        snapshot_id: Its snapshot.
        filter: The rows to keep, as the coordinator understood the filter.
        types: All columns, with their types as Spark SQL writes them.
        options: Options of each plan; they take precedence over the session's.
        reader: Which way files are read.
        at_snapshot: Whether its reader named the snapshot, rather than taking the current one.
        additions: The files added to an older snapshot that are read; None means all files.
        local_times: Partition columns of type `timestamp` whose values are local times.
        follows: Whether a query reads a later snapshot if this process has changed the table since, as
            for tables of a catalog.
        zone: The time zone of these; None means that of the session that runs a query.
    """

    source: str
    table: str
    registration: int | None
    snapshot_id: int
    filter: Tree | None
    types: dict[str, str]
    options: dict[str, Any]
    reader: Reader
    at_snapshot: bool = False
    additions: dict[str, Any] | None = None
    local_times: Sequence[str] = ()
    zone: str | None = None
    follows: bool = False

    def to_text(self) -> str:
        """Return it as JSON; equal values have the same text."""
        # Columns keep their order, which is that of positional formats.
        return json.dumps(asdict(self) | {"options": dict(sorted(self.options.items()))})


def label_of(table: str, snapshot_id: int) -> str:
    """Return the name of a relation in Spark's plans."""
    return f"windrow {table} snapshot {snapshot_id}"


def pin_of(leaf: Any) -> Pin | None:
    """Return the pin of a leaf of Spark's plans; None if it is no relation of a table."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return None
    files = leaf.relation()
    if files.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    index = files.location()
    if index.getClass().getSimpleName() != "TableIndex":
        return None
    return Pin(**json.loads(index.pin()))
