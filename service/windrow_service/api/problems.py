"""Errors become RFC 9457 problems: by their fault, the name of their class, and its docstring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from windrow_core.cards import count_text
from windrow_core.errors import Call, Fault, StatedError
from windrow_core.models import Problem
from windrow_core.remedies import worded
from windrow_service.api.html.rendering import is_page, problem_page
from windrow_service.api.iceberg_errors import iceberg_error, is_below
from windrow_service.usecases.access.errors import ScopeMissingError, UnauthenticatedError
from windrow_service.usecases.engines.errors import ReadOnlyCatalogError
from windrow_service.usecases.plans.errors import InvalidOptionsError
from windrow_service.usecases.snapshots.errors import RefreshFailedError

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:windrow:problem:"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A type of problem: its status, the last part of its URI, and its title."""

    status: HTTPStatus
    slug: str
    title: str


_STATUSES: Mapping[Fault, HTTPStatus] = {
    Fault.OUTDATED: HTTPStatus.BAD_REQUEST,
    Fault.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Fault.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Fault.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Fault.CONFLICT: HTTPStatus.CONFLICT,
    Fault.GONE: HTTPStatus.GONE,
    Fault.CHANGED: HTTPStatus.PRECONDITION_FAILED,
    Fault.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Fault.INVALID: HTTPStatus.UNPROCESSABLE_ENTITY,
    Fault.TOO_OFTEN: HTTPStatus.TOO_MANY_REQUESTS,
    Fault.DAMAGED: HTTPStatus.INTERNAL_SERVER_ERROR,
    Fault.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Fault.UNKNOWN: HTTPStatus.GATEWAY_TIMEOUT,
}
_SHOWN_ISSUES = 10
_MOST_CHARACTERS = 500
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_UNEXPECTED = "something went wrong in the coordinator; its log has the details"
_UNKNOWN = ProblemType(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "Coordinator failed")


@dataclass(frozen=True, slots=True)
class ProblemAnswer:
    """A problem as it is sent to the caller."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def problem_type(error_type: type[Exception]) -> ProblemType:
    """Return the type of the problem that callers get for errors of a class."""
    if issubclass(error_type, RequestValidationError):
        # Options are checked once more when those of the session and the table are known.
        error_type = InvalidOptionsError
    if not issubclass(error_type, StatedError) or error_type.fault is None:
        return _UNKNOWN
    name = error_type.__name__.removesuffix("Error")
    slug = error_type.slug or re.sub("(?<!^)(?=[A-Z])", "-", name).lower()
    title = str(error_type.__doc__).partition("\n")[0].removesuffix(".")
    return ProblemType(_STATUSES[error_type.fault], slug, title)


def describe(error: Exception, instance: str | None = None) -> ProblemAnswer:
    """Return the problem for an error; one without a fault reveals nothing about itself."""
    if isinstance(error, RefreshFailedError):
        return _repeated(error.problem, instance)
    kind = problem_type(type(error))
    body: dict[str, Any] = {
        "type": PREFIX + kind.slug,
        "title": kind.title,
        "status": int(kind.status),
        "detail": _UNEXPECTED,
    }
    if kind is not _UNKNOWN:
        body |= _texts(error)
    if instance is not None:
        body["instance"] = instance
    headers = {}
    if (retry_after_s := getattr(error, "retry_after_s", None)) is not None:
        headers["Retry-After"] = str(retry_after_s)
    elif isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    elif isinstance(error, ScopeMissingError):
        # RFC 6750, section 3.
        challenge = f'Bearer error="insufficient_scope", scope="{error.scope}"'
        headers["WWW-Authenticate"] = challenge
    elif isinstance(error, ReadOnlyCatalogError):
        headers["Allow"] = error.methods
    return ProblemAnswer(body, headers)


def _repeated(problem: Mapping[str, Any], instance: str | None) -> ProblemAnswer:
    where = {} if instance is None else {"instance": instance}
    headers = {"Retry-After": "1"} if problem["status"] == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return ProblemAnswer({**problem, **where}, headers)


def install(app: FastAPI) -> None:
    """Make an application answer every failure with a problem."""
    for error_type in (StatedError, RequestValidationError):
        app.add_exception_handler(error_type, _answer)
    app.add_exception_handler(HTTPException, _answer_http)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries for problems with these statuses, and for 500.

    They refer to a schema that `add_problem_schema` adds to the document.
    """
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in (*statuses, 500)
    }


def add_problem_schema(document: dict[str, Any]) -> None:
    """Add the schema that `problem_responses` refers to."""
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= {**schema.pop("$defs"), "Problem": schema}


async def _answer(request: Request, error: Exception) -> Response:
    is_repeated = isinstance(error, RefreshFailedError)
    if isinstance(error, StatedError) and error.fault is None and not is_repeated:
        # Not meant for callers: a fault of the coordinator, which `RequestLog` logs.
        raise error
    return problem_answer(request, error)


def problem_answer(request: Request, error: Exception) -> Response:
    """Return the answer to a failed request."""
    answer = describe(error, request.url.path)
    return _answer_with(request, answer.body, answer.headers)


def _answer_with(request: Request, body: dict[str, Any], headers: Mapping[str, str]) -> Response:
    request_id = request.state.request_id
    body = {**body, "request_id": request_id}
    request.state.problem = body
    if body["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        # By this id, operators find the details in the log.
        body["detail"] += f" (request {request_id})"
    if is_page(request.url.path):
        return problem_page(request, body, headers)
    if is_below(request.url.path) and MEDIA_TYPE not in request.headers.get("Accept", ""):
        return iceberg_error(body, headers)
    return JSONResponse(body, body["status"], headers=headers, media_type=MEDIA_TYPE)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    body = {
        "type": PREFIX + phrase.lower().replace(" ", "-"),
        "title": phrase,
        "status": error.status_code,
        "detail": f"{request.method} {request.url.path}: {phrase.lower()}; /docs lists every call",
        "instance": request.url.path,
    }
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    return _answer_with(request, body, headers)


def _methods_at(request: Request) -> set[str]:
    """Return the methods of all calls on a path; the router names only those of the first."""
    return {
        method
        for method in _METHODS
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
    }


def _encodable(text: str) -> str:
    # JSON may hold half of a surrogate pair, and a message may quote it.
    return text.encode("utf-8", "backslashreplace").decode()


def _texts(error: Exception) -> dict[str, Any]:
    """Return the detail of a problem and, if a call helps, its remedy."""
    call = error.remedy_call() if isinstance(error, StatedError) else None
    if call is None:
        return {"detail": _encodable(_detail(error))}
    arguments = {
        name: _encodable(value) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    text = call.text or worded(Call(call.operation, **arguments), "http")
    return {
        "detail": _encodable(str(error).replace(str(call), text)),
        "remedy": {"call": call.operation, "arguments": arguments, "text": text},
    }


def _detail(error: Exception) -> str:
    if isinstance(error, RequestValidationError):
        issues = error.errors()
        texts = [_issue(issue) for issue in issues[:_SHOWN_ISSUES]]
        more = len(issues) - len(texts)
        return "; ".join([*texts, f"and {count_text(more, 'more error')}"] if more else texts)
    return str(error)


def _issue(issue: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in issue["loc"])
    text = f"{where}: {issue['msg'].removeprefix('Value error, ')}"
    # A caller's own key may be megabytes long.
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
