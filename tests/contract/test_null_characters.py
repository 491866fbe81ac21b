"""PostgreSQL cannot store a null character: requests that contain one are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.api.dashboards import token
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import Settings


@pytest.fixture
def http(upgraded_postgresql_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    settings = Settings.model_validate(
        {
            "database_url": upgraded_postgresql_url,
            "state_dir": tmp_path,
            "allowed_locations": [str(tmp_path)],
            "require_tokens": True,
        }
    )
    with (
        running(settings) as url,
        httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http,
    ):
        secret = token(settings, "operator", "admin")
        http.headers["Authorization"] = f"Bearer {secret}"
        assert http.post("/dashboard/sign-in", data={"token": secret}).status_code == 303
        yield http


@pytest.mark.slow
def test_null_characters_in_queries_and_forms_are_refused(http: httpx.Client) -> None:
    for path in (
        "/audit?table=",
        "/audit?principal=",
        "/plans?table=",
        "/dashboard/access?table=",
        "/dashboard/access?who=",
        "/dashboard/plans?table=",
        "/dashboard/tables?find=",
    ):
        assert http.get(f"{path}a%00b").status_code == 422, path

    found = re.search(r'name="form" value="([^"]+)"', http.get("/dashboard/access").text)
    assert found is not None
    sent = {"form": found[1], "caller": "a\0b"}
    assert http.post("/dashboard/access/sign-out", data=sent).status_code == 403
    assert http.get("/dashboard/access").status_code == 200
