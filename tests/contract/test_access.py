"""Who may do what: each call by each caller, about their own things and those of others."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI

from tests.support.api.access_matrix import IDENTITIES, Call, calls, expected, page, path_of
from tests.support.api.contract import operations
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service import administration
from windrow_service.api.authorization import (
    READ,
    READ_TABLE,
    GuardedRouter,
    RuleMissingError,
    require_open,
)
from windrow_service.api.parameters import TableNamePath
from windrow_service.settings import Settings

ROOT = Path(__file__).parents[2]
CALLS = list(calls())
WITH_BODIES = [call for call in CALLS if "requestBody" in operations()[call.name]]
NO_PLAN = "0" * 32


class Callers:
    """A coordinator with four tables, and a caller for each set of grants."""

    def __init__(self, settings: Settings, url: str, folder: Path) -> None:
        self._settings = settings
        self.http = httpx.Client(verify=PLAIN, base_url=url, timeout=60)
        self._tokens: dict[tuple[str, tuple[str, ...]], str] = {}
        for name in ("mine.t", "other.t", "Mine.t", "mine"):
            location = folder / name.replace(".", "_")
            hive.write_events(location)
            made = self.ask("PUT", f"/tables/{name}", "admin", json={"location": str(location)})
            made.raise_for_status()
            self.ask("POST", f"/tables/{name}/refresh", "admin").raise_for_status()
        for worker in ("mine", "other"):
            self.beat(worker, "worker").raise_for_status()

    def token(self, *grants: str, name: str = "") -> str:
        """Return a token with these grants; by default, each set of grants is one principal."""
        name = name or "of-" + "".join(one if one.isalnum() else "-" for one in "-".join(grants))
        if (name, grants) not in self._tokens:

            async def create() -> str:
                async with administration.open_tokens(self._settings) as tokens:
                    return (await tokens.create(name, grants, None))[1]

            with start_blocking_portal() as portal:
                self._tokens[name, grants] = portal.call(create)
        return self._tokens[name, grants]

    def ask(self, method: str, path: str, *grants: str, **sent: Any) -> httpx.Response:
        """Make a call as the caller with these grants, or without a token if there are none."""
        name = str(sent.pop("principal", ""))
        headers = dict(sent.pop("headers", {}))
        if grants:
            headers["Authorization"] = f"Bearer {self.token(*grants, name=name)}"
        return self.http.request(method, path, headers=headers, **sent)

    def beat(self, worker: str, *grants: str) -> httpx.Response:
        """Send a heartbeat."""
        body = {"host": "h", "capacity_bytes": 1, "used_bytes": 0, "ttl_seconds": 600}
        return self.ask("PUT", f"/workers/{worker}", *grants, json=body)

    def plan(self, *grants: str, table: str = "mine.t", **sent: Any) -> httpx.Response:
        """Make a plan."""
        return self.ask("POST", "/plans", *grants, json={"table": table}, **sent)

    def plan_id(self, *grants: str, **sent: Any) -> str:
        """Make a plan and return its id, or an id of no plan if the caller may not make one."""
        made = self.plan(*grants, **sent)
        return str(made.json()["plan_id"]) if made.status_code == 200 else NO_PLAN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only folder in which tables are allowed."""
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def callers(folder: Path) -> Iterator[Callers]:
    settings = Settings(
        state_dir=folder / "state", allowed_locations=(str(folder),), require_tokens=True
    )
    with running(settings) as url:
        callers = Callers(settings, url, folder)
        yield callers
        callers.http.close()


def receipt_of(table: str) -> dict[str, object]:
    """Return a receipt of an erasure that nobody has signed."""
    moment = "2026-11-01T00:00:00Z"
    counts = [
        *("files_total", "files_read", "files_rewritten", "files_removed", "files_checked"),
        *("rows_removed", "rows_left", "bytes_before", "bytes_after", "registration"),
        *("snapshot_id", "snapshots_dropped", "manifests_rewritten", "plans_dropped"),
        *("packs_removed", "descriptions_removed"),
    ]
    texts = ("rule", "receipt_id", "installation", "location", "erased_by", "signature")
    return {
        **dict.fromkeys(counts, 0),
        **dict.fromkeys(texts, ""),
        "table": table,
        "started_at": moment,
        "last_byte_at": moment,
        "not_reached": [],
    }


