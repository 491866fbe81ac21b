"""Coordinators for tests of the dashboard, and the tables in them."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from anyio.from_thread import start_blocking_portal

from tests.support.servers.coordinators import PLAIN
from windrow_service import administration
from windrow_service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

_PICTURES = os.environ.get("WINDROW_PICTURES")
KIB, MIB = 2**10, 2**20
# The stated location of the tables, which need not exist; pictures show it.
LAKE = "/lake"
_BEGAN = datetime(2026, 11, 2, 3, tzinfo=timezone.utc)
_COLUMNS = [{"name": "id", "type": "bigint"}, {"name": "amount", "type": "double"}]


def token(settings: Settings, name: str, *grants: str) -> str:
    """Return a new token."""

    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create(name, grants, None))[1]

    with start_blocking_portal() as portal:
        return portal.call(create)


def written(folders: Sequence[str], tasks: int, size: int, *, day: int) -> list[dict[str, Any]]:
    """Return the files of a Spark job whose tasks each wrote into every folder."""
    job = uuid.UUID(int=day * 1_000 + tasks)
    at_ns = int((_BEGAN + timedelta(days=day)).timestamp()) * 10**9
    return [
        {
            "path": f"{folder}/part-{task:05d}-{job}.c000.parquet",
            "size_bytes": size + (task * 7_919) % size,
            "mtime_ns": at_ns,
            "row_count": size // 40,
            "row_group_offsets": [4],
        }
        for folder in folders
        for task in range(tasks)
    ]


class Operated:
    """A coordinator as its operators use it.

    Args:
        url: URL of the coordinator.
        admin: A token that allows everything; None if no token is needed.
    """

    def __init__(self, url: str, admin: str | None = None) -> None:
        headers = {} if admin is None else {"Authorization": f"Bearer {admin}"}
        self.http = httpx.Client(verify=PLAIN, base_url=url, timeout=60, headers=headers)

    def register(self, name: str, **definition: Any) -> None:
        """Register a table partitioned by day; its files need not exist, as they are published."""
        body = {
            "location": f"{LAKE}/{name}",
            "columns": _COLUMNS,
            "partition_columns": [{"name": "ds", "type": "date"}],
            **definition,
        }
        self.http.put(f"/tables/{name}", json=body).raise_for_status()

    def publish(
        self, name: str, added: Sequence[dict[str, Any]], removed: Sequence[str] = ()
    ) -> None:
        """Add files to a table, as a snapshot."""
        info = self.http.get(f"/tables/{name}").raise_for_status().json()
        body: dict[str, Any] = {"added": list(added)}
        if info["current_snapshot"]:
            body |= {"mode": "delta", "removed": list(removed)}
        else:
            body["columns"] = _COLUMNS
        answer = self.http.post(f"/tables/{name}/snapshots", json=body)
        assert answer.is_success, answer.text


def fill(coordinator: Operated) -> None:
    """Make tables of exploded writes, of small appends and of good files, and an empty one."""
    days = [f"ds=2026-11-{day:02d}" for day in range(2, 14)]
    coordinator.register("sales.events")
    coordinator.register("sales.clicks")
    coordinator.register("sales.orders")
    coordinator.register("sales.new")
    coordinator.register("hr.salaries")
    for day, folder in enumerate(days):
        coordinator.publish("sales.events", written([folder], 2, 100 * MIB, day=day))
        coordinator.publish("sales.clicks", written(days[:3], 2, 90 * KIB, day=day))
    coordinator.publish("sales.events", written(days, 60, 300 * KIB, day=13))
    coordinator.publish("sales.orders", written(days, 2, 128 * MIB, day=3))
    coordinator.publish("hr.salaries", written(days[:2], 3, 70 * KIB, day=4))
    http = coordinator.http
    # These fail: neither the table's location nor the driver of the writes exists.
    http.post("/tables/sales.clicks/refresh")
    for kind, table, states in (
        ("write", "sales.orders", ("staging",)),
        ("compaction", "sales.clicks", ("staging", "committing")),
    ):
        path = f"/tables/{table}/writes/{uuid.uuid4().hex}"
        commit = {"kind": kind, "mode": "append", "host": "driver-2", "process": 4711}
        for state in states:
            http.put(path, json={**commit, "state": state}).raise_for_status()
    for number, (hits, misses) in enumerate([(9_310, 402), (8_720, 655), (0, 0)], start=1):
        counters = {"hits": hits, "misses": misses, "elsewhere": 12 * number}
        beat = {"host": f"host-{number}", "capacity_bytes": 10 * 2**30, "ttl_seconds": 3_600}
        beat |= {"used_bytes": (hits + misses) * MIB, "counters": counters}
        http.put(f"/workers/host-{number}", json=beat).raise_for_status()
    rule = {"filter": "ds >= '2026-11-10'"}
    http.put("/tables/sales.events/cache-rules/latest", json=rule).raise_for_status()
    coordinator.register("sales.old")
    http.delete("/tables/sales.old").raise_for_status()


def begin_refresh(state_dir: Path, name: str, footers: int = 31_000) -> None:
    """Record a refresh of a table as if another replica were running it, or had gone on."""
    now = datetime.now(timezone.utc)
    status = {
        "refresh_id": "a" * 32,
        "table": name,
        "status": "running",
        "started_at": now.isoformat(),
        "seconds": 0,
        "progress": {
            "phase": "reading footers",
            "folders_listed": 1_240,
            "files_found": 86_400,
            "footers_read": footers,
            "footers_total": 86_400,
        },
    }
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        (table_id,) = database.execute(
            "SELECT table_id FROM tables WHERE name = ?", (name,)
        ).fetchone()
        until = (now + timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S.%f")
        row = (table_id, status["refresh_id"], 0, until, 0, json.dumps(status))
        database.execute(
            "INSERT OR REPLACE INTO refreshes (table_id, refresh_id, full_listing, lease_until, cancelled, "
            "status) VALUES (?, ?, ?, ?, ?, ?)",
            row,
        )


def abandon_writes(state_dir: Path) -> None:
    """Let the lease of every write run out that has not begun to commit."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        ago = f"{datetime.now(timezone.utc) - timedelta(hours=30):%Y-%m-%d %H:%M:%S.%f}"
        database.execute(
            "UPDATE writes SET lease_until = ?, updated_at = ? WHERE state = 'staging'", (ago, ago)
        )


