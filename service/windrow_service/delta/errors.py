"""Errors raised while the log of a Delta table is read."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Fault
from windrow_core.files.errors import InventoryError


@dataclass(eq=False)
class DeltaLogError(InventoryError):
    """Log of a Delta table cannot be read.

    Attributes:
        location: Location of the table.
        reason: What is wrong, and what to do about it.
    """

    location: str
    reason: str
    message = "Delta table {location!r} {reason}"


@dataclass(eq=False)
class DeltaFeatureError(InventoryError):
    """Delta table uses an unknown feature."""

    location: str
    feature: str
    message = (
        "Delta table {location!r} requires {feature} of its readers, which Windrow does not "
        "support: "
        "{remedy}"
    )
    remedy = "read it with Delta's own reader, or drop the feature (ALTER TABLE … DROP FEATURE …)"


@dataclass(eq=False)
class DeltaVersionError(InventoryError):
    """Delta table does not have the version.

    Attributes:
        reason: Why not, and which versions there are.
    """

    fault = Fault.NOT_FOUND
    location: str
    version: str
    reason: str
    message = "Delta table {location!r} cannot be read at version {version}: {reason}"
