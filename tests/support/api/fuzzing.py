"""Requests drawn from the published contract.

Import this module inside the tests that draw requests, not when tests are collected: importing
Schemathesis takes longer than most tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.generation.meta import TestPhase
from schemathesis.specs.openapi.schemas import OpenApiSchema

from tests.support.api.contract import document
from tests.support.laws import is_nightly

_COMPARISON = {"$ref": "#/components/schemas/Comparison"}


@schemathesis.serializer("application/vnd.apache.arrow.stream")
def _any_bytes(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _contract(there: Mapping[str, str], with_leaves_alone: Sequence[str]) -> dict[str, Any]:
    """Return the published contract, changed so that existing names are likely values.

    Tokens are added by the test, as a generated token would never be valid.

    Args:
        there: Values of parameters by their names.
        with_leaves_alone: Models whose filter is a single comparison, except in a nightly run.
    """
    contract = deepcopy(document())
    del contract["components"]["securitySchemes"]
    for operations in contract["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
            # tests/contract/test_examples.py sends the examples, one after another.
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content.pop("examples", None)
            for parameter in operation.get("parameters", ()):
                parameter.pop("example", None)
                if parameter["name"] in there:
                    likely = {"enum": [there[parameter["name"]]]}
                    parameter["schema"] = {"anyOf": [likely, parameter["schema"]]}
    if not is_nightly():
        for model in with_leaves_alone:
            fields = contract["components"]["schemas"][model]["properties"]
            fields["filter"] = _with_leaves_alone(fields["filter"])
        # Any expression can be in a junction. Allowing it in negations too, and in negations in
        # junctions, would produce more than half of all edge cases.
        contract["components"]["schemas"]["Not"]["properties"]["arg"] = _COMPARISON
    for model in ("PlanRequest", "CachedFilesReport"):
        fields = contract["components"]["schemas"][model]["properties"]
        fields["table"] = {"anyOf": [{"enum": [there["table"]]}, fields["table"]]}
    return contract


def _with_leaves_alone(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a filter with every tree reduced to a comparison."""
    if _COMPARISON in schema.get("oneOf", ()):
        return _COMPARISON
    return {
        key: [_with_leaves_alone(one) for one in value] if key in ("anyOf", "oneOf") else value
        for key, value in schema.items()
    }


def schema(
    there: Mapping[str, str], *with_leaves_alone: str, invalid_edge_cases: bool = True
) -> OpenApiSchema:
    """Return the published contract as Schemathesis reads it.

    Args:
        there: Values of parameters by their names, which are made likely.
        *with_leaves_alone: Models whose filter is a single comparison, except in a nightly run.
        invalid_edge_cases: Whether to draw edge cases that violate the contract; nightly runs
            always do. Random requests that violate it are drawn in any case.
    """
    load_all_checks()
    schema = schemathesis.openapi.from_dict(_contract(there, with_leaves_alone))
    if not (invalid_edge_cases or is_nightly()):
        schema.config.phases.coverage.generation.update(modes=[GenerationMode.POSITIVE])  # type: ignore[list-item]
    # A well-formed request may still not fit the table, for example by a filter on an unknown
    # column.
    schema.config.checks.positive_data_acceptance.expected_statuses = [
        *("2xx", "401", "403", "404", "409", "410", "412", "422", "503")
    ]
    return schema


def is_edge_case(case: schemathesis.Case[Any]) -> bool:
    """Return whether a request is one of the edge cases that follow from the contract."""
    return bool(case.meta and case.meta.phase.name == TestPhase.COVERAGE)


def test_of(
    schema: OpenApiSchema, operation: str, check: Callable[..., None]
) -> Callable[[], None]:
    """Return a test of one operation, such as `GET /tables`, that draws cases for `check`."""
    method, path = operation.split(" ", 1)
    # Not by `schema.parametrize()`, which lists the edge cases when tests are collected: that takes
    # seconds in each process of a run.
    modes = [HypothesisTestMode(mode) for mode in ("examples", "fuzzing", "coverage")]
    config = HypothesisTestConfig(modes=modes, project=schema.config)
    test: Callable[[], None] = create_test(
        operation=schema[path][method], test_func=check, config=config
    )
    return test
