"""Errors raised while files are listed and their footers read.

Paths are relative to the table's location unless an attribute is called `location` or `folder`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from windrow_core.errors import Fault, StatedError

# What to do about a file whose content is at fault. Never about one that the system refuses: see
# `windrow_core.files.access`.
RESTORE = "restore it if it is damaged, or correct the table's format"
_MAX_SHOWN_REASONS = 10


class InventoryError(StatedError):
    """Base of every error that is raised on purpose while an inventory is taken."""

    fault: ClassVar[Fault | None] = Fault.CONFLICT


@dataclass(eq=False)
class LocationError(InventoryError):
    """Location cannot be listed.

    Attributes:
        folder: Absolute path of the folder, or of the entry in it, that is at fault.
        reason: What is wrong, and what to do about it.
    """

    slug = "location-unreadable"
    folder: str
    reason: str
    message = "{folder!r} {reason}"


@dataclass(eq=False)
class UnknownTypeError(InventoryError):
    """Not a Spark SQL type.

    A text is not a type of Spark SQL that a table's column can have.
    """

    fault = Fault.INVALID
    text: str
    reason: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= 100 else f"{self.text[:97]}..."
        return (
            f"{text!r} is not a column type: {self.reason}; write it as Spark SQL does, for "
            "example bigint, decimal(10,2) or array<string>"
        )


@dataclass(eq=False)
class UnreadableTypeError(InventoryError):
    """Type of a column cannot be read.

    A file holds a column of a type that Spark does not have, or that is not read here.

    Attributes:
        layout: The type in which its bare values can be read; empty if that makes no sense.
    """

    slug = "unsupported-type"
    column: str
    type: str
    path: str
    layout: str = ""

    def __str__(self) -> str:
        fact = f"column {self.column!r} of file {self.path!r} is of type {self.type}, which"
        if self.layout:
            return (
                f"{fact} is not read here: declare the table's columns without it, or with it as "
                f"{self.layout} to read its bare values"
            )
        return (
            f"{fact} cannot be read here; declare the table's columns without it, or rewrite the "
            "file"
        )


@dataclass(eq=False)
class SchemaConflictError(InventoryError):
    """Types of a column conflict.

    Attributes:
        type: The type in `path`.
        other_type: The type in `other_path`, or the declared type if that is empty.
    """

    column: str
    type: str
    path: str
    other_type: str
    other_path: str

    def __str__(self) -> str:
        fact = f"column {self.column!r} is {self.type} in file {self.path!r}"
        if not self.other_path:
            return (
                f"{fact} but was declared as {self.other_type}, and cannot be read as that; "
                "declare a type that fits, or rewrite the file"
            )
        return (
            f"{fact} and {self.other_type} in file {self.other_path!r}, and no type fits both; "
            "rewrite one of the files, or declare the table's columns without it"
        )


@dataclass(eq=False)
class ColumnNameError(InventoryError):
    """Column has no usable name.

    Attributes:
        most: How many characters a name may have.
    """

    column: str
    path: str
    most: int

    def __str__(self) -> str:
        what = "an empty name" if not self.column else f"a name of {len(self.column):,} characters"
        return (
            f"file {self.path!r} holds a column with {what}, but a name must have 1 to "
            f"{self.most:,} characters: declare the table's columns without it, or rewrite the file"
        )


@dataclass(eq=False)
class DuplicateColumnError(InventoryError):
    """Two columns have the same name.

    Attributes:
        path: The file that holds both; empty if they were declared or are from folder names.
    """

    column: str
    other_column: str
    path: str

    def __str__(self) -> str:
        where = f"of file {self.path!r}" if self.path else "of the table"
        return (
            f"columns {self.column!r} and {self.other_column!r} {where} differ only by "
            "case, which is ignored; rename one of them"
        )


@dataclass(eq=False)
class UnreadableFootersError(InventoryError):
    """File cannot be read.

    Attributes:
        files: Path of each file, with the reason and what to do, by path.
        format: The format.
        is_complete: Whether these are all such files.
    """

    slug = "unreadable-file"
    files: tuple[tuple[str, str], ...]
    format: str = "parquet"
    is_complete: bool = True

    def __str__(self) -> str:
        by_reason: dict[str, list[str]] = {}
        for path, reason in self.files:
            by_reason.setdefault(reason, []).append(path)
        parts = [
            f"{self._names(paths)}: {reason}"
            for reason, paths in islice(by_reason.items(), _MAX_SHOWN_REASONS)
        ]
        lines = f" {parts[0]}" if len(by_reason) == 1 else "".join(f"\n  {one}" for one in parts)
        count = f"{len(self.files):,} {'file' if len(self.files) == 1 else 'files'}"
        return (
            f"cannot read {'' if self.is_complete else 'at least '}{count} as "
            f"{format_name(self.format)}; fix each as described, then refresh again:{lines}"
        )

    @staticmethod
    def _names(paths: list[str]) -> str:
        more = len(paths) - 1
        return f"{paths[0]!r}" + (f" and {more:,} more" if more else "")


@dataclass(eq=False)
class OtherFormatError(InventoryError):
    """Files have another format than their table.

    Attributes:
        path: One of the files.
        format: The format of the table.
        kind: The format of the files.
    """

    path: str
    format: str
    kind: str

    def __str__(self) -> str:
        remedy = f"register the table with format={self.kind!r} (`--format {self.kind}`)"
        if self.kind in ("csv", "json"):
            remedy += (
                f" and its columns, which `windrow table register … --format {self.kind} --infer` "
                "finds, or `client.infer_columns` with a Spark session"
            )
        return (
            f"the files of this table are {format_name(self.kind)}, not {format_name(self.format)}, "
            f"such as {self.path!r}: {remedy}"
        )


def format_name(format: str) -> str:
    """Return a format as it is written in sentences."""
    names = {
        "parquet": "Parquet",
        "orc": "ORC",
        "avro": "Avro",
        "csv": "CSV",
        "json": "JSON",
        "text": "lines of text",
    }
    return names.get(format, format)


@dataclass(eq=False)
class FileChangedError(InventoryError):
    """File changed during the refresh.

    Attributes:
        paths: Some of the files, by path.
    """

    paths: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(repr(path) for path in self.paths)
        return f"changed while the table was being read, refresh again: {names}"
