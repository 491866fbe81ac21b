"""The catalog below `/iceberg`: Iceberg's protocol, read-only, and only of granted tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.table import StaticTable

import windrow
from tests.support.faults.writers import report_of, stage
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service import administration
from windrow_service.api.iceberg import _ENDPOINTS
from windrow_service.settings import Settings
from windrow_tables.commits import begin

pytestmark = pytest.mark.slow

TABLES = "/iceberg/v1/namespaces/mine/tables"


class Catalog:
    """A coordinator that requires tokens, and its tables."""

    def __init__(self, settings: Settings, url: str, http: httpx.Client) -> None:
        self._http = http
        self._settings = settings
        self.url = url
        self.folder = Path(settings.allowed_locations[0])
        self.admin = self.token("all", "admin")
        self.mine = self.token("mine", "read:mine.*")

    def token(self, name: str, *grants: str) -> str:
        async def create() -> str:
            async with administration.open_tokens(self._settings) as tokens:
                return (await tokens.create(name, grants, None))[1]

        with start_blocking_portal() as portal:
            return portal.call(create)

    def ask(self, path: str, token: str = "", method: str = "GET", **sent: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.mine}", **sent.pop("headers", {})}
        return self._http.request(method, path, headers=headers, **sent)

    def error(
        self, path: str, token: str = "", method: str = "GET", **sent: Any
    ) -> tuple[int, str]:
        answer = self.ask(path, token, method, **sent)
        error = answer.json()["error"]
        assert answer.status_code == error["code"]
        assert error["message"]
        return answer.status_code, error["type"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("catalog")
    settings = Settings(
        state_dir=folder / "state", port=0, allowed_locations=(str(folder),), require_tokens=True
    )
    with (
        running(settings) as url,
        httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http,
    ):
        one = Catalog(settings, url, http)
        with windrow.connect(url, token=one.admin) as client:
            for name in ("mine.t", "mine.deep.t", "other.t", "plain"):
                hive.write_events(folder / name)
                client.register_table(name, str(folder / name))
                client.refresh(name)
            client.register_table("mine.new", str(folder / "mine.t"))
            (folder / "lines").mkdir()
            client.register_table("mine.lines", str(folder / "lines"), "text")
            client.refresh("mine.lines")
        yield one


@pytest.fixture(scope="module")
def many(catalog: Catalog) -> None:
    """More tables, in more namespaces."""
    with windrow.connect(catalog.url, token=catalog.admin) as client:
        for name in ("a.t", "mine.s", "mine.u", "mine.a.t", "mine.z.t"):
            client.register_table(name, str(catalog.folder / "mine.t"))
            client.refresh(name)


def test_a_client_learns_which_calls_there_are(catalog: Catalog) -> None:
    config = catalog.ask("/iceberg/v1/config", params={"warehouse": "any"}).json()

    assert config == {"defaults": {}, "overrides": {}, "endpoints": list(_ENDPOINTS)}


def test_namespaces_and_tables_are_those_that_the_caller_may_read(catalog: Catalog) -> None:
    spaces = "/iceberg/v1/namespaces"
    all_spaces = catalog.ask(spaces, catalog.admin).json()["namespaces"]
    below = catalog.ask(spaces, params={"parent": "mine"}).json()["namespaces"]

    assert sorted(all_spaces) == [["default"], ["mine"], ["other"]]
    assert catalog.ask(spaces).json() == {"namespaces": [["mine"]]}
    assert below == [["mine", "deep"]]
    assert catalog.ask(f"{spaces}/mine").json() == {"namespace": ["mine"], "properties": {}}
    assert catalog.ask(f"{spaces}/mine%1Fdeep", method="HEAD").status_code == 204
    # Not those without a snapshot, and not those of other formats.
    assert catalog.ask(TABLES).json() == {"identifiers": [{"namespace": ["mine"], "name": "t"}]}
    assert catalog.ask(f"{spaces}/mine%1Fdeep/tables/t").status_code == 200
    assert catalog.ask(f"{spaces}/mine/views").json() == {"identifiers": []}
    assert catalog.ask(f"{spaces}/default/tables/plain", catalog.admin).status_code == 200


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("namespaces", "namespaces"),
        ("namespaces?parent=mine", "namespaces"),
        ("namespaces/mine/tables", "identifiers"),
    ],
)
def test_pages_of_any_size_are_the_list(
    catalog: Catalog, many: None, path: str, field: str, size: int
) -> None:
    whole = catalog.ask(f"/iceberg/v1/{path}", catalog.admin).json()
    left, token, some = list(whole[field]), "", []
    assert whole.keys() == {field}
    assert len(left) > 1

    while left:
        params = {"pageToken": token, "pageSize": size}
        page = catalog.ask(
            str(httpx.URL(f"/iceberg/v1/{path}").copy_merge_params(params)), catalog.admin
        ).json()
        some += page[field]
        assert page[field] == left[:size]
        left = left[size:]
        token = page.get("next-page-token", "")
        assert bool(token) == bool(left)

    assert some == whole[field]


@pytest.mark.parametrize("params", ["pageSize=0", "pageSize=-1", "pageSize=x", "pageToken=x"])
def test_a_page_that_cannot_be_is_refused(catalog: Catalog, params: str) -> None:
    assert catalog.error(f"{TABLES}?{params}")[0] == 400


def test_a_token_of_a_page_is_for_one_list_and_one_caller(catalog: Catalog, many: None) -> None:
    first = catalog.ask(f"{TABLES}?pageSize=1", catalog.admin).json()
    token = first["next-page-token"]

    assert catalog.error(f"{TABLES}?pageToken={token}") == (400, "BadRequestException")
    namespaces = f"/iceberg/v1/namespaces?pageToken={token}"
    assert catalog.error(namespaces, catalog.admin) == (400, "BadRequestException")


def test_duckdb_learns_of_all_namespaces_at_once(catalog: Catalog) -> None:
    # It asks for those below others only with an option that its users do not know.
    duckdb = {"User-Agent": "duckdb/v1.5.5 (linux_amd64) x"}

    spaces = catalog.ask("/iceberg/v1/namespaces", headers=duckdb).json()["namespaces"]

    assert [one for one in spaces if len(one) < 2 or one[1] == "deep"] == [
        ["mine"],
        ["mine", "deep"],
    ]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/namespaces/other/tables/t", "NoSuchTableException"),
        ("/namespaces/other/tables/none", "NoSuchTableException"),
        ("/namespaces/default/tables/plain", "NoSuchTableException"),
        ("/namespaces/mine/tables/new", "NoSuchTableException"),
        ("/namespaces/other/tables", "NoSuchNamespaceException"),
        ("/namespaces/other", "NoSuchNamespaceException"),
        (f"/namespaces/{'n' * 5000}/tables/t", "NoSuchTableException"),
        (f"/namespaces/mine/tables/{'t' * 5000}", "NoSuchTableException"),
        ("/namespaces/mine/tables/t%00", "NoSuchTableException"),
        ("/namespaces/mine/tables/..%2Fother", "NotFoundException"),
        ("/namespaces/mine%1F%1Fother/tables/t", "NoSuchTableException"),
        ("/namespaces/mine/views/t", "NoSuchViewException"),
    ],
)
def test_what_the_caller_may_not_read_does_not_exist(
    catalog: Catalog, path: str, error: str
) -> None:
    assert catalog.error(f"/iceberg/v1{path}") == (404, error)


def test_a_caller_without_a_token_gets_nothing(catalog: Catalog) -> None:
    for path in ("/iceberg/v1/config", f"{TABLES}/t", "/iceberg/v1/namespaces"):
        assert catalog.error(path, "wdr_wrong") == (401, "NotAuthorizedException")


def test_a_table_that_cannot_be_described_is_refused_with_the_reason(catalog: Catalog) -> None:
    answer = catalog.ask(f"{TABLES}/lines")

    assert answer.status_code == 406
    assert answer.json()["error"]["type"] == "UnsupportedOperationException"
    assert "of format 'text'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("POST", "namespaces", "creating a namespace"),
        ("DELETE", "namespaces/mine", "dropping a namespace"),
        ("POST", "namespaces/mine/properties", "changing a namespace"),
        ("POST", "namespaces/mine/tables", "creating a table"),
        ("POST", "namespaces/mine/tables/t", "committing to a table"),
        ("DELETE", "namespaces/mine/tables/t", "dropping a table"),
        ("POST", "namespaces/mine/register", "registering a table"),
        ("POST", "tables/rename", "renaming a table"),
        ("POST", "transactions/commit", "committing a transaction"),
        ("POST", "namespaces/mine/views", "changing views"),
        ("POST", "anything/else", "POST anything/else"),
    ],
)
def test_every_change_is_refused_by_name(
    catalog: Catalog, method: str, path: str, action: str
) -> None:
    answer = catalog.ask(f"/iceberg/v1/{path}", catalog.admin, method, json={})

    assert answer.status_code == 405
    error = answer.json()["error"]
    assert error["type"] == "UnsupportedOperationException"
    assert error["message"].startswith(f"{action} is not possible, because")
    assert "`client.write`" in error["message"]


def test_metadata_is_sent_once_while_it_is_the_same(catalog: Catalog) -> None:
    answer = catalog.ask(f"{TABLES}/t")
    again = catalog.ask(f"{TABLES}/t", headers={"If-None-Match": answer.headers["ETag"]})
    refs = catalog.ask(f"{TABLES}/t", params={"snapshots": "refs"})

    assert again.status_code == 304
    assert not again.content
    assert len(refs.json()["metadata"]["snapshots"]) == 1
    written = Path(answer.json()["metadata-location"]).read_text("utf-8")
    assert json.loads(written) == answer.json()["metadata"]
    assert catalog.error(f"{TABLES}/t", params={"snapshots": "some"})[0] == 400


def test_files_that_windrow_writes_are_described_without_a_refresh(catalog: Catalog) -> None:
    with windrow.connect(catalog.url, token=catalog.admin) as client:
        client.register_table("mine.written", str(hive.write_events(catalog.folder / "written")))
        client.refresh("mine.written")
        for number in range(2):
            with begin(client, "mine.written") as write:
                files = {f"ds=2026-11-0{number + 1}/new{number}.parquet": [900 + number]}
                write.commit(report_of(stage(write.folder, files)))

    metadata = catalog.ask(f"{TABLES}/written").json()["metadata-location"]

    assert {900, 901} < set(StaticTable.from_metadata(metadata).scan().to_arrow()["id"].to_pylist())


def test_a_token_is_the_secret_of_oauth_credentials(catalog: Catalog) -> None:
    path = "/iceberg/v1/oauth/tokens"
    form = {"grant_type": "client_credentials", "client_id": "x", "client_secret": catalog.mine}
    basic = base64.b64encode(f"x:{catalog.mine}".encode()).decode()

    by_form = httpx.post(f"{catalog.url}{path}", data=form, verify=PLAIN)
    by_head = httpx.post(
        f"{catalog.url}{path}", headers={"Authorization": f"Basic {basic}"}, verify=PLAIN
    )
    wrong = httpx.post(f"{catalog.url}{path}", data={"client_secret": "no"}, verify=PLAIN)

    for answer in (by_form, by_head):
        assert answer.json()["access_token"] == catalog.mine
        assert answer.headers["Cache-Control"] == "no-store"
    assert wrong.status_code == 401
    assert wrong.json()["error"] == "invalid_client"
