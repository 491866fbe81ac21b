"""The shape of a JSON body is what counting its decoded values gives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.api import json_shapes
from windrow_service.api.errors import BodyTooComplexError
from windrow_service.api.json_shapes import ShapeLimits, check_shape

TEXTS = st.text(max_size=5) | st.text('"\\[]{},:', max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(TEXTS, inner, min_size=1, max_size=4)
    ),
    max_leaves=25,
)


def shape_of(document: Any) -> ShapeLimits:
    """Return the limits that a document without empty lists or objects just fits."""
    values = containers = keys = widest = deepest = 0
    pending = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        values += 1
        deepest = max(deepest, depth + isinstance(value, list | dict))
        if isinstance(value, dict):
            containers += 1
            keys += len(value)
            widest = max(widest, len(value))
            pending += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list):
            containers += 1
            pending += [(each, depth + 1) for each in value]
    return ShapeLimits(
        values=values - 1, containers=containers, keys=keys, object_keys=widest, depth=deepest
    )


@examples(200)
@given(DOCUMENTS, st.booleans(), st.booleans(), st.sampled_from([1, 3, 64, 2**20]))
@example({"a": ['x,\\"', {"b\\": 1, "c": {"d": [1, 2, 3]}}, {"e": '{}[]:,"'}]}, True, False, 1)
def test_a_body_passes_exactly_the_limits_that_its_values_fit(
    document: Any, escaped: bool, spaced: bool, chunk_bytes: int
) -> None:
    body = json.dumps(document, ensure_ascii=escaped, indent=1 if spaced else None)
    body += " " * 600
    sent = body.encode("utf-8", "surrogatepass")
    fits = shape_of(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_shapes, "_CHUNK_BYTES", chunk_bytes)

        check_shape(sent, fits)

        for limit in ("values", "containers", "keys", "object_keys", "depth"):
            most = getattr(fits, limit)
            if most:
                with pytest.raises(BodyTooComplexError):
                    check_shape(sent, replace(fits, **{limit: most - 1}))
