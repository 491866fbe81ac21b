"""`windrow cache …` and `windrow worker …`, against a real coordinator process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.coordinators import PLAIN
from tests.unit.cli.conftest import Command, Said
from windrow_core.cards import DASH
from windrow_core.sizes import size_text

TABLE = "cached.events"
RECENT = "ds >= '2026-11-02'"
BEAT = {
    "host": "host-1",
    "capacity_bytes": 200 * 2**30,
    "used_bytes": 5 * 2**20,
    "counters": {"hits": 12345, "misses": 7},
}


@pytest.fixture(scope="module")
def refreshed(coordinator_url: str, sales: Path) -> str:
    with httpx.Client(verify=PLAIN, base_url=coordinator_url, timeout=60) as http:
        http.put(f"/tables/{TABLE}", json={"location": str(sales)}).raise_for_status()
        http.post(f"/tables/{TABLE}/refresh").raise_for_status()
    return TABLE


@pytest.fixture
def table(windrow: Command, refreshed: str) -> Iterator[str]:
    """A table by days, without rules."""
    yield refreshed
    windrow("cache", "sql", f"DROP CACHE {refreshed}")


@pytest.fixture
def worker(coordinator_url: str) -> Iterator[str]:
    with httpx.Client(verify=PLAIN, base_url=coordinator_url) as http:
        http.put("/workers/w-1", json=BEAT).raise_for_status()
        yield "w-1"
        http.delete("/workers/w-1")


def _json(said: Said) -> Any:
    assert (said.code, said.err) == (0, "")
    return json.loads(said.out)


def _refused(said: Said, code: int = 1) -> str:
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("windrow: ")
    assert "Traceback" not in said.err
    return said.err


# --- rules ----------------------------------------------------------------------


def test_add_shows_the_rule_and_repeating_it_adds_no_second(windrow: Command, table: str) -> None:
    first = windrow("cache", "add", table, "--where", RECENT)
    again = _json(windrow("cache", "add", table, "--where", f"{RECENT} ", "--json"))

    assert re.search(rf"{table}: rule rule-[0-9a-f]{{12}} .* where {RECENT}\n", first.out)
    assert f"windrow cache show {table}" in first.out
    assert _json(windrow("cache", "list", table, "--json")) == {"rules": [again]}


def test_add_says_why_reads_would_gain_nothing_or_become_slower(
    windrow: Command, table: str
) -> None:
    windrow("table", "alter", table, "--option", "cached_splits=separate")

    said = " ".join(windrow("cache", "add", table, "--where", RECENT).out.split())

    assert "on the hosts' own disks, reads become slower" in said
    assert "no worker is running, so nothing is cached" in said
    assert "a task of each file (4 files, " in said
    windrow("table", "alter", table, "--drop", "cached_splits")
    assert "cached_splits" not in windrow("cache", "add", table, "--where", RECENT).out


def test_add_takes_a_name_an_end_and_a_size(windrow: Command, table: str) -> None:
    add = ("cache", "add", table, "--where", RECENT, "--name", "recent", "--json")
    before = datetime.now(timezone.utc)

    lasting = _json(windrow(*add, "--for", "7d"))
    until = _json(windrow(*add, "--until", "2099-12-01T06:00+02:00", "--max-bytes", "500GB"))
    of_utc = [_json(windrow(*add, "--until", text)) for text in ("2099-12-01", "2099-12-01T00:00Z")]

    ends = datetime.fromisoformat(lasting["expires_at"])
    assert before + timedelta(days=7) <= ends < before + timedelta(days=7, minutes=5)
    assert datetime.fromisoformat(until["expires_at"]) == datetime(
        2099, 12, 1, 4, tzinfo=timezone.utc
    )
    assert (until["rule"], until["max_bytes"]) == ("recent", 500 * 2**30)
    midnight = datetime(2099, 12, 1, tzinfo=timezone.utc)
    assert [datetime.fromisoformat(one["expires_at"]) for one in of_utc] == [midnight] * 2
    assert len(_json(windrow("cache", "list", table, "--json"))["rules"]) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--for", "soon"), "such as 90d"),
        (("--until", "tomorrow"), "'tomorrow' is not a time such as 2026-12-01"),
        (("--for", "7d", "--until", "2099-12-01"), "give only one"),
        (("--max-bytes", "many"), "many"),
    ],
)
def test_add_refuses_invalid_options(windrow: Command, options: tuple[str, ...], said: str) -> None:
    assert said in _refused(windrow("cache", "add", TABLE, "--where", RECENT, *options), 2)


def test_add_shows_why_the_coordinator_refused(windrow: Command, table: str) -> None:
    said = _refused(windrow("cache", "add", table, "--where", "amount > 5"))

    assert "'amount' cannot be in a cache rule" in said
    assert "which are ds" in said


def test_list_shows_the_rules_of_a_table_and_of_all_tables(windrow: Command, table: str) -> None:
    empty = windrow("cache", "list", table)
    windrow("cache", "add", table, "--where", RECENT, "--name", "a", "--max-bytes", "5MB")
    windrow("cache", "add", table, "--where", "ds IS NULL", "--until", "2099-12-01", "--name", "b")

    assert f"{table} has no cache rules" in empty.out
    for said in (windrow("cache", "list", table), windrow("cache", "list")):
        rows = [line.split("\t") for line in said.out.splitlines() if TABLE in line]
        assert rows == [
            [TABLE, "a", RECENT, "5 MB", DASH],
            [TABLE, "b", "ds IS NULL", DASH, "2099-12-01 00:00:00"],
        ]


def test_drop_removes_a_rule_and_names_a_missing_one(windrow: Command, table: str) -> None:
    windrow("cache", "add", table, "--where", RECENT, "--name", "recent")

    assert "dropped rule recent" in windrow("cache", "drop", table, "recent").out
    assert "no cache rule 'recent'" in _refused(windrow("cache", "drop", table, "recent"))
    windrow("cache", "add", table, "--where", RECENT, "--name", "recent")
    dropped = _json(windrow("cache", "drop", table, "recent", "--json"))
    assert dropped == {"table": table, "dropped": "recent"}


# --- SQL ------------------------------------------------------------------------


def test_sql_adds_shows_and_drops_rules(windrow: Command, table: str) -> None:
    made = _json(windrow("cache", "sql", f"CACHE TABLE {table} WHERE {RECENT};", "--json"))
    windrow("cache", "sql", "cache table `cached`.`events` where ds = '2026-11-01'")
    shown = _json(windrow("cache", "sql", f"SHOW CACHE {table}", "--json"))
    dropped = _json(
        windrow("cache", "sql", f"DROP CACHE {table} WHERE ds>='2026-11-02' -- x", "--json")
    )

    assert (made["action"], made["table"]) == ("cache", table)
    assert made["rules"][0]["filter"] == RECENT
    assert sorted(rule["filter"] for rule in shown["rules"]) == ["ds = '2026-11-01'", RECENT]
    assert dropped["rules"] == made["rules"]
    left = windrow("cache", "sql", "SHOW CACHE").out
    assert RECENT not in left
    assert "ds = '2026-11-01'" in left


def test_sql_adds_the_same_rule_as_add(windrow: Command, table: str) -> None:
    added = _json(windrow("cache", "add", table, "--where", RECENT, "--json"))
    made = _json(windrow("cache", "sql", f"CACHE TABLE {table} WHERE {RECENT}", "--json"))

    assert made["rules"] == [added]


@pytest.mark.parametrize("name", [[], ["--name", "mine"]], ids=["its-own-name", "named"])
def test_sql_keeps_the_end_and_limit_of_a_rule_with_the_same_filter(
    windrow: Command, table: str, name: list[str]
) -> None:
    limits = ["--max-bytes", "5MB", "--for", "7d"]
    added = _json(windrow("cache", "add", table, "--where", RECENT, *limits, *name, "--json"))

    said = windrow("cache", "sql", f"CACHE TABLE {table} WHERE  {RECENT}")

    assert "at most 5 MB, until " in said.out
    assert _json(windrow("cache", "list", table, "--json"))["rules"] == [added]


def test_sql_reports_what_it_did(windrow: Command, table: str) -> None:
    made = windrow("cache", "sql", f"CACHE TABLE {table} WHERE {RECENT}")
    windrow("cache", "add", table, "--where", RECENT, "--name", "another")
    dropped = windrow("cache", "sql", f"DROP CACHE {table}")
    again = windrow("cache", "sql", f"DROP CACHE {table}")

    assert f"where {RECENT}" in made.out
    assert f"{table}: dropped another, rule-" in dropped.out
    assert f"{table} has no cache rules" in again.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"CACHE LAZY TABLE {TABLE} WHERE {RECENT}", "CACHE LAZY TABLE is not supported"),
        (f"CACHE TABLE {TABLE} WHERE ds = 'x", "is not closed"),
        (f"CACHE TABLE {TABLE} WHERE upper(ds) = 'X'", "upper() cannot be planned"),
        (f"CACHE TABLE {TABLE} WHERE amount > 5", "which are ds"),
        (f"CACHE TABLE {TABLE} WHERE ds = '\udcff'", "unicode"),
        (f"DROP CACHE {TABLE} WHERE {RECENT} AND 1 = 1", "has exactly this filter"),
        ("SHOW CACHE no.such", "no table 'no.such'"),
        ("SELECT 1", "write CACHE TABLE"),
    ],
)
def test_sql_that_cannot_be_run_is_refused_in_plain_words(
    windrow: Command, table: str, text: str, said: str
) -> None:
    assert said in _refused(windrow("cache", "sql", text))
    assert windrow("cache", "list", table, "--json").out == '{\n  "rules": []\n}\n'


# --- cached files ---------------------------------------------------------------


def test_show_says_what_is_cacheable_and_which_host_holds_it(
    windrow: Command, coordinator_url: str, table: str, worker: str, sales: Path
) -> None:
    windrow("cache", "add", table, "--where", RECENT, "--name", "recent", "--max-bytes", "5MB")
    path = "ds=2026-11-03/part-0.parquet"
    stat = (sales / path).stat()
    held = {"path": path, "size_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    with httpx.Client(verify=PLAIN, base_url=coordinator_url) as http:
        session = http.put(f"/workers/{worker}", json=BEAT).json()["session"]
        report = {"table": table, "session": session, "added": [held]}
        http.post(f"/workers/{worker}/cached-files", json=report).raise_for_status()

    said = windrow("cache", "show", table)

    assert f"Cache of {table}, snapshot 1\ncacheable\t4 files, " in said.out
    assert "\ncached\t1 file, " in said.out
    assert re.search(rf"recent\t{RECENT}\t4\t1\t.*\t5 MB\t", said.out)
    assert re.search(rf"host-1\t1\t{size_text(stat.st_size)}\t0\n", said.out)
    found = _json(windrow("cache", "show", table, "--json"))
    assert (found["cacheable_files"], found["workers"][0]["host"]) == (4, "host-1")


def test_show_of_a_table_without_rules_says_what_to_do(windrow: Command, table: str) -> None:
    said = windrow("cache", "show", table)

    assert f"\nrules\tnone: `windrow cache add {table} --where …` adds one\n" in said.out
    assert "windrow worker run" in said.out


# --- workers --------------------------------------------------------------------


def test_worker_list_shows_contents_and_statistics_of_caches(windrow: Command, worker: str) -> None:
    row = next(line for line in windrow("worker", "list").out.splitlines() if worker in line)

    assert re.search(r"host-1\t5 MB\t200 GB\t12,345\t7\t", row)
    (found,) = _json(windrow("worker", "list", "--json"))["workers"]
    assert (found["worker_id"], found["counters"]["hits"]) == (worker, 12345)


def test_worker_forget_removes_a_worker_that_is_then_unknown(windrow: Command, worker: str) -> None:
    assert f"forgot worker {worker}" in windrow("worker", "forget", worker).out
    assert "no workers are running" in windrow("worker", "list").out
    assert f"no worker '{worker}'" in _refused(windrow("worker", "forget", worker))


@pytest.mark.parametrize("group", ["cache", "worker"])
def test_a_group_alone_shows_its_commands(windrow: Command, group: str) -> None:
    said = windrow(group)

    assert said.code == 0
    assert "list" in said.out
