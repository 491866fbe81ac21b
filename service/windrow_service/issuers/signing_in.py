"""Signing in with an issuer: OpenID Connect's authorization code flow, with PKCE."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from windrow_service.issuers.requests import UNUSABLE, IssuerRequests, safe_url_in, with_query
from windrow_service.issuers.tokens import SignedTokens
from windrow_service.issuers.trust import Issuer, SignIn
from windrow_service.logs import get_logger
from windrow_service.usecases.access.errors import (
    IssuerUnavailableError,
    SignInNotOfferedError,
    SignInOutdatedError,
    SignInRefusedError,
    SignInUnconfirmedError,
    UnauthenticatedError,
)
from windrow_service.usecases.access.ports import Identity, PendingSignIn

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

_DESCRIPTION_KEPT_S = 300.0
# Visitors can make the coordinator ask an issuer that does not answer only this often.
_ASK_AGAIN_S = 5.0
_MAX_CODE = 4_096
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The URLs of an issuer at which people sign in and codes are redeemed, and how to use them."""

    authorization: str
    token: str
    secret_in_form: bool
    names_itself: bool


class SigningIn:
    """Send people to an issuer, and find out who came back.

    Args:
        issuers: Issuers, by their names in the settings.
        tokens: Checks the tokens that they sign.
        page: URL of the sign-in page; the URLs that lead to issuers and back are below it. The
            settings fix it, because whoever could change it would get the codes.
        clock: The time.
        seconds: A clock that never goes back.
    """

    def __init__(
        self,
        issuers: Mapping[str, Issuer],
        tokens: SignedTokens,
        page: str,
        clock: Clock,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._page = page
        self._clock = clock
        self._providers = {
            name: _Provider(name, issuer, issuer.sign_in, seconds)
            for name, issuer in issuers.items()
            if issuer.sign_in is not None
        }

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        """The URLs that send browsers to issuers, each with the title of its issuer."""
        return [
            (f"{self._page}/{name}", provider.sign_in.title or name)
            for name, provider in self._providers.items()
        ]

    def _callback_url(self, name: str) -> str:
        return f"{self._page}/{name}/callback"

    async def aclose(self) -> None:
        """Close the connections."""
        for provider in self._providers.values():
            await provider.requests.aclose()

    async def begin(self, name: str) -> tuple[str, PendingSignIn]:
        """Return the URL to send a browser to, and the sign-in that it keeps meanwhile.

        Raises:
            SignInNotOfferedError: People cannot sign in with this issuer.
            IssuerUnavailableError: The issuer does not answer, or its answer makes no sense.
        """
        provider = self._provider(name)
        endpoints = await provider.endpoints()
        sign_in = PendingSignIn(
            issuer=name,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        challenge = hashlib.sha256(sign_in.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": provider.sign_in.client_id,
            "redirect_uri": self._callback_url(name),
            "scope": " ".join(provider.sign_in.scopes),
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return with_query(endpoints.authorization, query), sign_in

    async def finish(
        self, name: str, answer: Mapping[str, str], sign_in: PendingSignIn | None
    ) -> Identity:
        """Return who has signed in.

        Args:
            name: Name in the settings of the issuer from which the browser should come.
            answer: Fields with which the issuer sent the browser back.
            sign_in: The sign-in that the browser kept; None if it kept none.

        Raises:
            SignInNotOfferedError: People cannot sign in with this issuer.
            SignInOutdatedError: The answer does not belong to this sign-in.
            SignInRefusedError: The issuer refused the sign-in.
            SignInUnconfirmedError: The issuer did not confirm the code with a valid ID token.
            IssuerUnavailableError: The issuer does not answer, or its answer makes no sense.
        """
        provider = self._provider(name)
        if (
            sign_in is None
            or sign_in.issuer != name
            or not _same(answer.get("state"), sign_in.state)
        ):
            raise SignInOutdatedError
        endpoints = await provider.endpoints()
        sender = answer.get("iss")
        # RFC 9207: the answer of one issuer must not be taken for that of another.
        if sender != provider.issuer.url and (sender is not None or endpoints.names_itself):
            _log.warning("a sign-in was answered for another issuer", issuer=name)
            raise SignInOutdatedError
        if "error" in answer:
            _log.info("an issuer refused a sign-in", issuer=name, why=answer["error"][:64])
            raise SignInRefusedError(name)
        code = answer.get("code", "")
        if not 0 < len(code) <= _MAX_CODE:
            raise SignInOutdatedError
        token = await self._redeemed(provider, endpoints, code, sign_in)
        try:
            identity = await self._tokens.identify_by_id_token(
                name, token, provider.sign_in.client_id, sign_in.nonce
            )
        except UnauthenticatedError:
            raise SignInUnconfirmedError(name) from None
        # The ID token itself often expires within minutes: it only had to be valid now.
        return replace(identity, expires_at=self._clock() + provider.sign_in.lasts)

    def _provider(self, name: str) -> _Provider:
        if name not in self._providers:
            raise SignInNotOfferedError
        return self._providers[name]

    async def _redeemed(
        self, provider: _Provider, endpoints: _Endpoints, code: str, sign_in: PendingSignIn
    ) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback_url(provider.name),
            "code_verifier": sign_in.verifier,
            "client_id": provider.sign_in.client_id,
        }
        headers: dict[str, str] = {}
        try:
            secret = await provider.secret()
            if secret is not None and endpoints.secret_in_form:
                form["client_secret"] = secret
            elif secret is not None:
                headers["Authorization"] = _basic(provider.sign_in.client_id, secret)
            status, answer = await provider.requests.post(endpoints.token, form, headers)
        except UNUSABLE as error:
            raise provider.unavailable(error) from None
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise provider.unavailable(ValueError(f"the answer has the status {status}"))
        token = answer.get("id_token")
        if status != HTTPStatus.OK or not isinstance(token, str):
            why = str(answer.get("error", "no id_token"))[:64]
            _log.warning("an issuer did not confirm a sign-in", issuer=provider.name, why=why)
            raise SignInUnconfirmedError(provider.name)
        return token


class _Provider:
    """An issuer that people can sign in with."""

    def __init__(
        self, name: str, issuer: Issuer, sign_in: SignIn, seconds: Callable[[], float]
    ) -> None:
        self.name = name
        self.issuer = issuer
        self.sign_in = sign_in
        self.requests = IssuerRequests(name, issuer)
        self._seconds = seconds
        self._endpoints: _Endpoints | None = None
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def endpoints(self) -> _Endpoints:
        """Return the issuer's endpoints."""
        async with self._asking:
            since = None if self._asked_at is None else self._seconds() - self._asked_at
            kept_s = _ASK_AGAIN_S if self._endpoints is None else _DESCRIPTION_KEPT_S
            if since is None or since >= kept_s:
                self._endpoints = None
                try:
                    self._endpoints = _endpoints_in(await self.requests.describe())
                except UNUSABLE as error:
                    raise self.unavailable(error) from None
                finally:
                    # Set at the end, so that waiting callers do not ask again, one after another.
                    self._asked_at = self._seconds()
        if self._endpoints is None:
            raise IssuerUnavailableError(self.name)
        return self._endpoints

    async def secret(self) -> str | None:
        """Return the client's secret, if it has one."""
        file, secret = self.sign_in.client_secret_file, self.sign_in.client_secret
        if file is not None:
            return (await asyncio.to_thread(file.read_text)).strip()
        return None if secret is None else secret.get_secret_value()

    def unavailable(self, error: Exception) -> IssuerUnavailableError:
        """Return the error for an issuer that cannot be used, and log the reason."""
        why = str(error) or type(error).__name__
        _log.warning("signing in with an issuer is not possible now", issuer=self.name, why=why)
        return IssuerUnavailableError(self.name)


def _endpoints_in(description: Mapping[str, Any]) -> _Endpoints:
    ways = description.get("token_endpoint_auth_methods_supported")
    return _Endpoints(
        authorization=safe_url_in(description, "authorization_endpoint"),
        token=safe_url_in(description, "token_endpoint"),
        # Sent in a header, unless the issuer says that it only reads the form.
        secret_in_form=isinstance(ways, list)
        and "client_secret_post" in ways
        and "client_secret_basic" not in ways,
        names_itself=description.get("authorization_response_iss_parameter_supported") is True,
    )


def _basic(client_id: str, secret: str) -> str:
    # RFC 6749, section 2.3.1.
    both = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def _same(state: str | None, secret: str) -> bool:
    return state is not None and hmac.compare_digest(
        state.encode(errors="replace"), secret.encode()
    )
