"""Errors raised while a table's files are listed and their footers read.

Paths are relative to the table's location unless an attribute is called `location` or `folder`.
`windrow_core.files.errors` has the errors that Spark jobs also raise.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Fault
from windrow_core.files.errors import InventoryError


@dataclass(eq=False)
class InvalidLocationError(InventoryError):
    """Location is not valid.

    Attributes:
        location: The text, without anything that may be secret.
        reason: What is wrong, and the remedy.
    """

    fault = Fault.INVALID
    location: str
    reason: str
    message = "location {location!r} {reason}"


@dataclass(eq=False)
class PartitionLayoutError(InventoryError):
    """Folders do not form partitions.

    Attributes:
        path: A file, or a folder with files, that does not fit.
        other_path: A path that disagrees with it; empty if `path` itself is wrong.
        reason: How they disagree.
    """

    path: str
    other_path: str
    reason: str

    def __str__(self) -> str:
        paths = f"{self.path!r} and {self.other_path!r}" if self.other_path else f"{self.path!r}"
        return (
            f"{paths}: {self.reason}; every file of a table must be under the same "
            "`key=value` folders: move the files, or register a subfolder as the table"
        )


@dataclass(eq=False)
class PartitionListError(InventoryError):
    """List of partitions does not fit the table.

    Attributes:
        partition: Location or folder of the partition at fault; empty if the list itself is.
    """

    fault = Fault.INVALID
    partition: str
    reason: str

    def __str__(self) -> str:
        what = f"partition {self.partition!r}" if self.partition else "list of partitions"
        return (
            f"{what}: {self.reason}; "
            "correct the catalog that it comes from, and import the table again"
        )


@dataclass(eq=False)
class PartitionValueError(InventoryError):
    """Folder does not fit its partition column."""

    folder: str
    column: str
    value: str
    type: str

    def __str__(self) -> str:
        # Spark writes values of `timestamp` in the time zone of its session, without an offset.
        other = ", as others of the column are" if self.type.startswith("timestamp with") else ""
        return (
            f"folder {self.folder!r}: {self.value!r} is not a {self.type}{other}, the declared type "
            f"of partition column {self.column!r}; rename the folder, or declare the column as string"
        )


@dataclass(eq=False)
class BucketNumberError(InventoryError):
    """File does not fit the bucket spec."""

    path: str
    bucket: int
    bucket_count: int
    message = (
        "file {path!r} has bucket {bucket}, but the table has {bucket_count} buckets, numbered "
        "from 0; {remedy}"
    )
    remedy = "correct the table's bucket spec, or remove the file"


@dataclass(eq=False)
class BloomColumnError(InventoryError):
    """Column cannot have Bloom filters."""

    column: str
    reason: str
    message = "column {column!r} {reason}: it cannot have Bloom filters, so {remedy}"
    remedy = "remove it from the table's bloom_columns"


class InventoryCancelledError(InventoryError):
    """The caller cancelled the inventory, and learns that in another way."""

    fault = None
    message = "the inventory was cancelled before it was complete; nothing was changed"


@dataclass(eq=False)
class TextColumnsError(InventoryError):
    """Table of text must have one column of strings.

    Attributes:
        columns: Names of the declared columns.
    """

    columns: tuple[str, ...]
    message = "a table of text has one data column, of type string, and {names} declared: {remedy}"
    remedy = "declare one such column, or leave `columns` out to get the column `value`"

    @property
    def names(self) -> str:
        """The declared columns, with a verb."""
        return f"{', '.join(map(repr, self.columns)) or 'none'} {'is' if len(self.columns) < 2 else 'are'}"


@dataclass(eq=False)
class CorruptManifestError(InventoryError):
    """Stored manifest is damaged."""

    fault = Fault.DAMAGED
    reason: str
    message = "manifest cannot be read: {reason}; {remedy}"
    remedy = "restore it, or refresh the table in full"


@dataclass(eq=False)
class InvalidInventoryError(InventoryError):
    """Inventory cannot be accepted."""

    fault = Fault.INVALID
    reason: str
    message = "inventory cannot be accepted: {reason}; nothing was published"


@dataclass(eq=False)
class TotalsTooLargeError(InventoryError):
    """Totals of the files are too large.

    Attributes:
        column: The column that is summed, `size_bytes` or `row_count`.
        total: Sum of the column.
        most: The highest allowed sum.
    """

    fault = Fault.INVALID
    column: str
    total: int
    most: int
    message = "{column} of all files adds up to {total:,}; the limit is {most:,}: {remedy}"
    remedy = "correct the figures, or split the table"
