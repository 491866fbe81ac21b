"""Arrow columns as JSON text, a column at a time.

Converting each value through a Python object would hold the interpreter's lock, and delay every
other request, for 0.2 s if a page has 100,000 splits.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pydantic_core import to_json

# Characters that JSON escapes; Arrow strings cannot contain surrogates.
_ESCAPED = r'["\\\x00-\x1f]'


def json_texts(column: pa.Array) -> pa.Array:
    """Return each value of a column as JSON; null as `null`.

    Integers, strings, lists and structs are encoded as whole columns. For other types, each
    distinct value is encoded once, as pydantic does; these are the types of partition columns,
    which have few distinct values.
    """
    if pt.is_struct(column.type):
        return _objects(column)
    if pt.is_list(column.type):
        return _lists(column)
    if pt.is_integer(column.type):
        texts = column.cast(pa.string())
    elif (
        pt.is_string(column.type) and not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py()
    ):
        texts = pc.binary_join_element_wise('"', column, '"', "")
    else:
        encoded = column.dictionary_encode()
        distinct = [
            to_json(value, inf_nan_mode="strings").decode()
            for value in encoded.dictionary.to_pylist()
        ]
        texts = pa.array(distinct, pa.string()).take(encoded.indices)
    return texts.fill_null("null")


def _objects(column: pa.StructArray) -> pa.Array:
    parts: list[pa.Array | str] = []
    for at, field in enumerate(column.type):
        name = to_json(field.name).decode()
        parts += [f"{',' if at else '{'}{name}:", json_texts(column.field(at))]
    if not parts:
        return pa.repeat(pa.scalar("{}"), len(column))
    return pc.binary_join_element_wise(*parts, "}", "")


def _lists(column: pa.ListArray) -> pa.Array:
    inner = pa.ListArray.from_arrays(_from_zero(column), json_texts(column.flatten()))
    return pc.binary_join_element_wise("[", pc.binary_join(inner, ","), "]", "")


def _from_zero(column: pa.ListArray) -> pa.Array:
    first = column.offsets[0]
    return pc.subtract(column.offsets, first)
