"""Hive's names of folders and files, and the bucket numbers in the identities of rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat

FolderKind: TypeAlias = Literal["base", "delta", "delete_delta"]

# Columns of files whose rows have identities; the table's own columns are fields of `ROW`.
# Compactions by query write the names in lower case.
ACID_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
ROW = "row"

_NAMED = [name.lower() for name in (*ACID_COLUMNS, ROW)]

# Says how the files of a folder `base_N` or `delta_N_N` were made.
METADATA_FILE = "_metadata_acid"
# Since Hive 3 it lies in each folder of rows with identities; before, beside these folders.
VERSION_FILE = "_orc_acid_version"
FLUSH_LENGTH = "_flush_length"

# The write id of a base that holds the rows from before the table became transactional.
BEFORE_ALL = -(2**63)

_NAME = (
    r"(?:base_-?[0-9]{1,19}|(?:delete_)?delta_[0-9]{1,19}_[0-9]{1,19}(?:_[0-9]{1,9})?)"
    r"(?:_v[0-9]{1,19})?"
)
_FOLDER = re.compile(
    r"(?:base_(?P<base>-?[0-9]{1,19})"
    r"|(?P<delete>delete_)?delta_(?P<least>[0-9]{1,19})_(?P<most>[0-9]{1,19})"
    r"(?:_(?P<statement>[0-9]{1,9}))?)(?:_v(?P<visible>[0-9]{1,19}))?"
)
_IN_FOLDER = rf"^(?P<root>(?:.*?/)?)(?P<folder>{_NAME})/(?P<rest>(?s:.+))$"
_ORIGINAL_ROOT = r"^(?P<root>(?:[^/=]+=[^/]+/)*)"
# Names of files whose rows have identities, and of files as in any Hive table.
_BUCKET = r"(?:^|/)bucket_(?P<bucket>[0-9]{1,9})(?:_[0-9]{1,9})?$"
_ORIGINAL = r"(?:^|/)(?P<bucket>[0-9]{1,9})_[0-9]{1,9}(?:_copy_[0-9]{1,9})?$"

MAX_BUCKET = 2**12 - 1
_MAX_STATEMENT = 2**12 - 1
_MAX_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of a transactional table.

    Attributes:
        name: Its name.
        kind: Whether it holds all rows up to a write, rows that writes added, or names rows that
            they deleted.
        least: Its first write id; for a base, the same as `most`.
        most: Its last write id.
        statement: Number of the statement that wrote it; -1 if the name has none.
        visible: Number of the transaction of the compaction that made it; 0 if the name has none.
    """

    name: str
    kind: FolderKind
    least: int
    most: int
    statement: int = -1
    visible: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether Hive can have given it these numbers."""
        is_first = self.kind == "base" and self.least == BEFORE_ALL
        return (
            (is_first or 0 <= self.least <= self.most <= _MAX_NUMBER)
            and self.statement <= _MAX_STATEMENT
            and self.visible <= _MAX_NUMBER
        )


def folder_of(name: str) -> Folder | None:
    """Parse the name of a folder; None if it is not a base, delta or delete delta."""
    match = _FOLDER.fullmatch(name)
    if match is None:
        return None
    visible = int(match["visible"] or 0)
    if match["base"] is not None:
        write = int(match["base"])
        return Folder(name=name, kind="base", least=write, most=write, visible=visible)
    return Folder(
        name=name,
        kind="delete_delta" if match["delete"] else "delta",
        least=int(match["least"]),
        most=int(match["most"]),
        statement=int(match["statement"] if match["statement"] is not None else -1),
        visible=visible,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFolders:
    """Where n files of a transactional table lie.

    Attributes:
        root: The folder of each file's partition, with `/` at its end; empty in a table without
            partitions.
        folder: The path of each file's folder `base_…`, `delta_…` or `delete_delta_…`; null for
            files from before the table became transactional.
    """

    root: pa.Array
    folder: pa.Array


def file_folders(paths: pa.Array) -> FileFolders:
    """Return where files lie, by their paths relative to the table's location."""
    parts = pc.extract_regex(paths, _IN_FOLDER)
    root, name = pc.struct_field(parts, [0]), pc.struct_field(parts, [1])
    beside = pc.struct_field(pc.extract_regex(paths, _ORIGINAL_ROOT), [0])
    folder = pc.binary_join_element_wise(root, name, "")
    return FileFolders(root=flat(pc.coalesce(root, beside)), folder=flat(folder))


def row_buckets(paths: pa.Array) -> pa.Array:
    """Return the bucket number of files whose rows have identities; null for any other name."""
    return pc.cast(pc.struct_field(pc.extract_regex(paths, _BUCKET), [0]), pa.int32())


def original_buckets(paths: pa.Array) -> pa.Array:
    """Return the bucket number of files named as in any Hive table; null for any other name."""
    return pc.cast(pc.struct_field(pc.extract_regex(paths, _ORIGINAL), [0]), pa.int32())


def buckets_of(paths: pa.Array) -> pa.Array:
    """Return the bucket number in the name of each file; null where there is none."""
    return pc.coalesce(row_buckets(paths), original_buckets(paths))


def are_named(columns: Sequence[str]) -> bool:
    """Return whether the rows of files with these columns have identities."""
    return [name.lower() for name in columns] == _NAMED


def bucket_property(bucket: int, statement: int) -> int:
    """Return the number that names a bucket and a statement in a row's identity.

    From its highest bit: 3 bits of the code's version, which is 1; 1 unused; 12 of the bucket; 4
    unused; 12 of the statement.

    Args:
        bucket: Number of the bucket.
        statement: Number of the statement in its transaction; -1 if there is none.
    """
    if not 0 <= bucket <= MAX_BUCKET or not -1 <= statement <= _MAX_STATEMENT:
        raise ValueError(f"bucket {bucket} and statement {statement} have no code")
    return 1 << 29 | bucket << 16 | max(statement, 0)


def latest_code(properties: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers that name a bucket in each row's identity as version 1 codes them.

    Version 0 is the bucket number itself; a row keeps its identity when later releases delete it.
    """
    return np.where(properties >> 29 == 0, 1 << 29 | properties << 16, properties)


def buckets_in(properties: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the bucket number in each row's identity; -1 where the code is of another version.

    Version 0 is the bucket number itself.
    """
    version = properties >> 29
    numbers = np.where(version == 1, properties >> 16 & MAX_BUCKET, properties)
    return np.where((version == 0) | (version == 1), numbers, -1)