def lose_workers(state_dir: Path) -> None:
    """Let all workers of maintenance be gone for five minutes, with the work that they have."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        ago = f"{datetime.now(timezone.utc) - timedelta(minutes=5):%Y-%m-%d %H:%M:%S.%f}"
        database.execute("UPDATE maintainers SET seen_at = ?", (ago,))
        database.execute("UPDATE receipts SET lease_until = ? WHERE state = 'running'", (ago,))


def past_hours(state_dir: Path, count: int) -> None:
    """Record figures of past hours, in which maintenance caught up."""
    began_at = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
    rows = []
    for ago in range(count):
        figures = {
            "began_at": (began_at - timedelta(hours=ago)).isoformat(),
            "tables": 5,
            "files": 900 + 2 * ago,
            "size_bytes": 5_600 * MIB,
            "excess_files": 798 + 2 * ago + ago * 37 % 50,
            "plans": 40,
            "planning_seconds": 0.012 + ago * 7 % 5 / 1_000,
            "slow_planning_seconds": 0.04 + ago * 31 % 20 / 1_000,
        }
        moment = f"{began_at - timedelta(hours=ago):%Y-%m-%d %H:%M:%S.%f}"
        rows.append((moment, json.dumps(figures)))
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        database.executemany("INSERT OR REPLACE INTO hours VALUES (?, ?)", rows)


def multiply(state_dir: Path, count: int) -> None:
    """Copy the tables of a database in turn, with their snapshots, until there are `count`."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        database.row_factory = sqlite3.Row
        tables = [dict(row) for row in database.execute("SELECT * FROM tables ORDER BY table_id")]
        free = max(table["table_id"] for table in tables) + 1
        copies = [
            (number, tables[number % len(tables)]["table_id"])
            for number in range(free, free + count - len(tables))
        ]
        for kind in ("tables", "snapshots", "snapshot_manifests"):
            rows: dict[int, list[dict[str, Any]]] = {}
            for row in database.execute(f"SELECT * FROM {kind}"):
                rows.setdefault(row["table_id"], []).append(dict(row))
            new_rows = [
                {**row, "table_id": number}
                | ({"name": f"many.t{number:05d}"} if "name" in row else {})
                for number, original in copies
                for row in rows.get(original, ())
            ]
            names = ", ".join(new_rows[0])
            values = ", ".join(f":{column}" for column in new_rows[0])
            database.executemany(f"INSERT INTO {kind} ({names}) VALUES ({values})", new_rows)


