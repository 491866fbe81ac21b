"""Tables that are what their folders hold."""

from __future__ import annotations

from collections.abc import Mapping

from windrow_core.files.formats import FORMATS, FileFormat
from windrow_core.kinds.kind import Reading, TableKind, files_unfit_for_engines


def plain_reading(files: FileFormat) -> Reading:
    """Return how files of folders are read."""
    return Reading(files=files)


def without_blooms(files: FileFormat) -> dict[str, str]:
    """Return the refusal of Bloom filters, if none are built for a format."""
    if files.is_grouped:
        return {}
    text = f"Bloom filters are not built for {files.name} files: leave bloom_columns out"
    return {"bloom_columns": text}


def _kind(files: FileFormat) -> TableKind:
    def unfit_for_engines(_: Mapping[str, str]) -> str | None:
        return files_unfit_for_engines(files)

    return TableKind(
        noun=files.name,
        reading=plain_reading(files),
        unfit_fields=without_blooms(files),
        has_defaults=files.has_defaults,
        unfit_for_engines=unfit_for_engines,
    )


PLAIN = {name: _kind(files) for name, files in FORMATS.items()}
