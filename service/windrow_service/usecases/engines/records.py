"""Names of what is kept about snapshots, and the figures that it has."""

from __future__ import annotations

from collections.abc import Sequence

from windrow_core.models import SnapshotInfo
from windrow_service.engines.manifests import EDITION, ListedManifest, ManifestFigures
from windrow_service.engines.metadata import SnapshotRecord, in_us
from windrow_service.usecases.engines.manifest_files import names_of
from windrow_service.usecases.packs.coverage import UsablePacks


def record_name(info: SnapshotInfo, packs: UsablePacks | None = None) -> str:
    """Return the name of what is said about a snapshot.

    A copy of this database, or a restored one, has other snapshots with the same numbers.
    """
    beside = "" if packs is None else f"-packs-{packs.key}"
    return f"snap-{info.snapshot_id}-{in_us(info.created_at)}-{EDITION}{beside}"


def needed_names(name: str, record: SnapshotRecord) -> set[str]:
    """Return the names of all files that the record of a snapshot needs, and its own.

    Args:
        name: Name of the record.
        record: The record.
    """
    names = {f"{name}.json", f"{name}.avro", *record.of_packs}
    for name in record.manifests:
        names.update(names_of(name, has_vectors=name in record.vectors))
    return names


def totals_of(
    info: SnapshotInfo,
    figures: Sequence[ManifestFigures],
    positions: Sequence[tuple[str, ListedManifest]],
) -> dict[str, str]:
    """Return the figures of a snapshot.

    Args:
        info: The snapshot.
        figures: Those of its manifests.
        positions: Manifests of files with positions of deleted rows, and their figures.
    """
    deletes = [one.vectors for one in figures if one.vectors is not None]
    deletes += [one for _, one in positions]
    totals = {
        "total-data-files": sum(one.files.file_count for one in figures),
        "total-records": sum(one.files.row_count for one in figures),
        "total-files-size": info.size_bytes,
        "total-delete-files": sum(one.file_count for one in deletes),
        "total-position-deletes": sum(one.row_count for one in deletes),
    }
    return {name: str(total) for name, total in totals.items()}
