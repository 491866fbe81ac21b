"""The folders, and the buckets in them, that contain the files of an inventory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.splits import NO_BUCKET, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderBuckets:
    """The m folders, or buckets of folders, that hold n files, in path order.

    Attributes:
        of_file: The folder or bucket of each file, from 0 to m - 1.
        folder: For each of the m, a position in `names`.
        bucket: For each of the m, its bucket or NO_BUCKET.
        names: Folders relative to the table's location; "" is the location itself.
    """

    of_file: Ints
    folder: Ints
    bucket: Ints
    names: pa.StringArray

    def __len__(self) -> int:
        return len(self.folder)

    @classmethod
    def of(cls, files: pa.Table, home: Ints | None = None) -> FolderBuckets:
        """Number the folders and buckets of an inventory's files.

        Args:
            files: n files in path order.
            home: For each folder, in order of paths, the position of the folder that it counts as;
                None if each counts by itself.
        """
        coded = numbered_folders(files)
        folder = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if home is not None:
            folder = home[folder]
        bucket: Ints = files["bucket"].fill_null(NO_BUCKET).to_numpy().astype(np.int64)
        # NO_BUCKET (-1) is numbered 0.
        buckets = int(bucket.max(initial=NO_BUCKET)) + 2
        distinct, of_file = np.unique(folder * buckets + bucket + 1, return_inverse=True)
        return cls(
            of_file=of_file.reshape(-1).astype(np.int64),
            folder=distinct // buckets,
            bucket=distinct % buckets - 1,
            names=coded.dictionary,
        )


def numbered_folders(files: pa.Table) -> pa.DictionaryArray:
    """Return the folder of each file; folders are numbered as they come."""
    return folders_of(files["path"]).combine_chunks().dictionary_encode()


def folders_of(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the folder of each path; "" for files directly in the table's location."""
    return pc.replace_substring_regex(paths, "/?[^/]*$", "")
