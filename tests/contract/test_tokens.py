"""Access control: calls without a token, with a missing scope or a revoked token are refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import start_blocking_portal

from tests.support.api.contract import document, operations
from tests.support.api.problems import PREFIX, problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import on_database, postgresql
from windrow.connecting import connect
from windrow_calls.errors import NotAllowedError, NotFoundError
from windrow_cli.app import run
from windrow_service import administration, bootstrap
from windrow_service.settings import Settings
from windrow_service.store.audit import SqlAuditLog
from windrow_service.store.database import Database
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.grants import SCOPES
from windrow_service.usecases.access.ports import Token
from windrow_service.usecases.audit import Actor, acting

OPERATIONS = operations()
GUARDED = [name for name in OPERATIONS if "/health/" not in name]
_VALUES = {"plan_id": "0" * 32}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("tokens")
    return Settings(
        state_dir=folder / "state", allowed_locations=(str(folder),), require_tokens=True
    )


@pytest.fixture(scope="module")
def guarded(settings: Settings) -> Iterator[str]:
    with running(settings) as url:
        yield url


@pytest.fixture
def anyone(guarded: str) -> Iterator[httpx.Client]:
    """A caller without a token."""
    with httpx.Client(verify=PLAIN, base_url=guarded, timeout=60) as client:
        yield client


def created(
    settings: Settings, name: str, scopes: Sequence[str], expires_in: timedelta | None = None
) -> tuple[Token, str]:
    async def create() -> tuple[Token, str]:
        async with administration.open_tokens(settings) as tokens:
            return await tokens.create(name, scopes, expires_in)

    with start_blocking_portal() as portal:
        return portal.call(create)


def revoke(settings: Settings, token: Token) -> None:
    async def revoked() -> None:
        async with administration.open_tokens(settings) as tokens:
            await tokens.revoke(token.token_id)

    with start_blocking_portal() as portal:
        portal.call(revoked)


@pytest.fixture(scope="module")
def secrets(settings: Settings) -> dict[str, str]:
    """A token of each scope."""
    return {scope: created(settings, f"of-{scope}", [scope])[1] for scope in SCOPES}


def in_database(settings: Settings) -> Sequence[Token]:
    async def listed() -> Sequence[Token]:
        async with administration.open_tokens(settings) as tokens:
            return await tokens.list()

    with start_blocking_portal() as portal:
        return portal.call(listed)


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def request_of(operation: str) -> tuple[str, str]:
    method, path = operation.split(" ")
    return method, re.sub(r"\{(\w+)\}", lambda found: _VALUES.get(found[1], "some"), path)


@pytest.mark.parametrize("operation", GUARDED)
def test_no_call_is_answered_without_a_token(anyone: httpx.Client, operation: str) -> None:
    method, path = request_of(operation)

    problem = problem_of(anyone.request(method, path), 401, "unauthenticated")

    assert "windrow token create" in problem["detail"]


@pytest.mark.parametrize("operation", GUARDED)
def test_a_call_is_answered_only_for_the_scope_that_the_contract_names(
    anyone: httpx.Client, secrets: dict[str, str], operation: str
) -> None:
    method, path = request_of(operation)
    ((needed,),) = (entry["token"] for entry in OPERATIONS[operation]["security"])

    for scope, allowed in SCOPES.items():
        answer = anyone.request(method, path, headers=bearing(secrets[scope]))
        refused = answer.headers.get("Content-Type") == "application/problem+json" and (
            answer.json()["type"] == f"{PREFIX}scope-missing"
        )
        assert refused == (needed not in allowed), (scope, answer.text)
        if refused:
            problem = problem_of(answer, 403, "scope-missing")
            assert repr(needed) in problem["detail"]
            assert f'scope="{needed}"' in answer.headers["WWW-Authenticate"]


def test_each_call_says_which_token_it_needs() -> None:
    for name in GUARDED:
        assert {"401", "403", "429"} <= OPERATIONS[name]["responses"].keys(), name
    assert document()["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_scopes_are_as_documented() -> None:
    needed = {name: OPERATIONS[name]["security"][0]["token"][0] for name in GUARDED}

    assert needed["GET /tables"] == needed["POST /plans"] == needed["GET /workers"] == "read"
    assert needed["PUT /tables/{name}"] == needed["POST /tables/{name}/snapshots"] == "write"
    assert needed["PUT /workers/{worker_id}"] == "worker"
    assert needed["DELETE /tables/{name}"] == "admin"


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/docs", "/openapi.json"])
def test_probes_and_the_contract_are_open(anyone: httpx.Client, path: str) -> None:
    assert anyone.get(path).is_success


def test_a_documentation_page_loads_nothing_from_elsewhere(anyone: httpx.Client) -> None:
    for asset in re.findall(r'(?:src|href)="(/[^"]+)"', anyone.get("/docs").text):
        assert anyone.get(asset).is_success, asset


def test_the_answer_says_that_none_was_sent_but_not_why_a_token_is_refused(
    anyone: httpx.Client, settings: Settings, secrets: dict[str, str]
) -> None:
    without = ("missing", "empty", "of another scheme", "bare", "in the query")
    revoked_token, revoked = created(settings, "gone", ["admin"])
    revoke(settings, revoked_token)
    _, expired = created(settings, "late", ["admin"], timedelta(microseconds=1))
    good = secrets["admin"]
    sent = {
        "missing": {},
        "empty": {"Authorization": ""},
        "of another scheme": {"Authorization": f"Basic {good}"},
        "bare": {"Authorization": good},
        "malformed": bearing("wdr_x"),
        "two": bearing(f"{good} {good}"),
        "in the query": {},
        "unknown": bearing("wdr_" + "a" * 43),
        "of other letters": bearing(good.upper()),
        "revoked": bearing(revoked),
        "expired": bearing(expired),
    }

    answers = {
        what: anyone.get("/tables", headers=headers, params={"access_token": good})
        for what, headers in sent.items()
    }

    for answer in answers.values():
        problem_of(answer, 401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    told = [answer.json() for answer in answers.values()]
    assert len({problem.pop("request_id") for problem in told}) == len(told)
    details = {what: problem["detail"] for what, problem in zip(answers, told, strict=True)}
    assert {what for what, detail in details.items() if "none was sent" in detail} == set(without)
    assert len(set(details.values())) == 2
    assert len({str(problem | {"detail": ""}) for problem in told}) == 1
    for secret in (good, revoked, expired):
        assert secret not in answers["missing"].text


def test_a_caller_without_a_token_is_refused_before_the_body_is_read(anyone: httpx.Client) -> None:
    for body in (b"{", b"x" * 2**20, b'{"unknown": 1}'):
        problem_of(anyone.put("/tables/t", content=body), 401, "unauthenticated")
    problem_of(anyone.get("/no/such/path"), 401, "unauthenticated")


def test_the_scheme_may_be_written_in_any_case(
    anyone: httpx.Client, secrets: dict[str, str]
) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {secrets['read']}"}
        assert anyone.get("/tables", headers=headers).is_success


@pytest.mark.slow
def test_a_revoked_token_is_soon_refused_even_if_it_was_in_use(
    anyone: httpx.Client, settings: Settings
) -> None:
    token, secret = created(settings, "leaver", ["read"])
    assert anyone.get("/tables", headers=bearing(secret)).is_success

    revoke(settings, token)

    deadline = time.monotonic() + 60
    while anyone.get("/tables", headers=bearing(secret)).is_success:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    problem_of(anyone.get("/tables", headers=bearing(secret)), 401, "unauthenticated")


def test_a_page_token_works_only_for_its_caller(
    anyone: httpx.Client, settings: Settings, secrets: dict[str, str]
) -> None:
    for name in ("p1", "p2"):
        location = {"location": f"{settings.allowed_locations[0]}/{name}"}
        put = anyone.put(f"/tables/{name}", json=location, headers=bearing(secrets["write"]))
        assert put.is_success, put.text
    _, successor = created(settings, "of-read", ["read"])

    def page(token: str, **params: Any) -> httpx.Response:
        return anyone.get("/tables", params={"page_size": 1} | params, headers=bearing(token))

    on = page(secrets["read"]).json()["next_page_token"]

    assert page(secrets["read"], page_token=on).is_success
    # Tokens with the same name belong to one principal.
    assert page(successor, page_token=on).is_success
    problem_of(page(secrets["admin"], page_token=on), 404, "page-not-found")


@pytest.mark.slow
def test_a_missing_database_is_not_reported_as_a_bad_token(tmp_path: Path) -> None:
    with postgresql() as server:
        settings = Settings.model_validate(
            {
                "database_url": server.url,
                "require_tokens": True,
                "allowed_locations": (str(tmp_path),),
            }
        )
        bootstrap.upgrade(settings)
        _, secret = created(settings, "etl", ["read"])
        with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
            server.stop()
            answer = http.get("/tables", headers=bearing(secret))

            problem_of(answer, 503, "store-unavailable")
            assert int(answer.headers["Retry-After"]) > 0
            assert http.get("/health/live").is_success
            problem_of(http.get("/tables"), 401, "unauthenticated")

            server.start()
            assert http.get("/tables", headers=bearing(secret)).is_success


def test_without_the_setting_no_token_is_needed(
    http: httpx.Client, make_plan: Callable[..., dict[str, Any]], events: str
) -> None:
    assert make_plan(events)["status"] == "completed"
    assert http.get("/tables", headers=bearing("wdr_nonsense")).is_success


def test_an_admin_makes_lists_and_revokes_tokens(
    guarded: str, settings: Settings, secrets: dict[str, str]
) -> None:
    with connect(guarded, token=secrets["admin"]) as admin:
        made = admin.create_token("hr-etl", scopes=["read"], grants=["write:hr.*"])
        assert made.token is not None
        with connect(guarded, token=made.token) as caller:
            assert list(caller.tables()) is not None
            with pytest.raises(NotAllowedError):
                list(caller.tokens())
        (listed,) = [token for token in admin.tokens() if token.name == "hr-etl"]
        assert (listed.scopes, listed.grants) == (["read"], ["write:hr.*"])
        # Commands read the database, and find the same token there.
        assert listed.token_id in {token.token_id for token in in_database(settings)}

        first, again = admin.revoke_token(made.token_id), admin.revoke_token(made.token_id)
        assert first.revoked_at is not None
        assert again == first
        with pytest.raises(NotFoundError):
            admin.revoke_token("0" * 16)


def test_tokens_are_listed_page_by_page(
    anyone: httpx.Client, settings: Settings, secrets: dict[str, str]
) -> None:
    for name in ("pages", "pages", "pages-b", "pages"):
        created(settings, name, ["read"])
    found: list[str] = []
    params: dict[str, Any] = {"page_size": 2}
    while True:
        answer = anyone.get("/tokens", params=params, headers=bearing(secrets["admin"])).json()
        found += [token["token_id"] for token in answer["tokens"]]
        assert "wdr_" not in str(answer)
        if answer["next_page_token"] is None:
            break
        params["page_token"] = answer["next_page_token"]

    assert len(found) == len(set(found))
    assert set(found) == {token.token_id for token in in_database(settings)}


def test_a_token_is_made_once_and_its_secret_is_kept_nowhere(
    anyone: httpx.Client, settings: Settings, secrets: dict[str, str]
) -> None:
    headers = bearing(secrets["admin"]) | {"Idempotency-Key": "one-token"}
    body = {"name": "once", "scopes": ["read"], "expires_in_seconds": 3600}

    made = anyone.post("/tokens", json=body, headers=headers)
    again = anyone.post("/tokens", json=body, headers=headers)

    assert (made.status_code, again.status_code) == (201, 201)
    assert made.headers["Cache-Control"] == "no-store"
    assert again.json() == made.json() | {"token": None}
    assert [token.name for token in in_database(settings)].count("once") == 1
    secret = made.json()["token"].encode()
    assert not any(secret in path.read_bytes() for path in settings.state_dir.iterdir())


@pytest.mark.parametrize(
    ("body", "slug", "named"),
    [
        ({"name": "anonymous", "scopes": ["read"]}, "invalid-token-request", "anonymous"),
        ({"name": "coordinator", "scopes": ["read"]}, "invalid-token-request", "coordinator"),
        ({"name": "a b", "scopes": ["read"]}, "invalid-token-request", "is not a name"),
        ({"name": "oidc/x", "scopes": ["read"]}, "invalid-token-request", "is not a name"),
        ({"name": "a"}, "invalid-token-request", "needs a scope"),
        ({"name": "a", "grants": ["read:s*"]}, "invalid-token-request", "names no table"),
        ({"name": "a", "grants": ["root:a"]}, "invalid-token-request", "no scope"),
        ({"name": "a", "scopes": ["root"]}, "invalid-request", "scopes"),
        ({"name": "a", "scopes": ["read"], "grants": ["read"] * 101}, "invalid-request", "grants"),
        ({"name": "a", "scopes": ["read"], "expires_in_seconds": 0}, "invalid-request", "expires"),
    ],
)
def test_invalid_requests_for_tokens_are_refused(
    anyone: httpx.Client,
    secrets: dict[str, str],
    body: dict[str, Any],
    slug: str,
    named: str,
) -> None:
    answer = anyone.post("/tokens", json=body, headers=bearing(secrets["admin"]))

    assert named in problem_of(answer, 422, slug)["detail"]


def test_the_command_can_make_tokens_through_a_coordinator(
    guarded: str,
    secrets: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(*arguments: str) -> Any:
        assert run(["token", *arguments, "--url", guarded, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    monkeypatch.setenv("WINDROW_TOKEN", secrets["admin"])
    made = said("create", "by-url", "--grant", "read:sales.*", "--expires", "1d")

    assert made["token"].startswith("wdr_")
    assert made["grants"] == ["read:sales.*"]
    assert made["token_id"] in {token["token_id"] for token in said("list")["tokens"]}
    assert said("revoke", made["token_id"])["revoked_at"] is not None


def test_a_token_is_forgotten_30_days_after_its_end_but_its_audit_records_are_kept(
    database_url: sa.URL,
) -> None:
    began, day = datetime(2026, 11, 21, tzinfo=timezone.utc), timedelta(days=1)

    def token(name: str, lasts: timedelta | None) -> Token:
        return Token(
            token_id=name,
            name=name,
            scopes=("read",),
            created_at=began,
            expires_at=None if lasts is None else began + lasts,
        )

    async def law(database: Database) -> None:
        tokens, audit = SqlTokenStore(database), SqlAuditLog(database)

        async def left() -> list[str]:
            return [token.name for token in await tokens.list()]

        with acting(lambda: Actor("ana", "test")):
            for name, lasts in (
                ("endless", None),
                ("gone", None),
                ("left", 9 * day),
                ("short", day),
            ):
                await tokens.add(token(name, lasts), digest=name)
            for name in ("gone", "left"):
                await tokens.revoke(name, began + 2 * day)
        record = await audit.page(2**62, 99)

        assert await tokens.purge(began + 31 * day - timedelta(seconds=1)) == 0
        assert await tokens.purge(began + 31 * day) == 1
        assert await left() == ["endless", "gone", "left"]
        assert await tokens.purge(began + 32 * day) == 2
        assert await tokens.purge(began + 9_999 * day) == 0
        assert await left() == ["endless"]
        assert await tokens.find("gone") is None
        assert [change.outcome for change in record] == ["deleted"] * 2 + ["created"] * 4
        assert await audit.page(2**62, 99) == record

    on_database(database_url, law)
