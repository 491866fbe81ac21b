"""Get a client: of a coordinator elsewhere, or of one inside this process."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

import httpx

from windrow.calls.transport import Transport
from windrow.client import Client
from windrow.errors import WindrowError
from windrow.installed import require_service

# Planning a large table takes seconds; connecting takes none.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_TOKEN_VARIABLE = "WINDROW_TOKEN"
# Trusts nobody, so that no encrypted connection can be made with it.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class InvalidTokenError(WindrowError):
    """What was given as a token is malformed; it is not repeated here."""

    message = "the token holds characters that no token has: {remedy}"
    remedy = f"check how it got into {_TOKEN_VARIABLE}, or make another with `windrow token create`"


def connect(
    url: str, *, token: str | None = None, timeout_s: float = 60.0, attempts: int = 4
) -> Client:
    """Return a client of the coordinator at `url`, for example `http://127.0.0.1:8080`.

    Nothing is sent yet.

    Args:
        url: Where the coordinator is.
        token: Identifies the caller, where the coordinator asks for that; the environment variable
            WINDROW_TOKEN by default.
        timeout_s: How long one answer may take.
        attempts: How often a request is tried when the coordinator cannot be reached.

    Raises:
        InvalidTokenError: The token is malformed.
    """
    timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 5.0))
    http = httpx.Client(
        base_url=url,
        verify=_certificates(url),
        timeout=timeout,
        headers=_authorization(token),
        # Another host must not get the token.
        follow_redirects=False,
    )
    return Client(Transport(http, attempts=attempts))


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


def _authorization(token: str | None) -> dict[str, str]:
    # Files of secrets tend to end in a line break.
    sent = (os.environ.get(_TOKEN_VARIABLE, "") if token is None else token).strip()
    if not sent:
        return {}
    # Checked here, since the error of a header that cannot be sent would repeat the token.
    if not re.fullmatch("[!-~]+", sent):
        raise InvalidTokenError
    return {"Authorization": f"Bearer {sent}"}
