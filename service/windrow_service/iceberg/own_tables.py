"""What engines get of Iceberg tables, in words that need no PyIceberg."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from windrow_service.iceberg.manifests import ManifestTask


@dataclass(frozen=True, slots=True)
class OwnMetadata:
    """The metadata of a table, as readers get it.

    Attributes:
        path: The metadata file.
        content: What readers get of it, as JSON.
        identities: As in `PlannedSnapshot`, of all columns that the table has now.
    """

    path: str
    content: bytes
    identities: pa.Schema


@dataclass(frozen=True, slots=True)
class PlannedManifest:
    """A manifest of a snapshot.

    Attributes:
        key: The same for manifests of which the same rows are read.
        holds_deletes: Whether it holds delete files, not data files.
        task: What reads it.
    """

    key: Hashable
    holds_deletes: bool
    task: ManifestTask


@dataclass(frozen=True, slots=True)
class PlannedSnapshot:
    """A snapshot.

    Attributes:
        path: The metadata file that names it.
        snapshot_id: Its id; None if the table has no snapshot yet.
        types: Types of the columns that have the same names as now; others may be meant otherwise.
        identities: The columns by whose own values files have ever been partitioned, by their field
            ids; of type null if the snapshot has no such column.
        manifests: Its manifests.
    """

    path: str
    snapshot_id: int | None
    types: Mapping[str, pa.DataType]
    identities: pa.Schema
    manifests: Sequence[PlannedManifest]