def answered(callers: Callers, call: Call, grants: tuple[str, ...], *, own: bool) -> str:
    """Make a call that changes nothing that other calls need, and return the outcome."""
    where = "mine" if own else "other"
    values = {"name": f"{where}.t", "pattern": f"{where}.*", "worker_id": where}
    if call.subject == "plan":
        values["plan_id"] = callers.plan_id(
            *(grants if own else ("read",)), principal="" if own else "else"
        )
    body: dict[str, object] | None = None
    if call.name in ("POST /plans", "POST /write-plans"):
        body = (
            {"table": f"{where}.t", "rows": 1} if "write" in call.name else {"table": f"{where}.t"}
        )
    if call.name == "POST /erasures/verify":
        body = receipt_of(f"{where}.t")
    method, path = path_of(call, values)
    answer = callers.ask(method, path, *grants, json=body, headers={"If-Match": '"never"'})
    kind = answer.json()["type"].rpartition(":")[2] if answer.is_error else ""
    refusals = {
        "unauthenticated": "401",
        "scope-missing": "403",
        "table-not-found": "404",
        "plan-not-found": "404",
    }
    return refusals.get(kind, "yes")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_is_answered_for_the_callers_in_the_matrix(callers: Callers, call: Call) -> None:
    for identity, grants in IDENTITIES.items():
        for own in (True, False):
            outcome = answered(callers, call, grants or (), own=own)

            assert outcome == expected(call, grants, own=own), (identity, own)


@pytest.mark.parametrize("call", WITH_BODIES, ids=lambda call: call.name)
def test_a_caller_without_the_right_is_refused_before_its_body_is_read(
    callers: Callers, call: Call
) -> None:
    grants = "read:other.t" if call.scope == "worker" else "worker"
    method, path = path_of(call, {"name": "mine.t", "worker_id": "mine"})
    connection = http.client.HTTPConnection(callers.http.base_url.netloc.decode(), timeout=60)
    with closing(connection):
        connection.putrequest(method, path)
        connection.putheader("Authorization", f"Bearer {callers.token(grants)}")
        connection.putheader("Content-Type", "application/json")
        # Nothing of it is sent.
        connection.putheader("Content-Length", "1000000")
        connection.endheaders()

        assert connection.getresponse().status == 403


def test_the_published_matrix_is_the_one_that_is_tested() -> None:
    assert (ROOT / "docs/reference/access-matrix.md").read_text() == page(), "run `make openapi`"


def test_a_call_without_a_rule_for_what_its_path_names_cannot_be_declared() -> None:
    router = GuardedRouter()

    async def call(name: TableNamePath) -> None: ...

    for path, rules in (
        ("/tables/{name}", []),
        ("/tables/{name}", [READ]),
        ("/tables/{name}/more", [READ]),
        ("/plans/{plan_id}/more", [READ]),
        ("/workers/{worker_id}", [READ_TABLE]),
        ("/users/{user_id}", [READ]),
        ("/new", []),
    ):
        with pytest.raises(RuleMissingError):
            router.get(path, dependencies=rules)(call)
    router.get("/tables/{name}", dependencies=[READ_TABLE])(call)


def test_a_page_outside_the_routers_must_be_open_to_everybody() -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/docs")
    async def page() -> None: ...

    require_open(app.routes)
    app.get("/dashboard", include_in_schema=False)(page)
    with pytest.raises(RuleMissingError, match="/dashboard"):
        require_open(app.routes)


