"""`/dashboard` without a browser: who may see which page, and what other sites cannot do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute

from tests.support.api.access_matrix import IDENTITIES
from tests.support.api.dashboards import LAKE, Operated, token, written
from tests.support.servers.coordinators import PLAIN, coordinator_process, running, wait_until
from tests.support.servers.databases import on_database
from windrow_core.models import (
    CacheRuleDefinition,
    RefreshProgress,
    RefreshStatus,
    TableDefinition,
    WriteUpdate,
)
from windrow_service.api.dashboard import PARTS
from windrow_service.api.dashboard.table import TABS
from windrow_service.api.html import rendering
from windrow_service.api.html.loading import load_pages
from windrow_service.settings import Settings
from windrow_service.store import schema
from windrow_service.store.cache_rules import SqlCacheRuleStore
from windrow_service.store.database import Database
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.table_lists import SqlTableLists
from windrow_service.store.tables import SqlTableStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.usecases.audit import Actor, acting
from windrow_service.usecases.names import Names
from windrow_service.usecases.tables.lists import TableConditions

OPEN = {
    "/dashboard/sign-in",
    "/dashboard/sign-in/{issuer}",
    "/dashboard/sign-in/{issuer}/callback",
    "/dashboard/static/{name}",
}
# The scope that a page needs, and whether it must be granted on everything.
NEEDED: Mapping[str, tuple[str, bool]] = {
    "/dashboard": ("read", False),
    "/dashboard/access": ("admin", True),
    "/dashboard/cache": ("read", False),
    "/dashboard/maintenance": ("read", False),
    "/dashboard/maintenance/{name}": ("read", False),
    "/dashboard/overview": ("read", False),
    "/dashboard/plans": ("read", False),
    "/dashboard/plans/{plan_id}": ("read", False),
    "/dashboard/policies": ("write", False),
    "/dashboard/policies/{pattern}": ("read", False),
    "/dashboard/receipts": ("read", False),
    "/dashboard/tables": ("read", False),
    "/dashboard/work": ("read", False),
    "/dashboard/you": ("read", False),
    "/dashboard/tables/{name}": ("read", False),
    "/dashboard/tables/{name}/maintenance": ("read", False),
    "/dashboard/tables/{name}/{tab}": ("read", False),
}
# Pages that lead to another one.
LEADING = ("/dashboard", "/dashboard/maintenance/{name}")
PAGES = sorted(
    route.path
    for part in PARTS
    for route in part.routes
    if isinstance(route, APIRoute) and "GET" in route.methods and route.path not in OPEN
)


class Browsers:
    """A browser for each set of grants."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._url = url
        self._open: dict[str, httpx.Client] = {}

    def of(self, *grants: str) -> httpx.Client:
        """Return a browser that is signed in with these grants, or not at all without any."""
        name = "of-" + "".join(one if one.isalnum() else "-" for one in "-".join(grants))
        if name not in self._open:
            self._open[name] = http = httpx.Client(verify=PLAIN, base_url=self._url, timeout=60)
            if grants:
                sent = {"token": token(self._settings, name, *grants)}
                answer = http.post("/dashboard/sign-in", data=sent)
                assert answer.status_code == 303, answer.text
        return self._open[name]

    def close(self) -> None:
        for http in self._open.values():
            http.close()


@pytest.fixture(scope="module")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsers]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("pages"), allowed_locations=(LAKE,), require_tokens=True
    )
    with running(settings) as url:
        operated = Operated(url, token(settings, "operator", "admin"))
        for name in ("mine.t", "other.t"):
            operated.register(name)
            operated.publish(name, written(["ds=2026-11-02"], 3, 1_000, day=1))
        browsers = Browsers(settings, url)
        yield browsers
        browsers.close()
        operated.http.close()


