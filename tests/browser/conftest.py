"""The system's Chromium; without one these tests are skipped, and the report header says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

# The first is Chromium without windows, which it would otherwise draw though nobody sees them.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_CHROMIUM = next((path for name in _NAMES if (path := shutil.which(name))), None)
_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

collect_ignore_glob = [] if _CHROMIUM else ["test_*.py"]


def pytest_report_header() -> str:
    """Return a line about the Chromium that runs the tests, or that there is none."""
    if _CHROMIUM is None:
        return "browser: no Chromium here, tests/browser is skipped; `make chromium` installs it"
    return f"browser: {_CHROMIUM}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for one test file: Playwright's event loop would disturb the tests of others."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()