def test_a_hidden_table_looks_like_a_missing_one_and_is_never_suggested(callers: Callers) -> None:
    for method, path, body in (
        ("GET", "/tables/{}", None),
        ("POST", "/tables/{}/refresh", None),
        ("GET", "/tables/{}/cache", None),
        ("POST", "/plans", {"table": "{}"}),
        ("POST", "/write-plans", {"table": "{}", "rows": 1}),
    ):
        answers = [
            callers.ask(
                method,
                path.format(name),
                "write:mine.*",
                json=None
                if body is None
                else {k: str(v).format(name) if v == "{}" else v for k, v in body.items()},
            )
            for name in ("other.t", "other.u")
        ]
        hidden, missing = (problem_of(answer, 404, "table-not-found") for answer in answers)
        assert hidden["detail"].replace("other.t", "other.u") == missing["detail"]

    seen = problem_of(callers.ask("GET", "/tables/mine.tt", "read:mine.*"), 404, "table-not-found")
    assert "'mine.t'" in seen["detail"]
    near = problem_of(callers.ask("GET", "/tables/othe.t", "read:mine.*"), 404, "table-not-found")
    assert "other" not in near["detail"]
    told = problem_of(callers.ask("GET", "/tables/othe.t", "read"), 404, "table-not-found")
    assert "'other.t'" in told["detail"]


def test_lists_show_only_what_may_be_seen(callers: Callers) -> None:
    def listed(*grants: str) -> list[str]:
        names: list[str] = []
        token: str | None = None
        while True:
            params = {"page_size": 1} | ({"page_token": token} if token else {})
            found = callers.ask("GET", "/tables", *grants, params=params).json()
            names += [table["name"] for table in found["tables"]]
            token = found["next_page_token"]
            if token is None:
                return sorted(names)

    assert listed("read") == ["Mine.t", "mine", "mine.t", "other.t"]
    assert listed("read:mine.*") == ["mine.t"]
    assert listed("read:mine", "write:other.t") == ["mine", "other.t"]
    assert listed("read:none.*") == []


@pytest.mark.parametrize(
    "spelled",
    ["Mine.t", "mine%2Et", "min%65.t", "other%2et", "mine.*", "%2A", "mine.%25", "mine_t", "mine"],
)
def test_a_name_is_compared_as_the_route_reads_it(callers: Callers, spelled: str) -> None:
    answer = callers.ask("GET", f"/tables/{spelled}", "read:mine.*")

    if spelled in ("mine%2Et", "min%65.t"):
        assert answer.json()["name"] == "mine.t"
    elif "*" in spelled or "%25" in spelled:
        assert answer.status_code in (404, 422)
    else:
        problem_of(answer, 404, "table-not-found")


def test_a_slash_in_a_name_leads_to_no_other_call(callers: Callers) -> None:
    for path in ("/tables/mine.t%2F..%2Fother.t", "/tables/mine.t/../other.t", "/tables//other.t"):
        answer = callers.ask("GET", path, "read:mine.*")

        assert answer.status_code == 404, path
        assert "location" not in answer.text


def test_a_plan_of_another_caller_is_not_found_by_any_call(callers: Callers) -> None:
    plan = callers.plan_id("read")
    as_missing = {
        method + path: callers.ask(method, path.format(NO_PLAN), "write")
        for method, path in (
            ("GET", "/plans/{}"),
            ("GET", "/plans/{}/groups"),
            ("GET", "/plans/{}/explain"),
            ("DELETE", "/plans/{}"),
        )
    }

    for method, path in (
        ("GET", "/plans/{}"),
        ("GET", "/plans/{}/groups"),
        ("GET", "/plans/{}/explain"),
        ("DELETE", "/plans/{}"),
    ):
        answer = callers.ask(method, path.format(plan), "write")
        told = problem_of(answer, 404, "plan-not-found")["detail"]
        assert told.replace(plan, NO_PLAN) == as_missing[method + path].json()["detail"]
        stream = {"Accept": "application/vnd.apache.arrow.stream"}
        problem_of(
            callers.ask(method, path.format(plan), "write", headers=stream), 404, "plan-not-found"
        )

    assert callers.ask("GET", f"/plans/{plan}", "read").is_success
    assert callers.ask("GET", f"/plans/{plan}/groups", "admin").is_success
    assert callers.ask("DELETE", f"/plans/{plan}", "admin").status_code == 204


