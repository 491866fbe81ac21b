"""Signing in to pages with an issuer: who gets in, and how every attempt to cheat is refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import anyio
import httpx
import pytest
from pydantic import ValidationError

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, free_port, running
from tests.support.servers.issuers import CLIENT, IssuerServer, issuer_server, rsa_key
from windrow_service.issuers import requests
from windrow_service.issuers.signing_in import SigningIn
from windrow_service.issuers.tokens import SignedTokens
from windrow_service.issuers.trust import Issuer, SignIn
from windrow_service.settings import Settings
from windrow_service.usecases.access.errors import IssuerUnavailableError

SECRET = "s3cret/of+the client"
SESSION, BEGUN = "windrow_session", "windrow_sign_in"


class Site:
    """A coordinator with two issuers to sign in with, and one that cannot be reached."""

    def __init__(self, folder: Path, corp: IssuerServer, other: IssuerServer) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.corp, self.other = corp, other
        self.secret_file = folder / "secret"
        self.secret_file.write_text(f"{SECRET}\n")
        groups = {"ops": ["admin"], "sales": ["read:sales.*"]}
        issuers = {
            "corp": {
                "url": corp.url,
                "groups": groups,
                "sign_in": {
                    "client_id": corp.client_id,
                    "client_secret_file": str(self.secret_file),
                    "scopes": ["openid", "groups"],
                    "title": "Example Corp",
                    "lasts": "PT1H",
                },
            },
            "other": {
                "url": other.url,
                "groups": groups,
                "sign_in": {"client_id": other.client_id},
            },
            "gone": {"url": "https://127.0.0.1:9", "sign_in": {"client_id": "x"}},
            "machines": {"url": "https://127.0.0.1:10"},
        }
        self.settings = Settings.model_validate(
            {
                "state_dir": folder / "state",
                "require_tokens": True,
                "public_url": self.url,
                "issuers": {name: {"audience": "windrow", **one} for name, one in issuers.items()},
            }
        )


@pytest.fixture(scope="module")
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with issuer_server() as corp, issuer_server() as other:
        site = Site(tmp_path_factory.mktemp("site"), corp, other)
        with running(site.settings, site.port):
            yield site


@pytest.fixture
def site(running_site: Site) -> Site:
    """The site, with its issuers reset."""
    for name, server in (("corp", running_site.corp), ("other", running_site.other)):
        server.people = {
            "ann": {"groups": ["ops"]},
            "ben": {"groups": ["sales"]},
            "eve": {"groups": ["sales"]},
            "zoe": {"groups": ["canteen"]},
        }
        server.backs = {f"{running_site.url}/dashboard/sign-in/{name}/callback"}
        server.client_secret = SECRET if name == "corp" else None
        server.id_claims, server.id_options, server.back_with = {}, {}, {}
        server.granted, server.forms, server.drips = [], [], False
    return running_site


class Visitor:
    """A person with a browser."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.http = httpx.Client(verify=PLAIN, base_url=site.url, timeout=60)

    def leave(self, name: str = "corp", **asked: str) -> str:
        """Begin to sign in; return where the browser is sent."""
        answer = self.http.get(f"/dashboard/sign-in/{name}", params=asked)
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]

    def identify(self, location: str, who: str, **pressed: str) -> str:
        """Identify the visitor to the issuer; return where the browser is sent back to."""
        with httpx.Client(verify=PLAIN, timeout=60) as http:
            page = http.get(location).raise_for_status().text
            hidden = re.findall(r'name="(\w+)" value="([^"]*)"', page.partition("<label>")[0])
            fields = {name: value.replace("&amp;", "&") for name, value in hidden}
            sent = http.post(
                str(httpx.URL(location).copy_with(query=None)),
                data={**fields, "who": who, **pressed},
            )
        assert sent.status_code == 303
        return sent.headers["Location"]

    def sign_in(self, who: str, name: str = "corp", **asked: str) -> httpx.Response:
        """Sign in; return the answer of the callback."""
        return self.http.get(self.identify(self.leave(name, **asked), who))

    @property
    def is_in(self) -> bool:
        """Whether the visitor is signed in."""
        return self.http.get("/dashboard/tables").status_code == 200


