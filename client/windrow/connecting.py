"""Get a client of a coordinator elsewhere, or of one inside this process."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from windrow.client import Client
from windrow_calls.errors import ProblemError, WindrowError
from windrow_calls.installed import require_service
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

    message = "the token holds characters that no token has: {remedy}"
    remedy = f"check how it got into {_TOKEN_VARIABLE}, or make another with `windrow token create`"


@dataclass(eq=False)
class TokenFileError(WindrowError):
    """The file that holds the token cannot be read, or is empty."""

    file: str
    reason: str
    message = "the token cannot be read from {file!r} ({reason}): {remedy}"
    remedy = f"check {_FILE_VARIABLE}"


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    timeout_s: float = 60.0,
    attempts: int = 4,
    check: bool = True,
) -> Client:
    """Return a client of a coordinator, once that has answered.

    Args:
        url: URL of the coordinator, for example `http://127.0.0.1:8080`. By default the environment
            variable WINDROW_URL, or else `http://127.0.0.1:8080`.
        token: Identifies the caller, if the coordinator requires tokens. By default the environment
            variable WINDROW_TOKEN, or else the file that WINDROW_TOKEN_FILE names. That file is
            read for each request, because such tokens are replaced before they expire.
        timeout_s: How long one answer may take.
        attempts: Maximum number of attempts at one request, for example while the coordinator
            cannot be reached.
        check: Whether to make sure that a coordinator answers, in four attempts at least, as one
            replica of several may just be ending. Otherwise nothing is sent yet, and the first
            call tells.

    Raises:
        CoordinatorUnreachableError: No answer came.
        UnsupportedAnswerError: Something else answered than a coordinator.
        InvalidTokenError: The token is malformed.
        TokenFileError: The file of the token cannot be read.

    Example:
        with windrow.connect("http://127.0.0.1:8080") as client:
            client.tables()
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
    return Client(Transport(http, attempts=attempts))


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


def embedded(
    state_dir: str | Path = ".windrow", *, allowed_locations: tuple[str, ...] = ("/",)
) -> Client:
    """Start a coordinator inside this process and return a client of it.

    It is reached through a socket file that only this user can open, and stops when the
    client is closed or the process ends.

    Args:
        state_dir: Folder of its database; kept for the next time.
        allowed_locations: Folders that tables may lie under.

    Raises:
        ServiceNotInstalledError: The `[service]` extra is not installed.

    Example:
        with windrow.embedded() as client:
            client.tables()
    """
    require_service()
    from windrow.embedding import EmbeddedCoordinator

    coordinator = EmbeddedCoordinator(Path(state_dir), allowed_locations)
    http = httpx.Client(
        base_url="http://embedded",
        transport=httpx.HTTPTransport(uds=str(coordinator.socket), verify=_NO_CERTIFICATES),
        timeout=_TIMEOUT,
    )
    return Client(Transport(http), on_close=coordinator.stop)


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
