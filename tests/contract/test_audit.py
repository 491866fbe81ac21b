"""`/audit`: each change leaves one record, and a call that changes nothing leaves none."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import start_blocking_portal

from tests.support.api.contract import operations
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import on_database
from tests.support.tables import hive
from tests.support.tables.packs import unpublished_pack
from windrow_core.models import TableDefinition
from windrow_service import administration
from windrow_service.logs import logging_to
from windrow_service.settings import Settings
from windrow_service.store.audit import SqlAuditLog
from windrow_service.store.database import Database
from windrow_service.store.tables import SqlTableStore
from windrow_service.usecases.audit import Actor, acting

WRITE = "1" * 32
_LONG_AGO_S = 1_700_000_000
_ON_SNAPSHOTS = (
    "publish_inventory",
    "expire_snapshots",
    "define_cache_rule",
    "delete_cache_rule",
    "request_work",
    "withdraw_work",
    "publish_pack",
    "finish_erasure",
    "withdraw_pack",
)
BESIDE = {"mode": "append", "host": "driver-1", "process": 7}

# The record that each call leaves in the log. A call that changes something must be here, or below.
_COUNTS = ("read", "rewritten", "removed", "checked", "total")
ERASED = {
    "rule": "id",
    "keys": 1,
    "started_at": "2026-11-30T07:00:00Z",
    **{f"files_{name}": 0 for name in _COUNTS},
    **dict.fromkeys(("rows_removed", "rows_left", "bytes_before", "bytes_after"), 0),
}
RECORDED = {
    "register_table": ("table", "created"),
    "delete_table": ("table", "deleted"),
    "protect_table": ("protection", "changed"),
    "set_partitions": ("partitions", "changed"),
    "remove_partitions": ("partitions", "deleted"),
    "refresh_table": ("snapshot", "created"),
    "cancel_refresh": ("refresh", "cancelled"),
    "publish_inventory": ("snapshot", "created"),
    "expire_snapshots": ("snapshot", "deleted"),
    "put_write": ("write", "created"),
    "cancel_write": ("write", "cancelled"),
    "define_cache_rule": ("cache_rule", "created"),
    "delete_cache_rule": ("cache_rule", "deleted"),
    "define_policy": ("policy", "created"),
    "delete_policy": ("policy", "deleted"),
    "request_work": ("work", "created"),
    "withdraw_work": ("work", "cancelled"),
    "set_budget": ("budget", "changed"),
    "finish_erasure": ("erasure", "created"),
    "publish_pack": ("pack", "created"),
    "withdraw_pack": ("pack", "deleted"),
    "create_token": ("token", "created"),
    "revoke_token": ("token", "deleted"),
}
NOT_RECORDED = {
    "make_plan": "plans expire by themselves",
    "delete_plan": "plans expire by themselves",
    "preview_retention": "stores nothing",
    "plan_compaction": "stores nothing",
    "plan_packing": "stores nothing",
    "renew_packing_run": "runs are forgotten by themselves; what they publish is recorded",
    "plan_erasure": "stores nothing",
    "verify_receipt": "stores nothing",
    "decide_maintenance": "receipts say what was decided",
    "claim_work": "receipts say who has it",
    "update_claim": "receipts say how it went; the writes are recorded",
    "plan_write": "stores nothing",
    "beat": "workers are forgotten by themselves",
    "forget_worker": "workers are forgotten by themselves",
    "report_cached_files": "workers are forgotten by themselves",
    "report_scans": "the history of plans has them",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("audited")
    return Settings(
        state_dir=folder / "state", allowed_locations=(str(folder),), require_tokens=True
    )


def token(settings: Settings, name: str, scope: str) -> str:
    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create(name, [scope], None))[1]

    with start_blocking_portal() as portal:
        return portal.call(create)


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def secret(settings: Settings, url: str) -> str:
    return token(settings, "ana", "admin")


@pytest.fixture
def http(url: str, secret: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=url, timeout=60, verify=PLAIN, headers=headers) as client:
        yield client


@pytest.fixture
def location(settings: Settings, name: str) -> Path:
    return hive.write_events(Path(settings.allowed_locations[0]) / name)


Call = Callable[[], httpx.Response]


class Caller:
    """Calls about one table, by their ids in openapi.yaml; `prepare` makes what a call needs."""

    def __init__(self, http: httpx.Client, table: str, location: Path) -> None:
        self.http = http
        self.location = location
        self.path = f"/tables/{table}"
        self.token_id = "0" * 16
        self.pack: dict[str, Any] = {"digest": "0" * 64}
        rule = f"{self.path}/cache-rules/recent"
        folder = str(location / "ds=2026-11-01")
        partitions = [{"values": ["2026-11-01"], "location": folder}]
        self.calls: dict[str, Call] = {
            "register_table": self.register,
            "delete_table": lambda: http.delete(self.path),
            "protect_table": lambda: http.put(
                f"{self.path}/protection", json={"deletion_protection": True}
            ),
            "set_partitions": lambda: http.put(
                f"{self.path}/partitions", json={"partitions": partitions}
            ),
            "remove_partitions": lambda: http.delete(f"{self.path}/partitions"),
            "refresh_table": lambda: http.post(f"{self.path}/refresh"),
            "cancel_refresh": lambda: http.delete(f"{self.path}/refresh"),
            "publish_inventory": lambda: http.post(
                f"{self.path}/snapshots", json={"mode": "delta", "removed": [self.first_file()]}
            ),
            "expire_snapshots": lambda: http.post(
                f"{self.path}/snapshots/expire", json={"keep_last": 1, "max_age_seconds": 0}
            ),
            "put_write": self.write("staging"),
            "cancel_write": lambda: http.delete(f"{self.path}/writes/{WRITE}"),
            "define_cache_rule": lambda: http.put(rule, json={"filter": "ds > '2026-11-01'"}),
            "delete_cache_rule": lambda: http.delete(rule),
            "define_policy": lambda: http.put(f"/policies/{table}", json={}),
            "delete_policy": lambda: http.delete(f"/policies/{table}"),
            "request_work": lambda: http.post(f"{self.path}/maintenance/requests", json={}),
            "withdraw_work": lambda: http.delete(f"{self.path}/maintenance/requests"),
            "set_budget": lambda: self.set_budget(60),
            "finish_erasure": lambda: http.post(f"{self.path}/erasures", json=ERASED),
            "publish_pack": lambda: http.post(f"{self.path}/packs", json=self.pack),
            "withdraw_pack": lambda: http.delete(f"{self.path}/packs/{self.pack['digest']}"),
            "create_token": lambda: self.create_token("read"),
            "revoke_token": lambda: http.delete(f"/tokens/{self.token_id}"),
        }

    def register(self) -> httpx.Response:
        body = {
            "location": str(self.location),
            "partition_columns": [{"name": "ds", "type": "string"}],
        }
        return self.http.put(self.path, json=body)

    def create_token(self, scope: str) -> httpx.Response:
        return self.http.post("/tokens", json={"name": "cy", "scopes": [scope]})

    def set_budget(self, core_seconds: int) -> httpx.Response:
        body = {"core_seconds_per_hour": core_seconds}
        return self.http.put("/maintenance/budget", json=body)

    def write(self, state: str) -> Call:
        url = f"{self.path}/writes/{WRITE}"
        return lambda: self.http.put(url, json=BESIDE | {"state": state})

    def first_file(self) -> str:
        return next(iter(hive.data_files(self.location)), "missing.parquet")

    def add_file(self) -> None:
        hive.write_file(self.location / "ds=2026-11-09" / "new.parquet", range(3))

    def prepare(self, operation: str) -> None:
        if operation == "register_table":
            return
        self.register().raise_for_status()
        if operation in _ON_SNAPSHOTS:
            self.calls["refresh_table"]().raise_for_status()
        if operation in ("publish_pack", "withdraw_pack"):
            for file in self.location.rglob("*.parquet"):
                os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))
            self.calls["refresh_table"]().raise_for_status()
            self.pack = unpublished_pack(self.http, self.path.rpartition("/")[2])
        if operation == "withdraw_pack":
            self.calls["publish_pack"]().raise_for_status()
        if operation == "expire_snapshots":
            self.add_file()
            self.calls["refresh_table"]().raise_for_status()
        if operation == "revoke_token":
            self.token_id = self.create_token("read").json()["token_id"]
        if operation == "remove_partitions":
            self.calls["set_partitions"]().raise_for_status()
        if operation == "delete_cache_rule":
            self.calls["define_cache_rule"]().raise_for_status()
        if operation == "delete_policy":
            self.calls["define_policy"]().raise_for_status()
        if operation == "withdraw_work":
            self.calls["request_work"]().raise_for_status()
        if operation == "set_budget":
            self.set_budget(59).raise_for_status()
        if operation == "cancel_write":
            self.write("staging")().raise_for_status()
        if operation == "cancel_refresh":
            # The refresh waits for the write.
            for state in ("staging", "committing"):
                self.write(state)().raise_for_status()
            self.http.post(f"{self.path}/refresh", headers={"Prefer": "respond-async"})


@pytest.fixture
def caller(http: httpx.Client, name: str, location: Path) -> Caller:
    return Caller(http, name, location)


def changes(http: httpx.Client, **wanted: Any) -> list[dict[str, Any]]:
    answer = http.get("/audit", params=wanted)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["changes"]
    return found


def asked_for(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes that somebody asked for: coordinators make others at any time."""
    return [one for one in changes if one["operation"] != "background"]


