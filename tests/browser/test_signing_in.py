"""Signing in with an issuer on another site in a real browser, and what `admin` can do then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api.accessibility import lost_to_the_keyboard, violations
from tests.support.api.dashboards import picture
from tests.support.servers.coordinators import PLAIN, free_port, running
from tests.support.servers.issuers import IssuerServer, issuer_server
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)


class Site:
    """A coordinator and its issuer."""

    def __init__(self, url: str, issuer: IssuerServer) -> None:
        self.url = url
        self.issuer = issuer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    port = free_port()
    # For browsers, this is another site than 127.0.0.1, where the issuer runs.
    url = f"http://localhost:{port}"
    with issuer_server() as issuer:
        issuer.people = {"ann": {"groups": ["ops"]}}
        issuer.backs = {f"{url}/dashboard/sign-in/corp/callback"}
        corp = {
            "url": issuer.url,
            "audience": "windrow",
            "groups": {"ops": ["admin"]},
            "sign_in": {"client_id": issuer.client_id, "title": "Example Corp"},
        }
        settings = Settings.model_validate(
            {
                "state_dir": tmp_path_factory.mktemp("signing-in"),
                "require_tokens": True,
                "public_url": url,
                "issuers": {"corp": corp},
            }
        )
        with running(settings, port):
            yield Site(url, issuer)


@contextmanager
def opened(browser: Browser) -> Iterator[Page]:
    """Open a tab; the test fails if its console has errors, such as violations of a policy."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 480})
    page = context.new_page()
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    try:
        yield page
    finally:
        context.close()
    assert [error for error in errors if "Failed to load resource" not in error] == []


def identify(page: Page, who: str, button: str = "Allow") -> None:
    page.get_by_label("Name").fill(who)
    page.get_by_role("button", name=button).click()


def test_an_operator_signs_in_with_an_issuer_and_out(browser: Browser, site: Site) -> None:
    with opened(browser) as page:
        page.goto(f"{site.url}/dashboard/work")
        picture(page, "sign-in")
        page.get_by_role("link", name="Sign in with Example Corp").click()
        expect(page).to_have_title("Who are you?")
        identify(page, "ann")

        # The requested page opens, with a cookie that other sites cannot make the browser send.
        expect(page.get_by_role("heading", level=1)).to_have_text("Work")
        assert page.url == f"{site.url}/dashboard/work"
        expect(page.get_by_role("banner")).to_contain_text("corp/ann")
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("link", name="Access").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Access")

        page.get_by_role("button", name="Sign out").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        assert page.context.cookies() == []
        # The browser keeps no page that was shown.
        page.go_back()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_admin_makes_a_token_that_is_shown_once_and_revokes_it(
    browser: Browser, site: Site
) -> None:
    def status(secret: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.get(f"{site.url}/tables", headers=headers, verify=PLAIN).status_code

    with opened(browser) as page:
        page.goto(f"{site.url}/dashboard/access")
        page.get_by_role("link", name="Sign in with Example Corp").click()
        identify(page, "ann")
        page.get_by_label("Name of the caller").fill("etl")
        page.get_by_label("Grants").fill("read write:sales")
        page.get_by_role("button", name="Create a token").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Token of etl")
        secret = page.get_by_label("Secret").inner_text()
        assert status(secret) == 200
        assert violations(page) + lost_to_the_keyboard(page) == []

        # The browser sends the form again.
        page.reload()

        expect(page.get_by_role("status")).to_contain_text("has already made this token")
        page.get_by_role("link", name="Access").first.click()
        expect(page.locator("body")).not_to_contain_text(secret)
        tokens = page.get_by_role("region", name="Tokens").get_by_role("row")
        expect(tokens).to_have_count(2)
        expect(tokens.nth(1)).to_contain_text("write:sales")
        page.get_by_role("button", name="of etl").click()
        expect(tokens.nth(1)).to_contain_text("revoked")
        expect(page.get_by_role("button", name="of etl")).to_have_count(0)


def test_a_person_who_denies_access_is_told_so_and_can_try_again(
    browser: Browser, site: Site
) -> None:
    with opened(browser) as page:
        page.goto(f"{site.url}/dashboard/tables")
        page.get_by_role("link", name="Sign in with Example Corp").click()
        identify(page, "ann", "Deny")

        expect(page.get_by_role("alert")).to_contain_text("did not let you in")
        assert violations(page) + lost_to_the_keyboard(page) == []
        page.get_by_role("link", name="Sign in with Example Corp").click()
        identify(page, "ann")
        expect(page.get_by_role("heading", level=1)).to_have_text("Tables")
