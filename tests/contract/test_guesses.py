"""Wrong tokens: so many a minute from one address or with one client id, whatever they are sent to."""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.redis import redis_process
from windrow_service import administration
from windrow_service.settings import LimitSettings, Settings

LIMIT = 4
TOKENS = "/iceberg/v1/oauth/tokens"
SIGN_IN = "/dashboard/sign-in"
_numbers = itertools.count(1)
# Sends a token, with headers, to one of the ways in.
Send = Callable[[httpx.Client, str, dict[str, str]], httpx.Response]


def settings_of(folder: Path, redis_url: str | None = None, limit: int = LIMIT) -> Settings:
    return Settings.model_validate(
        {
            "state_dir": folder / "state",
            "require_tokens": True,
            "redis_url": redis_url,
            "limits": LimitSettings(wrong_tokens_per_minute=limit),
        }
    )


def new_token(settings: Settings) -> str:
    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create(f"t{next(_numbers)}", ["read"], None))[1]

    with start_blocking_portal() as portal:
        return portal.call(create)


def wrong_token() -> str:
    return f"wdr_{secrets.token_urlsafe(32)}"


def address() -> dict[str, str]:
    """Return the header with which a proxy names another sender each time."""
    return {"X-Forwarded-For": f"10.0.{next(_numbers)}.7"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_of(tmp_path_factory.mktemp("guesses"))


@pytest.fixture(scope="module")
def http(settings: Settings) -> Iterator[httpx.Client]:
    with running(settings) as url, httpx.Client(base_url=url, verify=PLAIN) as client:
        yield client


def by_form(http: httpx.Client, token: str, headers: dict[str, str]) -> httpx.Response:
    form = {"grant_type": "client_credentials", "client_secret": token}
    return http.post(TOKENS, data=form, headers=headers)


def by_basic(http: httpx.Client, token: str, headers: dict[str, str]) -> httpx.Response:
    text = base64.b64encode(f":{token}".encode()).decode()
    return http.post(TOKENS, headers={**headers, "Authorization": f"Basic {text}"})


def by_bearer(http: httpx.Client, token: str, headers: dict[str, str]) -> httpx.Response:
    return http.get("/config", headers={**headers, "Authorization": f"Bearer {token}"})


def by_catalog(http: httpx.Client, token: str, headers: dict[str, str]) -> httpx.Response:
    return http.get("/iceberg/v1/config", headers={**headers, "Authorization": f"Bearer {token}"})


def by_sign_in(http: httpx.Client, token: str, headers: dict[str, str]) -> httpx.Response:
    return http.post(SIGN_IN, data={"token": token}, headers=headers)


WAYS: dict[str, Send] = {
    "form": by_form,
    "basic": by_basic,
    "bearer": by_bearer,
    "catalog": by_catalog,
    "sign-in": by_sign_in,
}


def guess_beyond_the_limit(send: Send, http: httpx.Client, headers: dict[str, str]) -> None:
    for _ in range(LIMIT + 1):
        assert send(http, wrong_token(), headers).status_code == 401


def refused(answer: httpx.Response) -> bool:
    return answer.status_code == 429 and 1 <= int(answer.headers["Retry-After"]) <= 60


@pytest.mark.parametrize("way", WAYS)
def test_beyond_the_limit_an_address_waits_whichever_way_it_tries(
    http: httpx.Client, settings: Settings, way: str
) -> None:
    here = address()

    guess_beyond_the_limit(WAYS[way], http, here)

    for send in WAYS.values():
        token = new_token(settings)
        assert refused(send(http, wrong_token(), here))
        # A right guess tells nothing either.
        assert refused(send(http, token, here))
        assert send(http, wrong_token(), address()).status_code == 401
        assert send(http, token, address()).status_code in (200, 303)


def test_senders_of_one_ipv6_network_are_one(http: httpx.Client) -> None:
    for number in range(LIMIT + 1):
        sender = {"X-Forwarded-For": f"2001:db8:5:6::{number:x}"}
        assert by_form(http, wrong_token(), sender).status_code == 401

    assert refused(by_form(http, wrong_token(), {"X-Forwarded-For": "2001:db8:5:6:7::1"}))
    others = {"X-Forwarded-For": "2001:db8:5:7::1"}
    assert by_form(http, wrong_token(), others).status_code == 401


def test_a_client_id_waits_wherever_it_comes_from(http: httpx.Client, settings: Settings) -> None:
    token = new_token(settings)

    def send(client_id: str, secret: str) -> httpx.Response:
        form = {"client_id": client_id, "client_secret": secret}
        return http.post(TOKENS, data=form, headers=address())

    for _ in range(LIMIT + 1):
        assert send("engine", wrong_token()).status_code == 401

    assert refused(send("engine", wrong_token()))
    assert refused(send("engine", token))
    assert send("other", token).is_success


def test_a_token_in_use_goes_on_while_others_of_its_address_guess(
    http: httpx.Client, settings: Settings
) -> None:
    here, token = address(), new_token(settings)
    assert by_bearer(http, token, here).is_success

    guess_beyond_the_limit(by_form, http, here)

    assert refused(by_bearer(http, wrong_token(), here))
    assert by_bearer(http, token, here).is_success
    assert by_form(http, token, here).is_success


def test_one_wrong_token_sent_again_and_again_is_one_guess(
    http: httpx.Client, settings: Settings
) -> None:
    here, stale = address(), wrong_token()

    answers = [by_bearer(http, stale, here).status_code for _ in range(5 * LIMIT)]

    assert answers == [401] * (5 * LIMIT)
    assert by_bearer(http, new_token(settings), here).is_success


def test_calls_without_a_token_are_no_guesses(http: httpx.Client, settings: Settings) -> None:
    here = address()

    for _ in range(3 * LIMIT):
        assert http.get("/config", headers=here).status_code == 401
        assert http.post(TOKENS, headers=here).status_code == 401

    assert by_form(http, new_token(settings), here).is_success


def test_the_page_and_the_token_call_say_when_to_try_again(http: httpx.Client) -> None:
    here = address()
    guess_beyond_the_limit(by_sign_in, http, here)

    page, answer = by_sign_in(http, wrong_token(), here), by_form(http, wrong_token(), here)

    assert "too many wrong tokens" in page.text
    assert answer.json()["error"] == "temporarily_unavailable"
    assert f"try again in {answer.headers['Retry-After']} s" in answer.json()["error_description"]
    bearer = by_bearer(http, wrong_token(), here).json()
    assert bearer["type"] == "urn:windrow:problem:too-many-guesses"


def test_replicas_with_redis_count_together(tmp_path: Path) -> None:
    here = address()
    with redis_process(tmp_path) as redis:
        settings = settings_of(tmp_path, redis.url)
        with (
            running(settings) as one,
            running(settings) as other,
            httpx.Client(base_url=one, verify=PLAIN) as first,
            httpx.Client(base_url=other, verify=PLAIN) as second,
        ):
            guess_beyond_the_limit(by_form, first, here)

            # It learns of it by the first wrong token that it gets.
            assert by_form(second, wrong_token(), here).status_code == 401
            assert refused(by_form(second, wrong_token(), here))


def test_no_limit_is_set_by_zero(tmp_path: Path) -> None:
    here = address()
    with (
        running(settings_of(tmp_path, limit=0)) as url,
        httpx.Client(base_url=url, verify=PLAIN) as http,
    ):
        answers = {by_form(http, wrong_token(), here).status_code for _ in range(100)}

    assert answers == {401}


def test_forms_that_are_longer_than_any_token_are_not_taken_apart(http: httpx.Client) -> None:
    form = {"client_secret": "x" * 2**18}

    assert http.post(TOKENS, data=form).status_code == 413
    assert http.post(SIGN_IN, data={"token": "x" * 2**21}).status_code == 413
