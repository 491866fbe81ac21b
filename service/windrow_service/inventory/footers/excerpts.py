"""A limit on the positions of column chunks that an inventory keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.files.rows import EXCERPT_FIELDS

# A quarter of a gigabyte: 80,000 files of 200 columns.
_MAX_NUMBERS = 2**26
_MAX_OUTLINES_BYTES = 16 * 2**20


def bounded(
    footers: pa.Table,
    sizes_bytes: pa.ChunkedArray,
    max_numbers: int = _MAX_NUMBERS,
    max_outlines_bytes: int = _MAX_OUTLINES_BYTES,
) -> pa.Table:
    """Return footers without the chunks of some files, if all of them take too much room.

    The largest files, which gain the most from excerpts, keep theirs.

    Args:
        footers: With `EXCERPT_FIELDS`.
        sizes_bytes: Length of each file.
        max_numbers: Most numbers that describe chunks.
        max_outlines_bytes: Most bytes of distinct outlines.
    """
    outlines, chunks = (flat(footers[name]) for name in EXCERPT_FIELDS)
    rows = pc.indices_nonzero(outlines.is_valid()).to_numpy().astype(np.int64)
    rows = rows[np.argsort(-sizes_bytes.take(pa.array(rows)).to_numpy(), kind="stable")]
    numbers = pc.list_value_length(chunks).take(pa.array(rows)).to_numpy()
    fits = np.cumsum(numbers.astype(np.int64)) <= max_numbers
    codes = outlines.indices.take(pa.array(rows)).to_numpy(zero_copy_only=False)
    distinct, first = np.unique(codes, return_index=True)
    lengths = pc.binary_length(outlines.dictionary).take(pa.array(distinct)).to_numpy()
    order = np.argsort(first)
    fitting = distinct[order][np.cumsum(lengths[order].astype(np.int64)) <= max_outlines_bytes]
    fits &= np.isin(codes, fitting)
    if fits.all():
        return footers
    is_left_out = np.ones(len(footers), np.bool_)
    is_left_out[rows[fits]] = False
    left = pa.array(np.arange(len(footers)), mask=is_left_out)
    for name, column in zip(EXCERPT_FIELDS, (outlines, chunks), strict=True):
        at = footers.schema.get_field_index(name)
        footers = footers.set_column(at, footers.schema.field(at), column.take(left))
    return footers