def expected(page: str, grants: Sequence[str], *, own: bool) -> int:
    """Return the status that a caller gets for a page about their own table or another."""
    scope, everywhere = NEEDED[page]
    scopes = {
        "read": {"read", "write", "admin"},
        "write": {"write", "admin"},
        "admin": {"admin"},
    }[scope]
    held = [one.partition(":") for one in grants if one.partition(":")[0] in scopes]
    if everywhere:
        held = [one for one in held if not one[1]]
    if not held:
        return 403
    if "{plan_id}" in page:
        return 404
    is_others = not own and all(colon for _, colon, _ in held)
    if "{name}" in page and is_others:
        return 404
    if "{pattern}" in page and is_others:
        return 403
    return 200


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_shown_to_the_callers_that_its_rule_allows(browsers: Browsers, page: str) -> None:
    for identity, grants in IDENTITIES.items():
        for own in (True, False):
            name = "mine.t" if own else "other.t"
            path = page.replace("{name}", name).replace("{pattern}", name)
            path = path.replace("{plan_id}", "0" * 32).replace("{tab}", "access")
            http = browsers.of(*(grants or ()))

            answer = http.get(path, follow_redirects=page in LEADING)

            if grants is None:
                assert "sign-in" in (answer.headers.get("Location") or str(answer.url)), identity
            else:
                assert answer.status_code == expected(page, grants, own=own), (identity, own)
                assert answer.headers["Content-Type"].startswith("text/html"), identity


def test_a_list_shows_only_tables_of_its_caller(browsers: Browsers) -> None:
    shown = browsers.of("read:mine.*").get("/dashboard/tables").text

    assert "mine.t" in shown
    assert "other.t" not in shown
    assert "1 table," in shown


def test_a_plan_is_shown_to_its_maker_and_to_admin_alone(browsers: Browsers) -> None:
    maker = token(browsers._settings, "of-read", "read")
    with httpx.Client(verify=PLAIN, base_url=browsers._url, timeout=60) as http:
        headers = {"Authorization": f"Bearer {maker}"}
        made = http.post("/plans", json={"table": "mine.t"}, headers=headers)
        plan_id = made.raise_for_status().json()["plan_id"]
    shown_to = {"read": True, "admin": True, "admin:mine.*": True, "write": False}
    shown_to |= {"read:mine.*": False, "admin:other.*": False}

    for grants, is_shown in shown_to.items():
        http = browsers.of(grants)
        listed = http.get("/dashboard/plans").text
        assert (plan_id in listed) == is_shown, grants
        status = http.get(f"/dashboard/plans/{plan_id}").status_code
        assert status == (200 if is_shown else 404), grants


def test_the_api_does_not_accept_the_cookie(browsers: Browsers) -> None:
    answer = browsers.of("admin").get("/tables")

    assert answer.status_code == 401


def test_the_api_accepts_a_session_with_the_value_that_only_our_pages_know(
    browsers: Browsers,
) -> None:
    admin, reader = browsers.of("admin"), browsers.of("read")
    (form,) = re.findall(r'data-form="([^"]+)"', admin.get("/dashboard/you").text)

    def status(http: httpx.Client, **headers: str) -> int:
        return http.get("/tables", headers=headers).status_code

    assert status(admin, **{"X-Windrow-Form": form}) == 200
    for wrong in ("", "x", form + "x"):
        assert status(admin, **{"X-Windrow-Form": wrong}) == 403
    # Another caller's value, no session, and a token that counts alone.
    assert status(reader, **{"X-Windrow-Form": form}) == 403
    assert status(browsers.of(), **{"X-Windrow-Form": form}) == 401
    assert status(admin, **{"X-Windrow-Form": form, "Authorization": "Bearer wdr_x"}) == 401
    # The session has the rights of its caller, and no others.
    (own,) = re.findall(r'data-form="([^"]+)"', reader.get("/dashboard/you").text)
    assert reader.get("/audit", headers={"X-Windrow-Form": own}).status_code == 403


def test_a_forged_cookie_signs_nobody_in(browsers: Browsers) -> None:
    admin = browsers.of("admin")
    forged = admin.cookies["windrow_session"][:-2] + "xx"

    answer = browsers.of().get("/dashboard/tables", headers={"Cookie": f"windrow_session={forged}"})

    assert answer.status_code == 303


