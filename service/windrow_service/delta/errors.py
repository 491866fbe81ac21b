"""Errors raised while the log of a Delta table is read.

* InventoryError
  + DeltaLogError
  + DeltaFeatureError
  + DeltaVersionError
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.files.errors import InventoryError


@dataclass(eq=False)
class DeltaLogError(InventoryError):
    """The log of a Delta table cannot be read, or is not valid.

    Attributes:
        location: Location of the table.
        reason: What is wrong, and what to do about it.
    """

    location: str
    reason: str
    message = "Delta table {location!r} {reason}"


@dataclass(eq=False)
class DeltaFeatureError(InventoryError):
    """A Delta table needs readers to know a feature that is not known here."""

    location: str
    feature: str
    message = (
        "Delta table {location!r} needs readers to know {feature}, which is not known here: "
        "{remedy}"
    )
    remedy = "read it with Delta's own reader, or drop the feature (ALTER TABLE … DROP FEATURE …)"


@dataclass(eq=False)
class DeltaVersionError(InventoryError):
    """A Delta table does not have a version, or no longer has it.

    Attributes:
        reason: Why not, and which versions there are.
    """

    location: str
    version: str
    reason: str
    message = "Delta table {location!r} cannot be read at version {version}: {reason}"
