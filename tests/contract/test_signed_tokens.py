"""Access tokens of an issuer: whom they name, what they allow, and which are refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.issuers import IssuerServer, issuer_server, rsa_key
from tests.support.tables import hive
from windrow_service import bootstrap
from windrow_service.issuers.tokens import SignedTokens
from windrow_service.issuers.trust import Issuer
from windrow_service.settings import Settings
from windrow_service.store.database import embedded_url, open_database
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.authenticate import Authenticate, IdentifiedCaller
from windrow_service.usecases.access.errors import (
    IssuerUnavailableError,
    UnauthenticatedError,
)
from windrow_service.usecases.errors import StartError

T = TypeVar("T")
ROBOT = "system:serviceaccount:etl:loader"


@pytest.fixture(scope="module")
def issuer() -> Iterator[IssuerServer]:
    with issuer_server() as server:
        server.keys["curve"] = ec.generate_private_key(ec.SECP256R1())
        # Keys that must never be used: shared, weak, for encryption, for RS512, malformed.
        secret = base64.urlsafe_b64encode(b"s" * 32).decode()
        server.odd_keys = [
            {"kty": "oct", "kid": "shared", "k": secret, "alg": "HS256"},
            server.public("weak", rsa_key(9, 1024)),
            server.public("sealing", rsa_key(2)) | {"use": "enc"},
            server.public("longer", rsa_key(3)) | {"alg": "RS512"},
            {"kty": "RSA", "kid": "broken", "n": "!", "e": 3},
            {"kid": 7},
        ]
        yield server


@pytest.fixture(scope="module")
def http(issuer: IssuerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("signed")
    settings = Settings.model_validate(
        {
            "state_dir": folder / "state",
            "allowed_locations": (str(folder),),
            "require_tokens": True,
            # Tests send dozens of wrong ones.
            "limits": {"wrong_tokens_per_minute": 0},
            "issuers": {
                "corp": {
                    "url": issuer.url,
                    "audience": "windrow",
                    "scopes_claim": "scope",
                    "groups": {"sales": ["write:sales.*"], "ops": ["admin"]},
                    "subjects": {ROBOT: ["read:sales.*"]},
                },
                "other": {"url": "https://127.0.0.1:9", "audience": "windrow"},
            },
        }
    )
    hive.write_events(folder / "t")
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {issuer.token(sub='boss', groups=['ops'])}"
        for name in ("sales.t", "hr.t"):
            put = client.put(f"/tables/{name}", json={"location": str(folder / "t")})
            assert put.is_success, put.text
            client.post(f"/tables/{name}/refresh").raise_for_status()
        yield client


def asking(http: httpx.Client, token: str, path: str = "/tables", **sent: Any) -> httpx.Response:
    method = sent.pop("method", "GET")
    return http.request(method, path, headers={"Authorization": f"Bearer {token}"}, **sent)


def listed(http: httpx.Client, token: str) -> list[str]:
    return [table["name"] for table in asking(http, token).json()["tables"]]


def test_groups_subjects_and_scopes_become_grants(http: httpx.Client, issuer: IssuerServer) -> None:
    token = issuer.token

    assert listed(http, token(groups=["x", "ops"])) == ["hr.t", "sales.t"]
    assert listed(http, token(groups=["sales"])) == ["sales.t"]
    assert listed(http, token(groups="sales")) == ["sales.t"]
    assert listed(http, token(sub=ROBOT, aud=["windrow"])) == ["sales.t"]
    assert listed(http, token(scope="openid read:hr.* profile")) == ["hr.t"]
    assert listed(http, token(scope=["read"], kid="curve", alg="ES256")) == ["hr.t", "sales.t"]
    assert asking(
        http, token(groups=["sales"]), "/tables/sales.t/refresh", method="POST"
    ).is_success
    for nothing in (
        {},
        {"groups": "sales ops"},
        {"groups": {"ops": 1}},
        {"groups": [["ops"], None]},
        {"sub": "ops"},
        {"sub": ROBOT + "2"},
        {"scope": "Read write.all"},
    ):
        problem_of(asking(http, token(**nothing)), 403, "scope-missing")


def test_a_caller_of_an_issuer_is_not_the_caller_of_the_same_name_with_our_token(
    http: httpx.Client, issuer: IssuerServer
) -> None:
    boss = issuer.token(sub="boss", groups=["ops"])
    made = asking(http, boss, "/tokens", method="POST", json={"name": "ann", "scopes": ["read"]})
    ours = made.json()["token"]
    theirs = issuer.token(sub="ann", scope="read")

    plan = asking(http, ours, "/plans", method="POST", json={"table": "hr.t"}).json()["plan_id"]

    assert asking(http, ours, f"/plans/{plan}").is_success
    problem_of(asking(http, theirs, f"/plans/{plan}"), 404, "plan-not-found")
    # Another token of the same caller.
    plan = asking(http, theirs, "/plans", method="POST", json={"table": "hr.t"}).json()["plan_id"]
    assert asking(http, issuer.token(sub="ann", scope="read", jti="2"), f"/plans/{plan}").is_success
    problem_of(
        asking(http, issuer.token(sub="Ann", scope="read"), f"/plans/{plan}"), 404, "plan-not-found"
    )
    on = asking(http, theirs, params={"page_size": 1}).json()["next_page_token"]
    for sub in ("ann:tables", "ann%3Atables", "an"):
        answer = asking(http, issuer.token(sub=sub, scope="read"), params={"page_token": on})
        problem_of(answer, 404, "page-not-found")


def _encoded(*parts: object) -> str:
    texts = (json.dumps(part).encode() for part in parts)
    return ".".join(base64.urlsafe_b64encode(text).rstrip(b"=").decode() for text in texts)


def attacks(issuer: IssuerServer) -> dict[str, str]:
    """Return tokens that would allow everything, if they were accepted."""
    now = int(time.time())
    forged = rsa_key(5)
    public = (
        rsa_key(1)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    claims = {
        "iss": issuer.url,
        "aud": "windrow",
        "sub": "boss",
        "exp": now + 600,
        "groups": ["ops"],
    }

    def by_hmac(secret: bytes, kid: str) -> str:
        signed = _encoded({"alg": "HS256", "kid": kid, "typ": "JWT"}, claims)
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    def made(**changed: Any) -> str:
        return issuer.token(**{"sub": "boss", "groups": ["ops"], **changed})

    good = made()
    head, body, signature = good.split(".")
    other_body = made(sub="other").split(".")[1]
    nested = base64.urlsafe_b64encode(b"[" * 5_000).rstrip(b"=").decode()
    return {
        "forged": made(key=forged),
        "forged, with its key inside": made(
            key=forged,
            head={"jwk": issuer.public("one", forged), "x5u": issuer.url, "jku": issuer.url},
        ),
        "of swapped keys": made(kid="one", key=issuer.keys["curve"], alg="ES256"),
        "expired": made(exp=now - 60),
        "not yet valid": made(nbf=now + 300),
        "issued in the future": made(iat=now + 300),
        "for ever": made(exp=None),
        "with an end that is no number": made(exp="soon"),
        "for another audience": made(aud="other"),
        "for nobody": made(aud=None),
        "of another issuer": made(iss="https://elsewhere.invalid"),
        "of an issuer spelled otherwise": made(iss=issuer.url + "/"),
        "of no issuer": made(iss=None),
        "of a trusted issuer without keys": made(iss="https://127.0.0.1:9", kid=None),
        "of no caller": made(sub=None),
        "of an empty caller": made(sub=""),
        "of a caller with a long name": made(sub="x" * 124),
        "of a caller with spaces": made(sub="a b"),
        "of a caller with a line break": made(sub="a\nb"),
        "of a caller that is not text": made(sub=7),
        "alg none": _encoded({"alg": "none", "kid": "one"}, claims) + ".",
        "alg none, with a signature": _encoded({"alg": "none", "kid": "one"}, claims) + ".AA",
        "alg None": _encoded({"alg": "None", "kid": "one"}, claims) + ".AA",
        "HS256 with the public key": by_hmac(public, "one"),
        "HS256 with a key of the issuer": by_hmac(b"s" * 32, "shared"),
        "another algorithm than allowed": made(alg="RS512"),
        "a key of an algorithm that is not allowed": made(
            kid="longer", key=rsa_key(3), alg="RS512"
        ),
        "of a weak key": made(kid="weak", key=rsa_key(9, 1024)),
        "of a key for encryption": made(kid="sealing", key=rsa_key(2)),
        "unknown kid": made(kid="unknown"),
        "no kid": made(kid=None),
        "a kid that is a path": made(kid="../../dev/null"),
        "unknown critical headers": made(head={"crit": ["exp"], "exp": 1}),
        "another type": made(head={"typ": "logout+jwt"}),
        "another's claims": f"{head}.{other_body}.{signature}",
        "no signature": f"{head}.{body}.",
        "cut": good[:-10],
        "too long": made(more="x" * 8192),
        "deeply nested": f"{head}.{nested}.{signature}",
        "deeply nested head": f"{nested}.{body}.{signature}",
        "five parts": f"{good}.{body}.{body}",
    }


def test_attacks_are_refused_with_the_same_answer(http: httpx.Client, issuer: IssuerServer) -> None:
    assert listed(http, issuer.token(sub="boss", groups=["ops"]))

    answers = {what: asking(http, token) for what, token in attacks(issuer).items()}

    said: set[str] = set()
    for what, answer in answers.items():
        assert answer.status_code == 401, what
        said.add(problem_of(answer, 401, "unauthenticated")["detail"])
    assert len(said) == 1


def test_a_token_that_cannot_be_checked_is_not_reported_as_a_bad_one(
    http: httpx.Client, issuer: IssuerServer
) -> None:
    answer = asking(http, issuer.token(iss="https://127.0.0.1:9"))

    assert "'other'" in problem_of(answer, 503, "issuer-unavailable")["detail"]
    assert int(answer.headers["Retry-After"]) > 0
    assert "127.0.0.1" not in answer.text


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def checking(
    issuer: IssuerServer,
    body: Callable[
        [SignedTokens, Clock, Callable[..., Awaitable[IdentifiedCaller]]], Awaitable[None]
    ],
    **settings: Any,
) -> None:
    """Run a test with tokens of an issuer."""

    async def run() -> None:
        clock = Clock()
        trusted = Issuer.model_validate({"url": issuer.url, "audience": "windrow"} | settings)
        tokens = SignedTokens({"corp": trusted}, clock)

        async def find(**made: Any) -> IdentifiedCaller:
            return await tokens.find(issuer.token(**made))

        try:
            await body(tokens, clock, find)
        finally:
            await tokens.aclose()

    anyio.run(run)


@pytest.fixture
def changing() -> Iterator[IssuerServer]:
    """An issuer that a test may change."""
    with issuer_server() as server:
        yield server


def test_new_keys_are_fetched_when_they_are_used_and_dropped_ones_are_forgotten(
    changing: IssuerServer,
) -> None:
    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        assert (await find()).principal.name == "corp/someone"
        changing.keys = {"one": rsa_key(1), "two": rsa_key(2)}
        clock.now += 6
        await find(kid="two")

        # Another key gets the same id, and a refresh fetches it.
        changing.keys = {"two": rsa_key(3)}
        await tokens.refresh()
        await find(kid="two")
        for stale in ({"kid": "two", "key": rsa_key(2)}, {"kid": "one", "key": rsa_key(1)}):
            with pytest.raises(UnauthenticatedError):
                await find(**stale)

    checking(changing, body)


def test_a_remembered_token_expires_on_time(changing: IssuerServer, tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    times = [now, now + timedelta(seconds=629), now + timedelta(seconds=632)]

    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        database = await open_database(embedded_url(tmp_path))
        try:
            kept = SqlTokenStore(database)
            authenticate = Authenticate(kept, tokens, lambda: times[0], required=True)
            # Clocks may differ by 30 seconds.
            token = changing.token(exp=int(now.timestamp()) + 600)
            for _ in range(2):
                assert (await authenticate(token)).name == "corp/someone"
                del times[0]
            with pytest.raises(UnauthenticatedError):
                await authenticate(token)
        finally:
            await database.aclose()

    checking(changing, body)


def test_made_up_key_ids_do_not_make_the_coordinator_ask_the_issuer_repeatedly(
    changing: IssuerServer,
) -> None:
    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        await find()
        asked = len(changing.asked)
        clock.now += 6
        made_up = [changing.token(kid=f"k{number}") for number in range(50)]

        async def refused(token: str) -> None:
            with pytest.raises(UnauthenticatedError):
                await tokens.find(token)

        async with anyio.create_task_group() as group:
            for token in made_up:
                group.start_soon(refused, token)

        # One request for the issuer's description, one for its keys.
        assert len(changing.asked) == asked + 2
        await find()

    checking(changing, body)


def test_known_keys_outlive_an_outage_for_as_long_as_allowed(changing: IssuerServer) -> None:
    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        changing.is_away = True
        with pytest.raises(IssuerUnavailableError):
            await find()
        changing.is_away = False
        # The issuer is not asked again at once.
        with pytest.raises(IssuerUnavailableError):
            await find()
        clock.now += 6
        await find()

        changing.is_away = True
        clock.now += 3_000
        with pytest.raises(IssuerUnavailableError):
            await tokens.refresh()
        await find()
        with pytest.raises(UnauthenticatedError):
            await find(kid="new", key=rsa_key(2))
        clock.now += 601
        with pytest.raises(IssuerUnavailableError):
            await find()
        changing.is_away = False
        clock.now += 6
        await find()

    checking(changing, body, keys_kept_for="PT1H")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b"not json",
        b'{"keys": {}}',
        b"[" * 100_000,
        b'{"keys": [' + b"{}," * 200 + b"{}]}",
        b'{"keys": "' + b"x" * 2**21 + b'"}',
    ],
    ids=range(8),
)
def test_an_issuer_that_answers_nonsense_counts_as_unavailable(
    changing: IssuerServer, answer: bytes
) -> None:
    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        await find()
        changing.body = answer
        with pytest.raises(IssuerUnavailableError):
            await tokens.refresh()
        await find()

    checking(changing, body, keys_url=f"{changing.url}/keys")


def test_a_description_of_another_issuer_is_not_followed(changing: IssuerServer) -> None:
    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        changing.described_as = "https://elsewhere.invalid"
        with pytest.raises(IssuerUnavailableError):
            await find()

    checking(changing, body)
    assert {path for path, _ in changing.asked} == {"/realm/.well-known/openid-configuration"}


def test_keys_are_fetched_with_a_token_as_kubernetes_requires(
    changing: IssuerServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")

    async def body(
        tokens: SignedTokens, clock: Clock, find: Callable[..., Awaitable[IdentifiedCaller]]
    ) -> None:
        found = await find(sub=ROBOT, aud=["windrow"])
        assert found.principal.name == f"corp/{ROBOT}"
        file.write_text("second")
        await tokens.refresh()

    checking(changing, body, keys_url=f"{changing.url}/openid/v1/jwks", token_file=str(file))
    assert changing.asked == [
        ("/realm/openid/v1/jwks", "Bearer first"),
        ("/realm/openid/v1/jwks", "Bearer second"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://issuer.example"},
        {"url": "issuer.example"},
        {"url": "https://"},
        {"keys_url": "http://issuer.example/keys"},
        {"keys_url": "file:///etc/passwd"},
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"algorithms": []},
        {"audience": ""},
        {"leeway": "PT1H"},
        {"keys_kept_for": "P30D"},
        {"groups": {"a": ["read:a*"]}},
        {"subjects": {"a": ["root"]}},
        {"token_file": "/run/token"},
        {"unknown": 1},
    ],
)
def test_careless_settings_of_an_issuer_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Issuer.model_validate({"url": "https://issuer.example", "audience": "windrow"} | wrong)


def test_certificates_that_cannot_be_read_are_named_before_a_coordinator_starts(
    tmp_path: Path,
) -> None:
    empty = tmp_path / "empty.crt"
    empty.write_text("no certificate")
    for file, why in ((tmp_path / "none", "No such file"), (empty, "certificate")):
        trusted = {"url": "https://issuer.example", "audience": "windrow", "ca_file": file}
        settings = Settings.model_validate(
            {"issuers": {"corp": trusted}, "state_dir": tmp_path / "state"}
        )
        with pytest.raises(StartError, match=why) as caught:
            anyio.run(bootstrap.check, settings)
        assert "'corp'" in str(caught.value)
        assert str(file) in str(caught.value)


def test_issuers_have_unambiguous_names_and_can_be_set_by_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trusted = {"url": "https://issuer.example", "audience": "windrow"}
    for name in ("", "a/b", "A", "a" * 33, "a:b"):
        with pytest.raises(ValidationError):
            Settings.model_validate({"issuers": {name: trusted}})
    monkeypatch.setenv("WINDROW_ISSUERS", json.dumps({"k8s": trusted}))
    assert Settings().issuers["k8s"].url == trusted["url"]
    monkeypatch.delenv("WINDROW_ISSUERS")
    monkeypatch.setenv("WINDROW_ISSUERS__CORP__URL", trusted["url"])
    monkeypatch.setenv("WINDROW_ISSUERS__CORP__AUDIENCE", "windrow")
    monkeypatch.setenv("WINDROW_ISSUERS__CORP__GROUPS", '{"Team A": ["read"]}')
    assert Settings().issuers["corp"].groups == {"Team A": ("read",)}
