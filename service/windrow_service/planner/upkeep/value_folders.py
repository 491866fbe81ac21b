"""The folders that partition values belong in, where several folders have the same values."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.writes.key_values import numbered

# A value in the name of a folder, escaped as Spark and Hive do.
_VALUE = (
    r"""(?:[^\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
    r"|%(?:0[1-9A-F]|1[0-9A-F]|2[2357AF]|3[ADF]|5[B-E]|7[BF]))+"
)
# The same, whatever is escaped; but not an underscore, which may make a text of Hive's name for
# null, nor the character with code 0.
_ANY_VALUE = r"(?:[^%/]|%(?:0[1-9a-fA-F]|[1-46-9a-fA-F][0-9a-fA-F]|5[0-9a-eA-E]))+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Homes:
    """For each folder of an inventory, in order of paths, the one that its values belong in.

    Several folders may have one value, such as `month=09` and `month=9`. Writes use the one that is
    spelled as their rows are, then the one with most files, then the first: so do compactions,
    which spell rows as this home is, escaped as Spark does.

    Attributes:
        of_folder: Position of each folder's home among the folders.
        names: The folders.
    """

    of_folder: Ints
    names: pa.StringArray

    @classmethod
    def of(cls, files: pa.Table, partition: pa.Schema) -> Homes:
        """Find the homes of an inventory's folders.

        Args:
            files: n files in path order, with their partition values.
            partition: The partition columns.

        Complexity: O(n log n).
        """
        coded = numbered_folders(files)
        folder = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        count = len(coded.dictionary)
        _, first = np.unique(folder, return_index=True)
        values = files["partition"].combine_chunks().take(pa.array(first))
        fits = has_layout(coded.dictionary, partition)
        columns = [_bits(values.field(at)) for at in range(len(partition))]
        # A folder of another form only has itself.
        columns.append(pa.array(np.where(fits, -1, np.arange(count))))
        group, _ = numbered(columns, count)
        rank = np.argsort(np.argsort(coded.dictionary.to_numpy(zero_copy_only=False)))
        is_escaped = is_spelled_by_spark(coded.dictionary, partition)
        order = np.lexsort((rank, -np.bincount(folder, minlength=count), ~is_escaped, group))
        _, begins = np.unique(group[order], return_index=True)
        return cls(of_folder=order[begins][group].astype(np.int64), names=coded.dictionary)

    def away(self, files: pa.Table) -> Bools:
        """Return which of the inventory's files lie in another folder than their home."""
        folder = numbered_folders(files).indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.asarray(self.of_folder[folder] != folder, np.bool_)


def has_layout(folders: pa.StringArray, partition: pa.Schema) -> Bools:
    """Return the folders from which rows can be rewritten into folders of the same names.

    A write finds a folder by its values, which are those of the texts after decoding, but Spark
    does not decode the texts of binary columns.
    """
    parts = (
        f"(?i:{re.escape(field.name)})={_VALUE if pt.is_binary(field.type) else _ANY_VALUE}"
        for field in partition
    )
    return _matches(folders, "/".join(parts))


def is_spelled_by_spark(folders: pa.StringArray, partition: pa.Schema) -> Bools:
    """Return which folders have keys and escapes as Spark would write them."""
    return _matches(folders, "/".join(f"{re.escape(name)}={_VALUE}" for name in partition.names))


def _matches(folders: pa.StringArray, pattern: str) -> Bools:
    matched = pc.match_substring_regex(folders, f"^{pattern}$")
    return np.asarray(matched.to_numpy(zero_copy_only=False), np.bool_)


def _bits(column: pa.Array) -> pa.Array:
    """Return values that are equal if the partition values are: 0.0 and -0.0 are not."""
    if not pt.is_floating(column.type):
        return column
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return pa.array(bits, mask=np.asarray(column.is_null()))