@pytest.fixture
def visitors(site: Site) -> Iterator[list[Visitor]]:
    made = [Visitor(site) for _ in range(2)]
    yield made
    for each in made:
        each.http.close()


@pytest.fixture
def visitor(visitors: list[Visitor]) -> Visitor:
    return visitors[0]


def refused(answer: httpx.Response, status: int, *said: str) -> None:
    """Make sure that nobody was let in, and that the page says why and offers another try."""
    assert answer.status_code == status, answer.text
    told = re.search('role="alert" id="refused">([^<]*)<', answer.text)
    assert told is not None, answer.text
    for words in said:
        assert words in told[1]
    assert "Sign in with Example Corp" in answer.text
    assert not any(SESSION in line for line in answer.headers.get_list("Set-Cookie"))


def test_people_sign_in_with_the_grants_of_their_groups(visitors: list[Visitor]) -> None:
    ann, ben = visitors
    answer = ann.sign_in("ann", to="tables?find=a")

    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0; url=../../../dashboard/tables?find=a"' in answer.text
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    session, begun = answer.headers.get_list("Set-Cookie")
    assert set(session.split("; ")[1:]) == {"HttpOnly", "Max-Age=3600", "Path=/", "SameSite=strict"}
    assert "Max-Age=0" in begun
    assert ann.http.get("/dashboard/access").status_code == 200
    assert "corp/ann" in ann.http.get("/dashboard/tables").text
    ben.sign_in("ben", "other")
    assert "other/ben" in ben.http.get("/dashboard/tables").text
    assert ben.http.get("/dashboard/access").status_code == 403


