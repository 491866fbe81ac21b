"""Folders, and buckets in them, that the files of an inventory lie in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.splits import NO_BUCKET, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The m places of n files: a folder, or one bucket of it, in the order of paths.

    Attributes:
        of_file: The place of each file.
        folder: Of each place, a position in `names`.
        bucket: Of each place, or NO_BUCKET.
        names: Folders relative to the table's location; "" is the location itself.
    """

    of_file: Ints
    folder: Ints
    bucket: Ints
    names: pa.StringArray

    def __len__(self) -> int:
        return len(self.folder)

    @classmethod
    def of(cls, files: pa.Table) -> Places:
        """Return where the files of an inventory lie, which is in the order of paths."""
        coded = folders_of(files["path"]).combine_chunks().dictionary_encode()
        folder = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        bucket: Ints = files["bucket"].fill_null(NO_BUCKET).to_numpy().astype(np.int64)
        # NO_BUCKET comes first.
        buckets = int(bucket.max(initial=NO_BUCKET)) + 2
        places, of_file = np.unique(folder * buckets + bucket + 1, return_inverse=True)
        return cls(
            of_file=of_file.reshape(-1).astype(np.int64),
            folder=places // buckets,
            bucket=places % buckets - 1,
            names=coded.dictionary,
        )


def folders_of(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the folder of each path, "" for files right at the table's location."""
    return pc.replace_substring_regex(paths, "/?[^/]*$", "")
