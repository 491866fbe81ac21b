"""Requests to an issuer, bounded in time and size."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from windrow_service.issuers.trust import Issuer, authorities_of, is_safe_url

_TIMEOUT_S = 5.0
_MAX_BYTES = 2**20
# Each visitor who signs in makes the coordinator send requests; further ones wait.
_MOST_AT_ONCE = 20
# Errors of requests to an issuer that does not answer, or gives an answer that makes no sense.
UNUSABLE = (
    httpx.HTTPError,
    httpx.InvalidURL,
    OSError,
    ValueError,
    RecursionError,
    asyncio.TimeoutError,
)


class IssuerRequests:
    """Connections to one issuer; all their errors are in `UNUSABLE`."""

    def __init__(self, name: str, issuer: Issuer) -> None:
        self._issuer = issuer
        self._http = httpx.AsyncClient(
            verify=authorities_of(name, issuer),
            timeout=_TIMEOUT_S,
            limits=httpx.Limits(max_connections=_MOST_AT_ONCE),
            # Another host must not take the issuer's place.
            follow_redirects=False,
            trust_env=False,
            # A short answer that is compressed can become a large one.
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def describe(self) -> dict[str, Any]:
        """Return the issuer's description of itself."""
        url = f"{self._issuer.url.rstrip('/')}/.well-known/openid-configuration"
        description = await self.get(url)
        if description.get("issuer") != self._issuer.url:
            raise ValueError("the description is of another issuer")
        return description

    async def get(self, url: str, token: str | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        status, answer = await self._send(self._http.build_request("GET", url, headers=headers))
        if status != httpx.codes.OK:
            raise ValueError(f"the answer has the status {status}")
        return answer

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any]]:
        """Send a form; return the status and JSON object of the answer, which may be a refusal."""
        request = self._http.build_request("POST", url, data=dict(form), headers=dict(headers))
        return await self._send(request)

    async def _send(self, request: httpx.Request) -> tuple[int, dict[str, Any]]:
        # The client's own timeout is for each step, not for all of them.
        return await asyncio.wait_for(self._read(request), _TIMEOUT_S)

    async def _read(self, request: httpx.Request) -> tuple[int, dict[str, Any]]:
        body = bytearray()
        answer = await self._http.send(request, stream=True)
        try:
            async for data in answer.aiter_raw():
                body += data
                if len(body) > _MAX_BYTES:
                    raise ValueError("the answer is too long")
        finally:
            await answer.aclose()
        content = json.loads(body)
        if not isinstance(content, dict):
            raise ValueError("the answer is not an object")
        return answer.status_code, content


def safe_url_in(description: Mapping[str, Any], name: str) -> str:
    """Return a URL from an issuer's description."""
    url = description.get(name)
    if not isinstance(url, str) or not is_safe_url(url):
        raise ValueError(f"the description names no safe {name}")
    return url


def with_query(url: str, fields: Mapping[str, str]) -> str:
    """Return a URL with more fields in its query."""
    return str(httpx.URL(url).copy_merge_params(dict(fields)))