def test_a_form_of_another_page_or_caller_changes_nothing(browsers: Browsers) -> None:
    admin, reader = browsers.of("admin"), browsers.of("read")
    (others,) = re.findall(r'name="form" value="([^"]+)"', reader.get("/dashboard/tables").text)

    for sent in ({}, {"form": "x"}, {"form": others}):
        assert admin.post("/dashboard/sign-out", data=sent).status_code == 403

    assert admin.get("/dashboard/tables").status_code == 200


def test_a_refresh_is_cancelled_only_by_callers_who_may_write_the_table(browsers: Browsers) -> None:
    path = "/dashboard/tables/mine.t/cancel-refresh"

    def sent(*grants: str) -> int:
        http = browsers.of(*grants)
        (form,) = re.findall(r'name="form" value="([^"]+)"', http.get("/dashboard/tables").text)
        return http.post(path, data={"form": form}).status_code

    assert sent("read") == 403
    assert sent("write:other.*") == 404
    # No refresh is running.
    assert sent("write:mine.*") == 404
    assert browsers.of("write:mine.*").post(path).status_code == 403


def test_a_write_is_cancelled_only_by_callers_who_may_write_the_table(browsers: Browsers) -> None:
    write_id = "7" * 32
    path = f"/dashboard/tables/mine.t/writes/{write_id}/cancel"
    api = {"Authorization": f"Bearer {token(browsers._settings, 'driver', 'write')}"}
    with httpx.Client(verify=PLAIN, base_url=browsers._url, headers=api, timeout=60) as driver:
        begun = {"mode": "append", "state": "staging", "host": "driver-1", "process": 7}
        write = f"/tables/mine.t/writes/{write_id}"
        driver.put(write, json=begun).raise_for_status()

        def sent(*grants: str) -> int:
            http = browsers.of(*grants)
            (form,) = re.findall(r'name="form" value="([^"]+)"', http.get("/dashboard/tables").text)
            return http.post(path, data={"form": form}).status_code

        offered = 'aria-label="Cancel the write to mine.t from driver-1"'
        assert offered not in browsers.of("read").get("/dashboard/work").text
        assert offered in browsers.of("write:mine.*").get("/dashboard/work").text
        assert sent("read") == 403
        assert sent("write:other.*") == 404
        assert browsers.of("write:mine.*").post(path, data={"form": "x"}).status_code == 403
        assert driver.get(write).json()["state"] == "staging"
        assert sent("write:mine.*") == 303
        assert driver.get(write).json()["cancelled_by"] == "of-write-mine--"
        shown = browsers.of("write:mine.*").get("/dashboard/work").text
        assert "undone, cancelled by of-write-mine--" in shown
        assert offered not in shown


def test_the_maintenance_page_shows_only_what_may_be_seen_and_why(browsers: Browsers) -> None:
    api = {"Authorization": f"Bearer {token(browsers._settings, 'keeper', 'admin')}"}
    with httpx.Client(verify=PLAIN, base_url=browsers._url, headers=api, timeout=60) as http:
        empty = browsers.of("read").get("/dashboard/maintenance").text
        http.put("/policies/mine.t", json={"min_age_seconds": 366 * 86_400}).raise_for_status()
        http.put("/policies/other.t", json={"enabled": False}).raise_for_status()
        http.post("/maintenance/rounds").raise_for_status()
        mine = browsers.of("read:mine.*").get("/dashboard/maintenance").text
        both = browsers.of("read").get("/dashboard/maintenance").text
        for name in ("mine.t", "other.t"):
            http.delete(f"/policies/{name}").raise_for_status()

    assert "Windrow maintains nothing by itself" in empty
    assert "mine.t" in mine
    assert "written to less than 366 days ago" in mine
    assert "other.t" not in mine
    assert "its policy is off" in both
    assert "Cost, one core" in both


