"""All problems that the coordinator answers, by their type, in HTTP and as commands show them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tests.support.api.error_samples import error_types, samples_of
from tests.support.golden.files import lines_of
from windrow.models import Problem
from windrow_calls.errors import error_of
from windrow_cli.remedies import in_commands
from windrow_service.api.problems import describe, install

_UNKNOWN = "urn:windrow:problem:internal-error"


class _UnexpectedError(Exception):
    """An error that the coordinator does not raise on purpose."""


def text() -> str:
    """Return a row for each problem and each text of it."""
    rows = [_unexpected(), *(_of_status(status) for status in (404, 405))]
    for error_type in error_types():
        for error in samples_of(error_type):
            answer = describe(error)
            if answer.body["type"] != _UNKNOWN:
                rows.append(_row(answer.body, answer.headers))
    texts = sorted({lines_of([row]) for row in rows})
    return "".join(texts)


def _unexpected() -> dict[str, Any]:
    answer = describe(_UnexpectedError("secret"), "/tables")
    return _row(answer.body, answer.headers)


def _of_status(status: int) -> dict[str, Any]:
    """Return the problem for a path or a method that does not exist."""
    app = FastAPI(openapi_url=None)
    app.add_api_route("/tables", lambda: None, methods=["GET", "POST"])
    install(app)
    scope = {"type": "http", "method": "PUT", "path": "/tables", "headers": [], "app": app}
    request = Request({**scope, "query_string": b"", "state": {"request_id": "r-1"}})
    handler: Any = app.exception_handlers[HTTPException]
    answer: Response = asyncio.run(handler(request, HTTPException(status)))
    headers = {
        name.title(): value
        for name, value in answer.headers.items()
        if name not in ("content-length", "content-type")
    }
    return _row(json.loads(bytes(answer.body)), headers)


def _row(body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    row = {**body, "headers": headers}
    output = in_commands(error_of(Problem.model_validate(body)))
    if output != body["detail"]:
        row["in_commands"] = output
    return row
