"""Manifests of tables, and of their deletion vectors, in the folder where engines find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.manifests import (
    NEEDED,
    ListedManifest,
    ManifestFigures,
    described,
)
from windrow_service.engines.metadata import manifest_list, table_uuid
from windrow_service.engines.vectors import described_vectors, marked, puffin_file
from windrow_service.inventory.manifests.encoding import Manifest, decode_manifest
from windrow_service.usecases.engines.ports import MetadataFiles, TableFiles
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """Manifests that are made once, and read as often as somebody asks. Blocking.

    Attributes:
        files: Where engines find them.
        table_files: What tables have themselves.
        min_age_s: How long files stay that nobody needs.
    """

    files: MetadataFiles
    table_files: TableFiles
    min_age_s: float

    def figures_at_hand(self, folder: str, name: str) -> ManifestFigures | None:
        """Return the figures of a manifest, whose files stay for a while; None if it must be made.

        Files that are young stay even if the snapshot that had them is dropped meanwhile.

        Args:
            folder: The table's folder.
            name: Name of the manifest.
        """
        text = self.files.read(folder, f"{name}.json")
        if text is None:
            return None
        figures = ManifestFigures.of_text(text)
        files = names_of(name, has_vectors=figures.vectors is not None)
        return figures if self.files.use(folder, files, self.min_age_s) else None

    def write(
        self, table: StoredTable, name: str, files: pa.Table, columns: TableColumns
    ) -> ManifestFigures:
        """Write a manifest, and what it needs, and return its figures.

        Args:
            table: The table.
            name: Name of the manifest.
            files: Its files, with the columns `NEEDED`.
            columns: The table's columns.

        Raises:
            InventoryError: A file of the table cannot be read, or is not the one that the log names.
            UnfitFileError: Other engines would read one of the files wrongly.
        """
        definition, folder = table.info.definition, table_uuid(table.info, table.table_id)
        location = definition.location
        if definition.kind.states_columns:
            # The log does not say how files store their columns.
            files = self.table_files.with_layouts(definition, files)
        content, figures = described(files, location, columns)
        some = marked(files)
        if len(some):
            blobs = self.table_files.vectors(definition, flat(some["deletes"]))
            puffin = puffin_file(blobs, some, location)
            path = self.files.write(folder, f"{name}.puffin", puffin)
            vectors, manifest = described_vectors(some, location, columns, (path, len(puffin)))
            self.files.write(folder, f"{name}-vectors.avro", vectors)
            figures = replace(figures, vectors=manifest)
        self.files.write(folder, f"{name}.avro", content)
        self.files.write(folder, f"{name}.json", figures.to_text().encode())
        return figures

    def list_of(
        self,
        folder: str,
        snapshot_id: int,
        columns: TableColumns,
        manifests: Sequence[tuple[str, ManifestFigures]],
        positions: Sequence[tuple[str, ListedManifest]] = (),
    ) -> bytes:
        """Return a list of manifests.

        Args:
            folder: The table's folder.
            snapshot_id: The snapshot.
            columns: Its columns.
            manifests: Names of the manifests, and their figures.
            positions: As for `manifest_list`.
        """
        return manifest_list(
            snapshot_id,
            columns,
            [
                (
                    self.files.path(folder, f"{name}.avro"),
                    self.files.path(folder, f"{name}-vectors.avro") if one.vectors else None,
                    one,
                )
                for name, one in manifests
            ],
            positions,
        )


def names_of(name: str, *, has_vectors: bool) -> list[str]:
    """Return the names of the files of a manifest."""
    more = [f"{name}-vectors.avro", f"{name}.puffin"] if has_vectors else []
    return [f"{name}.avro", f"{name}.json", *more]


def live_files(manifest: Manifest, body: bytes, columns: Sequence[str] = NEEDED) -> pa.Table:
    """Return a manifest's files without removed ones, with some columns."""
    files = decode_manifest(body, columns=columns).select(list(dict.fromkeys(columns)))
    if not len(manifest.removed):
        return files
    is_live = np.ones(len(files), np.bool_)
    is_live[manifest.removed] = False
    return files.filter(pa.array(is_live))
