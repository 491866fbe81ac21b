"""Where the column chunks that a plan requests lie in files on object stores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_core.files.excerpts.chunk_ranges import in_plan, kept_columns_of, read_bytes
from windrow_core.files.excerpts.outlines import Outline
from windrow_service.planner.packing.blocks import covered_blocks
from windrow_service.planner.splits import Ints, Splits

EXCERPT = pa.struct(
    [
        # Position among the plan's outlines.
        pa.field("outline", pa.int32()),
        # In the form that `windrow_core.files.excerpts.chunk_ranges` describes.
        pa.field("chunks", pa.list_(pa.int64())),
    ]
)

# A split is not read as an excerpt if more than this share of its bytes is requested.
_MAX_SHARE = 0.5
_MAX_NUMBERS = 2**23  # 64 MiB
# If a plan has fewer than one in _FEW files, taking those is faster than copying all.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Excerpts:
    """The excerpts that are read for splits.

    Attributes:
        outlines: Outlines as text, reduced to the requested columns.
        column: `EXCERPT` of each split; null if it is not read as an excerpt.
    """

    outlines: tuple[str, ...]
    column: pa.Array


def excerpts_of(
    files: pa.Table, splits: Splits, names: Collection[str], max_numbers: int = _MAX_NUMBERS
) -> Excerpts | None:
    """Return the chunks to read of each split; None if no split is read as an excerpt.

    Args:
        files: An inventory, with `EXCERPT_FIELDS`.
        splits: Splits of its files.
        names: The requested columns.
        max_numbers: Most numbers that describe chunks; splits beyond that get no excerpts.
    """
    outline_column = flat(files["outline"])
    if outline_column.null_count == len(outline_column):
        return None
    codes = outline_column.indices.take(pa.array(splits.file)).fill_null(-1).to_numpy()
    first, count = (blocks.fill_null(-1).to_numpy() for blocks in covered_blocks(files, splits))
    outlines: list[str] = []
    rows: list[Ints] = []
    parts: list[pa.Array] = []
    for code in np.unique(codes[codes >= 0]).tolist():
        whole = Outline.of_text(outline_column.dictionary[code].as_py())
        some, leaves = whole.only(list(names))
        if not leaves:
            continue
        mine = np.flatnonzero(codes == code)
        groups, offsets = _row_groups(
            files, splits.file[mine], first[mine], count[mine], whole.leaf_count, leaves
        )
        ends = np.append(0, np.cumsum(read_bytes(groups)))[offsets]
        pays = np.diff(ends) <= _MAX_SHARE * splits.length[mine]
        pays &= np.cumsum(np.diff(offsets) * groups.shape[1] * pays) <= max_numbers
        if not pays.any():
            continue
        lists = pa.ListArray.from_arrays(
            pa.array((offsets * groups.shape[1]).astype(np.int32)), pa.array(groups.reshape(-1))
        ).filter(pa.array(pays))
        max_numbers -= len(lists.flatten())
        number = pa.repeat(pa.scalar(len(outlines), pa.int32()), len(lists))
        parts.append(pa.StructArray.from_arrays([number, lists], fields=list(EXCERPT)))
        rows.append(mine[pays])
        outlines.append(some.to_text())
    if not parts:
        return None
    at = np.full(len(splits), -1, np.int64)
    order = np.concatenate(rows)
    at[order] = np.arange(len(order))
    column = pa.concat_arrays(parts).take(pa.array(at, mask=at < 0))
    return Excerpts(tuple(outlines), column)


def _row_groups(
    files: pa.Table, file: Ints, first: Ints, count: Ints, leaf_count: int, leaves: Sequence[int]
) -> tuple[Ints, Ints]:
    """Return the numbers of each split's row groups, end to end, and where each split begins.

    Args:
        files: An inventory.
        file: The file of each split; all files have the same outline.
        first: The first row group of each split; -1 for all.
        count: Number of row groups of each split.
        leaf_count: Number of leaf columns in the outline.
        leaves: The requested leaf columns.
    """
    lists = files["chunks"]
    if len(file) < len(files) // _FEW:
        # Do not copy the chunks of other files.
        distinct, file = np.unique(file, return_inverse=True)
        lists = lists.take(pa.array(distinct))
    lists = flat(lists)
    width = kept_columns_of(leaf_count)
    begins = lists.offsets.to_numpy().astype(np.int64)
    count = np.where(first < 0, np.diff(begins)[file] // width, count)
    offsets = np.append(0, np.cumsum(count))
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    at = np.repeat(begins[file] + np.maximum(first, 0) * width, count) + within * width
    return in_plan(lists.values.to_numpy(), at, leaves), offsets
