"""Conditions on INT96 times that a session takes for local ones."""

from __future__ import annotations

from typing import Any

import pytest

from windrow_spark.reading.equalities import without_equalities


def between(value: Any) -> dict[str, Any]:
    return {"op": "between", "column": "t", "low": value, "high": value}


@pytest.mark.parametrize(
    ("condition", "ranged"),
    [
        ({"op": "eq", "value": "a"}, between("a")),
        ({"op": "ne", "value": "a"}, {"op": "not", "arg": between("a")}),
        ({"op": "in", "values": ["a"]}, between("a")),
        ({"op": "in", "values": ["a", None]}, {"op": "or", "args": [between("a"), between(None)]}),
    ],
)
def test_equalities_become_ranges_wherever_they_are(
    condition: dict[str, Any], ranged: dict[str, Any]
) -> None:
    other = {"op": "eq", "column": "u", "value": "a"}

    def around(tree: dict[str, Any]) -> dict[str, Any]:
        return {"op": "and", "args": [other, {"op": "not", "arg": tree}]}

    tree = around(condition | {"column": "t"})
    assert without_equalities(tree, {"t"}) == around(ranged)
    assert without_equalities(tree, {"v"}) == tree


def test_ranges_stay() -> None:
    tree = {"op": "or", "args": [{"op": "le", "column": "t", "value": "a"}, between("a")]}
    assert without_equalities(tree, {"t"}) == tree
