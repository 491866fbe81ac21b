"""`/docs` in a real browser: complete, usable, and without internet access."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api.contract import document
from tests.support.api.dashboards import token
from tests.support.servers.coordinators import running
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
METHODS = {"get", "put", "post", "delete"}
# Generous, for busy machines.
expect.set_options(timeout=60_000)


class Docs(NamedTuple):
    page: Page
    errors: list[str]


@pytest.fixture(scope="module")
def docs(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docs]:
    """The opened documentation, which must contact no other server and report no errors.

    It shows all operations, which takes seconds, so all tests except that of frames share it.
    """
    requests: list[str] = []
    errors: list[str] = []
    tmp_path = tmp_path_factory.mktemp("docs")
    with running(Settings(state_dir=tmp_path, allowed_locations=(str(tmp_path),))) as url:
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: errors.append(message.text) if message.type == "error" else None,
        )
        page.goto(f"{url}/docs")
        page.locator(".opblock").first.wait_for()

        yield Docs(page, errors)

        page.close()
    # Pictures in the style sheet are `data:` URLs, which contact nobody.
    asked = {urlsplit(each).netloc for each in requests if not each.startswith("data:")}
    assert asked == {urlsplit(url).netloc}
    assert errors == []


@pytest.fixture
def page(docs: Docs) -> Page:
    return docs.page


def test_every_operation_is_shown(page: Page) -> None:
    published = {
        (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method in methods
        if method in METHODS
    }

    blocks = page.locator(".opblock")
    shown = {
        (
            block.locator(".opblock-summary-method").inner_text().strip(),
            # Long paths contain zero-width spaces, so that lines can break.
            block.locator(".opblock-summary-path").inner_text().replace("\u200b", "").strip(),
        )
        for block in blocks.all()
    }

    assert shown == published


def test_an_operation_can_be_tried_out(page: Page) -> None:
    block = page.locator("#operations-operations-config")
    block.locator(".opblock-summary").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()

    expect(block.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")
    expect(block.locator(".live-responses-table")).to_contain_text("max_page_groups")


def test_a_call_is_shown_with_its_example_and_its_refusals(page: Page) -> None:
    block = page.locator("#operations-plans-make_plan")
    block.locator(".opblock-summary").click()

    expect(block.locator(".opblock-description-wrapper").first).to_contain_text("Before reading")
    expect(block.locator(".opblock-section-request-body")).to_contain_text("amount > 90")
    expect(block.locator(".responses-table").first).to_contain_text("files_pruned_by_partition")
    expect(block).to_contain_text("application/problem+json")


def test_the_page_runs_only_its_own_scripts(docs: Docs) -> None:
    with docs.page.expect_console_message(lambda message: "inline script" in message.text):
        ran = docs.page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.injected = true";
                document.head.append(script);
                return window.injected ?? false;
            }"""
        )

    assert ran is False
    (refused,) = docs.errors
    assert "inline script" in refused
    docs.errors.clear()


def test_the_page_cannot_be_framed_by_other_sites(browser: Browser, tmp_path: Path) -> None:
    with running(Settings(state_dir=tmp_path, allowed_locations=(str(tmp_path),))) as url:
        page = browser.new_page()

        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.set_content(f'<iframe src="{url}/docs"></iframe>')

        page.close()


@pytest.mark.nightly
def test_the_page_is_dark_signed_in_by_the_session_and_linked_both_ways(
    browser: Browser, tmp_path: Path
) -> None:
    settings = Settings(state_dir=tmp_path, allowed_locations=(str(tmp_path),), require_tokens=True)
    with running(settings) as url:
        page = browser.new_page(color_scheme="dark")
        page.goto(f"{url}/dashboard/sign-in")
        page.get_by_label("Token").fill(token(settings, "ana", "admin"))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="API").click()
        block = page.locator("#operations-tables-list_tables")
        block.locator(".opblock-summary").click()
        block.get_by_role("button", name="Try it out").click()
        block.get_by_role("button", name="Execute").click()

        status = block.locator(".live-responses-table tbody .response-col_status")
        expect(status).to_contain_text("200")
        expect(page.locator("#you")).to_have_text("Signed in as ana")
        expect(page.locator("html")).to_have_class("dark-mode")
        page.get_by_role("link", name="Dashboard").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.close()
