"""`/tables/{name}/protection`: what is protected cannot be deleted, however it is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_calls.errors import TableProtectedError
from windrow_service.store import migrate


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


@pytest.mark.parametrize("folder", [".", "ds=2026-11-01", ".."])
def test_files_of_a_protected_table_are_dropped_through_no_other_table(
    client: windrow.Client, http: httpx.Client, events: str, location: Path, folder: str
) -> None:
    protected = f"{events}_protected"
    # Its name only begins like that of the folder.
    client.register_table(f"{protected}_beside", f"{location}_beside")
    client.protect_table(f"{protected}_beside")
    client.register_table(protected, str((location / folder).resolve()))
    client.protect_table(protected)
    files = hive.data_files(location)

    with pytest.raises(TableProtectedError, match="shares a folder with one that is") as raised:
        client.drop_partitions(events, "ds < '2026-11-02'")

    assert protected not in str(raised.value)
    assert hive.data_files(location) == files
    client.unprotect_table(protected)
    client.drop_partitions(events, "ds < '2026-11-02'")
    client.delete_table(protected)
    client.unprotect_table(f"{protected}_beside")


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


# What programs send that know nothing of the protection, such as replicas of an earlier version.
_STATEMENTS = {
    "DELETE FROM tables": "it cannot be deleted",
    "DELETE FROM tables WHERE table_id = 7": "it cannot be deleted",
    "UPDATE tables SET definition = '{2}', current_snapshot_id = NULL": "its snapshots and",
    "UPDATE tables SET definition = '{2}', partition_count = NULL": "its snapshots and",
    "INSERT INTO writes SELECT table_id, 3, 'c', kind, 'staging' FROM writes WHERE number = 1": (
        "its partitions cannot be dropped"
    ),
    "UPDATE writes SET state = 'committing' WHERE number = 1": "its partitions cannot be dropped",
}
_CHANGES = [
    "UPDATE tables SET definition = '{2}'",
    "UPDATE tables SET name = name",
    "UPDATE tables SET current_snapshot_id = 2",
    "UPDATE tables SET partition_count = NULL",
    "UPDATE writes SET state = 'undone' WHERE number = 1",
    "UPDATE writes SET state = 'committing' WHERE number = 2",
    "DELETE FROM writes",
]
_COLUMNS = "table_id, number, write_id, kind, mode, state, host, process"
_NOW = "'2026-11-20 10:00:00+00:00'"


@pytest.fixture
def connection(database_url: sa.URL) -> Iterator[sa.Connection]:
    """A connection to a database with a protected table of two snapshots, and two writes."""
    engine = sa.create_engine(migrate.synchronous(database_url))
    times = f"{_NOW}, {_NOW}, {_NOW}"
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        for statement in (
            "INSERT INTO tables (table_id, name, version, definition, created_at, updated_at,"
            " last_snapshot_id, current_snapshot_id, partition_count, deletion_protection)"
            f" VALUES (7, 's.t', 'v', '{{1}}', {_NOW}, {_NOW}, 2, 2, 5, true)",
            *(
                "INSERT INTO snapshots (table_id, snapshot_id, created_at, info, data_schema,"
                f" partition_schema, bloom_columns, ranges) VALUES (7, {number}, {_NOW}, '{{}}',"
                " '', '', '[]', '')"
                for number in (1, 2)
            ),
            *(
                f"INSERT INTO writes ({_COLUMNS}, started_at, updated_at, state_since) VALUES"
                f" (7, {number}, '{name}', '{kind}', 'append', 'undone', 'h', 1, {times})"
                for number, name, kind in ((1, "a", "removal"), (2, "b", "write"))
            ),
        ):
            connection.exec_driver_sql(statement)
        connection.commit()
        yield connection
    engine.dispose()


def _complete(statement: str) -> str:
    times = "started_at, updated_at, state_since"
    return statement.replace("INTO writes", f"INTO writes ({_COLUMNS}, {times})").replace(
        "kind, 'staging' FROM", f"kind, mode, 'staging', host, process, {times} FROM"
    )


def _rows(connection: sa.Connection) -> list[tuple[Any, ...]]:
    tables = ("tables", "snapshots", "writes")
    names = {"tables": "name", "snapshots": "snapshot_id", "writes": "write_id"}
    return [
        tuple(row)
        for table in tables
        for row in connection.exec_driver_sql(f"SELECT {names[table]} FROM {table} ORDER BY 1")
    ]


@pytest.mark.parametrize("statement", _STATEMENTS)
def test_the_database_refuses_whoever_does_not_know_the_protection(
    connection: sa.Connection, statement: str
) -> None:
    before = _rows(connection)
    with pytest.raises(sa.exc.DBAPIError, match=_STATEMENTS[statement]) as refusal:
        connection.exec_driver_sql(_complete(statement))
    connection.rollback()

    assert _rows(connection) == before
    assert "is protected from deletion" in str(refusal.value.orig)
    if connection.dialect.name == "postgresql":
        # Earlier versions answer 503 with the reason; the others would be a fault of theirs.
        assert isinstance(refusal.value.orig, psycopg.OperationalError)
    connection.exec_driver_sql("UPDATE tables SET deletion_protection = false")
    connection.exec_driver_sql(_complete(statement))


def test_snapshots_of_a_protected_table_stay_whoever_drops_old_ones(
    connection: sa.Connection,
) -> None:
    before = _rows(connection)
    assert not connection.exec_driver_sql("DELETE FROM snapshots RETURNING snapshot_id").all()
    assert _rows(connection) == before
    connection.exec_driver_sql("UPDATE tables SET deletion_protection = false")
    connection.exec_driver_sql("DELETE FROM snapshots WHERE snapshot_id = 1")
    connection.exec_driver_sql("DELETE FROM tables")
    assert [row for row in _rows(connection) if row[0] not in ("a", "b")] == []


@pytest.mark.parametrize("statement", _CHANGES)
def test_the_database_lets_a_protected_table_change_otherwise(
    connection: sa.Connection, statement: str
) -> None:
    assert connection.exec_driver_sql(statement).rowcount
