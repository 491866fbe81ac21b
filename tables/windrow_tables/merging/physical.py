"""Physical schemas: the types that a Parquet file stores, in the same shape, for Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow_core.files.excerpts.thrift import END, INT, STRUCT, integer
from windrow_tables.merging.footers import (
    BYTE_ARRAY,
    FIXED,
    INT32,
    INT64,
    INT96,
    Element,
    Head,
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
        head: The head of the files' footers, with their own schema.
        raw: The elements of the physical schema as Thrift.
        has_bounds: Whether the bounds that Arrow writes for each leaf are right for its own type.
    """

    head: Head
    raw: Sequence[bytes]
    has_bounds: Sequence[bool]

    def footer(self, footer: bytes) -> bytes:
        """Return a footer with this schema in place of its own."""
        return self.head.footer_with(self.raw, footer)


def physical_schema(head: Head) -> PhysicalSchema:
    """Return the schema to read and write with: values as they are stored, in their own order.

    Names are numbers, since Arrow tells leaves apart by their paths as text.
    """
    raw, has_bounds = [], []
    for at, element in enumerate(head.elements):
        plain = element._replace(name=b"%d" % at)
        if element.type is None:
            raw.append(plain.thrift())
            continue
        annotation = _annotation(element)
        has_bounds.append(annotation is not None)
        if element.type == INT96:
            plain = plain._replace(type=FIXED, length=_INT96_BYTES)
        raw.append(plain.thrift(annotation or ()))
    return PhysicalSchema(head, raw, has_bounds)


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