def test_behind_https_a_cookie_is_only_sent_encrypted(browsers: Browsers) -> None:
    sent = {"token": token(browsers._settings, "of-read", "read")}

    def cookie(**headers: str) -> set[str]:
        answer = browsers.of().post("/dashboard/sign-in", data=sent, headers=headers)
        browsers.of().cookies.clear()
        return set(answer.headers["Set-Cookie"].split("; ")[1:])

    plain = {"HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict"}
    assert cookie() == plain
    assert cookie(**{"X-Forwarded-Proto": "https"}) == plain | {"Secure"}


def test_another_site_cannot_sign_a_browser_in(browsers: Browsers) -> None:
    answer = browsers.of().post(
        "/dashboard/sign-in", data={"token": "x"}, headers={"Sec-Fetch-Site": "cross-site"}
    )

    assert answer.status_code == 403


def test_signing_in_leads_to_a_page_of_this_site(browsers: Browsers) -> None:
    asked = browsers.of().get("/dashboard/tables?find=a%26b&at=2")
    assert asked.headers["Location"] == "../dashboard/sign-in?to=tables%3Ffind%3Da%2526b%26at%3D2"

    for to in ("https://evil.example", "//evil.example", "\\\\evil.example"):
        http = browsers.of("read")
        sent = {"token": token(browsers._settings, "of-read", "read"), "to": to}
        location = http.post("/dashboard/sign-in", data=sent).headers["Location"]
        assert str(httpx.URL("http://here/dashboard/sign-in").join(location)).startswith(
            "http://here/dashboard/"
        )


def test_names_are_escaped_wherever_they_are_shown(browsers: Browsers) -> None:
    shown = browsers.of("read").get("/dashboard/tables", params={"find": '"><b>x'}).text

    assert "<b>x" not in shown
    told = browsers.of("worker").get("/dashboard/tables").text
    assert "<code>windrow token create NAME --scope read</code>" in told


