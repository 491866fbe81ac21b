"""The worked examples of `/docs`: every call has one, and all of them are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.api import story
from tests.support.api.contract import operations, schemas

_JSON = "application/json"


@pytest.mark.parametrize("operation", operations())
def test_each_call_has_examples_of_its_body_and_answers(operation: str) -> None:
    contract = operations()[operation]
    bodies = [contract["requestBody"]] if "requestBody" in contract else []
    bodies += [answer for code, answer in contract["responses"].items() if code < "300"]

    for body in bodies:
        if _JSON in body.get("content", {}):
            shown = body["content"][_JSON]["examples"]
            assert all(one["summary"] and "value" in one for one in shown.values())
    for parameter in contract.get("parameters", ()):
        assert ("example" in parameter) == parameter["required"], parameter["name"]
    # The description says when to make the call.
    assert contract["description"].count("\n\n*") >= 1


@pytest.mark.slow
def test_the_examples_are_a_story_that_any_coordinator_answers_alike(tmp_path: Path) -> None:
    contract = {operation["operationId"]: operation for operation in operations().values()}

    with story.stage(tmp_path) as http:
        for step, sent, answer in story.tell(http, tmp_path):
            called = contract[step["operation"]]
            where = f"{step['operation']}: {answer.text}"
            assert answer.status_code == step["status"], where
            if "body" in step:
                _check(called["requestBody"], sent["body"])
            if step["answer"] is None:
                assert answer.content == b"", where
            else:
                assert story.shape(answer.json()) == story.shape(step["answer"]), where
                _check(called["responses"][str(step["status"])], step["answer"])


def _check(body: dict[str, Any], value: Any) -> None:
    schema = body["content"][_JSON]["schema"] | {"components": {"schemas": schemas()}}
    Draft202012Validator(schema).validate(value)
