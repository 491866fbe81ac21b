"""People who sign in with an issuer: OpenID Connect's authorization code flow, with PKCE."""

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
from windrow_service.usecases.access.ports import BegunSignIn, Identity

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

_DESCRIPTION_KEPT_S = 300.0
# Visitors can make the coordinator ask an issuer that is away this often.
_ASK_AGAIN_S = 5.0
_MAX_CODE = 4_096
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where an issuer lets people sign in, and where it tells who did."""

    authorization: str
    token: str
    secret_in_form: bool
    names_itself: bool


class SigningIn:
    """Send people to an issuer, and find out who came back.

    Args:
        issuers: By the names that the settings give them.
        tokens: Checks what they sign.
        page: The URL of the page of signing in, with the ways to issuers and back below it. It
            is fixed by the settings, because whoever could change it would get the codes.
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
        self._offered = {
            name: _Offered(name, issuer, issuer.sign_in, seconds)
            for name, issuer in issuers.items()
            if issuer.sign_in is not None
        }

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        """The URLs that send browsers to issuers, and what people call these."""
        return [
            (f"{self._page}/{name}", offered.sign_in.title or name)
            for name, offered in self._offered.items()
        ]

    def _back(self, name: str) -> str:
        return f"{self._page}/{name}/callback"

    async def aclose(self) -> None:
        """Close the connections."""
        for offered in self._offered.values():
            await offered.requests.aclose()

    async def begin(self, name: str) -> tuple[str, BegunSignIn]:
        """Return where to send somebody who signs in, and what the browser keeps meanwhile.

        Raises:
            SignInNotOfferedError: Nobody can sign in with such an issuer.
            IssuerUnavailableError: It does not answer, or answers nonsense.
        """
        offered = self._of(name)
        places = await offered.places()
        begun = BegunSignIn(
            issuer=name,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        challenge = hashlib.sha256(begun.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": offered.sign_in.client_id,
            "redirect_uri": self._back(name),
            "scope": " ".join(offered.sign_in.scopes),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return with_query(places.authorization, asked), begun

    async def finish(
        self, name: str, answer: Mapping[str, str], begun: BegunSignIn | None
    ) -> Identity:
        """Return who has signed in.

        Args:
            name: What the settings call the issuer to which the way back belongs.
            answer: What the browser brought from there.
            begun: What the browser kept.

        Raises:
            SignInNotOfferedError: Nobody can sign in with such an issuer.
            SignInOutdatedError: The answer is none to what this browser asked of this issuer.
            SignInRefusedError: The issuer let nobody in.
            SignInUnconfirmedError: It does not confirm the code, or not as it should.
            IssuerUnavailableError: It does not answer, or answers nonsense.
        """
        offered = self._of(name)
        if begun is None or begun.issuer != name or not _same(answer.get("state"), begun.state):
            raise SignInOutdatedError
        places = await offered.places()
        sender = answer.get("iss")
        # RFC 9207: the answer of one issuer must not be taken for that of another.
        if sender != offered.issuer.url and (sender is not None or places.names_itself):
            _log.warning("a sign-in was answered for another issuer", issuer=name)
            raise SignInOutdatedError
        if "error" in answer:
            _log.info("an issuer let nobody in", issuer=name, why=answer["error"][:64])
            raise SignInRefusedError(name)
        code = answer.get("code", "")
        if not 0 < len(code) <= _MAX_CODE:
            raise SignInOutdatedError
        token = await self._redeemed(offered, places, code, begun)
        try:
            identity = await self._tokens.identify_by_id_token(
                name, token, offered.sign_in.client_id, begun.nonce
            )
        except UnauthenticatedError:
            raise SignInUnconfirmedError(name) from None
        # The token says for how long it may be shown, which is often minutes: that was now.
        return replace(identity, expires_at=self._clock() + offered.sign_in.lasts)

    def _of(self, name: str) -> _Offered:
        if name not in self._offered:
            raise SignInNotOfferedError
        return self._offered[name]

    async def _redeemed(
        self, offered: _Offered, places: _Places, code: str, begun: BegunSignIn
    ) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._back(offered.name),
            "code_verifier": begun.verifier,
            "client_id": offered.sign_in.client_id,
        }
        headers: dict[str, str] = {}
        try:
            secret = await offered.secret()
            if secret is not None and places.secret_in_form:
                form["client_secret"] = secret
            elif secret is not None:
                headers["Authorization"] = _basic(offered.sign_in.client_id, secret)
            status, told = await offered.requests.post(places.token, form, headers)
        except UNUSABLE as error:
            raise offered.unavailable(error) from None
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise offered.unavailable(ValueError(f"the answer has the status {status}"))
        token = told.get("id_token")
        if status != HTTPStatus.OK or not isinstance(token, str):
            why = str(told.get("error", "no id_token"))[:64]
            _log.warning("an issuer did not confirm a sign-in", issuer=offered.name, why=why)
            raise SignInUnconfirmedError(offered.name)
        return token


class _Offered:
    """An issuer that people can sign in with."""

    def __init__(
        self, name: str, issuer: Issuer, sign_in: SignIn, seconds: Callable[[], float]
    ) -> None:
        self.name = name
        self.issuer = issuer
        self.sign_in = sign_in
        self.requests = IssuerRequests(name, issuer)
        self._seconds = seconds
        self._places: _Places | None = None
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def places(self) -> _Places:
        """Return where people sign in.

        Raises:
            IssuerUnavailableError: The issuer does not say.
        """
        async with self._asking:
            since = None if self._asked_at is None else self._seconds() - self._asked_at
            kept_s = _ASK_AGAIN_S if self._places is None else _DESCRIPTION_KEPT_S
            if since is None or since >= kept_s:
                self._places = None
                try:
                    self._places = _places_in(await self.requests.describe())
                except UNUSABLE as error:
                    raise self.unavailable(error) from None
                finally:
                    # At the end, so that those who waited do not ask in turn.
                    self._asked_at = self._seconds()
        if self._places is None:
            raise IssuerUnavailableError(self.name)
        return self._places

    async def secret(self) -> str | None:
        """Return the client's secret, if it has one."""
        file, secret = self.sign_in.client_secret_file, self.sign_in.client_secret
        if file is not None:
            return (await asyncio.to_thread(file.read_text)).strip()
        return None if secret is None else secret.get_secret_value()

    def unavailable(self, error: Exception) -> IssuerUnavailableError:
        """Return the error for an issuer that cannot be used, and log the reason."""
        why = str(error) or type(error).__name__
        _log.warning("nobody can sign in with an issuer", issuer=self.name, why=why)
        return IssuerUnavailableError(self.name)


def _places_in(described: Mapping[str, Any]) -> _Places:
    ways = described.get("token_endpoint_auth_methods_supported")
    return _Places(
        authorization=safe_url_in(described, "authorization_endpoint"),
        token=safe_url_in(described, "token_endpoint"),
        # In a header, unless the issuer says that it reads it in the form alone.
        secret_in_form=isinstance(ways, list)
        and "client_secret_post" in ways
        and "client_secret_basic" not in ways,
        names_itself=described.get("authorization_response_iss_parameter_supported") is True,
    )


def _basic(client_id: str, secret: str) -> str:
    # RFC 6749, section 2.3.1.
    both = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def _same(sent: str | None, kept: str) -> bool:
    return sent is not None and hmac.compare_digest(sent.encode(errors="replace"), kept.encode())
