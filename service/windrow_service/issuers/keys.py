"""The public keys of an issuer: fetched, kept through outages, and fetched again if one is new."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from windrow_service.issuers.requests import UNUSABLE, IssuerRequests, safe_url_in
from windrow_service.issuers.trust import Issuer
from windrow_service.usecases.access.errors import IssuerUnavailableError

# Callers that invent ids of keys can make the coordinator ask an issuer, but only this often.
_ASK_AGAIN_S = 5.0
_MAX_KEYS = 100
_MIN_RSA_BITS = 2048


class IssuerKeys:
    """The keys of one issuer, by their ids."""

    def __init__(
        self, name: str, issuer: Issuer, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._issuer = issuer
        self._seconds = seconds
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching = asyncio.Lock()
        self._requests = IssuerRequests(name, issuer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._requests.aclose()

    async def find(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key; None if the issuer does not have it."""
        if self._has(key_id):
            return self._keys[key_id]
        async with self._fetching:
            # Another caller may have fetched the key meanwhile.
            if not self._has(key_id) and self._may_ask():
                await self._fetch()
        if not self._are_known():
            raise IssuerUnavailableError(self._name)
        return self._keys.get(key_id)

    async def refresh(self) -> None:
        """Fetch the keys, so that keys that the issuer has dropped are no longer trusted."""
        async with self._fetching:
            if not await self._fetch():
                raise IssuerUnavailableError(self._name)

    def _has(self, key_id: str) -> bool:
        return self._are_known() and key_id in self._keys

    def _are_known(self) -> bool:
        kept_s = self._issuer.keys_kept_for.total_seconds()
        return self._fetched_at is not None and self._seconds() - self._fetched_at <= kept_s

    def _may_ask(self) -> bool:
        return self._tried_at is None or self._seconds() - self._tried_at >= _ASK_AGAIN_S

    async def _fetch(self) -> bool:
        began_at = self._seconds()
        try:
            keys = self._usable_keys(await self._request_keys())
        except UNUSABLE:
            return False
        finally:
            # Set at the end, so that waiting callers do not ask again, one after another.
            self._tried_at = self._seconds()
        self._keys, self._fetched_at = keys, began_at
        return True

    async def _request_keys(self) -> dict[str, Any]:
        url, file = self._issuer.keys_url, self._issuer.token_file
        if url is None:
            url = safe_url_in(await self._requests.describe(), "jwks_uri")
        token = None if file is None else (await asyncio.to_thread(file.read_text)).strip()
        return await self._requests.get(url, token)

    @staticmethod
    def _usable_keys(answer: Mapping[str, Any]) -> dict[str, jwt.PyJWK]:
        entries = answer.get("keys")
        if not isinstance(entries, list) or len(entries) > _MAX_KEYS:
            raise ValueError("the answer has no keys, or too many")
        keys: dict[str, jwt.PyJWK] = {}
        for one in entries:
            if not isinstance(one, dict) or one.get("use", "sig") != "sig":
                continue
            key_id = one.get("kid")
            if not isinstance(key_id, str):
                continue
            try:
                key = jwt.PyJWK(one)
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
            weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < _MIN_RSA_BITS
            if not weak:
                keys[key_id] = key
        return keys
