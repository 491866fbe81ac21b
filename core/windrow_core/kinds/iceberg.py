"""Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow_core.kinds.logged import logged_kind

_MAIN = "main"


def _unfit_for_engines(options: Mapping[str, str]) -> str | None:
    ref = options.get("ref", _MAIN)
    if ref == _MAIN:
        return None
    return (
        f"it is read at {ref!r}, and engines read {_MAIN!r}: register it without the option `ref`, and "
        "name the branch or tag in the engine"
    )


ICEBERG = replace(
    logged_kind(
        "iceberg",
        "Iceberg's rewrite_data_files",
        "DELETE FROM with Iceberg, then expire_snapshots and remove_orphan_files",
    ),
    unfit_for_engines=_unfit_for_engines,
    has_iceberg_metadata=True,
    # It says where the log of the same table goes on.
    passing_options=frozenset({"metadata"}),
    # Only the metastore knows which metadata file in the folder is current.
    metadata_property="metadata_location",
)
