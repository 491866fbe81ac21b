"""Retention: which partitions a policy drops, what it says before, and what keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_core.models import ClaimUpdate, MaintenanceReceipt, WorkItem, WorkOutcome

DONE = ClaimUpdate(state="done", text="dropped", outcome=WorkOutcome())


def day(age: int) -> str:
    """Return the day of so many days ago."""
    return f"{datetime.now(timezone.utc).date() - timedelta(days=age)}"


OLDER, OLD, YOUNG = day(300), day(200), day(10)
# The column is of type string, and one of its values is no date.
KEEP: dict[str, Any] = {"keep_days": 90, "keep_by": "ds"}


@pytest.fixture
def table(client: windrow.Client, name: str, location: Path) -> Iterator[str]:
    """A table of two old days, a young one, and two partitions whose values are not dates."""
    for number, value in enumerate((OLDER, OLD, YOUNG, "latest", "__HIVE_DEFAULT_PARTITION__")):
        for part in range(2):
            file = location / f"ds={value}" / "region=eu" / f"part-{part}.parquet"
            hive.write_file(file, range(20 * number + 10 * part, 20 * number + 10 * part + 10))
    client.register_table(name, str(location))
    client.refresh(name)
    yield name
    client.set_policy(name, enabled=False)
    client.remove_policy(name)


def decided(client: windrow.Client, table: str) -> dict[str, MaintenanceReceipt]:
    """Return the receipts of a table by their reasons, after the round that announces, and another."""
    client.decide_maintenance()
    client.decide_maintenance()
    return {one.reason: one for one in client.receipts(table)}


def claimed(client: windrow.Client, table: str) -> WorkItem | None:
    return client.claim_work("w", pattern=table)


def test_a_preview_shows_what_would_go_and_changes_nothing(
    client: windrow.Client, table: str, http: httpx.Client
) -> None:
    preview = client.preview_retention(table, **KEEP)

    (one,) = preview.tables
    assert one.removal is not None
    assert (one.table, one.removal.column, one.removal.zone) == (table, "ds", "UTC")
    assert (one.removal.partitions, one.removal.files, one.removal.rows) == (2, 4, 40)
    assert (one.removal.before.isoformat(), one.removal.others) == (day(90), 2)
    assert one.values == [f"ds={OLDER}", f"ds={OLD}"]
    assert "2 partitions with 4 files" in one.text
    assert "2 without a date stay" in one.text
    assert (preview.partitions, preview.files) == (2, 4)
    assert preview.size_bytes == one.removal.size_bytes
    problem_of(http.get(f"/policies/{table}"), 404, "policy-not-found")
    assert decided(client, table) == {}


def test_work_is_decided_claimed_and_selects_exactly_the_old_partitions(
    client: windrow.Client, table: str
) -> None:
    client.set_policy(table, **KEEP)

    waiting = decided(client, table)["waiting"]
    item = claimed(client, table)
    running = decided(client, table)
    assert item is not None
    done = client.update_claim(item.claim_id, DONE)

    assert (waiting.prediction, waiting.folders) == (None, [f"ds={OLDER}", f"ds={OLD}"])
    assert waiting.removal is not None
    assert waiting.removal.files == 4
    assert item.filter is not None
    removal = client.drop_partitions(table, item.filter.model_dump(), dry_run=True)
    assert removal.folders == (f"ds={OLDER}/region=eu", f"ds={OLD}/region=eu")
    assert "retention_running" in running
    assert (done.state, done.removal) == ("done", waiting.removal)


@pytest.mark.parametrize(
    ("fields", "reason", "text"),
    [
        (
            {**KEEP, "keep_days": 3_000},
            "nothing_old",
            f"the oldest is {OLDER}; 2 without a date stay",
        ),
        ({"keep_days": 90, "keep_by": "region"}, "no_dates", "no value of 'region'"),
        ({"keep_days": 90, "keep_by": "day"}, "no_dates", "partition columns: ds, region"),
        ({**KEEP, "filter": "region = 'us'"}, "nothing_old", "older than 90 days"),
        ({**KEEP, "filter": "id = 1"}, "retention_unfit", "which are ds, region"),
        ({**KEEP, "enabled": False}, "off", "its policy is off"),
    ],
)
def test_each_table_that_keeps_its_partitions_has_a_reason_in_words(
    client: windrow.Client, table: str, fields: dict[str, Any], reason: str, text: str
) -> None:
    client.set_policy(table, **fields)

    assert text in decided(client, table)[reason].text
    assert claimed(client, table) is None
    assert text in client.preview_retention(table).tables[0].text


def test_nothing_is_dropped_by_a_policy_that_does_not_say_so(
    client: windrow.Client, table: str
) -> None:
    client.set_policy(table, min_age_seconds=0)

    assert not {"nothing_old", "waiting"} & decided(client, table).keys()
    assert client.preview_retention(table).partitions == 0


def test_a_filter_of_the_policy_limits_what_goes(client: windrow.Client, table: str) -> None:
    client.set_policy(table, keep_days=90, keep_by="DS", filter=f"ds <> '{OLD}'")
    decided(client, table)

    item = claimed(client, table)

    assert item is not None
    assert item.filter is not None
    removal = client.drop_partitions(table, item.filter.model_dump(), dry_run=True)
    assert removal.folders == (f"ds={OLDER}/region=eu",)


@pytest.mark.parametrize(
    "change", ["policy", "shorter", "removed", "protected", "beside", "rewritten", "table"]
)
def test_what_has_changed_since_the_decision_counts_when_work_is_claimed(
    client: windrow.Client, table: str, location: Path, change: str
) -> None:
    client.set_policy(table, **KEEP | {"keep_days": 250 if change == "shorter" else 90})
    decided(client, table)
    if change == "policy":
        client.set_policy(table, keep_days=250)
    elif change == "shorter":
        client.set_policy(table, keep_days=90)
    elif change == "removed":
        client.remove_policy(table)
        client.set_policy(table)
    elif change == "protected":
        client.protect_table(table)
    elif change == "beside":
        client.register_table(f"{table}_beside", str(location))
        client.protect_table(f"{table}_beside")
    elif change == "rewritten":
        client.drop_partitions(table, f"ds = '{OLDER}' OR ds = '{OLD}'")
    else:
        client.delete_table(table)

    item = claimed(client, table)

    if change in ("policy", "shorter"):
        assert item is not None
        # Never more than was decided, whatever the policy or a clock says by now.
        assert item.folders == [f"ds={OLDER}"]
        return
    assert item is None
    receipt = {one.state: one for one in client.receipts(table)}
    text = {
        "removed": "its policy keeps all partitions",
        "protected": f"windrow table unprotect {table}",
        "beside": "protected from deletion has files in the same folder",
        "table": f"no table '{table}'",
        "rewritten": "nothing was left to drop",
    }[change]
    assert text in receipt["done" if change == "rewritten" else "gave_up"].text
    client.register_table(table, str(location))
    client.unprotect_table(table)
    if change == "beside":
        client.unprotect_table(f"{table}_beside")
        client.delete_table(f"{table}_beside")


def test_a_removal_waits_for_its_window_its_budget_and_after_a_conflict(
    client: windrow.Client, table: str
) -> None:
    budget = client.maintenance_budget()
    # One of these two is closed at any time; its receipt may be listed in both rounds.
    closed = set()
    for window in ("00:00-12:00", "12:00-00:00"):
        client.set_policy(table, **KEEP, windows=[window])
        closed |= {
            one.text for one in decided(client, table).values() if one.reason == "retention_window"
        }
    client.set_policy(table, windows=None)
    (text,) = closed
    assert "but it is outside the window" in text
    try:
        client.set_maintenance_budget(core_seconds_per_hour=0)
        assert "is paused" in decided(client, table)["retention_paused"].text
        assert claimed(client, table) is None
    finally:
        client.set_maintenance_budget(**budget.model_dump())
    decided(client, table)
    item = claimed(client, table)
    assert item is not None
    conflict = ClaimUpdate(state="gave_up", text="a writer was faster: another write")
    client.update_claim(item.claim_id, conflict)
    later = decided(client, table)["retention_backing_off"]
    assert "it waits 15 minutes after: a writer was faster" in later.text
    assert claimed(client, table) is None


def test_of_several_columns_with_dates_the_policy_must_say_which(
    client: windrow.Client, name: str, location: Path
) -> None:
    for value in (OLD, YOUNG):
        hive.write_file(location / f"ds={value}" / f"loaded={YOUNG}" / "a.parquet", range(5))
    client.register_table(name, str(location))
    client.refresh(name)

    unclear = client.preview_retention(name, keep_days=90)
    by_ds = client.preview_retention(name, keep_days=90, keep_by="ds")
    by_loaded = client.preview_retention(name, keep_days=90, keep_by="loaded")

    assert "ds and loaded have dates" in unclear.tables[0].text
    assert (unclear.partitions, by_ds.partitions, by_loaded.partitions) == (0, 1, 0)


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamp_ntz", "string"])
def test_dates_of_each_type_are_selected_by_the_filter_of_the_work(
    client: windrow.Client, name: str, location: Path, type_: str
) -> None:
    times = type_.startswith("timestamp")
    suffix = " 10%3A30%3A00" if times else ""
    zone = "Z" if type_ == "timestamp" else ""
    for value in (OLD, YOUNG):
        hive.write_file(location / f"at={value}{suffix}{zone}" / "a.parquet", range(5))
    client.register_table(name, str(location), partition_columns={"at": type_})
    client.refresh(name)
    client.set_policy(name, keep_days=90)
    decided(client, name)

    item = claimed(client, name)

    client.remove_policy(name)
    assert item is not None
    assert item.filter is not None
    removal = client.drop_partitions(name, item.filter.model_dump())
    assert removal.folders == (f"at={OLD}{suffix}{zone}",)
    assert len(hive.data_files(location)) == 1
    assert client.update_claim(item.claim_id, DONE).state == "done"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"keep_days": 0}, "keep_days"),
        ({"keep_days": "90"}, "keep_days"),
        ({"keep_days": 90, "keep_by": ""}, "keep_by"),
        ({"keep_days": 90, "keep_zone": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
        ({"keep_days": 90, "keep_zone": "../etc"}, "keep_zone"),
    ],
)
def test_a_retention_that_cannot_work_is_refused_when_it_is_set_and_previewed(
    http: httpx.Client, name: str, fields: dict[str, Any], reason: str
) -> None:
    for answer in (
        http.put(f"/policies/{name}", json=fields),
        http.post(f"/policies/{name}/retention", json=fields),
    ):
        assert answer.status_code == 422
        assert reason in answer.json()["detail"]


def test_a_preview_of_a_pattern_follows_more_specific_policies(
    client: windrow.Client, name: str, tables_folder: Path
) -> None:
    tables = [f"{name}.a", f"{name}.b"]
    for table in tables:
        location = tables_folder / table
        for value in (OLD, YOUNG):
            hive.write_file(location / f"ds={value}" / "a.parquet", range(5))
        client.register_table(table, str(location))
        client.refresh(table)
    client.set_policy(tables[1], keep_days=1_000)
    try:
        preview = client.preview_retention(f"{name}.*", keep_days=90)
    finally:
        client.remove_policy(tables[1])

    assert [one.table for one in preview.tables] == tables
    assert [one.removal is None for one in preview.tables] == [False, True]
    assert "older than 1,000 days" in preview.tables[1].text
    assert preview.partitions == 1


# --- which texts are days ------------------------------------------------------------------------


# Values of text columns that are no days, or that stand for another thing than a day.
CODES = {
    "stores": ["1001", "1002", "1877", "2001"],
    "versions": ["1000-1", "1999-12", "2024-2"],
    "sentinels": ["0001-01-01", "1900-01-01", "1970-01-01", YOUNG, "__HIVE_DEFAULT_PARTITION__"],
    "parts": ["1234-5-6 bolt M4", "0815 nut", f"{OLD} x"],
    "mixed": [OLD, YOUNG, "latest"],
}


@pytest.mark.parametrize("kind", CODES)
def test_a_text_is_no_day_unless_its_column_is_named_or_has_nothing_else(
    client: windrow.Client, name: str, location: Path, kind: str
) -> None:
    for value in CODES[kind]:
        hive.write_file(location / f"code={value}" / "region=eu" / "a.parquet", range(5))
    columns = {"code": "string", "region": "string"}
    client.register_table(name, str(location), partition_columns=columns)
    client.refresh(name)
    client.set_policy(name, keep_days=90)

    receipts = decided(client, name)

    client.remove_policy(name)
    assert "waiting" not in receipts
    (reason,) = receipts.keys() & {"no_dates", "nothing_old"}
    expected = {"sentinels": "before 2000-01-02 stay", "parts": "no partition column has dates"}
    assert expected.get(kind, "say `--keep-by code`") in receipts[reason].text


def test_sentinels_go_if_they_are_asked_for(
    client: windrow.Client, name: str, location: Path
) -> None:
    for value in ("0001-01-01", "1970-01-01", OLD, YOUNG):
        hive.write_file(location / f"ds={value}" / "a.parquet", range(5))
    client.register_table(name, str(location))
    client.refresh(name)

    usual = client.preview_retention(name, keep_days=90)
    asked_for = client.preview_retention(name, keep_days=90, keep_before="0001-01-01")

    assert usual.tables[0].values == [f"ds={OLD}"]
    assert asked_for.tables[0].values == ["ds=0001-01-01", "ds=1970-01-01", f"ds={OLD}"]


# --- what a round says before it drops anything --------------------------------------------------


def test_the_first_round_that_finds_old_partitions_of_a_table_only_says_so(
    client: windrow.Client, table: str, name: str
) -> None:
    client.set_policy(table, **KEEP)

    client.decide_maintenance()
    first = {one.reason: one for one in client.receipts(table)}
    waiting = claimed(client, table)
    client.decide_maintenance()
    item = claimed(client, table)

    assert first["retention_announced"].state == "left_alone"
    assert "they stay until the next round" in first["retention_announced"].text
    assert f"ds={OLDER} to ds={OLD}" in first["retention_announced"].text
    assert waiting is None
    assert item is not None


def test_a_table_that_is_registered_later_waits_for_a_round_of_its_own(
    client: windrow.Client, name: str, tables_folder: Path
) -> None:
    pattern, early, late = f"{name}.*", f"{name}.early", f"{name}.late"

    def register(table: str) -> None:
        for value in (OLD, YOUNG, day(5)):
            hive.write_file(tables_folder / table / f"ds={value}" / "a.parquet", range(5))
        client.register_table(table, str(tables_folder / table))
        client.refresh(table)

    register(early)
    client.set_policy(pattern, keep_days=90)
    client.decide_maintenance()
    register(late)
    client.decide_maintenance()
    items = [claimed(client, pattern), claimed(client, pattern)]
    client.decide_maintenance()
    last = claimed(client, pattern)

    client.remove_policy(pattern)
    assert [one and one.table for one in items] == [early, None]
    assert last is not None
    assert last.table == late


def test_once_a_table_was_cleaned_the_next_day_goes_at_once_but_not_most_of_the_table(
    client: windrow.Client, name: str, location: Path
) -> None:
    def grow(*ages: int) -> None:
        for age in ages:
            hive.write_file(location / f"ds={day(age)}" / "a.parquet", range(5))
        client.refresh(name)

    def drop() -> list[str] | None:
        client.decide_maintenance()
        item = claimed(client, name)
        if item is None:
            return None
        assert item.filter is not None
        client.drop_partitions(name, item.filter.model_dump())
        client.update_claim(item.claim_id, DONE)
        return item.folders

    client.register_table(name, str(location))
    grow(1, 2, 3, 100)
    client.set_policy(name, keep_days=90)
    assert [drop(), drop()] == [None, [f"ds={day(100)}"]]

    grow(101)
    assert drop() == [f"ds={day(101)}"]
    grow(102, 103, 104, 105)
    assert drop() is None
    text = next(one.text for one in client.receipts(name) if one.reason == "retention_large")
    assert "57 % of the table" in text
    assert "it is more than half of the table" in text
    assert drop() == [f"ds={day(age)}" for age in (105, 104, 103, 102)]
    client.remove_policy(name)


def test_that_some_partitions_go_does_not_announce_that_most_do(
    client: windrow.Client, name: str, location: Path
) -> None:
    def waiting_after(*ages: int) -> WorkItem | None:
        for age in ages:
            hive.write_file(location / f"ds={day(age)}" / "a.parquet", range(5))
        client.refresh(name)
        client.decide_maintenance()
        return claimed(client, name)

    client.register_table(name, str(location))
    client.set_policy(name, keep_days=90)

    assert waiting_after(1, 2, 3, 100) is None
    # Such as nights on which nobody maintains, or a clock that goes wrong between two rounds.
    assert waiting_after(101, 102, 103) is None
    item = waiting_after()

    client.remove_policy(name)
    assert item is not None
    assert item.folders == [f"ds={day(age)}" for age in (103, 102, 101, 100)]


def test_a_table_all_of_whose_days_are_old_waits_for_a_yes(
    client: windrow.Client, name: str, location: Path
) -> None:
    # Its writer has stopped, or a clock is wrong. Another year's bookings prove nothing.
    for value in (OLDER, OLD, day(-400), "9999-12-31", "1970-01-01"):
        hive.write_file(location / f"ds={value}" / "a.parquet", range(5))
    client.register_table(name, str(location))
    client.refresh(name)
    client.set_policy(name, keep_days=90)

    refused = decided(client, name)["retention_all"]
    preview = client.preview_retention(name)
    nothing = claimed(client, name)
    client.set_policy(name, may_drop_all=True)
    decided(client, name)
    item = claimed(client, name)

    client.remove_policy(name)
    assert f"even the newest, ds={OLD}" in refused.text
    assert "--may-drop-all" in refused.text
    assert preview.partitions == 0
    assert nothing is None
    assert item is not None
    assert item.folders == [f"ds={OLDER}", f"ds={OLD}"]
