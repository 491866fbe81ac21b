"""`/tables/{name}/protection`: what is protected cannot be deleted, however it is tried."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow.errors import TableProtectedError


@pytest.fixture
def table(client: windrow.Client, events: str, location: Path) -> str:
    """A protected table with two snapshots."""
    hive.write_file(location / "ds=2026-11-09" / "new.parquet", range(3))
    client.refresh(events)
    client.protect_table(events)
    return events


def _expire(client: windrow.Client, table: str) -> Any:
    return client.expire_snapshots(table, keep_last=1, max_age=timedelta(0))


def _replace(client: windrow.Client, table: str) -> Any:
    location = client.table(table).definition.location
    return client.register_table(table, location, "orc", replace=True)


_DELETIONS: dict[str, Callable[[windrow.Client, str], Any]] = {
    "it cannot be deleted": lambda client, table: client.delete_table(table),
    "its partitions cannot be dropped": lambda client, table: client.drop_partitions(
        table, "ds < '2026-11-02'"
    ),
    "its snapshots cannot be dropped": _expire,
    "cannot be dropped by a new format": _replace,
}


@pytest.mark.parametrize("what", _DELETIONS)
def test_each_way_to_delete_names_the_protection_and_the_remedy(
    client: windrow.Client, table: str, location: Path, what: str
) -> None:
    before, files = client.table(table), hive.data_files(location)

    with pytest.raises(TableProtectedError, match=what) as raised:
        _DELETIONS[what](client, table)

    assert f"client.unprotect_table('{table}')" in str(raised.value)
    assert client.table(table) == before
    assert hive.data_files(location) == files
    client.unprotect_table(table)
    _DELETIONS[what](client, table)


def test_a_protected_table_is_written_refreshed_and_changed_as_before(
    client: windrow.Client, table: str, location: Path
) -> None:
    hive.write_file(location / "ds=2026-11-10" / "new.parquet", range(3))
    refresh = client.refresh(table)
    changed = client.alter_table(table, plan_options={"max_split_size": "64MB"})
    again = client.register_table(table, str(location))

    assert refresh.changed
    assert refresh.snapshot == changed.current_snapshot
    # Whoever registers it again does not unprotect it by that.
    assert again.deletion_protection
    assert client.drop_partitions(table, "ds < '2026-11-02'", dry_run=True).files == 2


def test_a_removal_that_began_before_the_protection_removes_nothing(
    client: windrow.Client, http: httpx.Client, events: str
) -> None:
    path = f"/tables/{events}/writes/{'7' * 32}"
    body = {"kind": "removal", "mode": "append", "host": "h", "process": 1}
    http.put(path, json=body | {"state": "staging"}).raise_for_status()
    client.protect_table(events)

    refused = http.put(path, json=body | {"state": "committing"})

    problem_of(refused, 409, "table-protected")
    assert http.put(path, json=body | {"state": "undone"}).is_success


def test_the_protection_has_an_etag_and_repeating_it_changes_nothing(
    client: windrow.Client, http: httpx.Client, table: str
) -> None:
    path, body = f"/tables/{table}/protection", {"deletion_protection": True}
    tag = http.get(f"/tables/{table}").headers["ETag"]

    again = http.put(path, json=body)
    assert (again.json(), again.headers["ETag"]) == (http.get(f"/tables/{table}").json(), tag)
    off = {"deletion_protection": False}
    problem_of(http.put(path, json=off, headers={"If-Match": '"old"'}), 412, "table-changed")
    ended = http.put(path, json=off, headers={"If-Match": tag})
    assert ended.json()["deletion_protection"] is False
    assert ended.headers["ETag"] != tag
    problem_of(http.put("/tables/nobody/protection", json=body), 404, "table-not-found")
    assert http.put(path, json={"deletion_protection": "yes"}).status_code == 422
    assert http.put(path, json={}).status_code == 422


def test_the_audit_log_has_the_old_and_the_new_value(
    http: httpx.Client, client: windrow.Client, table: str
) -> None:
    client.protect_table(table)
    client.unprotect_table(table)

    changes = http.get("/audit", params={"table": table}).json()["changes"]

    values = [(one["before"], one["after"]) for one in changes if one["kind"] == "protection"]
    assert values == [("protected", "not protected"), ("not protected", "protected")]
