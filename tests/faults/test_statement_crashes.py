"""A driver is killed amid a statement: the rows are the old or the new ones, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.faults.readers import listed_ids
from tests.support.faults.writers import ROOT
from tests.support.laws import is_nightly
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_service.settings import Settings
from windrow_tables.commits import recover

pytestmark = pytest.mark.spark

FIRST, SECOND, THIRD = hive.DAYS
NEW = "2026-11-09"
OLD: Mapping[str, Sequence[int]] = {FIRST: range(20), SECOND: range(20, 40), THIRD: range(40, 60)}
_ROWS = (
    f"SELECT 100 + id AS id, 'name' AS name, element_at(array(DATE'{SECOND}', DATE'{NEW}'), "
    "CAST(1 + id % 2 AS INT)) AS ds FROM range(10)"
)
ADDED: Mapping[str, Sequence[int]] = {SECOND: range(100, 110, 2), NEW: range(101, 110, 2)}
_DYNAMIC = "SET spark.sql.sources.partitionOverwriteMode = dynamic"
# Statements, and the ids of each day after them.
KINDS: dict[str, tuple[list[str], Mapping[str, Sequence[int]]]] = {
    "append": (
        [f"INSERT INTO {{t}} {_ROWS}"],
        {**OLD, SECOND: [*OLD[SECOND], *ADDED[SECOND]], NEW: ADDED[NEW]},
    ),
    "dynamic": ([_DYNAMIC, f"INSERT OVERWRITE {{t}} {_ROWS}"], {**OLD, **ADDED}),
    "overwrite": ([f"INSERT OVERWRITE {{t}} {_ROWS}"], ADDED),
    "partition": (
        [f"INSERT OVERWRITE {{t}} PARTITION (ds = '{FIRST}') SELECT 7L, 'name'"],
        {**OLD, FIRST: [7]},
    ),
}
UNDONE = ("staged", "admitted", "linked", "files written", "catalog changed", "list changed")
STEPS = ("staged", "admitted", "recorded", "exchanged", "moved in", "published", "noted")
# Steps of INSERT into a table of the catalog, each with how often it is reached before the death.
CATALOG_DEATHS = [
    *(("append", (step, 1)) for step in ("files written", "catalog changed", "list changed")),
    *(("append", (step, 1)) for step in ("recorded", "moved in", "published")),
    *(("dynamic", (step, 1)) for step in ("list changed", "exchanged", "moved in")),
    *(("overwrite", (step, 1)) for step in ("list changed", "exchanged", "partitions kept")),
    *(("overwrite", (step, 2)) for step in ("catalog changed", "list changed")),
    *(("partition", (step, 1)) for step in ("staged", "exchanged")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("statements")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running(Settings(state_dir=folder / "state", allowed_locations=(str(folder),))) as url:
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


def drive(
    url: str,
    statements: Sequence[str],
    step: tuple[str, int] | None = None,
    *,
    queries: Sequence[str] = (),
    conf: Mapping[str, str] | None = None,
    table: str | None = None,
) -> list[list[list[Any]]]:
    """Run a driver until it has died at a step; return the rows of queries from before that.

    Args:
        url: URL of the coordinator.
        statements: What it carries out.
        step: A step of the last statement, and how often it is reached.
        queries: Queries before the statements.
        conf: Settings of its session.
        table: The table of Hive's metastore that it writes.
    """
    task = {
        "url": url,
        "statements": statements,
        "step": step,
        "queries": queries,
        "conf": conf or {},
        "table": table,
        "hive": table is not None,
    }
    command = [sys.executable, "-m", "tests.programs.dying_statements", json.dumps(task)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        # The JVM keeps the output open.
        process.wait(900)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    output, _ = process.communicate()
    assert process.returncode == (0 if step is None else -signal.SIGKILL), output[-5_000:]
    lines = [line for line in output.splitlines() if line.startswith("[[")]
    rows: list[list[list[Any]]] = json.loads(lines[-1]) if queries else []
    return rows


def by_folder(days: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {f"ds={day}": sorted(ids) for day, ids in days.items()}


def assert_whole(
    client: Client, table: str, location: Path, days: Mapping[str, Sequence[int]]
) -> None:
    """Assert that the table has exactly these rows, for every reader, and that nothing is left."""
    folders = listed_ids(location)
    assert {name: ids for name, ids in folders.items() if ids} == by_folder(days)
    assert not (location / "_windrow").exists()
    assert not list(client.writes(table, open_only=True))
    assert not client.refresh(table, full=True).changed


@pytest.mark.nightly
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_statement_leaves_the_old_or_the_new_rows(
    client: Client, url: str, folder: Path, kind: str, step: str
) -> None:
    name = f"{kind}_{step.replace(' ', '_')}"
    location = hive.write_events(folder / name)
    client.register_table(f"sales.{name}", str(location))
    client.refresh(f"sales.{name}")
    statements, after = KINDS[kind]

    drive(url, [one.format(t=f"windrow.sales.{name}") for one in statements], (step, 1))
    recover(client, f"sales.{name}")

    assert_whole(client, f"sales.{name}", location, OLD if step in UNDONE else after)


# tests/spark/test_created_tables.py repeats a statement after what such a driver leaves.
@pytest.mark.nightly
def test_the_same_statement_ends_a_creation_that_was_killed_and_an_overwrite_is_killed_too(
    client: Client, url: str, folder: Path
) -> None:
    steps = STEPS if is_nightly() else ("staged",)
    names = [step.replace(" ", "_") for step in steps]
    conf = {"spark.windrow.warehouse": str(folder)}
    statements = [
        f"CREATE TABLE IF NOT EXISTS windrow.made.{name} PARTITIONED BY (ds) AS {_ROWS}"
        for name in names
    ]
    for step, name, statement in zip(steps, names, statements, strict=True):
        drive(url, [statement], (step, 1), conf=conf)
        snapshot = client.table(f"made.{name}").current_snapshot
        # The first snapshot is that of the rows.
        assert (snapshot is not None) == (step in ("published", "noted"))
        assert snapshot is None or snapshot.file_count == 2

    overwrite = f"INSERT OVERWRITE windrow.made.{names[-1]} PARTITION (ds = '{NEW}') SELECT 7L, 'x'"
    drive(url, [*statements, overwrite], ("exchanged", 1), conf=conf)

    for name in names:
        # A table that is published is there for the statement, with the folder of its write.
        recover(client, f"made.{name}")
        after = {**ADDED, NEW: [7]} if name == names[-1] else ADDED
        assert_whole(client, f"made.{name}", folder / "made" / name, after)


@pytest.mark.nightly
def test_a_killed_statement_leaves_the_catalog_with_every_partition_that_has_rows(
    client: Client, url: str, folder: Path
) -> None:
    table, location = "shop.events", folder / "shop.db" / "events"
    conf = {
        "spark.sql.warehouse.dir": str(folder),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }
    queries = [f"SELECT CAST(ds AS STRING), id FROM {table}", f"SHOW PARTITIONS {table}"]
    create = (
        f"CREATE TABLE {table} (id BIGINT, name STRING, ds DATE) USING parquet PARTITIONED BY (ds)"
    )
    drive(url, ["CREATE DATABASE shop", create], conf=conf, table="shop.*")
    # Each driver first puts the old rows back, without the partitions that they do not need.
    reset = [
        "SET spark.sql.sources.partitionOverwriteMode = static",
        f"INSERT OVERWRITE {table} "
        + " UNION ALL ".join(
            f"SELECT id, 'old', DATE'{day}' FROM range({ids[0]}, {ids[-1] + 1})"
            for day, ids in OLD.items()
        ),
    ]
    expected: Mapping[str, Sequence[int]] = {}
    for kind, step in [*CATALOG_DEATHS, ("append", None)]:
        statements, after = KINDS[kind]
        statements = [*reset, *(one.format(t=table) for one in statements)]

        rows, partitions = drive(url, statements, step, queries=queries, conf=conf, table=table)

        # What the death before this one has left.
        assert sorted(map(tuple, rows)) == sorted(
            (day, id_) for day, ids in expected.items() for id_ in ids
        )
        names = {name for (name,) in partitions}
        assert set(by_folder(expected)) <= names <= set(by_folder({**OLD, **ADDED}))
        recover(client, table)
        undone = step is not None and step[1] == 1 and step[0] in UNDONE
        expected = OLD if undone else after
        assert_whole(client, table, location, expected)
        listed = {Path(one.location).name for one in client.partitions(table)}
        assert set(by_folder(expected)) <= listed
