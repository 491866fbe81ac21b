"""Errors raised while a table's files are listed and their footers read.

* InventoryError
  + InvalidLocationError
  + LocationError
  + PartitionLayoutError
  + PartitionValueError
  + BucketNumberError
  + ColumnTypeError
    - UnknownTypeError
    - UnsupportedTypeError
    - SchemaConflictError
    - BloomColumnError
  + ColumnNameError
  + DuplicateColumnError
  + UnreadableFileError
  + FileChangedError
  + InventoryCancelledError
  + CorruptManifestError
  + InvalidInventoryError
  + TotalsTooLargeError

They may come back from another process, so each passes exactly its constructor's
positional arguments to `super().__init__`. Paths are relative to the table's location
unless an attribute is called `location` or `folder`. `windrow.files.errors` has those that
Spark jobs meet too.
"""

from __future__ import annotations

from windrow.files.errors import (
    ColumnNameError,
    ColumnTypeError,
    DuplicateColumnError,
    FileChangedError,
    InventoryError,
    LocationError,
    SchemaConflictError,
    UnknownTypeError,
    UnreadableFileError,
    UnsupportedTypeError,
)

__all__ = [
    "BloomColumnError",
    "BucketNumberError",
    "ColumnNameError",
    "ColumnTypeError",
    "CorruptManifestError",
    "DuplicateColumnError",
    "FileChangedError",
    "InvalidInventoryError",
    "InvalidLocationError",
    "InventoryCancelledError",
    "InventoryError",
    "LocationError",
    "PartitionLayoutError",
    "PartitionValueError",
    "SchemaConflictError",
    "TotalsTooLargeError",
    "UnknownTypeError",
    "UnreadableFileError",
    "UnsupportedTypeError",
]


class InvalidLocationError(InventoryError):
    """A text is not a location that a table can have.

    Attributes:
        location: The text, without what may be secret in it.
        reason: What is wrong, and what to do about it.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(location, reason)
        self.location = location
        self.reason = reason

    def __str__(self) -> str:
        return f"location {self.location!r} {self.reason}"


class PartitionLayoutError(InventoryError):
    """The folders of a table do not form one `key=value` layout.

    Attributes:
        path: A file, or a folder that holds files, that does not fit.
        other_path: One that disagrees with it; empty where `path` is wrong by itself.
        reason: In what they disagree.
    """

    def __init__(self, path: str, other_path: str, reason: str) -> None:
        super().__init__(path, other_path, reason)
        self.path = path
        self.other_path = other_path
        self.reason = reason

    def __str__(self) -> str:
        paths = f"{self.path!r} and {self.other_path!r}" if self.other_path else f"{self.path!r}"
        return (
            f"{paths}: {self.reason}; every file of a table must lie under the same "
            "`key=value` folders: move the files, or register a folder below as the table"
        )


class PartitionValueError(InventoryError):
    """A folder's value does not fit the type that its partition column was declared with."""

    def __init__(self, folder: str, column: str, value: str, type_: str) -> None:
        super().__init__(folder, column, value, type_)
        self.folder = folder
        self.column = column
        self.value = value
        self.type = type_

    def __str__(self) -> str:
        # Such as Spark writes, in the time zone of whoever did.
        other = "timestamp_ntz or string" if self.type.startswith("timestamp with") else "string"
        return (
            f"folder {self.folder!r}: {self.value!r} is not a {self.type}, the declared type of "
            f"partition column {self.column!r}; rename the folder, or declare the column as {other}"
        )


class BucketNumberError(InventoryError):
    """A file's name holds a bucket number that the table's bucket spec does not allow."""

    def __init__(self, path: str, bucket: int, bucket_count: int) -> None:
        super().__init__(path, bucket, bucket_count)
        self.path = path
        self.bucket = bucket
        self.bucket_count = bucket_count

    def __str__(self) -> str:
        return (
            f"file {self.path!r} is of bucket {self.bucket}, but the table has "
            f"{self.bucket_count} buckets, numbered from 0; correct the table's bucket spec, or "
            "remove the file"
        )


class BloomColumnError(ColumnTypeError):
    """There can be no Bloom filters for a column that they were asked for."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"column {self.column!r} {self.reason}: there can be no Bloom filters for it, so "
            "take it out of the table's bloom_columns"
        )


class InventoryCancelledError(InventoryError):
    """The caller asked to stop."""

    def __str__(self) -> str:
        return "the inventory was cancelled before it was complete; nothing was changed"


class CorruptManifestError(InventoryError):
    """The bytes of a manifest are damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"manifest cannot be read: {self.reason}; restore it, or refresh the table in full"


class InvalidInventoryError(InventoryError):
    """A published inventory cannot be accepted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"inventory cannot be accepted: {self.reason}; nothing was published"


class TotalsTooLargeError(InventoryError):
    """The files of a snapshot add up to more than can be planned.

    Attributes:
        column: What is added up, `size_bytes` or `row_count`.
        total: What it comes to.
        most: What it may come to.
    """

    def __init__(self, column: str, total: int, most: int) -> None:
        super().__init__(column, total, most)
        self.column = column
        self.total = total
        self.most = most

    def __str__(self) -> str:
        return (
            f"{self.column} of all files adds up to {self.total:,}, and a table may have "
            f"{self.most:,}: correct the figures, or split the table"
        )