def test_every_call_that_may_change_something_is_listed_here() -> None:
    may_change = {
        operation["operationId"]
        for name, operation in operations().items()
        if not name.startswith("GET ")
    }

    assert may_change == RECORDED.keys() | NOT_RECORDED.keys()


@pytest.mark.parametrize("operation", RECORDED)
def test_a_change_leaves_one_record_and_a_failure_none(
    caller: Caller, http: httpx.Client, name: str, operation: str
) -> None:
    missing = Caller(http, f"{name}_missing", Path("/nowhere"))
    missing.calls["create_token"] = lambda: missing.create_token("everything")
    missing.calls["define_policy"] = lambda: http.put("/policies/t", json={"max_share": 2})
    missing.calls["set_budget"] = lambda: missing.set_budget(-1)
    caller.prepare(operation)
    before = changes(http)

    assert missing.calls[operation]().is_error
    assert changes(http) == before
    answer = caller.calls[operation]()
    assert answer.is_success, answer.text

    (record, *older) = changes(http)
    assert older == before[: len(older)]
    assert len(older) == min(len(before), 99)
    kind, outcome = RECORDED[operation]
    assert (
        record.items()
        >= {
            "principal": "ana",
            "operation": operation,
            "request_id": answer.headers["X-Request-Id"],
            "table": None if kind in ("token", "budget") else name,
            "kind": kind,
            "outcome": outcome,
        }.items()
    )
    assert record["item"] is not None or kind in ("table", "partitions", "protection", "work")


