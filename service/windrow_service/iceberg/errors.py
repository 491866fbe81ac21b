"""Errors raised while Iceberg's metadata is read."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Fault
from windrow_core.files.errors import InventoryError


@dataclass(eq=False)
class IcebergMetadataError(InventoryError):
    """Metadata of an Iceberg table cannot be read.

    The metadata of an Iceberg table cannot be read, or needs something that is not supported.

    Attributes:
        path: The file at fault, or the table.
        reason: What is wrong, and what to do about it.
    """

    path: str
    reason: str
    message = "Iceberg metadata {path!r} {reason}"


@dataclass(eq=False)
class IcebergVersionError(InventoryError):
    """Iceberg table has no such version.

    Attributes:
        table: Path of its metadata file.
        version: The requested snapshot, branch or tag.
        versions: Some that exist.
    """

    fault = Fault.NOT_FOUND
    table: str
    version: str
    versions: tuple[str, ...]

    def __str__(self) -> str:
        names = f"it has {', '.join(self.versions)}" if self.versions else "it has none"
        return (
            f"Iceberg metadata {self.table!r} has no snapshot, branch or tag {self.version!r}: "
            f"{names}; choose one of these"
        )


@dataclass(eq=False)
class IcebergNotInstalledError(InventoryError):
    """PyIceberg is not installed."""

    message = "pyiceberg is not installed where the coordinator runs: {remedy}"
    remedy = "pip install 'windrow-spark[iceberg]', or '.[iceberg]' in a clone"
