"""Packs as Iceberg has them: files of no partition, and positions of rows that nobody is to read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow_core.files.arrays import make_struct
from windrow_core.files.packs import SOURCE
from windrow_service.avro import encoding
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.entry_schemas import entry_schema
from windrow_service.engines.manifests import (
    EDITION,
    NO_SPEC,
    OWN_SPEC,
    VECTOR_SEQUENCE,
    ListedManifest,
    ManifestFigures,
    described,
    entry_head,
    header,
    listed,
    no_sizes,
)
from windrow_service.planner.splits import Ints

# Reserved by Iceberg for the columns of files of deleted positions.
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_ID = "PARQUET:field_id"
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={_ID: str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={_ID: str(_POSITION_ID)}),
    ]
)
_POSITION_DELETES = 1


@dataclass(frozen=True, slots=True)
class UsedPack:
    """A pack that stands for files of a snapshot.

    Attributes:
        pack_id: The pack.
        path: Where it is.
        size_bytes: Its size.
        row_count: Number of its rows.
        row_counts: Number of rows of each of its sources, in its order.
        live: Numbers of the sources that it stands for, ascending.
        layout: How files like its sources store their columns.
        partition: The partition values of these sources.
        stats: The statistics of their columns, as inventories have them.
    """

    pack_id: str
    path: str
    size_bytes: int
    row_count: int
    row_counts: Ints
    live: Ints
    layout: str
    partition: pa.StructArray
    stats: pa.StructArray

    @property
    def dead_rows(self) -> Ints:
        """Positions of the rows that nobody is to read."""
        is_dead = np.ones(len(self.row_counts), np.bool_)
        is_dead[self.live] = False
        return np.flatnonzero(np.repeat(is_dead, self.row_counts))


def packs_name(packs: Sequence[UsedPack], columns: TableColumns) -> str:
    """Return the name of what is said about packs, which says everything that it depends on."""
    digest = hashlib.sha256(json.dumps([EDITION, columns.as_schema(), columns.as_spec()]).encode())
    for pack in packs:
        digest.update(pack.pack_id.encode())
        digest.update(pack.live.tobytes())
    return f"packs-{digest.hexdigest()[:40]}"


def spec_of(columns: TableColumns) -> int:
    """Return the number of the partition spec of packs."""
    return NO_SPEC if len(columns.partition) else OWN_SPEC


def _unpartitioned(columns: TableColumns) -> TableColumns:
    """Return a table's columns as those of files that hold all of them."""
    return replace(
        columns, data=pa.schema([*columns.data, *columns.partition]), partition=pa.schema([])
    )


def described_packs(
    packs: Sequence[UsedPack], columns: TableColumns
) -> tuple[bytes, ManifestFigures]:
    """Return a manifest of packs.

    Args:
        packs: At least one.
        columns: The table's columns.

    Raises:
        UnfitFileError: Other engines would read their files wrongly.
    """
    count = len(packs)
    figures_of = [*columns.partition, *packs[0].stats.type]
    bounds = [_bounds([_ends_of(pack, field.name) for pack in packs]) for field in figures_of]
    fields = [pa.field(field.name, one.type) for field, one in zip(figures_of, bounds, strict=True)]
    files = pa.table(
        {
            "path": pa.array([pack.path for pack in packs], pa.string()),
            "size_bytes": pa.array([pack.size_bytes for pack in packs], pa.int64()),
            "row_count": pa.array([pack.row_count for pack in packs], pa.int64()),
            "delete_count": pa.array(np.zeros(count, np.int64)),
            "deletes": pa.nulls(count, pa.list_(pa.null())),
            "partition": make_struct([], [], count),
            "stats": make_struct(bounds, fields, count),
            "layout": pa.array([pack.layout for pack in packs], pa.string()),
        }
    )
    # Their paths are absolute.
    content, figures = described(files, "", _unpartitioned(columns), spec_of(columns))
    return content, replace(figures, spellings={**figures.spellings, SOURCE: [SOURCE]})


def _ends_of(pack: UsedPack, name: str) -> pa.StructArray:
    """Return the bounds and numbers of nulls of a column in the sources of a pack."""
    at = pack.partition.type.get_field_index(name)
    if at < 0:
        return pack.stats.field(name)
    values = pack.partition.field(at)
    # None is null.
    return pa.StructArray.from_arrays(
        [values, values, pa.repeat(pa.scalar(0, pa.int64()), len(values))],
        ["min", "max", "null_count"],
    )


def _bounds(of_sources: Sequence[pa.StructArray]) -> pa.StructArray:
    """Return a column's bounds and number of nulls in packs; null where a source has none.

    Args:
        of_sources: For each pack, those in its sources.
    """
    type_ = of_sources[0].type
    columns = []
    for name, total in (("min", pc.min), ("max", pc.max), ("null_count", pc.sum)):
        values = [total(one.field(name), skip_nulls=False) for one in of_sources]
        columns.append(pa.array(values, type_.field(name).type))
    return pa.StructArray.from_arrays(columns, fields=list(type_))


def positions_file(pack: UsedPack) -> bytes:
    """Return a file with the positions of a pack's dead rows."""
    rows = pack.dead_rows
    table = pa.table([pa.repeat(pa.scalar(pack.path), len(rows)), pa.array(rows)], _POSITIONS)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def described_positions(
    packs: Sequence[UsedPack], files: Sequence[tuple[str, int]], columns: TableColumns
) -> tuple[bytes, ListedManifest]:
    """Return a manifest of files with positions of dead rows.

    Args:
        packs: The packs that they are about.
        files: For each, where the file of its positions is, and the file's length.
        columns: The table's columns.
    """
    own, count = _unpartitioned(columns), len(packs)
    rows = np.array([len(pack.dead_rows) for pack in packs], np.int64)
    # Engines find the file that positions belong to by bounds of paths.
    paths = encoding.data(pa.array([pack.path for pack in packs], pa.string()))
    bounds = encoding.optional(encoding.number_map([(_PATH_ID, paths)], count))
    entries = encoding.rows(
        [
            entry_head(VECTOR_SEQUENCE) + encoding.long(_POSITION_DELETES),
            encoding.data(pa.array([path for path, _ in files], pa.string())),
            encoding.datum(b"PARQUET"),
            encoding.longs(rows),
            encoding.longs(np.array([size for _, size in files], np.int64)),
            no_sizes(count),
            bounds,
            bounds,
        ]
    )
    spec_id = spec_of(columns)
    content = encoding.avro_file(
        entry_schema(own, are_deletes=True), header(own, "positions", spec_id), [entries]
    )
    none = pa.table({"partition": make_struct([], [], count)})
    return content, listed(content, none, own, int(rows.sum()), spec_id)
