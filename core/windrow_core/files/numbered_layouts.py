"""Layouts in published inventories: each file has a number, and the column has the texts, once."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.types as pt

# Metadata of the column: a JSON list of texts.
TEXTS = b"windrow:layouts"


def with_numbers(files: pa.Table) -> pa.Table:
    """Return files to publish, with numbers for their layouts.

    Dictionaries cannot be published, and a text of its own for each file would be large.

    Args:
        files: The column `layout`, if there is one, is a dictionary.
    """
    at = files.schema.get_field_index("layout")
    if at < 0 or not pt.is_dictionary(files.schema.field(at).type):
        return files
    chunks = files.column(at).unify_dictionaries().chunks
    texts = chunks[0].dictionary.to_pylist() if chunks else []
    numbers = pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
    field = pa.field("layout", pa.int32(), metadata={TEXTS: json.dumps(texts)})
    return files.set_column(at, field, numbers)
