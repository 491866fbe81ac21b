"""Which splits come from packs, and why the others do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow_service.planner.packs import NO_PACK, Coverage, PackSources, packed_splits


def inventory(names: list[str], rows: int = 10) -> pa.Table:
    count = len(names)
    return pa.table(
        {
            "path": names,
            "size_bytes": [100] * count,
            "mtime_ns": [1] * count,
            "etag": pa.nulls(count, pa.string()),
            "row_count": [rows] * count,
        }
    )


def test_files_that_packs_do_not_give_are_counted_by_the_reason() -> None:
    many = [f"m{at}" for at in range(60)]
    few = [f"f{at}" for at in range(60)]
    coverage = Coverage([PackSources("one", inventory(many)), PackSources("other", inventory(few))])
    # Of the second pack, three files are wanted; one file is in no pack, and one is cut in two.
    files = inventory([*many, *few[:3], "alone"])
    file = np.array([*range(59), 59, 59, 60, 61, 62, 63])
    are_whole = np.ones(len(file), np.bool_)
    are_whole[59:61] = False

    splits = packed_splits(coverage, files, file, are_whole)

    assert splits.alone == {"in_no_pack": 1, "cut": 1, "few_wanted": 3}
    assert splits.file_count == 59
    assert splits.packs.tolist() == [0]
    assert (splits.pack == NO_PACK).sum() == 6


def test_nothing_comes_from_packs_that_hold_none_of_the_files() -> None:
    coverage = Coverage([PackSources("one", inventory(["a", "b"]))])
    files = inventory(["c", "d"])

    splits = packed_splits(coverage, files, np.arange(2), np.ones(2, np.bool_))

    assert splits.alone == {"in_no_pack": 2}
    assert splits.file_count == len(splits.packs) == 0
