"""Build the services of access: tokens, sessions, issuers, and request rates."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from windrow_service.api.browsers import Browsers
from windrow_service.api.html.rendering import SIGN_IN
from windrow_service.api.page_tokens import PageTokens
from windrow_service.api.services import AccessServices
from windrow_service.logs import get_logger
from windrow_service.settings import Settings
from windrow_service.store.idempotency import SqlOnceStore
from windrow_service.store.sessions import SqlSessionStore
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.authenticate import Authenticate
from windrow_service.usecases.access.sessions import Sessions
from windrow_service.usecases.access.tokens import ManageTokens
from windrow_service.wiring.adapters import Adapters

if TYPE_CHECKING:
    from windrow_service.issuers.signing_in import SigningIn
    from windrow_service.issuers.tokens import SignedTokens
    from windrow_service.rate_limits import Guesses, RateLimits

_PURGE_KEYS_EVERY_S = 5.0
_PURGE_EVERY_S = 60.0
_FETCH_KEYS_EVERY_S = 300.0
_log = get_logger(__name__)


async def open_access(adapters: Adapters) -> AccessServices:
    """Return the services of access; forget what has expired in the background."""
    settings, database = adapters.settings, adapters.database
    once = adapters.stored(SqlOnceStore(database), "once")
    tokens = adapters.stored(SqlTokenStore(database), "tokens")
    sessions = adapters.stored(SqlSessionStore(database), "sessions")
    issuers = _open_issuers(adapters)
    if settings.tokens_required and issuers is None:
        await _warn_if_no_token_is_valid(tokens, adapters.clock())
    adapters.repeat(
        "forget expired keys", lambda: once.purge(adapters.clock()), _PURGE_KEYS_EVERY_S
    )
    adapters.repeat("forget old tokens", lambda: tokens.purge(adapters.clock()), _PURGE_EVERY_S)
    adapters.repeat(
        "forget expired sessions", lambda: sessions.purge(adapters.clock()), _PURGE_EVERY_S
    )
    required = settings.tokens_required
    signing_key = await database.signing_key()
    return AccessServices(
        authenticate=Authenticate(tokens, issuers, adapters.clock, required=required),
        tokens=ManageTokens(tokens=tokens, clock=adapters.clock),
        once=once,
        page_tokens=PageTokens(signing_key),
        sessions=Sessions(sessions, tokens, issuers, adapters.clock, required=required),
        signing_in=_open_signing_in(adapters, issuers),
        browsers=Browsers(signing_key, encrypted=(settings.public_url or "").startswith("https:")),
        rates=_rates(adapters),
        guesses=_guesses(adapters),
    )


def _open_issuers(adapters: Adapters) -> SignedTokens | None:
    if not adapters.settings.issuers:
        return None
    # Late, because the libraries that check signatures take long to import.
    from windrow_service.issuers.tokens import SignedTokens

    issuers = SignedTokens(adapters.settings.issuers)
    adapters.stack.push_async_callback(issuers.aclose)
    adapters.repeat("fetch the keys of issuers", issuers.refresh, _FETCH_KEYS_EVERY_S)
    return issuers


def _open_signing_in(adapters: Adapters, issuers: SignedTokens | None) -> SigningIn | None:
    settings = adapters.settings
    if issuers is None or settings.public_url is None:
        return None
    from windrow_service.issuers.signing_in import SigningIn

    signing_in = SigningIn(
        settings.issuers, issuers, f"{settings.public_url}{SIGN_IN}", adapters.clock
    )
    adapters.stack.push_async_callback(signing_in.aclose)
    return signing_in


def _rates(adapters: Adapters) -> RateLimits | None:
    settings = adapters.settings
    per_minute = settings.limits.requests_per_minute
    if not per_minute:
        return None
    # Late, because importing it takes a tenth of a second.
    from windrow_service.rate_limits import RateLimits

    rates = RateLimits(per_minute, _redis_url(settings))
    adapters.stack.push_async_callback(rates.aclose)
    return rates


def _guesses(adapters: Adapters) -> Guesses | None:
    settings = adapters.settings
    per_minute = settings.limits.wrong_tokens_per_minute
    if not per_minute or not settings.tokens_required:
        return None
    from windrow_service.rate_limits import Guesses

    guesses = Guesses(per_minute, _redis_url(settings))
    adapters.stack.push_async_callback(guesses.aclose)
    return guesses


def _redis_url(settings: Settings) -> str | None:
    return None if settings.redis_url is None else settings.redis_url.get_secret_value()


async def _warn_if_no_token_is_valid(tokens: SqlTokenStore, at: datetime) -> None:
    if not any(token.is_valid(at) for token in await tokens.list()):
        _log.warning(
            "callers need a token, and none is valid yet",
            remedy="windrow token create NAME --scope admin",
        )
