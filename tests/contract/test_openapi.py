"""`openapi.yaml` equals the served contract, and the contract is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from windrow_service.openapi import document

ROOT = Path(__file__).parents[2]
METHODS = {"get", "put", "post", "delete", "patch"}


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "openapi.yaml").read_text(), yaml.CSafeLoader)
    return loaded


def operations(published: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in published["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    }


def test_the_published_contract_equals_the_served_one(
    published: dict[str, Any], http: httpx.Client
) -> None:
    hint = "run `make openapi`"

    assert published == document(), hint
    assert published == http.get("/openapi.json").json(), hint


def test_every_operation_has_a_description(published: dict[str, Any]) -> None:
    for name, operation in operations(published).items():
        assert operation["description"], name
        assert operation["operationId"], name


def test_every_refusal_is_a_problem(published: dict[str, Any]) -> None:
    for name, operation in operations(published).items():
        refusals = {s: r for s, r in operation["responses"].items() if int(s) >= 400}
        assert "500" in refusals, name
        for status, response in refusals.items():
            assert response["content"] == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            }, f"{name}: {status}"


def test_every_reference_resolves(published: dict[str, Any]) -> None:
    def follow(node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                follow(each)
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                target: Any = published
                for part in reference.removeprefix("#/").split("/"):
                    target = target[part]
            for each in node.values():
                follow(each)

    follow(published)


def test_requests_refuse_unknown_fields(published: dict[str, Any]) -> None:
    schemas = published["components"]["schemas"]

    for name in ("TableDefinition", "PlanRequest", "PlanOptions", "Column", "Comparison", "Not"):
        assert schemas[name]["additionalProperties"] is False


def test_bounds_of_integers_are_integers_and_fit_64_bits(
    published: dict[str, Any],
) -> None:
    def check(node: Any) -> None:
        for inner in node if isinstance(node, list) else node.values():
            if isinstance(inner, list | dict):
                check(inner)
        if isinstance(node, dict) and node.get("type") == "integer":
            for bound in {"minimum", "maximum"} & node.keys():
                assert type(node[bound]) is int
                assert -(2**63) <= node[bound] < 2**63

    check(published)

    for model in ("InventoryFile", "CachedFile"):
        stamp = published["components"]["schemas"][model]["properties"]["mtime_ns"]
        assert (stamp["minimum"], stamp["maximum"]) == (-(2**63), 2**63 - 1)
