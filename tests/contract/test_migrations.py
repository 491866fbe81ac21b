"""Databases of every revision are upgraded to the newest with all their data."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.support.laws import a_few
from tests.support.servers.databases import on_database
from windrow_service.store import migrate, schema
from windrow_service.store.database import Database, embedded_url, server_url
from windrow_service.store.migrate import newest_revision, upgrade
from windrow_service.usecases.errors import StartError

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
REVISIONS = [
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> sa.URL:
    if request.param == "sqlite":
        return embedded_url(tmp_path)
    return server_url(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def engine(url: sa.URL) -> Iterator[sa.Engine]:
    engine = sa.create_engine(migrate.synchronous(url))
    yield engine
    engine.dispose()


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def fill(engine: sa.Engine, revision: str) -> None:
    """Write a table with a snapshot of two manifests as a program of this revision would."""
    tables = sa.MetaData()
    tables.reflect(engine)
    info = {"snapshot_id": 1, "created_at": "2026-11-20T10:00:00.123456Z"}
    # A name of a column may have a null character.
    info |= {"file_count": 5, "size_bytes": 2**40, "columns": [{"name": "a\0b"}]}
    table = {
        "table_id": 7,
        "name": "sales.events",
        "version": "abc",
        "definition": json.dumps({"location": "/data/events"}),
        "created_at": NOW,
        "updated_at": NOW,
        "last_snapshot_id": 1,
        "current_snapshot_id": 1,
    }
    snapshot: dict[str, Any] = {
        "table_id": 7,
        "snapshot_id": 1,
        "info": json.dumps(info),
        "data_schema": b"data",
        "partition_schema": b"partition",
        "ranges": b"ranges",
    }
    paths = [["a", "b"], ["c", "d", "e"]]
    filters = pa.array([{"id": b""}], pa.struct([("id", pa.large_binary())]))
    bodies = [
        stream_of(pa.table({"path": some, "bloom": filters.take(pa.array([0] * len(some)))}))
        for some in paths
    ]
    entries: list[dict[str, Any]] = [
        {"table_id": 7, "snapshot_id": 1, "position": at, "manifest_id": f"m{at}"}
        | {"first_path": some[0]}
        for at, some in enumerate(paths)
    ]
    if revision > "0001":
        snapshot |= {"created_at": NOW, "bloom_columns": '["id"]'}
        for entry, some in zip(entries, paths, strict=True):
            entry["last_path"] = some[-1]
    with engine.begin() as connection:

        def insert(name: str, *rows: dict[str, Any]) -> None:
            connection.execute(sa.insert(tables.tables[name]), list(rows))

        insert("secrets", {"name": "page-tokens", "value": "key"})
        insert("tables", table)
        insert("snapshots", snapshot)
        insert("manifests", *({"manifest_id": f"m{at}", "body": b} for at, b in enumerate(bodies)))
        insert("snapshot_manifests", *entries)
        if revision == "0001":
            plan = {"plan_id": "p", "expires_at": NOW, "info": "{}", "body": b""}
            insert("plans", plan)


def test_every_revision_is_tested_here() -> None:
    script = ScriptDirectory.from_config(migrate._config())

    assert sorted(one.revision for one in script.walk_revisions()) == REVISIONS
    assert newest_revision() == REVISIONS[-1]


def test_all_revisions_together_produce_the_schema_in_the_code(
    url: sa.URL, engine: sa.Engine
) -> None:
    upgrade(url)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, schema.metadata)
    assert differences == []


@pytest.mark.slow
@pytest.mark.parametrize("revision", a_few(REVISIONS, 4))
def test_an_upgrade_keeps_existing_data(url: sa.URL, engine: sa.Engine, revision: str) -> None:
    upgrade(url, revision)
    fill(engine, revision)

    done = upgrade(url)

    assert (done.before, done.after) == (revision, REVISIONS[-1])
    with engine.connect() as connection:
        migrate.check(connection)
        table = connection.execute(sa.select(schema.tables)).one()
        assert (table.table_id, table.name, table.version) == (7, "sales.events", "abc")
        assert table.checked_at is None
        snapshot = connection.execute(sa.select(schema.snapshots)).one()
        assert (snapshot.snapshot_id, snapshot.ranges) == (1, b"ranges")
        assert snapshot.bloom_columns == '["id"]'
        written = snapshot.created_at.replace(tzinfo=timezone.utc)
        expected = datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=timezone.utc)
        assert written == (expected if revision == "0001" else NOW)
        entries = connection.execute(
            sa.select(schema.snapshot_manifests).order_by(schema.snapshot_manifests.c.position)
        ).all()
        assert [(e.manifest_id, e.first_path, e.last_path, e.removed) for e in entries] == [
            ("m0", "a", "b", None),
            ("m1", "c", "e", None),
        ]
        figures = connection.execute(sa.select(schema.snapshot_figures)).one()
        assert (figures.table_id, figures.snapshot_id, figures.file_count) == (7, 1, 5)
        assert (figures.size_bytes, figures.fewest_files) == (2**40, None)
        assert figures.created_at == snapshot.created_at
        assert connection.scalar(sa.select(schema.secrets.c.value)) == "key"


def test_figures_come_and_go_with_the_snapshots_of_any_version(database_url: sa.URL) -> None:
    async def work(database: Database) -> list[int]:
        columns = ("table_id", "name", "version", "definition", "created_at", "updated_at")
        table = dict(zip(columns, (7, "a.b", "v", "{}", NOW, NOW), strict=True))
        snapshot = {"table_id": 7, "created_at": NOW, "data_schema": b"", "partition_schema": b""}
        snapshot |= {"bloom_columns": "[]", "ranges": b""}
        counts = []
        async with database.writing() as connection:
            await connection.execute(sa.insert(schema.tables).values(table))
            for number in (1, 2):
                info = json.dumps({"file_count": 10 * number, "size_bytes": 1, "fewest_files": 1})
                values = snapshot | {"snapshot_id": number, "info": info}
                await connection.execute(sa.insert(schema.snapshots).values(values))
            of = schema.snapshot_figures.c
            query = sa.select(of.file_count).order_by(of.snapshot_id)
            counts += await connection.scalars(query)
            is_first = schema.snapshots.c.snapshot_id == 1
            await connection.execute(sa.delete(schema.snapshots).where(is_first))
            counts += await connection.scalars(query)
            await connection.execute(sa.delete(schema.tables))
            counts += await connection.scalars(query)
        return counts

    assert on_database(database_url, work) == [10, 20, 20]


def test_ids_of_deleted_tables_are_not_reused(url: sa.URL, engine: sa.Engine) -> None:
    upgrade(url)
    row = {
        "name": "t",
        "version": "v",
        "definition": "{}",
        "created_at": NOW,
        "updated_at": NOW,
        "last_snapshot_id": 0,
    }
    numbers = []
    for _ in range(2):
        with engine.begin() as connection:
            made = connection.execute(sa.insert(schema.tables).values(row))
            assert made.inserted_primary_key is not None
            numbers.append(made.inserted_primary_key[0])
            connection.execute(sa.delete(schema.tables))

    assert numbers[0] < numbers[1]


def test_a_database_without_a_revision_is_treated_as_the_first(
    url: sa.URL, engine: sa.Engine
) -> None:
    upgrade(url, "0001")
    fill(engine, "0001")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE alembic_version")

    assert upgrade(url).before == "0001"
    with engine.connect() as connection:
        assert connection.scalar(sa.select(schema.tables.c.name)) == "sales.events"


def test_a_database_older_than_the_first_revision_is_refused_and_left_alone(
    url: sa.URL, engine: sa.Engine
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE tables (table_id INTEGER)")
        connection.exec_driver_sql("CREATE TABLE snapshots (snapshot_id INTEGER)")

    with pytest.raises(StartError, match="move it away"):
        upgrade(url)

    assert sorted(sa.inspect(engine).get_table_names()) == ["snapshots", "tables"]


def test_a_database_of_a_later_version_is_refused_and_left_alone(
    url: sa.URL, engine: sa.Engine
) -> None:
    upgrade(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(
        StartError, match="revision 9999, which this version of Windrow does not know"
    ):
        upgrade(url)

    with engine.connect() as connection, pytest.raises(StartError, match="9999"):
        migrate.check(connection)


def test_a_failed_revision_changes_nothing(url: sa.URL, engine: sa.Engine) -> None:
    upgrade(url, "0001")
    fill(engine, "0001")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE tokens (in_the_way INTEGER)")

    with pytest.raises(sa.exc.DBAPIError):
        upgrade(url)

    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT version_num FROM alembic_version")) == "0001"
        assert connection.scalar(sa.text("SELECT plan_id FROM plans")) == "p"
    assert "idempotency_keys" not in sa.inspect(engine).get_table_names()


@pytest.mark.parametrize("revision", [None, "0001"])
def test_replicas_that_upgrade_at_the_same_time_wait_for_each_other(
    url: sa.URL, engine: sa.Engine, revision: str | None
) -> None:
    if revision is not None:
        upgrade(url, revision)
        fill(engine, revision)

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: upgrade(url), range(4)))

    assert sorted(str(one.before) for one in done) == sorted([str(revision), *[REVISIONS[-1]] * 3])
    with engine.connect() as connection:
        migrate.check(connection)


def test_the_file_of_the_embedded_database_is_private_to_its_user(tmp_path: Path) -> None:
    url = embedded_url(tmp_path / "state")
    upgrade(url)

    assert url.database is not None
    assert stat.S_IMODE(os.stat(url.database).st_mode) == 0o600