class Read(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = [
    "<script>alert(1)<script>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "a&lt;b&b",
    "a" * 200,
    "مدينة \u202eabc",
    "{{ 7 * 7 }}{% for %}",
    "`<b>x</b>`",
]


@pytest.mark.slow
def test_names_of_columns_and_partitions_stay_text_on_every_page(browsers: Browsers) -> None:
    name = "hostile.t"
    operated = Operated(browsers._url, token(browsers._settings, "author", "admin"))
    columns = [{"name": one, "type": "string"} for one in ("id", *HOSTILE)]
    keys = [{"name": f"k{HOSTILE[0]}", "type": "string"}]
    operated.register(name, columns=columns, partition_columns=keys)
    # As Hive and Spark write them, except that they escape quotes too.
    key, *values = (
        re.sub("[%/:=]", lambda letter: f"%{ord(letter[0]):02X}", text)
        for text in (keys[0]["name"], *HOSTILE)
    )
    folders = [f"{key}={value}" for value in values]
    published = {"columns": columns, "added": written(folders, 3, 1_000, day=1)}
    answer = operated.http.post(f"/tables/{name}/snapshots", json=published)
    assert answer.is_success, answer.text
    policy = {"exempt_folders": [folders[0]], "min_age_seconds": 0}
    operated.http.put(f"/policies/{name}", json=policy).raise_for_status()
    plan = operated.http.post("/plans", json={"table": name, "columns": HOSTILE})
    plan_id = plan.raise_for_status().json()["plan_id"]
    pages = [f"/dashboard/tables/{name}/{tab}".rstrip("/") for tab in TABS]
    pages += [f"/dashboard/{one}" for one in ("overview", "plans", "cache", "access")]
    pages += [
        "/dashboard/maintenance",
        f"/dashboard/policies/{name}",
        f"/dashboard/plans/{plan_id}",
    ]

    texts: dict[str, str] = {}
    for path in pages:
        page = Read(browsers.of("admin").get(path).raise_for_status().text)
        texts[path] = "".join(page.texts)
        scripts = [attributes for tag, attributes in page.elements if tag == "script"]
        assert [one["type"] for one in scripts] == ["module"], path
        names = {attribute for _, attributes in page.elements for attribute in attributes}
        assert not {one for one in names if one.startswith("on")}, path
        assert "autofocus" not in names, path
    for path in (f"/tables/{name}", f"/policies/{name}"):
        operated.http.delete(path).raise_for_status()
    operated.http.close()

    # They are really shown.
    overview, _, partitions, *_ = texts.values()
    assert [one for one in HOSTILE if one not in overview] == []
    for text in (overview, partitions):
        assert [one for one in folders if one not in text] == []


@pytest.mark.slow
def test_a_process_loads_what_pages_need_but_not_pandas(tmp_path: Path) -> None:
    asked = {"state_dir": tmp_path / "state", "allowed": tmp_path, "WINDROW_LOG_LEVEL": "debug"}
    with coordinator_process(**asked) as coordinator:
        operated = Operated(coordinator.url)
        operated.register("a.b", location=str(tmp_path / "a.b"))
        operated.publish("a.b", written(["ds=2026-11-02"], 3, 1_000, day=1))
        operated.http.post("/plans", json={"table": "a.b"}).raise_for_status()
        wait_until(lambda: "pages are loaded" in coordinator.log.read_text())
        operated.http.close()
        mapped = Path(f"/proc/{coordinator.process.pid}/maps").read_text()

    assert "/pyarrow/" in mapped
    assert "/pandas/" not in mapped


def test_all_templates_are_loaded_before_a_page_is_requested() -> None:
    rendering.environment.cache_clear()
    load_pages()

    pages = rendering.environment(True)
    assert pages.cache is not None
    assert {name for _, name in pages.cache} == set(pages.list_templates())
    assert rendering.PROBLEM in {name for _, name in rendering.environment(False).cache or ()}


def test_snapshots_count_their_files_by_size_after_each_change(
    http: httpx.Client, name: str, url: str, tables_folder: object
) -> None:
    def file(path: str, size: int) -> dict[str, object]:
        return {"path": path, "size_bytes": size, "mtime_ns": size, "row_count": 1}

    columns = [{"name": "id", "type": "bigint"}]
    http.put(f"/tables/{name}", json={"location": f"{tables_folder}/{name}"}).raise_for_status()

    def publish(**body: object) -> list[int]:
        answer = http.post(f"/tables/{name}/snapshots", json=body)
        assert answer.is_success, answer.text
        counts: list[int] = answer.json()["file_sizes"]
        return counts

    sizes = [0, 1, 2, 3, 4, 2**26 - 1, 2**26]
    files = [file(f"f{at}", size) for at, size in enumerate(sizes)]
    whole = publish(columns=columns, added=files)
    assert whole == [1, 1, 2, 1] + [0] * 22 + [1, 1]
    # One file is replaced, one is added, and the largest is removed.
    changed = publish(mode="delta", added=[file("f0", 3), file("g", 1)], removed=["f6"])
    assert changed == [0, 2, 3, 1] + [0] * 22 + [1]
    assert http.get(f"/tables/{name}").json()["current_snapshot"]["file_sizes"] == changed


def test_tables_are_listed_in_any_order_and_by_any_condition(database_url: sa.URL) -> None:
    now = datetime(2026, 11, 23, tzinfo=timezone.utc)
    # Numbers of files, their bytes, the fewest files that the folders allow, and the last refresh.
    figures: dict[str, tuple[int, int, int | None] | None] = {
        "a.few": (3, 10, None),
        "a.many": (20_000, 10, None),
        "a.fair": (400, 10 * 2**20, 200),
        "b.large": (900, 900 * 2**27, None),
        "b.parts": (900, 900, 900),
        "B_odd%": None,
        "b.broken": (5, 5, 5),
    }

    async def work(database: Database) -> None:
        store, lists = SqlTableStore(database, lambda: now), SqlTableLists(database, lambda: now)
        refreshes = SqlRefreshStore(database)
        with acting(lambda: Actor("test", "test", None)):
            for name in figures:
                await store.put(name, TableDefinition(location=f"/{name}"), None)
        for at, (name, of) in enumerate(figures.items()):
            if of is not None:
                await _add_snapshot(database, name, of, now + timedelta(minutes=at))
        status = RefreshStatus(
            refresh_id="r",
            table="b.broken",
            status="running",
            started_at=now,
            seconds=0,
            progress=RefreshProgress(phase="listing"),
        )
        # Few excess files, which many reads open.
        often = {"plan_id": "p", "principal": "me", "table_name": "a.fair", "body": "{}"}
        async with database.writing() as connection:
            await connection.execute(
                sa.insert(schema.plan_history), [often | {"created_at": now}] * 1_750
            )
        record = await refreshes.begin(
            status, full=False, now=now, lease_until=now + timedelta(hours=1)
        )

        async def names(offset: int = 0, limit: int = 10, **conditions: Any) -> list[str]:
            among = conditions.pop("among", Names(every=True))
            choice = TableConditions(**conditions)
            count, tables = await lists.page(choice, offset, limit, among)
            assert count >= len(tables)
            # The database and the page judge alike.
            for one in tables:
                alike = TableConditions(health=one.health, containing=one.name)
                assert one in (await lists.page(alike, 0, 10, among))[1]
            return [one.name for one in tables]

        by_excess = ["a.many", "a.fair", "a.few", "b.broken", "b.large", "b.parts", "B_odd%"]
        assert await names() == by_excess
        assert await names(1, 2) == by_excess[1:3]
        assert await names(containing="b_ODD%") == ["B_odd%"]
        assert await names(among=Names(below=frozenset({"a."}))) == ["a.many", "a.fair", "a.few"]
        assert await names(namespace="b", order="name") == ["b.parts", "b.large", "b.broken"]
        assert await names(namespace="a.f") == []
        assert (await names(order="files", is_descending=False))[:2] == ["a.few", "b.broken"]
        assert (await names(order="size"))[0] == "b.large"
        assert (await names(order="mean"))[:2] == ["b.large", "a.fair"]
        assert (await names(order="snapshot"))[0] == "b.broken"
        assert await names(health="unread") == ["B_odd%"]
        assert await names(health="poor") == ["a.many"]
        assert await names(health="fair") == ["a.fair"]
        assert await names(health="failing") == []
        assert await names(health="good") == ["a.few", "b.broken", "b.large", "b.parts"]
        assert [await lists.reads(name) for name in ("a.fair", "a.few")] == [1_750, 0]
        quiet = SqlTableLists(database, lambda: now + timedelta(days=8))
        _, (unread,) = await quiet.page(
            TableConditions(containing="a.fair"), 0, 10, Names(every=True)
        )
        assert (unread.reads, unread.health) == (0, "good")

        await refreshes.finish(record.table_id, status.model_copy(update={"status": "failed"}))

        assert await names(health="failing") == ["b.broken"]
        assert (await names(order="health"))[:3] == ["b.broken", "B_odd%", "a.many"]
        assert await lists.namespaces(10, Names(every=True)) == ["a", "b"]
        assert await lists.namespaces(1, Names(every=True)) == ["a"]
        assert await lists.namespaces(10, Names(exact=frozenset({"b.large"}))) == ["b"]

    on_database(database_url, work)


async def _add_snapshot(
    database: Database, name: str, figures: tuple[int, int, int | None], at: datetime
) -> None:
    info = {
        "snapshot_id": 1,
        "created_at": at.isoformat(),
        "file_count": figures[0],
        "size_bytes": figures[1],
        "fewest_files": figures[2],
        "manifest_count": 0,
        "columns": [],
        "partition_columns": [],
    }
    async with database.writing() as connection:
        key = await connection.scalar(
            sa.select(schema.tables.c.table_id).where(schema.tables.c.name == name)
        )
        await connection.execute(
            sa.insert(schema.snapshots).values(
                table_id=key,
                snapshot_id=1,
                created_at=at,
                info=json.dumps(info),
                data_schema=b"",
                partition_schema=b"",
                bloom_columns="[]",
                ranges=b"",
            )
        )
        await connection.execute(
            sa.update(schema.tables)
            .where(schema.tables.c.table_id == key)
            .values(current_snapshot_id=1)
        )


def test_folders_that_need_their_files_make_no_excess(
    http: httpx.Client, name: str, tables_folder: object
) -> None:
    def file(path: str, size: int) -> dict[str, object]:
        return {"path": path, "size_bytes": size, "mtime_ns": size, "row_count": 1}

    columns = [{"name": "id", "type": "bigint"}]
    partitions = [{"name": "d", "type": "int"}]
    definition = {"location": f"{tables_folder}/{name}", "partition_columns": partitions}
    http.put(f"/tables/{name}", json=definition).raise_for_status()

    def fewest(**body: object) -> int:
        answer = http.post(f"/tables/{name}/snapshots", json=body)
        assert answer.is_success, answer.text
        count: int = answer.json()["fewest_files"]
        return count

    def files(day: int, *sizes: int) -> list[dict[str, object]]:
        return [file(f"d={day}/f{at}", size) for at, size in enumerate(sizes)]

    assert fewest(columns=columns, added=files(1, 10, 20) + files(2, 2**27, 1) + files(3, 5)) == 4
    # A folder after all others is new for certain; one between them may have been there.
    assert fewest(mode="delta", added=files(4, 1, 2)) == 5
    assert fewest(mode="delta", added=files(1, 10), removed=["d=1/f1"]) == 5
    gone = ["d=1/f0", "d=2/f0", "d=2/f1", "d=3/f0"]
    # Fewer files than that are left.
    assert fewest(mode="delta", removed=gone) == 2


def test_running_work_comes_first_and_then_the_latest(database_url: sa.URL) -> None:
    now = datetime(2026, 11, 23, tzinfo=timezone.utc)
    clock = iter(now + timedelta(seconds=at) for at in range(1_000))
    lease = now + timedelta(hours=1)

    def refresh(name: str, state: Literal["running", "done"], at: int) -> RefreshStatus:
        return RefreshStatus(
            refresh_id=name,
            table=name,
            status=state,
            started_at=now + timedelta(minutes=at),
            seconds=0,
            progress=RefreshProgress(phase="listing"),
        )

    async def work(database: Database) -> list[list[str]]:
        tables = SqlTableStore(database, lambda: now)
        refreshes, writes = SqlRefreshStore(database), SqlWriteStore(database, lambda: next(clock))
        rules = SqlCacheRuleStore(database, lambda: now)
        with acting(lambda: Actor("test", "test", None)):
            for at, name in enumerate(("b.running", "a.old", "a.new", "c.unseen")):
                await tables.put(name, TableDefinition(location=f"/{name}"), None)
                begun = refresh(name, "running", at)
                record = await refreshes.begin(begun, full=False, now=now, lease_until=lease)
                if name != "b.running":
                    await refreshes.finish(record.table_id, refresh(name, "done", at))
                update = {"mode": "append", "host": "h", "process": 1}
                for state in ("staging", "undone")[: 1 if name == "b.running" else 2]:
                    await writes.put(name, f"{at:032x}", WriteUpdate(**update, state=state))
                for rule, ends in (("ended", now - timedelta(1)), ("lasts", None)):
                    marks = CacheRuleDefinition(filter="id = 1", expires_at=ends)
                    await rules.put(name, rule, marks, None)
        seen = Names(below=frozenset({"a.", "b."}))
        return [
            [one.status.table for one in await refreshes.recent(9, seen)],
            [one.status.table for one in await refreshes.recent(2, seen)],
            [one.table for one in await writes.recent(9, seen)],
            [one.table for one in await writes.recent(2, seen)],
            [f"{one.info.table} {one.info.rule}" for one in await rules.everywhere(now, 9, seen)],
        ]

    assert on_database(database_url, work) == [
        ["b.running", "a.new", "a.old"],
        ["b.running", "a.new"],
        ["b.running", "a.new", "a.old"],
        ["b.running", "a.new"],
        ["a.new lasts", "a.old lasts", "b.running lasts"],
    ]
