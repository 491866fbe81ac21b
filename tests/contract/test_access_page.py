"""The access page: who makes and revokes tokens there, and what a repeated form does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.support.api.dashboards import token
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import Settings

MADE = {"name": "etl", "grants": "read write:sales.*", "days": "30"}


class Site:
    """A coordinator, and browsers of its callers."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.settings = settings

    @contextmanager
    def browser(self, sent: str) -> Iterator[httpx.Client]:
        """Open a browser that signs in with a token."""
        with httpx.Client(verify=PLAIN, base_url=self.url, timeout=60) as http:
            assert http.post("/dashboard/sign-in", data={"token": sent}).status_code == 303
            yield http

    def status(self, sent: str) -> int:
        """Return the status of a call with a token."""
        headers = {"Authorization": f"Bearer {sent}"}
        return httpx.get(f"{self.url}/tables", headers=headers, verify=PLAIN).status_code


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = Settings(state_dir=tmp_path_factory.mktemp("access"), require_tokens=True)
    with running(settings) as url:
        yield Site(url, settings)


@pytest.fixture(scope="module")
def admin(site: Site) -> Iterator[httpx.Client]:
    with site.browser(token(site.settings, "boss", "admin")) as http:
        yield http


def hidden(http: httpx.Client, path: str = "/dashboard/access") -> dict[str, str]:
    """Return the hidden fields of the forms on a page."""
    form = http.get(path).text
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]+)"', form))


def make(http: httpx.Client, **changed: str) -> httpx.Response:
    return http.post("/dashboard/access/tokens", data={**hidden(http), **MADE, **changed})


def secret_in(page: httpx.Response) -> str | None:
    found = re.search(r"wdr_[\w-]{43}", page.text)
    return found and found[0]


def ids(http: httpx.Client, name: str) -> list[str]:
    """Return the ids of the valid tokens of a name."""
    page = http.get("/dashboard/access").text
    return re.findall(rf"Revoke the token (\w+) of {name}\b", page)


def test_a_token_is_made_and_its_secret_shown_once(
    site: Site, admin: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    page = make(admin)

    secret = secret_in(page)
    assert secret is not None
    assert page.headers["Cache-Control"] == "no-store"
    assert site.status(secret) == 200
    (token_id,) = ids(admin, "etl")
    shown = admin.get("/dashboard/access").text
    assert f"etl ({token_id})" in shown
    assert "token created" in shown
    database = b"".join(file.read_bytes() for file in site.settings.state_dir.glob("windrow.db*"))
    for where in (shown, caplog.text, database.decode("latin-1")):
        assert secret not in where


def test_a_form_that_is_sent_again_makes_no_second_token(admin: httpx.Client) -> None:
    sent = {**hidden(admin), **MADE, "name": "twice"}
    first, again = (admin.post("/dashboard/access/tokens", data=sent) for _ in range(2))

    (token_id,) = ids(admin, "twice")
    assert secret_in(first)
    assert secret_in(again) is None
    assert token_id in again.text
    changed = admin.post("/dashboard/access/tokens", data={**sent, "grants": "admin"})
    assert (changed.status_code, secret_in(changed)) == (422, None)
    assert ids(admin, "twice") == [token_id]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": 'a"><script>'}, "is not a name for a token"),
        ({"name": "corp/ann"}, "is not a name for a token"),
        ({"name": "anonymous"}, "is not a name for a token"),
        ({"name": "a" * 129}, "is not a name for a token"),
        ({"grants": ""}, "needs a scope"),
        ({"grants": "root"}, "no scope"),
        ({"grants": "read:*.t"}, "names no table"),
        ({"grants": "read " * 101}, "at most 100 grants"),
        ({"days": ""}, "needs an end"),
        ({"days": "-1"}, "needs an end"),
        ({"days": "9999999"}, "needs an end"),
    ],
)
def test_a_token_that_cannot_be_made_is_explained(
    admin: httpx.Client, wrong: dict[str, str], said: str
) -> None:
    page = make(admin, **{"name": "wrong", **wrong})

    assert page.status_code == 422
    assert said in page.text
    assert "<script>" not in page.text
    assert secret_in(page) is None
    assert ids(admin, "wrong") == []


def test_only_admin_makes_or_revokes_tokens_and_only_by_its_own_forms(
    site: Site, admin: httpx.Client
) -> None:
    (own,) = ids(admin, "boss")
    paths = ("/dashboard/access/tokens", f"/dashboard/access/tokens/{own}/revoke")
    for at, grant in enumerate(("read", "write", "admin:sales.*", "worker:w")):
        with site.browser(token(site.settings, f"other-{at}", grant)) as http:
            form = re.findall(r'name="form" value="([^"]+)"', http.get("/dashboard/tables").text)[0]
            for path in paths:
                sent = {**MADE, "form": form, "key": "k", "sure": "yes"}
                assert http.post(path, data=sent).status_code == 403, (path, grant)
                # The form of another caller does not work for admin either.
                assert admin.post(path, data=sent).status_code == 403, (path, grant)
    for path in paths:
        for sent in ({}, {**MADE, "form": "x"}):
            assert admin.post(path, data=sent).status_code == 403
        assert admin.get(path).status_code == 405
        with httpx.Client(verify=PLAIN, base_url=site.url) as nobody:
            assert nobody.post(path, data=MADE).headers["Location"].endswith("/sign-in")
    assert own in ids(admin, "boss")