def test_a_token_of_its_maker_that_may_not_read_the_table_does_not_find_a_plan(
    callers: Callers,
) -> None:
    plan = callers.plan_id("read", principal="etl")

    for grants, seen in (
        (("read:mine.*",), True),
        (("read:other.*",), False),
        (("admin:other.*",), False),
    ):
        answer = callers.ask("GET", f"/plans/{plan}/groups", *grants, principal="etl")
        assert answer.is_success == seen, grants


def test_an_idempotency_key_repeats_no_answer_to_another_caller(callers: Callers) -> None:
    key = {"Idempotency-Key": "same"}
    mine = callers.plan("read", headers=key, principal="a").json()["plan_id"]

    again = callers.plan("read", headers=key, principal="a")
    assert (again.json()["plan_id"], again.headers["Idempotency-Replayed"]) == (mine, "true")
    another = callers.plan("read", headers=key, principal="b")
    assert another.json()["plan_id"] != mine
    assert "Idempotency-Replayed" not in another.headers
    # The same caller, with a token that allows less.
    narrow = callers.plan("read:other.*", headers=key, principal="a")
    problem_of(narrow, 404, "table-not-found")
    assert mine not in narrow.text
    assert (
        callers.plan("read:other.*", table="other.t", headers=key, principal="a").status_code == 422
    )