@pytest.mark.parametrize(
    "operation",
    [
        "register_table",
        "protect_table",
        "refresh_table",
        "define_cache_rule",
        "put_write",
        "cancel_write",
        "withdraw_work",
        "revoke_token",
    ],
)
def test_a_repeated_call_that_changes_nothing_leaves_no_record(
    caller: Caller, http: httpx.Client, operation: str
) -> None:
    caller.prepare(operation)
    caller.calls[operation]().raise_for_status()
    before = asked_for(changes(http))

    assert caller.calls[operation]().is_success

    assert asked_for(changes(http)) == before


def test_a_request_that_is_repeated_with_its_key_leaves_one_record(
    http: httpx.Client, caller: Caller, name: str
) -> None:
    http.headers["Idempotency-Key"] = f"key-{name}"

    for _ in range(2):
        caller.register().raise_for_status()

    assert len(changes(http, table=name)) == 1


def test_records_show_the_versions_of_the_table_before_and_after(
    caller: Caller, http: httpx.Client, name: str
) -> None:
    tags = [
        answer.headers["ETag"].strip('"')
        for answer in (caller.register(), caller.calls["refresh_table"](), http.get(caller.path))
        if "ETag" in answer.headers
    ]
    caller.write("staging")()
    caller.write("undone")()
    caller.calls["delete_table"]()

    told = [(change["before"], change["after"]) for change in changes(http, table=name)]

    assert told == [
        (tags[-1], None),
        ("staging", "undone"),
        (None, "staging"),
        (tags[0], tags[-1]),
        (None, tags[0]),
    ]


def test_records_have_the_old_and_new_values_of_every_field_that_differs(
    caller: Caller, http: httpx.Client, name: str
) -> None:
    caller.prepare("define_cache_rule")
    rule = f"{caller.path}/cache-rules/recent"
    for predicate in ("ds > 'a'", {"op": "gt", "column": "ds", "value": "b"}):
        http.put(rule, json={"filter": predicate}).raise_for_status()
    options = {"parallelism": 4}
    body = {"location": f"{caller.location}_new", "plan_options": options, "format": "orc"}
    http.put(caller.path, json=body, params={"replace": True}).raise_for_status()
    http.delete(caller.path).raise_for_status()

    values = [
        {one["name"]: (one["before"], one["after"]) for one in change["fields"]}
        for change in reversed(changes(http, table=name))
    ]

    assert values.pop(1).keys() == {"file_count", "row_count", "size_bytes", "columns"}
    old, new = str(caller.location), body["location"]
    assert values == [
        {"location": (None, old), "partition_columns": (None, "ds string")},
        {"filter": (None, "ds > 'a'")},
        {"filter": ("ds > 'a'", "ds > 'b'")},
        {
            "location": (old, new),
            "format": ("parquet", "orc"),
            "partition_columns": ("ds string", None),
            "plan_options.parallelism": (None, "4"),
        },
        {
            "location": (new, None),
            "format": ("orc", None),
            "plan_options.parallelism": ("4", None),
        },
    ]


