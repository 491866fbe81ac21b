"""Send requests to a coordinator: timeouts always, bounded retries, problems as errors."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from windrow.errors import (
    BusyError,
    CoordinatorUnreachableError,
    UnsupportedAnswerError,
    error_of,
)
from windrow.models import Problem

_BACKOFF_S = 0.2
_MAX_BACKOFF_S = 5.0
# A coordinator that asks for more patience than this is treated as one that refuses.
_MAX_RETRY_AFTER_S = 30.0

M = TypeVar("M", bound=BaseModel)


class Transport:
    """One coordinator, over HTTP.

    Connecting, and being told to come back later, are tried again with jittered back-off;
    other failures only where the request changes nothing.

    Args:
        http: Carries the requests; closed by `close`.
        attempts: Most tries of one request, at least 1.
    """

    def __init__(self, http: httpx.Client, *, attempts: int = 4) -> None:
        self._http = http
        self._attempts = attempts

    @property
    def url(self) -> str:
        """Where the coordinator is."""
        return str(self._http.base_url)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: str | bytes | None = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request and return its successful answer.

        Raises:
            CoordinatorUnreachableError: No answer came after all attempts.
            ProblemError: The coordinator refused.
            UnsupportedAnswerError: The answer is neither a success nor a problem.
        """
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= headers or {}
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                answer = self._http.request(method, path, content=body, params=params, headers=sent)
                _raise_problem(answer)
            except httpx.RequestError as error:
                if last or not _may_send_again(method, error):
                    reason = str(error) or type(error).__name__
                    raise CoordinatorUnreachableError(self.url, attempt, reason) from error
                _sleep(attempt, 0.0)
            except BusyError as error:
                if last or error.retry_after_s > _MAX_RETRY_AFTER_S:
                    raise
                _sleep(attempt, error.retry_after_s)
            else:
                return answer
        raise AssertionError("the last attempt returns or raises")


def read_answer(model: type[M], answer: httpx.Response) -> M:
    """Return the content of a successful answer.

    Raises:
        UnsupportedAnswerError: It is not what a coordinator of this version answers.
    """
    try:
        return model.model_validate_json(answer.content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnsupportedAnswerError(
            f"{answer.request.method} {answer.request.url} answered with something that is not a "
            f"{model.__name__} ({place + ': ' if place else ''}{first['msg']}): is this a Windrow "
            "coordinator of this client's version?"
        ) from error


def _may_send_again(method: str, error: httpx.RequestError) -> bool:
    if isinstance(error, httpx.UnsupportedProtocol):
        return False
    return method == "GET" or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


def _sleep(attempt: int, at_least_s: float) -> None:
    backoff_s = min(_BACKOFF_S * 2 ** (attempt - 1), _MAX_BACKOFF_S)
    time.sleep(at_least_s + backoff_s * random.uniform(0.5, 1.0))


def _raise_problem(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnsupportedAnswerError(
            f"{answer.request.method} {answer.request.url} answered {answer.status_code} with "
            "something that is not a problem: is this a Windrow coordinator?"
        ) from error
    raise error_of(problem, _retry_after_s(answer.headers))


def _retry_after_s(headers: Mapping[str, Any]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0
