"""Worked examples of all calls, told as one story: see `examples.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

FILE = Path(__file__).with_suffix(".json")


class Step(TypedDict, total=False):
    """One call of the story.

    Attributes:
        operation: Id of the call.
        when: When to make the call; empty where the story merely repeats it.
        path: Values in the path, by name; so are `query` and `headers`.
        body: JSON to send.
        status: Status of the answer.
        answer: JSON of the answer; null if it has none.
    """

    operation: str
    when: str
    path: dict[str, str]
    query: dict[str, Any]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


def story() -> Sequence[Step]:
    """Return the calls in the order in which they can be made."""
    steps: list[Step] = json.loads(FILE.read_text())
    return steps


def add_examples(document: dict[str, Any]) -> None:
    """Add when to make each call, an example request and its answer to the OpenAPI document."""
    operations = {
        operation["operationId"]: operation
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    for step in story():
        if step["when"]:
            _add(operations[step["operation"]], step)


def _add(operation: dict[str, Any], step: Step) -> None:
    operation["description"] += f"\n\n*{step['when']}*"
    values = step.get("path", {}) | step.get("query", {})
    for parameter in operation.get("parameters", ()):
        # The page would send the example of an optional parameter whenever somebody tries the call.
        if parameter["required"] and parameter["name"] in values:
            parameter.setdefault("example", values[parameter["name"]])
    answer = operation["responses"][str(step["status"])].get("content", {})
    for content, value in (
        (operation.get("requestBody", {}).get("content", {}), step.get("body")),
        (answer, step["answer"]),
    ):
        if value is not None:
            examples = content["application/json"].setdefault("examples", {})
            name = step["operation"] if not examples else f"{step['operation']}_{len(examples) + 1}"
            examples[name] = {"summary": step["when"], "value": value}
