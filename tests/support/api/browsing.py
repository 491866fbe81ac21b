"""Tabs of a real browser that watch what pages do, and count what people click."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, ViewportSize

WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Open a tab; the test fails if it contacts another host, or if its console has errors."""
    requests: list[str] = []
    errors: list[str] = []
    context = browser.new_context(**{"viewport": WIDE, **options})
    page = context.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type == "error" else None,
    )
    try:
        yield page
    finally:
        context.close()
    hosts = {urlsplit(each).netloc for each in requests if not each.startswith("data:")}
    assert hosts == {urlsplit(url).netloc}
    # Chromium logs every 4xx and 5xx answer as an error.
    assert [error for error in errors if "Failed to load resource" not in error] == []


def sign_in(page: Page, url: str, secret: str, to: str = "tables") -> None:
    """Open a page of a coordinator, and sign in with a token on the way."""
    page.goto(f"{url}/dashboard/{to}")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


def tab_of(page: Page, name: str) -> Locator:
    """Return the link to a tab of a table; labels of figures may have the same name."""
    return page.get_by_role("navigation", name="Parts of").get_by_role("link", name=name)


class Clicks:
    """Counts clicks: an answer to a question should take few."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, what: Locator) -> None:
        """Click, and count it."""
        what.click()
        self.count += 1


def fits(page: Page) -> bool:
    """Return whether a page is no wider than its window, and no table or chart than its region."""
    # The script runs once the whole page has come, and lays out tables anew before the frame after
    # the window has its size.
    page.wait_for_load_state()
    fitting = page.evaluate("""async () => {
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const parts = [document.documentElement, ...document.querySelectorAll(".wide")];
      return parts.every((one) => one.scrollWidth <= one.clientWidth);
    }""")
    return bool(fitting)


@contextmanager
def asking(
    browser: Browser, url: str, secret: str, at: str = "tables"
) -> Iterator[tuple[Page, Clicks]]:
    """Sign in as an operator with a question; the test fails if it takes more than three clicks."""
    clicks = Clicks()
    with opened(browser, url) as page:
        sign_in(page, url, secret, at)
        yield page, clicks
    assert clicks.count <= 3
