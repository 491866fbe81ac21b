"""Send requests to a coordinator: with timeouts, bounded retries, and problems as errors."""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from windrow_calls.arguments import check_table
from windrow_calls.errors import (
    BusyError,
    CoordinatorUnreachableError,
    OutcomeUnknownError,
    UnsupportedAnswerError,
    WindrowError,
    error_of,
)
from windrow_calls.listing import Listing, Page
from windrow_core.models import (
    AuditPage,
    PartitionPage,
    PlanHistoryPage,
    Problem,
    ReceiptPage,
    SnapshotPage,
    StreamPage,
    TablePage,
    TokenPage,
    WorkerPage,
    WritePage,
)

ARROW_STREAM = "application/vnd.apache.arrow.stream"

_BACKOFF_S = 0.2
_MAX_BACKOFF_S = 5.0
# Of our own, so that the numbers that an application draws do not depend on what is repeated.
_jitter = random.Random()
# No retry begins later than this after the first attempt.
_PATIENCE_S = 120.0
# A proxy's answers when its coordinator has just gone away.
_GATEWAY_STATUSES = (502, 503, 504)

M = TypeVar("M", bound=BaseModel)
P = TypeVar(
    "P",
    AuditPage,
    PartitionPage,
    PlanHistoryPage,
    ReceiptPage,
    SnapshotPage,
    TablePage,
    TokenPage,
    WorkerPage,
    StreamPage,
    WritePage,
)


class Transport:
    """One coordinator, over HTTP.

    Transient failures are retried with jittered back-off: no answer, a busy coordinator, a change
    of unknown outcome. Changes are retried too: all attempts at one change carry the same
    `Idempotency-Key`, so that the coordinator makes it only once.

    Args:
        http: Carries the requests; closed by `close`.
        attempts: Maximum number of attempts at one request, at least 1.
    """

    def __init__(self, http: httpx.Client, *, attempts: int = 4) -> None:
        self._http = http
        self._attempts = attempts

    @property
    def url(self) -> str:
        """URL of the coordinator."""
        return str(self._http.base_url)

    @property
    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._http.is_closed

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: str | bytes | None = None,
        params: Mapping[str, str | int | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request and return its successful answer.

        Raises:
            CoordinatorUnreachableError: No answer came after all attempts.
            ProblemError: The coordinator refused.
            UnsupportedAnswerError: The answer is neither a success nor a problem.
        """
        own_headers = {"Content-Type": "application/json"} if body is not None else {}
        if method != "GET":
            own_headers["Idempotency-Key"] = uuid.uuid4().hex
        request = self._http.build_request(
            method, path, content=body, params=params, headers=own_headers | dict(headers or {})
        )
        retrying = Retrying(
            retry=retry_if_exception(_is_transient),
            wait=_wait_s,
            stop=stop_after_attempt(self._attempts) | stop_before_delay(_PATIENCE_S),
            reraise=True,
        )
        try:
            return retrying(self._send, request)
        except httpx.RequestError as error:
            attempts = retrying.statistics["attempt_number"]
            reason = str(error) or type(error).__name__
            raise CoordinatorUnreachableError(self.url, attempts, reason) from None
        except WindrowError as error:
            # Dozens of lines of the libraries that carried the request tell nobody anything.
            raise error.with_traceback(None) from None

    def pages(
        self, model: type[P], path: str, params: Mapping[str, str | int] | None = None
    ) -> Iterator[P]:
        """Yield the pages of a list; each is requested when the previous one has been used.

        Args:
            model: Model of one page.
            path: Path of the list.
            params: Parameters of the query.
        """
        query = dict(params or {})
        while True:
            page = read_answer(model, self.call("GET", path, params=query))
            yield page
            if page.next_page_token is None:
                return
            query["page_token"] = page.next_page_token

    def listing(
        self,
        model: type[P],
        items: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
    ) -> Listing[Any]:
        """Return a list, of which the first page is requested at once.

        Args:
            model: Model of one page.
            items: The page's field with its items.
            path: Path of the list.
            params: Parameters of the query.
        """
        pages = (
            Page(getattr(page, items), page.next_page_token is None)
            for page in self.pages(model, path, params)
        )
        return Listing(pages, items)

    def _send(self, request: httpx.Request) -> httpx.Response:
        # Only a program that has loaded OpenTelemetry itself can have a trace.
        if "opentelemetry.propagate" in sys.modules:
            sys.modules["opentelemetry.propagate"].inject(request.headers)
        answer = self._http.send(request)
        _raise_problem(answer)
        return answer


def _silently(text: str) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda _: None)


class Calls:
    """The calls of one resource of a coordinator.

    Args:
        transport: Carries the requests.
    """

    # Shows what a call waits for, and how far that is, while a block runs.
    _waiting: Callable[[str], AbstractContextManager[Callable[[str], None]]] = staticmethod(
        _silently
    )

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


def table_path(name: str) -> str:
    """Return the path of a table's calls.

    Raises:
        InvalidArgumentError: No table can have this name.
    """
    check_table(name)
    return f"/tables/{name}"


def read_answer(model: type[M], answer: httpx.Response, content: bytes | None = None) -> M:
    """Return the content of a successful answer.

    Args:
        model: Model of the content.
        answer: The answer.
        content: The part of the answer to read; all of it by default.
    """
    try:
        return model.model_validate_json(answer.content if content is None else content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnsupportedAnswerError(
            f"{answer.request.method} {answer.request.url} answered with something that is not a "
            f"{model.__name__} ({place + ': ' if place else ''}{first['msg']}): is this a Windrow "
            "coordinator of this client's version?"
        ) from None


class _GatewayError(UnsupportedAnswerError):
    """A proxy in front of the coordinator cannot reach it."""


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, httpx.RequestError):
        return not isinstance(error, httpx.UnsupportedProtocol)
    return isinstance(error, BusyError | OutcomeUnknownError | _GatewayError)


def _wait_s(attempt: RetryCallState) -> float:
    assert attempt.outcome is not None
    error = attempt.outcome.exception()
    asked_s = error.retry_after_s if isinstance(error, BusyError) else 0.0
    backoff_s = min(_BACKOFF_S * 2.0 ** (attempt.attempt_number - 1), _MAX_BACKOFF_S)
    return asked_s + backoff_s * _jitter.uniform(0.5, 1.0)


def _raise_problem(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError:
        is_transient = answer.status_code in _GATEWAY_STATUSES
        raise (_GatewayError if is_transient else UnsupportedAnswerError)(
            f"{answer.request.method} {answer.request.url} answered {answer.status_code} with "
            "something that is not a problem: is this a Windrow coordinator?"
        ) from None
    raise error_of(problem, _retry_after_s(answer.headers.get("Retry-After", "1")))


def _retry_after_s(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 1.0
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, at.timestamp() - time.time())
