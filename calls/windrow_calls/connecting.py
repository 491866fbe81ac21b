"""Connections to a coordinator: where it is, and what tells it who calls."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from windrow_calls.errors import ProblemError, WindrowError
from windrow_calls.transport import Transport, read_answer
from windrow_core.models import Health

# Planning a large table takes seconds; connecting takes none.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_DEFAULT_URL = "http://127.0.0.1:8080"
# A replica behind the URL may be ending just now, which says nothing about the others.
_FEWEST_FIRST_ATTEMPTS = 4
_URL_VARIABLE = "WINDROW_URL"
_TOKEN_VARIABLE = "WINDROW_TOKEN"
_FILE_VARIABLE = "WINDROW_TOKEN_FILE"
# Trusts nobody, so that no encrypted connection can be made with it.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class InvalidTokenError(WindrowError):
    """The token is malformed; the message does not repeat it."""

    message = "the token contains characters that tokens never have: {remedy}"
    remedy = f"check how it got into {_TOKEN_VARIABLE}, or make another with `windrow token create`"


@dataclass(eq=False)
class TokenFileError(WindrowError):
    """The file that holds the token cannot be read, or is empty."""

    file: str
    reason: str
    message = "the token cannot be read from {file!r} ({reason}): {remedy}"
    remedy = f"check {_FILE_VARIABLE}"


def transport_to(
    url: str | None,
    token: str | None = None,
    timeout_s: float = 60.0,
    attempts: int = 4,
    *,
    check: bool = True,
) -> Transport:
    """Return what carries requests to a coordinator; the arguments are those of `windrow.connect`.

    Raises:
        CoordinatorUnreachableError: No answer came.
        UnsupportedAnswerError: Something other than a coordinator answered.
        InvalidTokenError: The token is malformed.
        TokenFileError: The file of the token cannot be read.
    """
    if url is None:
        url = os.environ.get(_URL_VARIABLE) or _DEFAULT_URL
    secret = os.environ.get(_TOKEN_VARIABLE, "") if token is None else token
    file = os.environ.get(_FILE_VARIABLE, "")
    timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 5.0))
    http = httpx.Client(
        base_url=url,
        verify=_certificates(url),
        timeout=timeout,
        headers={"Authorization": _bearer(secret)} if secret.strip() else {},
        auth=None if secret.strip() or token is not None or not file else _TokenFile(Path(file)),
        # Another host must not get the token.
        follow_redirects=False,
    )
    if check:
        _check(Transport(http, attempts=max(attempts, _FEWEST_FIRST_ATTEMPTS)))
    return Transport(http, attempts=attempts)


def transport_in_process(socket: Path) -> Transport:
    """Return what carries requests to a coordinator that listens at a socket file."""
    http = httpx.Client(
        base_url="http://embedded",
        transport=httpx.HTTPTransport(uds=str(socket), verify=_NO_CERTIFICATES),
        timeout=_TIMEOUT,
    )
    return Transport(http)


def _check(transport: Transport) -> None:
    """Make sure that a coordinator answers; one that refuses the call is there, too."""
    try:
        # A call that needs no token.
        read_answer(Health, transport.call("GET", "/health/live"))
    except ProblemError:
        pass
    except BaseException:
        transport.close()
        raise


def _certificates(url: str) -> ssl.SSLContext:
    # Loading them takes longer than most requests, and http:// needs none.
    return httpx.create_ssl_context() if httpx.URL(url).scheme == "https" else _NO_CERTIFICATES


def _bearer(token: str) -> str:
    # Files of secrets tend to end in a line break.
    secret = token.strip()
    # Checked here, since the error of a header that cannot be sent would repeat the token.
    if not re.fullmatch("[!-~]+", secret):
        raise InvalidTokenError
    return f"Bearer {secret}"


class _TokenFile(httpx.Auth):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._last = self._read()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        # While the file is being replaced, the last token is still valid.
        with suppress(TokenFileError, InvalidTokenError):
            self._last = self._read()
        request.headers["Authorization"] = self._last
        yield request

    def _read(self) -> str:
        try:
            text = self._file.read_text()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise TokenFileError(str(self._file), reason) from None
        if not text.strip():
            raise TokenFileError(str(self._file), "it is empty")
        return _bearer(text)
