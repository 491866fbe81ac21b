"""Physical schemas: the types that a Parquet file stores, in the same shape, for Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.files.excerpts.thrift import END, INT, STRUCT, integer
from windrow_jobs.merging.footers import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    Element,
    Footer,
)

_INT96_BYTES = 12

# Deprecated logical types.
_DECIMAL, _INTERVAL = 5, 21
# Logical types; those whose values have the order of their physical type, or its unsigned one.
_DECIMAL_LOGICAL, _FLOAT16_LOGICAL = 5, 15
_ORDERED_LOGICAL = {1, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15}
# Arrow reads no longer decimals.
_MAX_DECIMAL_BYTES = 32

_CONVERTED_FIELD, _SCALE_FIELD, _PRECISION_FIELD, _LOGICAL_FIELD = 6, 7, 8, 10
# What a leaf needs besides its physical type, so that Arrow orders its values as its own type does.
_AS_UINT32 = [(_CONVERTED_FIELD, INT, integer(13))]
_AS_UINT64 = [(_CONVERTED_FIELD, INT, integer(14))]
_AS_FLOAT16 = [(_LOGICAL_FIELD, STRUCT, bytes([_FLOAT16_LOGICAL << 4 | STRUCT]) + END + END)]


@dataclass(frozen=True, slots=True)
class PhysicalSchema:
    """A schema of physical types.

    Attributes:
        raw: Its elements as Thrift.
        types: Physical types of its leaves; None if they are those of the file.
        bounded: Whether the bounds that Arrow writes for each leaf are right for its own type.
    """

    raw: Sequence[bytes]
    types: Sequence[int] | None
    bounded: Sequence[bool]

    def footer(self, of: Footer) -> bytes:
        """Return the footer of a file with this schema."""
        return of.with_schema(self.raw, self.types)


def ordered(footer: Footer) -> PhysicalSchema:
    """Return the schema to write with: values are stored as they are, and ordered as they should.

    Names are numbers, since Arrow tells leaves apart by their paths as text.
    """
    raw, bounded, has_int96 = [], [], False
    for at, element in enumerate(footer.elements):
        plain = element._replace(name=b"%d" % at)
        if element.type is None:
            raw.append(plain.thrift())
            continue
        annotation = _annotation(element)
        bounded.append(annotation is not None)
        if element.type == INT96:
            plain, has_int96 = plain._replace(type=FIXED, length=_INT96_BYTES), True
        raw.append(plain.thrift(annotation or ()))
    types = [FIXED if leaf.type == INT96 else leaf.type or 0 for leaf, _ in footer.leaves]
    return PhysicalSchema(raw, types if has_int96 else None, bounded)


_BITS = {INT96: (FIXED, _INT96_BYTES), FLOAT: (INT32, None), DOUBLE: (INT64, None)}


def bits(footer: Footer) -> PhysicalSchema:
    """Return the schema to compare with: NaN is equal to itself, and 0.0 differs from -0.0."""
    raw = []
    for at, element in enumerate(footer.elements):
        plain = element._replace(name=b"%d" % at)
        if element.type in _BITS:
            type_, length = _BITS[element.type]
            plain = plain._replace(type=type_, length=length)
        raw.append(plain.thrift())
    types = [
        _BITS[leaf.type][0] if leaf.type in _BITS else leaf.type or 0 for leaf, _ in footer.leaves
    ]
    return PhysicalSchema(raw, types, [False] * len(types))


def _annotation(leaf: Element) -> Sequence[tuple[int, int, bytes]] | None:
    """Return the fields that give a leaf the order of its own type; None if there is no order."""
    if leaf.type == INT96 or leaf.converted == _INTERVAL:
        return None
    if leaf.logical is not None and leaf.logical not in _ORDERED_LOGICAL:
        return None
    if leaf.type in (INT32, INT64):
        if not leaf.is_unsigned:
            return ()
        return _AS_UINT32 if leaf.type == INT32 else _AS_UINT64
    if leaf.logical == _DECIMAL_LOGICAL or leaf.converted == _DECIMAL:
        return _decimal(leaf)
    if leaf.logical == _FLOAT16_LOGICAL:
        return _AS_FLOAT16
    return ()


def _decimal(leaf: Element) -> Sequence[tuple[int, int, bytes]] | None:
    """Return the fields of the longest decimal in a leaf's bytes, which are signed numbers."""
    if leaf.type == BYTE_ARRAY or not 0 < (leaf.length or 0) <= _MAX_DECIMAL_BYTES:
        return None
    largest = 2 ** (8 * (leaf.length or 0) - 1) - 1
    precision = len(str(largest)) - 1
    return [
        (_CONVERTED_FIELD, INT, integer(_DECIMAL)),
        (_SCALE_FIELD, INT, integer(0)),
        (_PRECISION_FIELD, INT, integer(precision)),
    ]
