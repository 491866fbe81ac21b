"""Which rows of two inventories differ in any column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat
from windrow_service.planner.pruning.bounds import Bools


def differing(one: pa.Table, other: pa.Table) -> Bools:
    """Return which of n pairs of rows differ; NaN equals NaN.

    Args:
        one: n rows of an inventory.
        other: n rows with the same schema.
    """
    flags = np.zeros(len(one), np.bool_)
    for left, right in zip(one.columns, other.columns, strict=True):
        flags |= _differ(flat(left), flat(right))
    return flags


def _differ(one: pa.Array, other: pa.Array) -> Bools:
    if pt.is_struct(one.type):
        flags = np.zeros(len(one), np.bool_)
        for left, right in zip(one.flatten(), other.flatten(), strict=True):
            flags |= _differ(left, right)
        return flags
    if pt.is_list(one.type):
        return _lists_differ(one, other)
    if pt.is_dictionary(one.type):
        # Comparing values, which may be long, would copy them for every row.
        chunks = pa.chunked_array([one, other]).unify_dictionaries()
        one, other = (chunk.indices for chunk in chunks.chunks)
    if pt.is_floating(one.type):
        # Compared as numbers, NaN would differ from itself.
        bits = pa.int32() if one.type == pa.float32() else pa.int64()
        one, other = one.view(bits), other.view(bits)
    flags = _mask(pc.fill_null(pc.not_equal(one, other), False))
    if one.null_count or other.null_count:
        flags |= _mask(pc.xor(one.is_null(), other.is_null()))
    return flags


def _lists_differ(one: pa.Array, other: pa.Array) -> Bools:
    lengths = [pc.fill_null(pc.list_value_length(lists), -1) for lists in (one, other)]
    flags = _mask(pc.not_equal(*lengths))
    if flags.any():
        alike = pa.array(~flags)
        one, other = one.filter(alike), other.filter(alike)
    rows = np.flatnonzero(~flags)
    items = _differ(one.flatten(), other.flatten())
    flags[rows[pc.list_parent_indices(one).to_numpy()[items]]] = True
    return flags


def _mask(flags: pa.Array) -> Bools:
    return np.asarray(flags.to_numpy(zero_copy_only=False), np.bool_)