def multiply_plans(state_dir: Path, count: int) -> None:
    """Copy a plan of the history until all tables together were read `count` times in six days."""
    now = datetime.now(timezone.utc)
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        database.row_factory = sqlite3.Row
        plan = dict(database.execute("SELECT * FROM plan_history LIMIT 1").fetchone())
        del plan["number"]
        names = [row["name"] for row in database.execute("SELECT name FROM tables ORDER BY name")]
        rows = [
            plan
            | {"plan_id": f"{at:032x}", "table_name": names[at * 7_919 % len(names)]}
            | {"created_at": f"{now - timedelta(days=6) * at / count:%Y-%m-%d %H:%M:%S.%f}"}
            for at in range(count)
        ]
        values = ", ".join(f":{column}" for column in plan)
        database.executemany(
            f"INSERT INTO plan_history ({', '.join(plan)}) VALUES ({values})", rows
        )


def multiply_receipts(state_dir: Path, count: int) -> None:
    """Copy each receipt of maintenance `count` times."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        names = [row[1] for row in database.execute("PRAGMA table_info(receipts)")]
        # Each copy gets a number of its own, and no two have the same claim.
        columns = ", ".join(name for name in names if name not in ("number", "claim"))
        for _ in range(count):
            database.execute(
                f"INSERT INTO receipts ({columns}) SELECT {columns} FROM receipts "
                "WHERE number IN (SELECT min(number) FROM receipts GROUP BY table_name, state)"
            )


def forget_sizes(state_dir: Path, name: str) -> None:
    """Make the snapshots of a table like those of versions that did not count files by size."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        database.execute(
            "UPDATE snapshots SET info = json_remove(info, '$.file_sizes') "
            "WHERE table_id = (SELECT table_id FROM tables WHERE name = ?)",
            (name,),
        )


def picture(page: Page, name: str) -> None:
    """Take a picture of a page for the documentation, if requested."""
    if _PICTURES:
        page.screenshot(path=Path(_PICTURES) / f"dashboard-{name}.png", full_page=True)


def let_time_pass(state_dir: Path, plan_id: str, hours: int) -> datetime:
    """Make a plan some hours older, and return its new time of creation."""
    with closing(sqlite3.connect(state_dir / "windrow.db")) as database, database:
        (body,) = database.execute(
            "SELECT body FROM plan_history WHERE plan_id = ?", (plan_id,)
        ).fetchone()
        plan = json.loads(body)
        ago = timedelta(hours=hours)
        created_at, expires = (
            datetime.fromisoformat(plan[name].replace("Z", "+00:00")) - ago
            for name in ("created_at", "expires_at")
        )
        plan |= {"created_at": created_at.isoformat(), "expires_at": expires.isoformat()}
        database.execute(
            "UPDATE plan_history SET body = ?, created_at = ? WHERE plan_id = ?",
            (json.dumps(plan), f"{created_at:%Y-%m-%d %H:%M:%S.%f}", plan_id),
        )
        database.execute(
            "UPDATE plans SET expires_at = ? WHERE plan_id = ?",
            (f"{expires:%Y-%m-%d %H:%M:%S.%f}", plan_id),
        )
    return created_at
