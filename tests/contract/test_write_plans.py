"""`POST /write-plans`: number of files and scheme of a write, or the reason for refusing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.plans.writes import ZIPF, counts_of_days, days
from tests.support.tables import hive
from windrow_core.models import (
    Column,
    KeyReport,
    WritePlan,
    WritePlanRequest,
    WriteReport,
    WriteState,
    WriteUpdate,
)
from windrow_core.models.writes import RecordedScheme

SCHEMES = ["coalesce", "repartition", "columns", "salted", "range_hash", "exact"]
MIB = 2**20


def planned(http: httpx.Client, **request: Any) -> WritePlan:
    answer = http.post("/write-plans", json=request)
    assert answer.status_code == 200, answer.text
    return WritePlan.model_validate(answer.json())


def report(
    url: str,
    table: str,
    *,
    rows: int,
    size_bytes: int,
    keys: dict[str, int],
    scheme: RecordedScheme = "exact",
) -> None:
    """Report a finished write as a driver does."""
    made = WriteReport(
        scheme=scheme,
        basis="size",
        target_file_bytes=MIB,
        tasks=len(keys),
        rows=rows,
        files=len(keys),
        small_files=0,
        bytes=size_bytes,
        largest_file_bytes=size_bytes,
        row_hash="0",
        count_seconds=0,
        write_seconds=1,
        check_seconds=0,
        commit_seconds=0,
        keys=KeyReport(
            columns=[Column(name="ds", type="date")],
            values=[list(keys)],
            rows=list(keys.values()),
            files=[1] * len(keys),
            bytes=[size_bytes // len(keys)] * len(keys),
        ),
    )
    write_id = uuid4().hex
    states: list[WriteState] = ["staging", "committing", "published"]
    with windrow.connect(url) as client:
        for state in states:
            update = WriteUpdate(
                mode="append",
                state=state,
                host="h",
                process=1,
                report=made if state == "published" else None,
            )
            client.put_write(table, write_id, update)


def test_counted_keys_get_an_exact_plan(http: httpx.Client) -> None:
    plan = planned(http, keys=counts_of_days([5_000, 100, 200, 1_600, 0]), target_rows=1_000)

    assert (plan.scheme, plan.basis, plan.rows) == ("exact", "rows", 6_900)
    assert plan.keys is not None
    assert plan.keys.files == [5, 1, 1, 2, 1]
    # Large keys come first; the small ones share the last task.
    assert plan.keys.first_task == [0, 7, 7, 5, 7]
    assert (plan.tasks, plan.files, plan.keys.values) == (8, 9, [days(5)])
    assert plan.outcome.largest_file_bytes is None
    assert plan.outcome.serves
    assert sorted([plan.scheme, *(other.scheme for other in plan.others)]) == sorted(SCHEMES)
    assert all(other.reason for other in plan.others)


def test_a_plan_by_size_states_bytes_and_their_uncertainty(http: httpx.Client) -> None:
    plan = planned(
        http, keys=counts_of_days(ZIPF.tolist()), bytes_per_row=1024.0, target_file_size="1MB"
    )

    assert plan.basis == "size"
    assert (plan.target_file_bytes, plan.target_file_rows) == (MIB, 1024)
    assert plan.row_size is not None
    assert (plan.row_size.source, plan.files_low, plan.files_high) == (
        "request",
        plan.files,
        plan.files,
    )
    assert plan.outcome.largest_task_bytes is not None
    assert MIB < plan.outcome.largest_task_bytes <= 1.25 * MIB


def test_a_target_in_rows_needs_no_estimate_of_bytes(http: httpx.Client) -> None:
    for known in ({}, {"bytes_per_row": 8.0}):
        plan = planned(http, keys=counts_of_days([1_240] * 3), target_rows=1_000, **known)

        assert plan.keys is not None
        assert plan.keys.files == [1, 1, 1]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_can_be_requested_by_name(http: httpx.Client, scheme: str) -> None:
    plan = planned(
        http, keys=counts_of_days([5_000] * 8), target_rows=1_000, scheme=scheme, compare=False
    )

    assert (plan.scheme, plan.outcome.scheme, plan.others) == (scheme, scheme, [])
    assert (plan.keys is not None) == (scheme == "exact")
    assert (plan.scale is not None) == (scheme == "salted")


@pytest.mark.parametrize(
    ("request_", "scheme"),
    [
        pytest.param({"rows": 10_000, "target_rows": 1_000}, "repartition", id="one partition"),
        pytest.param(
            {"rows": 10_000, "target_rows": 1_000, "source_tasks": 12},
            "coalesce",
            id="one partition of as many tasks",
        ),
        pytest.param(
            {"keys": counts_of_days([9_000]), "target_rows": 1_000}, "repartition", id="one key"
        ),
        pytest.param({"files": 40}, "repartition", id="a number of files and nothing else"),
    ],
)
def test_one_partition_is_divided_evenly(
    http: httpx.Client, request_: dict[str, Any], scheme: str
) -> None:
    assert planned(http, **request_).scheme == scheme


def test_without_counts_even_ranges_of_hashes_are_chosen(http: httpx.Client, events: str) -> None:
    plan = planned(http, table=events, rows=1_000_000, bytes_per_row=1024, target_file_size="1MB")

    assert (plan.scheme, plan.partition_columns) == (
        "range_hash",
        [Column(name="ds", type="date")],
    )
    assert not plan.outcome.exact


@pytest.mark.parametrize(
    ("request_", "files", "tasks"),
    [
        # A file for each range, and one more for each partition that ends within a range.
        ({"rows": 60, "target_rows": 6}, 10 + len(hive.DAYS) - 1, 10),
        ({"rows": 2, "target_rows": 6}, 2, 1),
        ({"files": 10}, 10 + len(hive.DAYS) - 1, 10),
        ({"files": 10, "scheme": "repartition"}, 10 * len(hive.DAYS), 10),
        ({"rows": 60, "target_rows": 6, "scheme": "columns"}, len(hive.DAYS), 10),
        ({"files_per_key": 4}, 4 * len(hive.DAYS), None),
        ({"rows": 60, "files_per_key": 4}, 4 * len(hive.DAYS), None),
        ({"rows": 60, "files_per_key": 4, "bytes_per_row": 9.0}, 4 * len(hive.DAYS), None),
    ],
    ids=str,
)
def test_without_counts_the_number_of_partitions_in_the_table_is_used(
    http: httpx.Client, events: str, request_: dict[str, Any], files: int, tasks: int | None
) -> None:
    plan = planned(http, table=events, **request_)

    assert plan.files == files
    assert tasks in (None, plan.tasks)


def test_the_same_number_of_files_for_every_key_needs_a_salt(
    http: httpx.Client, events: str
) -> None:
    plan = planned(
        http, table=events, rows=50_000, files_per_key=5, salt_columns=["id"], efficiency=0.95
    )

    assert (plan.scheme, plan.basis, plan.salts, plan.salt_columns) == (
        "salted",
        "static",
        5,
        ["id"],
    )
    assert plan.files == 5 * len(hive.DAYS)
    assert plan.scale is not None
    assert plan.outcome.efficiency >= 0.95


def test_files_of_the_table_give_the_row_size_and_the_keys(http: httpx.Client, events: str) -> None:
    plan = planned(http, table=events, keys_from="files", target_rows=8)

    assert plan.row_size is not None
    assert (plan.row_size.source, plan.row_size.rows) == ("files", 60)
    assert plan.keys is not None
    assert plan.keys.values == [list(hive.DAYS)]
    assert (plan.keys.rows, plan.snapshot_id) == ([20, 20, 20], 1)

    doubled = planned(http, table=events, keys_from="files", rows=120, target_rows=8)
    assert doubled.keys is not None
    assert doubled.keys.rows == [40, 40, 40]


def test_reported_writes_give_the_row_size_unless_they_are_tiny(
    http: httpx.Client, url: str, events: str
) -> None:
    report(url, events, rows=800_000, size_bytes=8_000_000, keys={"2026-11-01": 800_000})
    report(url, events, rows=200_000, size_bytes=4_000_000, keys={"2026-11-02": 200_000})
    report(url, events, rows=3, size_bytes=9_000, keys={"2026-11-03": 3})

    plan = planned(http, table=events, rows=10**6, target_file_size="1MB")

    assert plan.row_size is not None
    assert (plan.row_size.source, plan.row_size.rows) == ("history", 1_000_000)
    assert plan.row_size.bytes_per_row == 12
    assert plan.files_low < plan.files < plan.files_high


def test_the_last_write_gives_the_keys_of_the_next(
    http: httpx.Client, url: str, events: str
) -> None:
    days_ = {"2026-11-01": 600_000, "2026-11-02": 200_000}
    report(url, events, rows=800_000, size_bytes=8_000_000, keys=days_)

    plan = planned(http, table=events, keys_from="history", target_rows=200_000)

    assert (plan.basis, plan.scheme) == ("hybrid", "exact")
    assert plan.keys is not None
    assert dict(zip(plan.keys.values[0], plan.keys.files, strict=True)) == {
        "2026-11-01": 3,
        "2026-11-02": 1,
    }


def test_buckets_are_not_mixed(http: httpx.Client, name: str, location: Path) -> None:
    definition = {
        "location": str(location),
        "partition_columns": [],
        "bucket_spec": {"columns": ["id"], "count": 2},
    }
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    keys = {"values": [], "buckets": [0, 1], "rows": [300, 400]}

    plan = planned(http, table=name, keys=keys, target_rows=1_000)

    assert plan.keys is not None
    assert (plan.tasks, plan.keys.first_task, plan.keys.buckets) == (2, [0, 1], [0, 1])


def test_the_last_write_is_assumed_to_have_filled_its_buckets_evenly(
    http: httpx.Client, url: str, name: str, location: Path
) -> None:
    definition = {
        "location": str(location),
        "partition_columns": [{"name": "ds", "type": "date"}],
        "bucket_spec": {"columns": ["id"], "count": 2},
    }
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    report(url, name, rows=301, size_bytes=3_010, keys={"2026-11-01": 101, "2026-11-02": 200})

    plan = planned(http, table=name, keys_from="history", target_rows=1_000)

    assert plan.keys is not None
    assert plan.keys.values == [["2026-11-01"] * 2 + ["2026-11-02"] * 2]
    assert (plan.keys.buckets, plan.keys.rows) == ([0, 1, 0, 1], [51, 50, 100, 100])
    assert plan.keys.first_task == [0, 1, 0, 1]


def test_a_hundred_thousand_keys_are_planned(http: httpx.Client) -> None:
    count = 100_000
    keys = {
        "columns": [{"name": "k", "type": "bigint"}],
        "values": [list(range(count))],
        "rows": [1 + at % 3_000 for at in range(count)],
    }

    plan = planned(http, keys=keys, target_rows=1_000, max_files=200_000, compare=False)

    assert plan.keys is not None
    assert len(plan.keys.files) == count
    assert plan.files == sum(plan.keys.files)


def test_the_client_plans_a_write(url: str) -> None:
    with windrow.connect(url) as client:
        plan = client.write_plan(WritePlanRequest(files=3))

    assert (plan.files, plan.tasks) == (3, 3)


ONE_KEY = counts_of_days([5])
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a target of no bytes": ({"target_file_size": 0, "rows": 1}, "invalid-request", "from 1 to"),
    "a target of no rows": ({"target_rows": 0, "rows": 1}, "invalid-request", "from 1 to"),
    "two targets": (
        {"target_rows": 5, "target_file_size": 5, "rows": 1},
        "invalid-request",
        "give one",
    ),
    "an unknown scheme": ({"scheme": "hope", "rows": 1}, "invalid-request", "'exact'"),
    "an unknown field": ({"rows": 1, "hope": 1}, "invalid-request", "hope"),
    "rows of next to no bytes": ({"rows": 1, "bytes_per_row": 5e-324}, "invalid-request", "0.001"),
    "no such efficiency": ({"rows": 1, "efficiency": 1}, "invalid-request", "efficiency"),
    "columns of different lengths": (
        {"keys": counts_of_days([5]) | {"rows": [5, 6]}},
        "invalid-request",
        "same number",
    ),
    "more files than the limit": (
        {"rows": 10**9, "target_rows": 1_000, "max_files": 500},
        "too-many-files",
        "1,000,000 files and max_files is 500",
    ),
    "more files per key than the limit": (
        {"keys": ONE_KEY, "files_per_key": 501, "target_rows": 1, "max_files": 500},
        "too-many-files",
        "501 files",
    ),
    "nothing to go by": ({"target_rows": 5}, "no-estimate", "give rows, keys"),
    "no size of rows": ({"rows": 5}, "no-estimate", "bytes_per_row"),
    "keys of no table": ({"keys_from": "files"}, "no-estimate", "name the table"),
    "an exact plan without counts": (
        {"rows": 5, "target_rows": 5, "scheme": "exact"},
        "scheme-unfit",
        "give keys",
    ),
    "a scheme by columns without columns": (
        {"rows": 5, "target_rows": 5, "scheme": "salted"},
        "scheme-unfit",
        "the table has none",
    ),
    "a coalesce to more": (
        {"rows": 50, "target_rows": 5, "scheme": "coalesce", "source_tasks": 3},
        "scheme-unfit",
        "use repartition",
    ),
    "rows that differ from those of the keys": (
        {"keys": ONE_KEY, "rows": 6, "target_rows": 5},
        "invalid-keys",
        "leave rows out",
    ),
    "a key twice": (
        {"keys": ONE_KEY | {"values": [["a", "a"]], "rows": [1, 2]}, "target_rows": 5},
        "invalid-keys",
        "key 1 (ds=a) appears twice",
    ),
    "a value of another type": (
        {"keys": ONE_KEY | {"values": [[5]]}, "target_rows": 5},
        "invalid-keys",
        "5 is not a value of partition column 'ds'",
    ),
    "an unknown type": (
        {"keys": ONE_KEY | {"columns": [{"name": "ds", "type": "hope"}]}, "target_rows": 5},
        "unknown-type",
        "hope",
    ),
    "keys of columns that are not known": (
        {"keys": {"values": [["a"]], "rows": [5]}, "target_rows": 5},
        "invalid-keys",
        "give keys.columns",
    ),
    "a salt that divides nothing": (
        {"keys": ONE_KEY, "target_rows": 5, "salt_columns": ["ds"]},
        "invalid-keys",
        "name other columns",
    ),
}


@pytest.mark.parametrize(("request_", "slug", "said"), REFUSED.values(), ids=REFUSED)
def test_impossible_plans_are_refused_with_the_reason(
    http: httpx.Client, request_: dict[str, Any], slug: str, said: str
) -> None:
    problem = problem_of(http.post("/write-plans", json=request_), 422, slug)

    assert said in problem["detail"]


def test_the_former_scheme_of_ranges_is_refused_with_the_one_to_use(
    http: httpx.Client, events: str
) -> None:
    answer = http.post("/write-plans", json={"keys": ONE_KEY, "target_rows": 5, "scheme": "range"})

    assert "use 'columns'" in problem_of(answer, 422, "invalid-request")["detail"]


def test_a_report_with_the_former_scheme_of_ranges_is_kept(
    http: httpx.Client, url: str, events: str
) -> None:
    report(url, events, rows=800_000, size_bytes=MIB, keys={"2026-11-01": 1}, scheme="range")

    (record,) = http.get(f"/tables/{events}/writes").raise_for_status().json()["writes"]

    assert record["report"]["scheme"] == "range"


def test_requests_that_do_not_fit_the_table_are_refused(http: httpx.Client, events: str) -> None:
    other = ONE_KEY | {"columns": [{"name": "day", "type": "string"}]}
    with_buckets = {"values": [["2026-11-01"]], "buckets": [0], "rows": [5]}
    for keys, said in ((other, "partitioned by ds"), (with_buckets, "has no buckets")):
        answer = http.post("/write-plans", json={"table": events, "keys": keys})
        assert said in problem_of(answer, 422, "invalid-keys")["detail"]

    answer = http.post("/write-plans", json={"table": events, "keys_from": "history"})
    assert "give keys" in problem_of(answer, 422, "no-estimate")["detail"]


def test_without_files_history_and_counts_the_error_names_what_is_missing(
    http: httpx.Client, name: str, location: Path
) -> None:
    definition = {
        "location": str(location),
        "partition_columns": [{"name": "ds", "type": "date"}],
    }
    http.put(f"/tables/{name}", json=definition).raise_for_status()

    unsized = http.post("/write-plans", json={"table": name, "rows": 5})
    uncounted = http.post("/write-plans", json={"table": name, "target_rows": 5})
    from_files = http.post("/write-plans", json={"table": name, "keys_from": "files"})

    for answer in (unsized, uncounted):
        assert "has none yet: give keys" in problem_of(answer, 422, "no-estimate")["detail"]
    problem_of(from_files, 409, "table-not-refreshed")


def test_a_missing_table_is_named(http: httpx.Client) -> None:
    answer = http.post("/write-plans", json={"table": "no_such", "rows": 5})

    problem_of(answer, 404, "table-not-found")