def test_a_request_to_an_issuer_binds_its_answer_to_this_browser(visitor: Visitor) -> None:
    first, second = (parse_qs(urlsplit(visitor.leave()).query) for _ in range(2))

    assert first["redirect_uri"] == [f"{visitor.site.url}/dashboard/sign-in/corp/callback"]
    assert (first["scope"], first["code_challenge_method"]) == (["openid groups"], ["S256"])
    for once in ("state", "nonce", "code_challenge"):
        assert len(first[once][0]) == 43
        assert first[once] != second[once]
    # Lax, because browsers send no strict cookies when an issuer sends them back.
    answer = visitor.http.get("/dashboard/sign-in/corp")
    assert "SameSite=lax" in answer.headers["Set-Cookie"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_tokens_of_any_size_sign_in_and_none_is_kept(visitor: Visitor, site: Site) -> None:
    groups = [f"{number:08}-0000-4000-8000-000000000000" for number in range(400)]
    site.corp.people["ann"] = {"groups": [*groups, "ops"]}

    assert visitor.sign_in("ann").status_code == 200

    assert visitor.http.get("/dashboard/access").status_code == 200
    assert sum(map(len, visitor.http.cookies.values())) < 100
    database = b"".join(file.read_bytes() for file in site.settings.state_dir.glob("windrow.db*"))
    assert groups[-1].encode() in database
    for hidden in (b"eyJ", b"not to be kept", visitor.http.cookies[SESSION].encode()):
        assert hidden not in database


def test_a_person_without_grants_is_told_so(visitor: Visitor) -> None:
    refused(visitor.sign_in("zoe"), 403, "corp/zoe", "grant")
    assert not visitor.is_in


def test_a_refusal_by_an_issuer_is_shown_without_its_own_words(visitor: Visitor) -> None:
    for who, pressed in (("ann", {"denied": "1"}), ("nobody", {})):
        back = visitor.identify(visitor.leave(), who, **pressed)
        assert "error=access_denied" in back

        answer = visitor.http.get(back)

        refused(answer, 403, "did not let you in")
        assert "555" not in answer.text
    assert not visitor.is_in


def test_an_answer_counts_once_and_only_in_the_browser_that_asked(
    visitors: list[Visitor],
) -> None:
    ann, eve = visitors
    back = ann.identify(ann.leave(), "ann")
    kept = ann.http.cookies[BEGUN]

    # Sent to somebody else, who would then be signed in as ann.
    refused(eve.http.get(back), 400, "another browser")
    eve.leave()
    refused(eve.http.get(back), 400, "another browser")
    state = parse_qs(urlsplit(back).query)["state"][0]
    for forged in ("", "x", state[:-1], state + "x", "é" * 43):
        refused(ann.http.get(back.replace(state, forged)), 400, "another browser")
        ann.http.cookies.set(BEGUN, kept, domain="127.0.0.1")
    assert not ann.site.corp.forms

    assert ann.http.get(back).status_code == 200
    refused(ann.http.get(back), 400, "already finished")
    # With a copy of the cookie that the browser has dropped: the issuer accepts no code twice.
    copied = {"Cookie": f"{BEGUN}={kept}"}
    refused(ann.http.get(back, headers=copied), 403, "did not confirm")
    assert ann.is_in
    assert not eve.is_in


def test_a_forged_or_expired_sign_in_cookie_is_refused(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = visitor.identify(visitor.leave(), "ann")
    kept = visitor.http.cookies[BEGUN]
    for made_up in (kept[:-3] + "AAA", "x", kept.replace(".", "..", 1), "a" * 3_000):
        headers = {"Cookie": f"{BEGUN}={made_up}"}
        refused(visitor.http.get(back, headers=headers), 400)
    later = time.time() + 601
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: later)

    refused(visitor.http.get(back, headers={"Cookie": f"{BEGUN}={kept}"}), 400, "too long ago")


def test_a_stolen_code_is_worth_nothing(visitors: list[Visitor]) -> None:
    ann, eve = visitors
    stolen = dict(parse_qsl(urlsplit(ann.identify(ann.leave(), "ann")).query))["code"]
    back = httpx.URL(eve.identify(eve.leave(), "eve"))

    # Eve's own answer, with the code of ann.
    answer = eve.http.get(back.copy_set_param("code", stolen))

    refused(answer, 403, "did not confirm")
    assert not eve.is_in


def test_the_answer_of_one_issuer_is_not_taken_for_that_of_another(visitor: Visitor) -> None:
    corp, other = visitor.site.corp, visitor.site.other
    # A sign-in with one issuer comes back as one with the other.
    back = httpx.URL(visitor.identify(visitor.leave("other"), "ann").replace("/other/", "/corp/"))
    refused(visitor.http.get(back), 400)
    # An issuer claims the name of the other, to get its code.
    back = httpx.URL(visitor.identify(visitor.leave("other"), "ann").replace("/other/", "/corp/"))
    refused(visitor.http.get(back.copy_set_param("iss", corp.url)), 400)
    for iss in (other.url, corp.url + "/", None, ""):
        corp.back_with = {"iss": iss}
        refused(visitor.sign_in("ann"), 400)
        # Refusals are not accepted from another issuer either.
        refused(visitor.http.get(visitor.identify(visitor.leave(), "x")), 400)
    assert not corp.forms + other.forms


# Claims of ID tokens that must sign nobody in.
HOSTILE: dict[str, dict[str, Any]] = {
    "for the API": {"aud": "windrow"},
    "for another client": {"aud": "another"},
    "for nobody": {"aud": None},
    "given to another client": {"azp": "another"},
    "for several, and given to nobody": {"aud": [CLIENT, "another"]},
    "of another sign-in": {"nonce": "another"},
    "of no sign-in": {"nonce": None},
    "with a nonce that is not text": {"nonce": ["x"]},
    "of another issuer": {"iss": "https://elsewhere.example.com"},
    "expired": {"exp": 1_000_000_000},
    "not yet valid": {"nbf": 9_000_000_000},
    "without an end": {"exp": None},
    "of nobody": {"sub": None},
    "of somebody with a line break in the name": {"sub": "ann\nben"},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_id_token_that_is_not_of_this_sign_in_lets_nobody_in(
    visitor: Visitor, what: str
) -> None:
    visitor.site.corp.id_claims = HOSTILE[what]

    refused(visitor.sign_in("ann"), 403, "did not confirm")

    assert not visitor.is_in


def test_an_id_token_must_be_signed_by_its_issuer(visitor: Visitor) -> None:
    corp = visitor.site.corp
    signed_by_others: list[dict[str, Any]] = [
        {"key": rsa_key(5)},
        {"key": rsa_key(5), "head": {"jwk": corp.public("one", rsa_key(5)), "jku": corp.url}},
        {"kid": "unknown"},
        {"kid": None},
        {"head": {"typ": "logout+jwt"}},
        {"head": {"typ": "at+jwt"}},
        {"alg": "none", "key": ""},
    ]
    for options in signed_by_others:
        corp.id_options = options
        refused(visitor.sign_in("ann"), 403, "did not confirm")
    assert not visitor.is_in
    corp.id_options = {}
    assert visitor.sign_in("ann").status_code == 200


def test_an_id_token_for_several_audiences_counts_if_it_was_given_to_this_client(
    visitor: Visitor,
) -> None:
    corp = visitor.site.corp
    corp.id_claims = {"aud": [corp.client_id, "another"], "azp": corp.client_id}

    assert visitor.sign_in("ann").status_code == 200


def test_an_id_token_is_not_accepted_for_calls(visitor: Visitor, site: Site) -> None:
    sent = site.corp.token(aud=site.corp.client_id, sub="ann", groups=["ops"])
    answer = visitor.http.get("/tables", headers={"Authorization": f"Bearer {sent}"})

    problem_of(answer, 401, "unauthenticated")


ANSWERS: dict[str, tuple[int, bytes, int]] = {
    "refused": (400, b'{"error": "invalid_grant", "error_description": "<b>call 555</b>"}', 403),
    "wrong secret": (401, b'{"error": "invalid_client"}', 403),
    "no ID token": (200, b'{"access_token": "x"}', 403),
    "a malformed ID token": (200, b'{"id_token": "x.y.z"}', 403),
    "an ID token that is not text": (200, b'{"id_token": [1]}', 403),
    "an endless ID token": (200, json.dumps({"id_token": f"a.{'b' * 70_000}.c"}).encode(), 403),
    "failed": (500, b"{}", 503),
    "redirected": (302, b"", 503),
    "no JSON": (200, b"<html>", 503),
    "no object": (200, b"[1]", 503),
    "nested": (200, b"[" * 100_000, 503),
    "too long": (200, b'{"id_token": "' + b"x" * 2**20 + b'"}', 503),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_nonsense_from_an_issuer_lets_nobody_in(visitor: Visitor, what: str) -> None:
    *sent, status = ANSWERS[what]
    visitor.site.corp.granted = [tuple(sent)]

    answer = visitor.sign_in("ann")

    refused(answer, status, "corp")
    assert "555" not in answer.text
    assert not visitor.is_in


def test_an_answer_that_does_not_end_times_out(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_TIMEOUT_S", 0.2)
    visitor.site.corp.drips = True

    refused(visitor.sign_in("ann"), 503, "does not answer")


def test_an_issuer_that_cannot_be_reached_is_named(visitor: Visitor) -> None:
    answer = visitor.http.get("/dashboard/sign-in/gone")

    refused(answer, 503, "gone")
    assert "127.0.0.1:9" not in answer.text
    assert int(answer.headers["Retry-After"]) > 0
    for name in ("machines", "none", "..", "corp/x"):
        assert visitor.http.get(f"/dashboard/sign-in/{name}").status_code in (303, 404), name


@pytest.mark.parametrize(
    "described",
    [
        {"authorization_endpoint": None},
        {"authorization_endpoint": "http://login.example.com/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": ["https://login.example.com"]},
        {"token_endpoint": "http://login.example.com/token"},
        {"issuer": "https://elsewhere.example.com"},
    ],
)
def test_a_misleading_description_of_an_issuer_is_not_followed(described: dict[str, Any]) -> None:
    with issuer_server() as server:
        server.described = described
        clock = [100.0]

        async def run() -> None:
            url = {"url": server.url, "audience": "a", "sign_in": {"client_id": "c"}}
            issuers = {"corp": Issuer.model_validate(url)}
            tokens = SignedTokens(issuers)
            page = "https://windrow.example.com/dashboard/sign-in"
            signing_in = SigningIn(
                issuers, tokens, page, lambda: datetime.now(timezone.utc), lambda: clock[0]
            )
            try:
                for _ in range(3):
                    with pytest.raises(IssuerUnavailableError):
                        await signing_in.begin("corp")
                # Repeated visits do not make the coordinator ask the issuer again.
                assert len(server.asked) == 1
                server.described = {}
                clock[0] += 6
                url_there, _ = await signing_in.begin("corp")
                assert url_there.startswith(f"{server.url}/authorize?theme=plain&")
            finally:
                await signing_in.aclose()
                await tokens.aclose()

        anyio.run(run)


@pytest.mark.parametrize(
    "ways", [None, ["client_secret_basic", "client_secret_post"], ["client_secret_post"]]
)
def test_a_client_authenticates_as_its_issuer_expects(
    ways: list[str] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with issuer_server() as corp, issuer_server() as other:
        site = Site(tmp_path, corp, other)
        corp.client_secret = SECRET
        corp.people = {"ann": {"groups": ["ops"]}}
        corp.backs = {f"{site.url}/dashboard/sign-in/corp/callback"}
        corp.described = {"token_endpoint_auth_methods_supported": ways}
        with running(site.settings, site.port):
            visitor = Visitor(site)
            with visitor.http:
                back = visitor.identify(visitor.leave(), "ann")
                assert visitor.http.get(back).status_code == 200
                assert ("client_secret" in corp.forms[-1]) == (ways == ["client_secret_post"])
                # The file with the secret is read at each sign-in.
                site.secret_file.write_text("wrong")
                refused(visitor.sign_in("ann"), 403, "did not confirm")
                site.secret_file.unlink()
                refused(visitor.sign_in("ann"), 503, "corp")
    logged = "\n".join(record.getMessage() for record in caplog.records if "windrow" in record.name)
    assert "invalid_client" in logged
    for hidden in (SECRET, corp.forms[0]["code"], corp.forms[0]["code_verifier"], "eyJ"):
        assert hidden not in logged


def test_the_callback_url_comes_from_the_settings_whatever_a_request_says(visitor: Visitor) -> None:
    lies = {
        "Host": "evil.example.com",
        "X-Forwarded-Host": "evil.example.com",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example.com",
    }
    for path in ("/dashboard/sign-in", "/dashboard/sign-in/corp"):
        answer = visitor.http.get(path, headers=lies)
        assert "evil" not in answer.text + str(answer.headers)
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert asked["redirect_uri"] == [f"{visitor.site.url}/dashboard/sign-in/corp/callback"]


ELSEWHERE = [
    "https://evil.example.com",
    "//evil.example.com",
    "\\\\evil.example.com",
    "/evil",
    "../../evil",
    "tables/../../evil",
    "tables/%2e%2e/%2e%2e/evil",
    "javascript:alert(1)",
    'tables"><script>',
    "tables\r\nSet-Cookie: a=b",
    "tables?a=\r\nb",
    "tables?" + "x" * 2_000,
    "",
]


@pytest.mark.parametrize("to", ELSEWHERE)
def test_signing_in_leads_to_no_other_site(visitor: Visitor, to: str) -> None:
    page = visitor.http.get("/dashboard/sign-in", params={"to": to})
    assert 'name="to" value="overview"' in page.text
    answer = visitor.sign_in("ann", to=to)

    assert 'content="0; url=../../../dashboard/overview"' in answer.text
    assert len(answer.headers.get_list("Set-Cookie")) == 2


def test_pages_of_signing_in_cannot_be_framed_kept_or_scripted(visitor: Visitor) -> None:
    back = visitor.identify(visitor.leave(), "ann")
    pages = [
        visitor.http.get(path)
        for path in (back, back, "/dashboard/sign-in", "/dashboard/sign-in/x")
    ]
    pages.append(visitor.http.post("/dashboard/sign-in", data={"token": "x"}))

    assert [page.status_code for page in pages] == [200, 400, 200, 404, 401]
    for page in pages:
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Cache-Control"] == "no-store"


def test_overlong_answers_are_refused(visitor: Visitor) -> None:
    back = httpx.URL(visitor.identify(visitor.leave(), "ann"))

    refused(visitor.http.get(back.copy_set_param("code", "x" * 5_000)), 400)


def test_behind_https_all_cookies_are_of_this_host_and_encrypted(
    tmp_path: Path, site: Site
) -> None:
    changed = {"public_url": "https://windrow.example.com/lake/", "state_dir": tmp_path}
    settings = Settings.model_validate({**site.settings.model_dump(), **changed})
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url) as http:
        answer = http.get("/dashboard/sign-in/corp")
        page = http.get("/dashboard/sign-in").text

    cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert cookie.startswith(f"__Host-{BEGUN}=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(attributes)
    below = "https://windrow.example.com/lake/dashboard/sign-in/corp"
    assert f'href="{below}?to=overview"' in page
    assert parse_qs(urlsplit(answer.headers["Location"]).query)["redirect_uri"] == [
        f"{below}/callback"
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"client_id": ""},
        {"client_id": "c", "scopes": ["groups"]},
        {"client_id": "c", "scopes": ["openid", "two words"]},
        {"client_id": "c", "lasts": "PT13H"},
        {"client_id": "c", "lasts": "PT1M"},
        {"client_id": "c", "client_secret": "a", "client_secret_file": "/b"},
        {"client_id": "c", "redirect_url": "https://elsewhere.example.com"},
    ],
)
def test_careless_settings_of_signing_in_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SignIn.model_validate(wrong)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "http://windrow.example.com",
        "windrow.example.com",
        "https://user:password@windrow.example.com",
        "https://windrow.example.com/?a=b",
        "https://windrow.example.com/#a",
        "https://windrow.example.com/a b",
        "https://windrow.example.com\n",
    ],
)
def test_signing_in_needs_a_valid_public_url(url: str | None) -> None:
    trusted = {
        "url": "https://login.example.com",
        "audience": "windrow",
        "sign_in": {"client_id": "c", "client_secret": SECRET},
    }
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"issuers": {"corp": trusted}, "public_url": url})
    assert SECRET not in str(caught.value)
    assert "password" not in str(caught.value).replace("a user or a password", "")


def test_a_client_secret_can_be_set_by_a_variable_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trusted = {"url": "https://login.example.com", "audience": "windrow"}
    corp = {**trusted, "sign_in": {"client_id": "c"}}
    monkeypatch.setenv("WINDROW_ISSUERS", json.dumps({"corp": corp}))
    monkeypatch.setenv("WINDROW_ISSUERS__CORP__SIGN_IN__CLIENT_SECRET", SECRET)
    monkeypatch.setenv("WINDROW_PUBLIC_URL", "https://windrow.example.com")

    settings = Settings()

    (issuer,) = settings.issuers.values()
    assert issuer.sign_in is not None
    assert issuer.sign_in.client_secret is not None
    assert issuer.sign_in.client_secret.get_secret_value() == SECRET
    assert SECRET not in repr(settings)
