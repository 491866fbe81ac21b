"""Sessions of browsers: whose they are, what they allow at any time, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.support.api.dashboards import token
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import on_database
from tests.support.servers.issuers import IssuerServer, issuer_server
from windrow_service.issuers.tokens import SignedTokens
from windrow_service.issuers.trust import Issuer
from windrow_service.settings import Settings
from windrow_service.store.database import Database
from windrow_service.store.sessions import SqlSessionStore
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.errors import NothingGrantedError, UnauthenticatedError
from windrow_service.usecases.access.ports import Identity
from windrow_service.usecases.access.sessions import Sessions
from windrow_service.usecases.access.tokens import ManageTokens
from windrow_service.usecases.audit import Actor, acting

START = datetime(2026, 11, 23, 6, tzinfo=timezone.utc)
URL = "https://login.example.com"


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Kept:
    """Sessions and tokens in a database, as replicas see them."""

    def __init__(self, database: Database) -> None:
        self.clock = Clock()
        self.store = SqlSessionStore(database)
        self._tokens = SqlTokenStore(database)
        self.manage = ManageTokens(tokens=self._tokens, clock=self.clock)

    def replica(self, url: str | None = URL, **groups: str) -> Sessions:
        """Return the sessions of a replica that has just started, with its own settings."""
        issuers = None if url is None else trusting(url, tuple((groups or {"all": "read"}).items()))
        return Sessions(self.store, self._tokens, issuers, self.clock, required=True)


@cache
def trusting(url: str, groups: tuple[tuple[str, str], ...]) -> SignedTokens:
    """Return the callers that one issuer names, with a grant for each group."""
    granted = {group: [grant] for group, grant in groups}
    issuer = Issuer.model_validate({"url": url, "audience": "a", "groups": granted})
    return SignedTokens({"corp": issuer})


async def is_in(sessions: Sessions, secret: str) -> bool:
    try:
        await sessions.find(secret)
    except UnauthenticatedError:
        return False
    return True


def identity(**claims: Any) -> Identity:
    """Return the claims of an issuer about a caller."""
    return Identity(
        issuer=URL,
        claims={"sub": "ann", "groups": ["all"], **claims},
        expires_at=START + timedelta(hours=1),
    )


def test_a_session_ends_with_the_token_that_it_began_with(database_url: sa.URL) -> None:
    async def work(database: Database) -> None:
        kept = Kept(database)
        with acting(lambda: Actor("test", "test")):
            lasting, lasting_secret = await kept.manage.create("ann", ["read"], None)
            _, brief_secret = await kept.manage.create("ben", ["read"], timedelta(minutes=5))
            session, secret = await kept.replica().begin(lasting_secret)
            brief, brief_browser = await kept.replica().begin(brief_secret)

            found = await kept.replica().find(secret)
            assert (found.principal.name, found.token_id) == ("ann", lasting.token_id)
            assert session.expires_at == START + timedelta(hours=12)
            assert brief.expires_at == START + timedelta(minutes=5)
            replica = kept.replica()
            assert await is_in(replica, brief_browser)
            kept.clock.now = brief.expires_at
            # Even on a replica that remembers the session.
            assert not await is_in(replica, brief_browser)

            await kept.manage.revoke(lasting.token_id)
            assert not await is_in(kept.replica(), secret)
            with pytest.raises(UnauthenticatedError):
                await kept.replica().begin(lasting_secret)

    on_database(database_url, work)


def test_a_session_of_an_issuer_has_the_current_grants(database_url: sa.URL) -> None:
    async def work(database: Database) -> None:
        kept = Kept(database)
        _, secret = await kept.replica(sales="read:sales.*").begin_of(
            identity(groups=["sales", "ops"])
        )

        first = await kept.replica(sales="read:sales.*").find(secret)
        later = await kept.replica(ops="admin", sales="read:sales.*").find(secret)
        assert "hr.t" not in first.principal.tables
        assert "sales.t" in first.principal.tables
        assert later.principal.grants.of("admin").every
        assert later.principal.name == "corp/ann"
        assert not (await kept.replica().find(secret)).principal.tables
        with pytest.raises(NothingGrantedError):
            await kept.replica().begin_of(identity(groups=["sales"]))
        # The issuer is no longer trusted, or another issuer has its name.
        assert not await is_in(kept.replica(None), secret)
        assert not await is_in(kept.replica("https://elsewhere.example.com"), secret)
        kept.clock.now += timedelta(hours=1)
        assert not await is_in(kept.replica(), secret)

    on_database(database_url, work)


def test_an_ended_session_is_invalid_everywhere_and_others_stay_valid(database_url: sa.URL) -> None:
    async def work(database: Database) -> None:
        kept = Kept(database)
        browsers = [await kept.replica().begin_of(identity()) for _ in range(2)]
        (_, mine), (_, other) = browsers
        assert mine != other

        replica = kept.replica()
        assert await is_in(replica, mine)
        await replica.end(mine)
        await replica.end(None)

        assert not await is_in(replica, mine)
        assert not await is_in(kept.replica(), mine)
        assert await is_in(kept.replica(), other)
        for made_up in ("", "x" * 43, mine + "x", "ü" * 43):
            assert not await is_in(kept.replica(), made_up)

    on_database(database_url, work)


def test_a_caller_cannot_fill_the_database_with_sessions(database_url: sa.URL) -> None:
    async def work(database: Database) -> None:
        kept = Kept(database)
        sessions = kept.replica()
        _, others = await sessions.begin_of(identity(sub="ben"))
        begun = []
        for _ in range(25):
            begun.append((await sessions.begin_of(identity()))[1])
            kept.clock.now += timedelta(seconds=1)

        fresh = kept.replica()
        assert [await is_in(fresh, one) for one in begun] == [False] * 5 + [True] * 20
        assert await is_in(fresh, others)
        current = [one.principal for one in await fresh.current(30)]
        assert current == ["corp/ann"] * 20 + ["corp/ben"]
        assert await fresh.end_all_of("corp/ben") == 1
        assert not await is_in(fresh, others)
        assert await fresh.end_all_of("corp/be") == 0
        assert await kept.store.purge(kept.clock.now) == 0
        kept.clock.now += timedelta(hours=1)
        assert await fresh.current(30) == []
        assert await kept.store.purge(kept.clock.now) == 20

    on_database(database_url, work)


@pytest.fixture(scope="module")
def issuer() -> Iterator[IssuerServer]:
    with issuer_server() as server:
        yield server


@pytest.fixture(scope="module")
def settings(issuer: IssuerServer, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    trusted = {"url": issuer.url, "audience": "windrow", "groups": {"ops": ["admin"]}}
    return Settings.model_validate(
        {
            "state_dir": tmp_path_factory.mktemp("sessions"),
            "require_tokens": True,
            "issuers": {"corp": trusted},
        }
    )


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with running(settings) as url:
        yield url


@contextmanager
def browser(url: str, sent: str, **headers: str) -> Iterator[tuple[httpx.Client, httpx.Response]]:
    """Open a browser that signs in with a token; yield it and the answer."""
    with httpx.Client(verify=PLAIN, base_url=url, timeout=60, headers=headers) as http:
        yield http, http.post("/dashboard/sign-in", data={"token": sent})


def test_a_browser_keeps_a_short_secret_and_the_database_no_token(
    url: str, settings: Settings, issuer: IssuerServer
) -> None:
    # About as long as calls may send: 8,192 characters.
    groups = [f"{number:08}-0000-4000-8000-000000000000" for number in range(140)]
    sent = issuer.token(sub="ann", groups=[*groups, "ops"])
    assert len(sent) > 7_000
    with browser(url, sent) as (http, answer):
        assert answer.status_code == 303
        assert len(answer.headers["Set-Cookie"]) < 200
        secret = http.cookies["windrow_session"]
        assert http.get("/dashboard/access").status_code == 200

    database = b"".join(file.read_bytes() for file in settings.state_dir.glob("windrow.db*"))
    assert groups[0].encode() in database
    for hidden in (secret, sent, sent.rpartition(".")[2]):
        assert hidden.encode() not in database


def test_signing_out_ends_the_session_for_everyone_with_its_cookie(
    url: str, settings: Settings
) -> None:
    with browser(url, token(settings, "leaving", "read")) as (http, _):
        secret = http.cookies["windrow_session"]
        copied = {"Cookie": f"windrow_session={secret}"}
        page = http.get("/dashboard/tables").text
        form = page.partition('name="form" value="')[2].partition('"')[0]

        answer = http.post("/dashboard/sign-out", data={"form": form})

        assert 'windrow_session=""' in answer.headers["Set-Cookie"]
        assert http.get("/dashboard/tables", headers=copied).status_code == 303


def test_signing_in_never_continues_a_session_that_the_browser_sent(
    url: str, settings: Settings
) -> None:
    sent = token(settings, "fixed", "read")
    with browser(url, sent) as (first, _):
        brought = first.cookies["windrow_session"]
    for cookie in (brought, "A" * 43):
        with browser(url, sent, Cookie=f"windrow_session={cookie}") as (again, _):
            assert again.cookies["windrow_session"] != cookie


def test_behind_https_a_cookie_of_another_host_or_of_plain_http_signs_nobody_in(
    url: str, settings: Settings
) -> None:
    https = {"X-Forwarded-Proto": "HTTPS, http"}
    with browser(url, token(settings, "encrypted", "read"), **https) as (http, answer):
        name, _, secret = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
        assert name == "__Host-windrow_session"
        for sent, status in ((name, 200), ("windrow_session", 303)):
            headers = {**https, "Cookie": f"{sent}={secret}"}
            assert http.get("/dashboard/tables", headers=headers).status_code == status, sent


def test_a_session_of_one_coordinator_is_invalid_at_another(
    url: str, settings: Settings, tmp_path: Path
) -> None:
    with (
        browser(url, token(settings, "visitor", "read")) as (http, _),
        running(Settings(state_dir=tmp_path, require_tokens=True)) as other,
    ):
        headers = {"Cookie": f"windrow_session={http.cookies['windrow_session']}"}
        assert http.get("/dashboard/tables").status_code == 200
        assert http.get(f"{other}/dashboard/tables", headers=headers).status_code == 303