def test_the_record_of_a_snapshot_says_what_it_changed(
    caller: Caller, http: httpx.Client, name: str
) -> None:
    caller.prepare("publish_inventory")
    first = http.get(caller.path).json()["current_snapshot"]
    caller.calls["publish_inventory"]().raise_for_status()
    second = http.get(caller.path).json()["current_snapshot"]

    latest = next(one for one in changes(http, table=name) if one["kind"] == "snapshot")

    values = {one["name"]: (one["before"], one["after"]) for one in latest["fields"]}
    assert second["file_count"] == first["file_count"] - 1
    for field in ("file_count", "row_count", "size_bytes"):
        assert values.pop(field) == (str(first[field]), str(second[field]))
    assert not values


def test_a_redefinition_that_drops_snapshots_is_one_change(
    caller: Caller, http: httpx.Client, name: str
) -> None:
    caller.prepare("publish_inventory")

    body = {"location": str(caller.location), "partition_columns": []}
    problem_of(http.put(caller.path, json=body), 409, "unconfirmed-replacement")
    assert http.put(caller.path, json=body, params={"replace": True}).status_code == 200

    assert changes(http, table=name)[0]["outcome"] == "changed"
    assert len(changes(http, table=name)) == 3


def test_changes_are_found_by_table_caller_and_time_a_page_at_a_time(
    caller: Caller, http: httpx.Client, name: str
) -> None:
    caller.prepare("delete_cache_rule")
    caller.calls["delete_cache_rule"]()
    kinds = [change["kind"] for change in changes(http, table=name)]
    assert kinds == ["cache_rule", "cache_rule", "snapshot", "table"]

    second = changes(http, table=name)[1]
    assert len(changes(http, table=name, since=second["at"])) == 2
    assert changes(http, table=name, principal="nobody") == []
    paged: list[str] = []
    params = {"table": name, "page_size": 2}
    while True:
        page = http.get("/audit", params=params).json()
        paged += [change["kind"] for change in page["changes"]]
        if page["next_page_token"] is None:
            break
        params["page_token"] = page["next_page_token"]
    assert paged == kinds


def test_only_admins_read_the_log(settings: Settings, url: str) -> None:
    headers = {"Authorization": f"Bearer {token(settings, 'bo', 'write')}"}
    refused = httpx.get(f"{url}/audit", headers=headers, verify=PLAIN)
    problem_of(refused, 403, "scope-missing")


def test_tokens_made_and_revoked_by_commands_are_recorded(
    settings: Settings, http: httpx.Client
) -> None:
    async def make_and_revoke() -> None:
        async with administration.open_tokens(settings) as tokens:
            made, _ = await tokens.create("cy", ["read"], None)
            await tokens.revoke(made.token_id)
            # Nothing is left to revoke.
            await tokens.revoke(made.token_id)

    with start_blocking_portal() as portal:
        portal.call(make_and_revoke)

    (revoked, made) = changes(http, page_size=2)
    assert (revoked["outcome"], made["outcome"]) == ("deleted", "created")
    assert revoked["item"] == made["item"]
    assert made["item"].startswith("cy (")
    assert made["principal"].startswith("command:")
    assert made["operation"] == "windrow token"


def test_changes_are_lines_of_the_log_without_secrets(tmp_path: Path) -> None:
    log = io.StringIO()
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with (
        logging_to(log, level="info", for_people=False),
        running(settings) as url,
        httpx.Client(base_url=url, verify=PLAIN) as http,
    ):
        answer = http.put("/tables/t", json={"location": str(tmp_path / "t")})
        http.put("/tables/t", json={"location": "/etc"})

    # Other coordinators of this process have the same log.
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (change,) = asked_for(line for line in lines if line["event"] == "change")
    assert (
        change.items()
        >= {
            "principal": "anonymous",
            "operation": "register_table",
            "kind": "table",
            "outcome": "created",
            "table_name": "t",
            "request_id": answer.headers["X-Request-Id"],
        }.items()
    )
    assert change["fields"] == ["location"]
    assert str(tmp_path) not in json.dumps(change)


def test_old_records_are_forgotten_by_age_and_by_number(database_url: sa.URL) -> None:
    began = datetime(2026, 11, 21, tzinfo=timezone.utc)
    now = began

    async def body(database: Database) -> None:
        nonlocal now
        tables, audit = SqlTableStore(database, lambda: now), SqlAuditLog(database)
        with acting(lambda: Actor("ana", "test")):
            for day in range(10):
                now = began + timedelta(days=day)
                await tables.put(f"t{day}", TableDefinition(location="/data"), None)

        async def left() -> list[str | None]:
            return [record.table for record in await audit.page(2**62, 99)]

        assert await audit.purge(began, 10) == 0
        assert await audit.purge(began + timedelta(days=3), 10) == 3
        assert await left() == [f"t{day}" for day in (9, 8, 7, 6, 5, 4, 3)]
        assert await audit.purge(began, 2) == 5
        assert await left() == ["t9", "t8"]

    on_database(database_url, body)
