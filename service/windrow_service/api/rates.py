"""Refuses requests above a caller's rate, before their bodies are read."""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from windrow_service.api.problems import problem_answer
from windrow_service.api.services import services_of
from windrow_service.usecases.errors import TooManyRequestsError


class RatesLimited:
    """Middleware that limits the rate of each caller; calls without a caller are not limited."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and "principal" in scope["state"]:
            request = Request(scope)
            rates = services_of(request).access.rates
            if rates is not None:
                wait_s = await rates.wait_s(request.state.principal.name)
                if wait_s is not None:
                    error = TooManyRequestsError(wait_s)
                    return await problem_answer(request, error)(scope, receive, send)
        await self._app(scope, receive, send)
