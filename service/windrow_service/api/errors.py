"""Errors of requests that do not reach a use case."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException

from windrow_core.errors import Fault, StatedError

SEND_LESS = "send less in one request"


@dataclass(eq=False)
class RefusedBodyError(StatedError, HTTPException):
    """Base of errors of bodies: FastAPI hides all but HTTPException while it reads a body."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    fault = Fault.TOO_LARGE
    message = "the body is refused"


@dataclass(eq=False)
class BodyTooLargeError(RefusedBodyError):
    """Request body is too large."""

    max_bytes: int
    setting: str | None
    takes_arrow: bool = False

    def __str__(self) -> str:
        remedy = "send less" if self.setting is None else f"send less, or raise {self.setting}"
        if self.takes_arrow:
            remedy = f"send an Arrow stream, which may be much longer, {remedy}"
        return f"the body is larger than {self.max_bytes:,} bytes: {remedy}"


@dataclass(eq=False)
class BodyTooComplexError(RefusedBodyError):
    """Request body has too many parts."""

    most: int
    what: str
    advice: str = SEND_LESS
    message = "the body has more than {most:,} {what}: {remedy}"
    remedy = "{advice}"


@dataclass(eq=False)
class BodiesFullError(RefusedBodyError):
    """Bodies of all requests take too much memory."""

    fault = Fault.UNAVAILABLE
    max_bytes: int
    retry_after_s = 1
    message = "the bodies of all requests together exceed {max_bytes:,} bytes: {remedy}"
    remedy = "try again in {retry_after_s} s"


class FormOutdatedError(StatedError):
    """Form is outdated."""

    fault = Fault.FORBIDDEN
    message = "this form is too old, or belongs to another caller: {remedy}"
    remedy = "open the page again"
