"""Build the services of access: tokens, sessions, issuers, and request rates."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

from windrow_service.api.browsers import Browsers
from windrow_service.api.html.rendering import SIGN_IN
from windrow_service.api.services import AccessServices
from windrow_service.api.tokens import PageTokens
from windrow_service.logs import get_logger
from windrow_service.runs.background import keep_doing
from windrow_service.settings import Settings
from windrow_service.store.database import Database
from windrow_service.store.once import SqlOnceStore
from windrow_service.store.sessions import SqlSessionStore
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.telemetry.measured import Watch
from windrow_service.usecases.access.authenticate import Authenticate
from windrow_service.usecases.access.sessions import Sessions
from windrow_service.usecases.access.tokens import ManageTokens
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError
from windrow_service.usecases.ports import Clock, Rates

if TYPE_CHECKING:
    from windrow_service.issuers.signing_in import SigningIn
    from windrow_service.issuers.tokens import SignedTokens

NO_DATABASE = (StoreUnavailableError, OutcomeUnknownError)
_PURGE_KEYS_EVERY_S = 5.0
_PURGE_EVERY_S = 60.0
_FETCH_KEYS_EVERY_S = 300.0
T = TypeVar("T")
_log = get_logger(__name__)


async def open_access(
    settings: Settings, database: Database, watch: Watch, clock: Clock, stack: AsyncExitStack
) -> AccessServices:
    """Return the services of access; everything they open is closed with the stack."""

    def stored(store: T, room: str) -> T:
        return watch.over(store, "database", room, NO_DATABASE)

    once = stored(SqlOnceStore(database), "once")
    tokens = stored(SqlTokenStore(database), "tokens")
    sessions = stored(SqlSessionStore(database), "sessions")
    issuers = _open_issuers(settings, stack)
    if settings.tokens_required and issuers is None:
        await _warn_if_no_token_is_valid(tokens, clock)
    for what, work, every_s in (
        ("forget expired keys", lambda: once.purge(clock()), _PURGE_KEYS_EVERY_S),
        ("forget old tokens", lambda: tokens.purge(clock()), _PURGE_EVERY_S),
        ("forget expired sessions", lambda: sessions.purge(clock()), _PURGE_EVERY_S),
    ):
        keep_doing(stack, what, work, every_s)
    required = settings.tokens_required
    signing_key = await database.signing_key()
    return AccessServices(
        authenticate=Authenticate(tokens, issuers, clock, required=required),
        tokens=ManageTokens(tokens=tokens, clock=clock),
        once=once,
        page_tokens=PageTokens(signing_key),
        sessions=Sessions(sessions, tokens, issuers, clock, required=required),
        signing_in=_open_signing_in(settings, issuers, clock, stack),
        browsers=Browsers(signing_key, encrypted=(settings.public_url or "").startswith("https:")),
        rates=_rates(settings),
    )


def _open_issuers(settings: Settings, stack: AsyncExitStack) -> SignedTokens | None:
    if not settings.issuers:
        return None
    # Late, because the libraries that check signatures take long to import.
    from windrow_service.issuers.tokens import SignedTokens

    issuers = SignedTokens(settings.issuers)
    stack.push_async_callback(issuers.aclose)
    keep_doing(stack, "fetch the keys of issuers", issuers.refresh, _FETCH_KEYS_EVERY_S)
    return issuers


def _open_signing_in(
    settings: Settings, issuers: SignedTokens | None, clock: Clock, stack: AsyncExitStack
) -> SigningIn | None:
    if issuers is None or settings.public_url is None:
        return None
    from windrow_service.issuers.signing_in import SigningIn

    page = f"{settings.public_url}{SIGN_IN}"
    signing_in = SigningIn(settings.issuers, issuers, page, clock)
    stack.push_async_callback(signing_in.aclose)
    return signing_in


def _rates(settings: Settings) -> Rates | None:
    per_minute, url = settings.limits.requests_per_minute, settings.redis_url
    if not per_minute:
        return None
    # Late, because importing it takes a tenth of a second.
    from windrow_service.rate_limits import RateLimits

    return RateLimits(per_minute, None if url is None else url.get_secret_value())


async def _warn_if_no_token_is_valid(tokens: SqlTokenStore, clock: Clock) -> None:
    now = clock()
    if not any(token.is_valid(now) for token in await tokens.list()):
        _log.warning(
            "callers need a token, and none is valid yet",
            remedy="windrow token create NAME --scope admin",
        )
