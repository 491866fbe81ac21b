"""The HTTP server around the application: its limits and its log."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from urllib.parse import unquote, urlsplit

import uvicorn
from fastapi import FastAPI

from windrow_service.api.connections import ConnectionLimits, bounded_http
from windrow_service.bootstrap import build_app
from windrow_service.logs import logging_to
from windrow_service.settings import Settings

# How long running requests may take to finish when the server is told to stop.
STOP_TIMEOUT_S = 10
# Longer than clients and load balancers keep idle connections (HTTPX 5 s, AWS and nginx 60 s):
# a request on a connection that the server closes in that moment fails, and may not be sent again.
_IDLE_TIMEOUT_S = 75
_SECRET_VARIABLE = re.compile(r"SECRET|TOKEN|PASSWORD|ACCESS_KEY")


def server_config(
    settings: Settings,
    app: FastAPI | None = None,
    *,
    owns_process: bool = False,
    uds: str | None = None,
    stop_timeout_s: int = STOP_TIMEOUT_S,
) -> uvicorn.Config:
    """Return the server configuration of a coordinator.

    Args:
        settings: All settings.
        app: The application; created from the settings by default.
        owns_process: Whether the process only serves the coordinator.
        uds: Socket file to listen on, instead of an address.
        stop_timeout_s: How long running requests may take to finish when the server is told to
            stop.
    """
    limits = settings.limits
    return uvicorn.Config(
        app or build_app(settings, owns_process=owns_process),
        host=settings.host,
        port=settings.port,
        uds=uds,
        http=bounded_http(
            ConnectionLimits(
                max_connections=limits.max_connections,
                max_head_bytes=limits.max_head_bytes,
                max_headers=limits.max_headers,
                head_timeout_s=limits.head_timeout.total_seconds(),
                body_timeout_s=limits.body_timeout.total_seconds(),
            )
        ),
        # WebSockets have a protocol of their own, which has no limits.
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        timeout_keep_alive=_IDLE_TIMEOUT_S,
        timeout_graceful_shutdown=stop_timeout_s,
    )


@contextmanager
def logging(
    settings: Settings, *, level: str | None = None, owns_process: bool = False
) -> Iterator[None]:
    """Log to standard error until the end of the block: JSON, or plain text on a terminal."""
    with ExitStack() as stack:
        if owns_process:
            stack.enter_context(_delay_sigterm())
        stack.enter_context(
            logging_to(
                sys.stderr,
                level=level or settings.log_level,
                for_people=sys.stderr.isatty(),
                secrets=_secrets(settings),
                owns_process=owns_process,
            )
        )
        yield


class _TerminatedError(SystemExit):
    """The process received SIGTERM."""


@contextmanager
def _delay_sigterm() -> Iterator[None]:
    """Delay the termination of the process by SIGTERM until after the block.

    The server raises the signal again once it has stopped, which would end the process before the
    last lines of the log are written.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise _TerminatedError(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _TerminatedError:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def _secrets(settings: Settings) -> set[str]:
    """Return the secrets of this process, which must not appear in its log."""
    secrets = {value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name)}
    for issuer in settings.issuers.values():
        if issuer.sign_in is not None and issuer.sign_in.client_secret is not None:
            secrets.add(issuer.sign_in.client_secret.get_secret_value())
    for url in (settings.database_url, settings.redis_url):
        password = urlsplit(url.get_secret_value()).password if url else None
        if password:
            secrets |= {password, unquote(password)}
    return secrets
