"""`/maintenance/…`: what is decided about real tables, in words, and the work that follows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_calls.errors import NotFoundError
from windrow_core.models import ClaimUpdate, MaintenanceReceipt, WorkOutcome
from windrow_core.sizes import mean_text, size_text

# Everything is worth it at once.
EAGER: dict[str, Any] = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}
DAYS = ["ds=2026-11-01", "ds=2026-11-02", "ds=2026-11-03"]


@pytest.fixture
def table(client: windrow.Client, events: str) -> Iterator[str]:
    """A table of three days, two small files each, without a policy."""
    yield events
    client.set_policy(events, enabled=False)
    client.remove_policy(events)


def decided(client: windrow.Client, table: str) -> dict[str, MaintenanceReceipt]:
    """Decide, and return the receipts of a table by their reasons."""
    client.decide_maintenance()
    return {one.reason: one for one in client.receipts(table)}


def test_nothing_is_decided_without_a_policy(client: windrow.Client, table: str) -> None:
    assert decided(client, table) == {}
    assert client.claim_work("w", pattern=table) is None


def test_work_is_decided_claimed_and_done(client: windrow.Client, table: str) -> None:
    client.set_policy(table, target_file_size="64MB", **EAGER)

    (waiting,) = decided(client, table).values()
    item = client.claim_work("w", pattern=table)
    assert item is not None
    nothing = client.claim_work("other", pattern=table)
    client.update_claim(item.claim_id, ClaimUpdate(state="running"))
    running = decided(client, table)
    outcome = WorkOutcome(files_before=6, files_after=3, bytes_before=10, core_seconds=0.5)
    done = client.update_claim(
        item.claim_id, ClaimUpdate(state="done", text="rewritten", outcome=outcome)
    )

    assert (waiting.state, waiting.folders) == ("waiting", DAYS)
    assert waiting.prediction is not None
    mean = mean_text(3, waiting.prediction.size_bytes)
    assert f") in 3 partitions would become 3 of {mean}: " in waiting.text
    assert sorted(item.folders) == DAYS
    assert (item.target_file_size, item.min_files, nothing) == (64 * 2**20, 2, None)
    assert running["running"].state == "left_alone" or running["running"].worker == "w"
    assert (done.state, done.text, done.outcome) == ("done", "rewritten", outcome)
    explanation = client.maintenance(table)
    assert explanation.decided_at is not None
    assert done in explanation.receipts


@pytest.mark.parametrize(
    ("fields", "reason", "text"),
    [
        ({"enabled": False}, "off", "its policy is off"),
        ({"min_age_seconds": 3_600}, "quiet", "were written to less than 1 hour ago; the first"),
        ({"filter": "ds = '2026-11-01'"}, "excluded", "2 partitions, such as ds=2026-11-0"),
        ({"filter": "id > 1"}, "unfit", "which are ds"),
        ({"filter": "nothing = 1"}, "unfit", "nothing"),
        ({"reads_per_day": 0.0}, "unread", "nobody reads 3 partitions"),
        ({"min_gain": 1e6}, "not_worth", "the policy asks for 1e+06"),
        ({"min_files": 3}, "nothing_small", "no partition has small files to merge"),
    ],
)
def test_each_table_that_is_left_alone_has_a_reason_in_words(
    client: windrow.Client, table: str, fields: dict[str, Any], reason: str, text: str
) -> None:
    client.set_policy(table, **EAGER | fields)

    first = decided(client, table)[reason]
    again = decided(client, table)[reason]

    assert (first.state, first.times, again.times) == ("left_alone", 1, 2)
    assert text in again.text
    assert again.number == first.number


def test_a_closed_window_and_an_empty_budget_are_reasons(
    client: windrow.Client, table: str
) -> None:
    budget = client.maintenance_budget()
    # One of these two is closed at any time; its receipt may be listed in both rounds.
    closed = set()
    for window in ("00:00-12:00", "12:00-00:00"):
        client.set_policy(table, windows=[window], **EAGER)
        closed |= {one.text for one in decided(client, table).values() if one.reason == "window"}
    client.set_policy(table, windows=None)
    (text,) = closed
    assert "it is outside the window, " in text
    assert ":00 UTC" in text
    try:
        client.set_maintenance_budget(core_seconds_per_hour=0)
        client.decide_maintenance()
        assert client.claim_work("w", pattern=table) is None
    finally:
        client.set_maintenance_budget(**budget.model_dump())


def test_compaction_that_somebody_asks_for_needs_no_policy(
    client: windrow.Client, table: str
) -> None:
    count = client.request_compaction(table, folder=DAYS[0])
    again = client.request_compaction(table, folder=DAYS[0])
    item = client.claim_work("w", pattern=table)
    assert item is not None
    during_claim = client.request_compaction(table, folder=DAYS[0])
    nowhere = client.request_compaction(table, folder="ds=1999-01-01")
    rest = client.request_compaction(table)
    client.update_claim(item.claim_id, ClaimUpdate(state="done", outcome=WorkOutcome()))

    assert (count, again, during_claim, nowhere, rest) == (1, 1, 0, 0, 1)
    assert item.folders == [DAYS[0]]
    assert all("asked for it" in one.text for one in client.receipts(table))
    # The rest still waits.
    assert [client.withdraw_compaction(table) for _ in range(2)] == [1, 0]
    assert client.claim_work("w", pattern=table) is None
    with pytest.raises(NotFoundError):
        client.withdraw_compaction(f"{table}_missing")


def test_reads_of_the_history_decide_which_partitions_come_first(
    client: windrow.Client, table: str, location: Path
) -> None:
    days_ago = time.time() - 3 * 86_400
    for path in location.rglob("*.parquet"):
        os.utime(path, (days_ago, days_ago))
    client.refresh(table)
    for _ in range(30):
        client.plan(table, filter="ds = '2026-11-02'", reuse=False)
    client.set_policy(table, min_age_seconds=0, min_gain=0.0, max_share=1.0)

    receipts = decided(client, table)

    assert receipts["waiting"].folders[0] == "ds=2026-11-02"
    prediction = receipts["waiting"].prediction
    assert prediction is not None
    assert prediction.reads_per_day > 0


def test_only_the_smallest_files_are_rewritten_where_that_is_worth_more(
    client: windrow.Client, table: str, location: Path
) -> None:
    # Ten tiny files, and three of two megabytes, which cost more and gain less.
    day = location / "ds=2026-11-01"
    for number in range(8):
        hive.write_file(day / f"tiny-{number}.parquet", range(10))
    for number in range(3):
        hive.write_file(day / f"large-{number}.parquet", range(200_000))
    client.refresh(table)
    client.set_policy(table, target_file_size="16MB", filter="ds = '2026-11-01'", **EAGER)

    waiting = decided(client, table)["waiting"]
    item = client.claim_work("w", pattern=table)
    assert item is not None
    (same, *others) = client.plan_compaction(
        table,
        folders=item.folders,
        target_file_size=item.target_file_size,
        small_file_size=item.small_file_size,
        worth_reads=10**9,
    )

    size = size_text(item.prediction.size_bytes)
    assert f"10 files below 2 MB ({size}) in 1 partition would become 1 of {size}" in waiting.text
    assert (item.folders, item.small_file_size) == ([day.name], 2**21)
    assert (others, same.totals.files, same.totals.becomes) == ([], 10, 1)
    assert item.prediction.size_bytes == same.totals.size_bytes
    assert item.prediction.gain_seconds == pytest.approx(same.totals.gain_seconds)
    # A partition has one reason, not one for each way to rewrite it.
    assert {one.reason for one in client.receipts(table)} == {"running", "excluded"}


def test_a_table_without_a_snapshot_or_of_another_format_is_left_alone(
    client: windrow.Client, name: str, tables_folder: Path
) -> None:
    folder = tables_folder / name
    hive.write_events(folder)
    client.register_table(name, str(folder))
    client.set_policy(name, **EAGER)
    try:
        assert "has no snapshot yet" in decided(client, name)["no_snapshot"].text
        client.register_table(name, str(folder), "orc", replace=True)
        client.set_policy(name, **EAGER)
        reasons = decided(client, name)
        assert reasons["no_snapshot"].times == 2
    finally:
        client.remove_policy(name)


def test_a_claim_that_nobody_has_is_lost(http: httpx.Client) -> None:
    path = f"/maintenance/claims/{'0' * 32}"

    problem_of(http.put(path, json={"state": "running"}), 409, "claim-lost")
    assert http.put(path, json={"state": "done"}).status_code == 422
    assert http.post("/maintenance/claims", json={"worker": ""}).status_code == 422