def test_a_token_is_revoked(site: Site, admin: httpx.Client) -> None:
    secret = secret_in(make(admin, name="leaving"))
    (token_id,) = ids(admin, "leaving")
    form = hidden(admin)
    path = f"/dashboard/access/tokens/{token_id}/revoke"

    # Sent again, it changes nothing.
    for _ in range(2):
        assert admin.post(path, data=form).headers["Location"] == "../../../../dashboard/access"

    assert ids(admin, "leaving") == []
    assert secret is not None
    assert site.status(secret) == 401
    for unknown, status in (("0" * 16, 404), ("x" * 16, 422), ("0" * 17, 422)):
        answer = admin.post(f"/dashboard/access/tokens/{unknown}/revoke", data=form)
        assert answer.status_code == status


def test_revoking_the_token_of_the_session_must_be_confirmed(tmp_path: object) -> None:
    settings = Settings(state_dir=tmp_path, require_tokens=True)
    with running(settings) as url:
        site = Site(url, settings)
        sent = token(settings, "boss", "admin")
        with site.browser(sent) as http:
            (own,) = ids(http, "boss")
            path = f"/dashboard/access/tokens/{own}/revoke"

            asked = http.post(path, data=hidden(http))
            assert "Revoke your own token?" in asked.text
            assert "No other valid token has" in asked.text
            token(settings, "deputy", "admin")
            assert "No other valid token has" not in http.post(path, data=hidden(http)).text
            assert ids(http, "boss") == [own]

            form = {**hidden(http), "sure": "yes"}
            done = http.post(path, data=form)

            assert done.headers["Location"] == "../../../../dashboard/sign-in"
            assert http.get("/dashboard/access").status_code == 303
            refused = http.post("/dashboard/sign-in", data={"token": sent})
            assert "not valid" in refused.text


def test_a_caller_is_signed_out_everywhere(site: Site, admin: httpx.Client) -> None:
    sent = token(site.settings, "gone", "read")
    with site.browser(sent) as one, site.browser(sent) as other:
        listed = admin.get("/dashboard/access").text
        assert listed.count("End the sessions of gone") == 2
        form = {**hidden(admin), "caller": "gone"}
        form["form"], path = hidden(one, "/dashboard/tables")["form"], "/dashboard/access/sign-out"
        assert one.post(path, data=form).status_code == 403
        assert admin.post(path, data={"caller": "gone"}).status_code == 403
        assert other.get("/dashboard/tables").status_code == 200

        answer = admin.post(path, data=hidden(admin) | {"caller": "gone"})

        assert answer.headers["Location"] == "../../dashboard/access"
        for http in (one, other):
            assert http.get("/dashboard/tables").status_code == 303
        assert "End the sessions of gone" not in admin.get("/dashboard/access").text
        assert admin.get("/dashboard/tables").status_code == 200


def test_a_form_is_bounded_before_it_is_read(site: Site) -> None:
    with httpx.Client(verify=PLAIN, base_url=site.url) as http:
        long = http.post("/dashboard/sign-in", data={"token": "x" * 2**16})
        many = http.post("/dashboard/sign-in", content="a=b&" * 1_000)

    assert long.status_code == 413
    assert "send less" in long.text
    assert many.status_code == 403


def test_tokens_are_shown_a_page_at_a_time_with_their_first_grants(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, require_tokens=True)
    made = [f"caller-{number:03}" for number in range(130)]
    grants = [f"read:t{number}.*" for number in range(12)]
    seen: list[str] = []
    with running(settings) as url:
        sent = token(settings, "boss", "admin")
        headers = {"Authorization": f"Bearer {sent}"}
        with httpx.Client(base_url=url, headers=headers, verify=PLAIN) as api:
            for name in made:
                asked = {"name": name, "scopes": [], "grants": grants}
                api.post("/tokens", json=asked).raise_for_status()
        with Site(url, settings).browser(sent) as http:
            path: str | None = "/dashboard/access"
            while path is not None:
                text = http.get(path).text
                shown = re.findall(r'<th scope="row">(caller-[0-9]+)</th>', text)
                assert len(shown) <= 100
                assert text.count("and 2 more") == len(shown)
                seen += shown
                further = re.search(r'rel="next" href="(\?after=[^"#]*)', text)
                path = f"/dashboard/access{unescape(further[1])}" if further else None
            assert "There are no further tokens" in http.get("/dashboard/access?after=z").text

    assert seen == made
