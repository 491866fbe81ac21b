"""`/guide` serves the documents from this package, without tokens, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.documents.site import build_site
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.api import guide as guides
from windrow_service.api.html.explanations import EXPLANATIONS
from windrow_service.settings import Settings


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder.parent / "secret.txt").write_text("secret")
    return build_site(folder)


@contextmanager
def _coordinator(site: Path, state_dir: Path) -> Iterator[httpx.Client]:
    """A coordinator that requires tokens, and a client that has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guides, "FOLDER", site)
        with (
            running(Settings(state_dir=state_dir, require_tokens=True)) as url,
            httpx.Client(base_url=url, verify=PLAIN) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def guide(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with _coordinator(site, tmp_path_factory.mktemp("state")) as client:
        yield client


def test_the_guide_begins_with_its_first_page(guide: httpx.Client) -> None:
    answer = guide.get("/guide")

    # Relative to the page, because a proxy may serve the coordinator under a path.
    assert (answer.status_code, answer.headers["Location"]) == (307, "guide/")
    assert "<h1" in guide.get("/guide/").text


def test_each_file_of_the_site_is_served_with_its_type(guide: httpx.Client, site: Path) -> None:
    files = [path for path in site.rglob("*") if path.is_file()]
    types = set()
    for file in files:
        answer = guide.get(f"/guide/{file.relative_to(site).as_posix()}")
        assert answer.content == file.read_bytes()
        types.add(answer.headers["Content-Type"].partition(";")[0])

    assert types == {
        *("application/json", "application/x-ipynb+json", "image/png", "image/svg+xml"),
        *("text/css", "text/html", "text/javascript"),
    }


def test_pages_of_the_guide_run_only_their_own_scripts(guide: httpx.Client) -> None:
    page = guide.get("/guide/how-to/read.html")

    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == page.text.count("<script>")
    assert page.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", ["nowhere.html", "..%2Fsecret.txt", "%2e%2e/secret.txt", "how-to"])
def test_nothing_but_files_of_the_site_is_served(guide: httpx.Client, path: str) -> None:
    assert guide.get(f"/guide/{path}").status_code == 404


def test_a_clone_without_the_site_says_how_to_build_it(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    with _coordinator(empty, tmp_path / "state") as guide:
        answer = guide.get("/guide/")

    assert answer.status_code == 404
    assert "run `make docs`" in answer.text


def test_each_question_mark_of_a_page_leads_to_a_heading_that_is_served(
    guide: httpx.Client,
) -> None:
    page = guide.get("/guide/reference/figures.html").text

    assert set(re.findall(r'<h2 id="([^"]+)"', page)) == EXPLANATIONS.keys()