def test_a_deletion_repeated_with_its_key_succeeds_although_the_plan_is_gone(
    callers: Callers,
) -> None:
    plan = callers.plan_id("read")
    key = {"Idempotency-Key": "delete-once"}

    assert callers.ask("DELETE", f"/plans/{plan}", "read", headers=key).status_code == 204
    again = callers.ask("DELETE", f"/plans/{plan}", "read", headers=key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (204, "true")
    problem_of(callers.ask("DELETE", f"/plans/{plan}", "write", headers=key), 404, "plan-not-found")


def test_a_reused_plan_is_a_plan_of_its_own(callers: Callers) -> None:
    def reusing(*grants: str) -> httpx.Response:
        return callers.ask("POST", "/plans", *grants, json={"table": "mine.t", "reuse": True})

    first, second = (reusing(scope).json()["plan_id"] for scope in ("read", "write"))

    assert first != second
    problem_of(callers.ask("GET", f"/plans/{first}", "write"), 404, "plan-not-found")
    problem_of(reusing("read:other.*"), 404, "table-not-found")
    assert callers.ask("DELETE", f"/plans/{first}", "read").status_code == 204
    assert callers.ask("GET", f"/plans/{second}/groups", "write").is_success


def test_only_its_maker_can_follow_a_plan_that_is_being_made(callers: Callers) -> None:
    made = callers.plan("read", headers={"Prefer": "respond-async"})
    assert made.status_code == 202

    problem_of(callers.ask("GET", made.headers["Location"], "write"), 404, "plan-not-found")
    assert callers.ask("GET", made.headers["Location"], "read").is_success
    refused = callers.plan("read:other.*", headers={"Prefer": "respond-async"})
    problem_of(refused, 404, "table-not-found")
    problem_of(callers.ask("GET", "/tables/mine.t/refresh", "read:other.*"), 404, "table-not-found")


def test_a_worker_speaks_for_nobody_else(callers: Callers) -> None:
    session = callers.beat("mine", "worker:mine").json()["session"]
    other = callers.beat("other", "worker").json()["session"]
    report = {"table": "mine.t", "session": session, "added": []}

    def reported(worker: str, *grants: str, **changed: str) -> httpx.Response:
        return callers.ask(
            "POST", f"/workers/{worker}/cached-files", *grants, json=report | changed
        )

    assert reported("mine", "worker:mine").is_success
    for answer in (
        callers.beat("other", "worker:mine"),
        callers.beat("mine.x", "worker:mine"),
        callers.beat("MINE", "worker:mine"),
        callers.ask("DELETE", "/workers/other", "worker:mine"),
        reported("other", "worker:mine", session=other),
    ):
        assert "worker:" in problem_of(answer, 403, "scope-missing")["detail"]
    # With a token that also reads some tables, a worker reports files of these alone.
    assert reported("mine", "worker:mine", "read:mine.*").is_success
    problem_of(reported("mine", "worker:mine", "read:other.*"), 404, "table-not-found")


def test_a_caller_who_may_read_but_not_change_a_table_is_told_what_is_missing(
    callers: Callers,
) -> None:
    answer = callers.ask("POST", "/tables/other.t/refresh", "read", "write:mine.*")

    problem = problem_of(answer, 403, "scope-missing")
    assert "'write' on table 'other.t'" in problem["detail"]
    assert "--grant write:other.t" in problem["detail"]
    assert 'scope="write"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("kind", ["above", "same", "below", "linked", "metadata", "catalog"])
def test_a_table_shows_no_files_of_a_hidden_one(callers: Callers, folder: Path, kind: str) -> None:
    hidden, free = folder / "other_t", folder / "free"
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to(hidden)
    definition: dict[str, object] = {
        "above": {"location": str(folder)},
        "same": {"location": str(hidden)},
        "below": {"location": str(hidden / "ds=2026-11-01")},
        "linked": {"location": str(folder / "link")},
        "metadata": {
            "location": str(free),
            "format": "iceberg",
            "format_options": {"metadata": f"{hidden}/metadata/v1.metadata.json"},
        },
        "catalog": {
            "location": str(free),
            "format": "iceberg",
            "format_options": {"catalog": "c", "identifier": "other.t"},
        },
    }[kind]
    path = f"/tables/mine.{kind}"

    refused = callers.ask("PUT", path, "write:mine.*", "read:Mine.*", "read:mine", json=definition)
    problem = problem_of(refused, 403, "location-shared")

    assert "other.t" not in problem["detail"]
    # A caller who may read the files may register them again; its writers may then change it.
    assert callers.ask("PUT", path, "write:mine.*", "read", json=definition).is_success
    changed = definition | {"imported_from": "somewhere"}
    assert callers.ask("PUT", path, "write:mine.*", json=changed).is_success
    callers.ask("DELETE", path, "admin").raise_for_status()


def test_a_partition_list_shows_no_files_of_a_hidden_table(callers: Callers, folder: Path) -> None:
    location = folder / "listed"
    definition = {
        "location": str(location),
        "partition_columns": [{"name": "ds", "type": "string"}],
        "listed_partitions": True,
    }
    callers.ask("PUT", "/tables/mine.listed", "write:mine.*", json=definition).raise_for_status()

    def listing(*folders: Path) -> httpx.Response:
        rows = [{"values": [str(at)], "location": str(one)} for at, one in enumerate(folders)]
        body = {"partitions": rows}
        return callers.ask("PUT", "/tables/mine.listed/partitions", "write:mine.*", json=body)

    for hidden in (folder / "other_t", folder / "other_t" / "ds=2026-11-01"):
        problem_of(listing(location / "a", hidden), 403, "location-shared")
    assert listing(location / "a", folder / "elsewhere", folder / "mine_t" / "x").is_success
    callers.ask("DELETE", "/tables/mine.listed", "admin").raise_for_status()


def test_only_names_that_the_grant_covers_can_be_registered(
    callers: Callers, tmp_path: Path
) -> None:
    body = {"location": "/nowhere"}
    for name in ("other.new", "other.t", "mine"):
        refused = callers.ask("PUT", f"/tables/{name}", "write:mine.*", json=body)
        problem_of(refused, 403, "scope-missing")
    allowed = callers.ask("PUT", "/tables/mine.new", "write:mine.*", json=body)
    problem_of(allowed, 403, "location-not-allowed")
