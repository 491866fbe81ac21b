"""Worked examples of all calls, which are one story: see `examples.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

FILE = Path(__file__).with_suffix(".json")


class Step(TypedDict, total=False):
    """One call of the story.

    Attributes:
        operation: Its id.
        when: When to make it; empty where the story merely needs it once more.
        path: Values in its path, by name; likewise `query` and `headers`.
        body: What is sent, as JSON.
        status: Of the answer.
        answer: Its JSON; null if it has none.
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
    """Add to the OpenAPI document when to make each call, what to send, and what is answered."""
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
    given = step.get("path", {}) | step.get("query", {})
    for parameter in operation.get("parameters", ()):
        # An optional one would be sent whenever somebody tries the call from the page.
        if parameter["required"] and parameter["name"] in given:
            parameter.setdefault("example", given[parameter["name"]])
    answered = operation["responses"][str(step["status"])].get("content", {})
    for content, value in (
        (operation.get("requestBody", {}).get("content", {}), step.get("body")),
        (answered, step["answer"]),
    ):
        if value is not None:
            shown = content["application/json"].setdefault("examples", {})
            name = step["operation"] if not shown else f"{step['operation']}_{len(shown) + 1}"
            shown[name] = {"summary": step["when"], "value": value}
