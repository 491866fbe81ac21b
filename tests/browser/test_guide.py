"""The guide in a real browser: searchable, readable on a phone, and without internet access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.api.accessibility import violations
from tests.support.documents.site import build_site
from tests.support.laws import a_few
from tests.support.servers.coordinators import running
from windrow_service.api import guide
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
PAGES = ("index.html", "explain/groups.html", "how-to/read.html", "reference/plan-options.html")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the guide of a coordinator with the site."""
    folder = tmp_path_factory.mktemp("guide")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guide, "FOLDER", build_site(folder / "site"))
        with running(Settings(state_dir=folder, allowed_locations=(str(folder),))) as url:
            yield f"{url}/guide"


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A page of a phone, which must contact no other server and report no errors."""
    requests: list[str] = []
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type == "error" else None,
    )

    yield page

    page.close()
    others = {urlsplit(each).netloc for each in requests if not each.startswith("data:")}
    assert others == {urlsplit(url).netloc}
    assert errors == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(page: Page, url: str, name: str) -> None:
    page.goto(f"{url}/{name}")

    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", a_few(["light", "dark"], 2))
def test_pages_are_accessible(page: Page, url: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)

    for name in ("explain/groups.html", "start/tutorial.html"):
        page.goto(f"{url}/{name}")
        assert violations(page) == []


def test_a_reader_finds_a_page_by_searching(page: Page, url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{url}/")

    field = page.get_by_role("textbox", name="Search")
    field.click()
    field.press_sequentially("interrupted write")
    page.locator(".md-search-result__link").first.click()

    expect(page).to_have_url(re.compile("how-to/recover-writes.html"))
