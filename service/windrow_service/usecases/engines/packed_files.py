"""Files of a snapshot for which packs stand, and what engines are told of those packs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import array_of, flat
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.manifests import NEEDED, ListedManifest, ManifestFigures
from windrow_service.engines.metadata import table_uuid
from windrow_service.engines.packs import (
    UsedPack,
    described_packs,
    described_positions,
    packs_name,
    positions_file,
)
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.planner.packs import IDENTITY, NO_PACK
from windrow_service.planner.splits import Ints
from windrow_service.usecases.engines.manifest_files import ManifestFiles, live_files
from windrow_service.usecases.engines.ports import MetadataFiles
from windrow_service.usecases.packs.coverage import UsablePacks
from windrow_service.usecases.tables.ports import StoredTable

_OF_PACKS = ["partition", "stats", "layout"]
# What `HeldFiles.take` needs.
NEEDED_TO_HOLD = (*IDENTITY, *_OF_PACKS)


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """Files of a snapshot for which packs stand, manifest by manifest.

    Attributes:
        usable: The packs that there are.
    """

    usable: UsablePacks
    _packs: list[Ints] = field(default_factory=list)
    _sources: list[Ints] = field(default_factory=list)
    _rows: list[pa.Table] = field(default_factory=list)

    def take(self, files: pa.Table) -> pa.Array:
        """Take the files of a manifest that packs hold; return which ones are left.

        Args:
            files: n files, with the columns `NEEDED_TO_HOLD`.
        """
        places = self.usable.coverage.of(files)
        in_packs = np.flatnonzero(places.pack != NO_PACK)
        self._packs.append(places.pack[in_packs])
        self._sources.append(places.source[in_packs])
        self._rows.append(files.select(_OF_PACKS).take(array_of(in_packs)))
        return pa.array(places.pack == NO_PACK)

    def packs(self) -> list[UsedPack]:
        """Return the packs that stand for all files that were taken."""
        if not any(map(len, self._packs)):
            return []
        pack, source = np.concatenate(self._packs), np.concatenate(self._sources)
        rows = pa.concat_tables(self._rows)
        order = np.lexsort((source, pack))
        pack, source, rows = pack[order], source[order], rows.take(array_of(order))
        ids, begins = np.unique(pack, return_index=True)
        ends = [*begins[1:].tolist(), len(pack)]
        in_use = []
        for number, begin, end in zip(ids.tolist(), begins.tolist(), ends, strict=True):
            sources = self.usable.coverage.packs[number]
            one, own = self.usable.packs[sources.pack_id], rows.slice(begin, end - begin)
            in_use.append(
                UsedPack(
                    pack_id=one.pack_id,
                    path=one.path,
                    size_bytes=one.size_bytes,
                    row_count=one.row_count,
                    row_counts=np.asarray(sources.rows["row_count"], np.int64),
                    live=source[begin:end],
                    layout=own["layout"][0].as_py(),
                    partition=flat(own["partition"]),
                    stats=flat(own["stats"]),
                )
            )
        return in_use


def manifest_beside(
    manifests: ManifestFiles,
    table: StoredTable,
    columns: TableColumns,
    whole_name: str,
    manifest: Manifest,
    body: bytes,
    in_packs: HeldFiles,
) -> tuple[str, ManifestFigures] | None:
    """Return the name and figures of a manifest of the files for which no packs stand. Blocking.

    Args:
        manifests: Makes the manifest, unless it is at hand.
        table: The table.
        columns: Its columns.
        whole_name: Name of the manifest of all files.
        manifest: The table's own manifest.
        body: Its rows.
        in_packs: Takes the other files.

    Returns:
        None if packs stand for all of its files.
    """
    files = live_files(manifest, body, (*NEEDED, *NEEDED_TO_HOLD))
    is_left = in_packs.take(files)
    files, name = files.filter(is_left), whole_name
    if not len(files):
        return None
    if is_left.true_count < len(is_left):
        content = whole_name.encode() + np.packbits(np.asarray(is_left)).tobytes()
        name = hashlib.sha256(content).hexdigest()[:40]
    figures = manifests.figures_at_hand(table_uuid(table.info, table.table_id), name)
    if figures is None:
        figures = manifests.write(table, name, files.select(NEEDED), columns)
    return name, figures


@dataclass(frozen=True, slots=True)
class ListedPacks:
    """What a list of manifests says about packs.

    Attributes:
        name: Name of their manifest, without a suffix.
        figures: Its figures.
        positions: Where the manifest of their dead rows is, and its figures; empty for none.
        names: Names of all files that this needs.
    """

    name: str
    figures: ManifestFigures
    positions: Sequence[tuple[str, ListedManifest]]
    names: Sequence[str]


def write_packs(
    files: MetadataFiles, folder: str, packs: Sequence[UsedPack], columns: TableColumns
) -> ListedPacks:
    """Write the manifest of packs and what it needs. Blocking.

    Args:
        files: Where engines find it.
        folder: The table's folder there.
        packs: The packs, at least one.
        columns: The table's columns.
    """
    name = packs_name(packs, columns)
    content, figures = described_packs(packs, columns)
    names, positions = [f"{name}.avro"], []
    with_dead_rows = [pack for pack in packs if len(pack.dead_rows)]
    if with_dead_rows:
        places_of_rows = []
        for number, pack in enumerate(with_dead_rows):
            rows = positions_file(pack)
            names.append(f"{name}-{number}.parquet")
            places_of_rows.append((files.write(folder, names[-1], rows), len(rows)))
        of_rows, manifest = described_positions(with_dead_rows, places_of_rows, columns)
        names.append(f"{name}-0.avro")
        positions = [(files.write(folder, names[-1], of_rows), manifest)]
    files.write(folder, f"{name}.avro", content)
    return ListedPacks(name, figures, positions, names)
