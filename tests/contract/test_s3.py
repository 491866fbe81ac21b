"""Tables on S3 are registered, refreshed and planned like those on a local disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, free_port, running
from tests.support.servers.s3 import S3, s3_server
from tests.support.tables import hive
from tests.support.tables.delta_tables import DeltaLog, add, column, metadata, protocol, remove
from windrow_core.files.other_formats import signs_beside
from windrow_service.settings import Settings


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def http(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"),
        allowed_locations=("s3://tab", "s3://missing-bucket", "hdfs://127.0.0.1:1/"),
    )
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
def location(s3: S3, name: str, tmp_path: Path) -> str:
    """The location of a table of three days, two files each, with a hidden file."""
    folder = hive.write_events(tmp_path / "events")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "x.parquet").write_bytes(b"not yet")
    return s3.upload(folder, "tab", f"{name}/events")


def refresh(http: httpx.Client, name: str) -> dict[str, Any]:
    answer = http.post(f"/tables/{name}/refresh")
    assert answer.status_code == 200, answer.text
    status: dict[str, Any] = answer.json()
    return status


def planned_paths(http: httpx.Client, name: str) -> list[str]:
    plan = http.post("/plans", json={"table": name}).json()
    return sorted(split["path"] for group in plan["groups"] for split in group["splits"])


def test_a_table_is_refreshed_and_planned(
    http: httpx.Client, s3: S3, name: str, location: str, tmp_path: Path
) -> None:
    registered = http.put(f"/tables/{name}", json={"location": location + "/"})
    status = refresh(http, name)

    assert registered.json()["definition"]["location"] == location
    assert (status["snapshot"]["file_count"], status["snapshot"]["row_count"]) == (6, 60)
    assert status["snapshot"]["partition_columns"] == [{"name": "ds", "type": "date"}]
    assert planned_paths(http, name) == hive.data_files(tmp_path / "events")[1:]
    plan = http.post("/plans", json={"table": name, "filter": "ds = '2026-11-02' AND id < 25"})
    assert plan.json()["summary"]["files_planned"] == 1
    assert plan.json()["location"] == location


def test_a_small_file_takes_one_request_and_an_unchanged_one_none(
    http: httpx.Client, s3: S3, name: str, location: str
) -> None:
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    s3.requests.clear()

    refresh(http, name)
    first = Counter(method for method, path in s3.requests if path.endswith(".parquet"))
    listings = len(s3.requests) - sum(first.values())
    s3.requests.clear()
    again = refresh(http, name)

    assert first == {"GET": 6}
    # Listings of the location, of three days, of a query's log, and of format signs in two parents.
    assert listings == len(s3.requests) == 1 + 3 + 1 + 2 * len(signs_beside())
    assert again["changed"] is False


def test_changes_are_found(
    http: httpx.Client, s3: S3, name: str, location: str, tmp_path: Path
) -> None:
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    refresh(http, name)
    new = hive.write_file(tmp_path / "new", range(7))
    s3.client.upload_file(str(new), "tab", f"{name}/events/ds=2026-11-04/new.parquet")
    s3.client.upload_file(str(new), "tab", f"{name}/events/ds=2026-11-01/part-00000.parquet")
    s3.client.delete_object(Bucket="tab", Key=f"{name}/events/ds=2026-11-02/part-00000.parquet")

    status = refresh(http, name)

    assert (status["files_added"], status["files_removed"]) == (2, 2)
    assert status["snapshot"]["row_count"] == 60 - 10 - 10 + 7 + 7
    assert "ds=2026-11-04/new.parquet" in planned_paths(http, name)


def test_a_delta_table_is_refreshed_by_a_few_requests_whose_listing_begins_where_it_stands(
    http: httpx.Client, s3: S3, name: str, tmp_path: Path
) -> None:
    log = DeltaLog(tmp_path / "table")
    log.commit(
        protocol(), metadata([column("id", "long")]), *(add(f"{at}.parquet") for at in range(9))
    )
    for at in range(9, 12):
        log.commit(add(f"{at}.parquet"))
    location = s3.upload(log.folder, "tab", f"{name}/table")
    http.put(f"/tables/{name}", json={"location": location, "format": "delta"}).raise_for_status()
    assert refresh(http, name)["files_added"] == 12
    log.commit(*(add(f"new {at}.parquet") for at in range(10)), remove("3.parquet"))
    key = f"{name}/table/_delta_log/{log.version:020}.json"
    s3.client.upload_file(str(log.commit_path(log.version)), "tab", key)
    s3.requests.clear()

    status = refresh(http, name)

    assert (status["files_added"], status["files_removed"]) == (10, 1)
    assert status["snapshot"]["table_version"] == "4"
    # The listing, the known commit, the new one, and whether the first one still exists.
    assert Counter(path.rpartition("/")[2] for _, path in s3.requests) == {
        "tab": 1,
        f"{3:020}.json": 1,
        f"{4:020}.json": 1,
        f"{0:020}.json": 1,
    }
    s3.requests.clear()
    assert refresh(http, name)["changed"] is False
    assert len(s3.requests) == 3


@pytest.mark.nightly
@pytest.mark.slow
def test_a_large_number_of_folders_is_listed_in_one_go(
    http: httpx.Client, s3: S3, name: str, tmp_path: Path
) -> None:
    folder = hive.write_events(
        tmp_path / "many", days=[f"{n}" for n in range(300)], files_per_day=1, rows_per_file=1
    )
    location = s3.upload(folder, "tab", name)
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    refresh(http, name)
    s3.requests.clear()

    status = refresh(http, name)

    assert status["snapshot"]["file_count"] == 300
    assert len(s3.requests) == 2 + 1 + len(signs_beside())


def test_bloom_filters_are_built(http: httpx.Client, name: str, location: str) -> None:
    http.put(f"/tables/{name}", json={"location": location, "bloom_columns": ["name"]})
    refresh(http, name)

    plan = http.post("/plans", json={"table": name, "filter": "name = 'name-15'"}).json()

    assert plan["summary"]["files_planned"] == 1


def test_a_broken_file_is_named(http: httpx.Client, s3: S3, name: str, location: str) -> None:
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    s3.client.put_object(Bucket="tab", Key=f"{name}/events/ds=2026-11-02/bad", Body=b"text")

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "unreadable-file")["detail"]

    assert "'ds=2026-11-02/bad'" in detail


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("s3://missing-bucket/t", ["missing-bucket/t", "bucket that does not exist"]),
        ("s3://tab/no/such", ["s3://tab/no/such", "does not exist"]),
        ("hdfs://127.0.0.1:1/t", ["hdfs://127.0.0.1:1/t", "Connection refused"]),
    ],
)
def test_a_location_that_cannot_be_listed_is_named_with_the_remedy(
    http: httpx.Client, s3: S3, name: str, location: str, words: list[str]
) -> None:
    s3.client.create_bucket(Bucket="tab")
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "location-unreadable")["detail"]

    assert all(word in detail for word in words), detail


def test_a_folder_without_a_name_is_refused(
    http: httpx.Client, s3: S3, name: str, location: str
) -> None:
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    s3.client.put_object(Bucket="tab", Key=f"{name}/events/ds=2026-11-02//x", Body=b"x")

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "location-unreadable")["detail"]

    assert "folder without a name" in detail


@pytest.mark.slow
def test_a_missing_endpoint_is_reported_as_unreachable(
    http: httpx.Client, name: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "location-unreadable")["detail"]

    assert "cannot be reached" in detail
    assert "hush" not in detail


@pytest.mark.parametrize("location", ["s3://tab2/t", "s3://other/t", "gs://tab/t", "/tab"])
def test_a_location_outside_the_allowed_prefixes_is_forbidden(
    http: httpx.Client, name: str, location: str
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": location})

    problem_of(answer, 403, "location-not-allowed")


def test_a_secret_in_a_location_is_refused_and_not_repeated(http: httpx.Client, name: str) -> None:
    answer = http.put(f"/tables/{name}", json={"location": "s3://key:hush@tab/t"})

    assert "hush" not in problem_of(answer, 422, "invalid-location")["detail"]


@pytest.mark.parametrize(
    ("sign", "below", "words"),
    [
        ("events/_delta_log/0.json", "", "is a Delta table"),
        ("_delta_log/0.json", "", "lies in a Delta table"),
        ("_delta_log/0.json", "/ds=2026-11-01", "lies in a Delta table"),
        ("events/ds=2026-11-01/.hoodie_partition_metadata", "", "is a Hudi table"),
        ("metadata/v1.metadata.json", "", "lies in an Iceberg table"),
        ("events/metadata/v1.metadata.json", "", "is an Iceberg table"),
        ("events/ds=2026-11-01/delta_0000001_0000001/b", "", "is part of a Hive ACID table"),
    ],
)
def test_tables_of_other_formats_are_refused(
    http: httpx.Client, s3: S3, name: str, location: str, sign: str, below: str, words: str
) -> None:
    s3.client.put_object(Bucket="tab", Key=f"{name}/{sign}", Body=b"{}")
    http.put(f"/tables/{name}", json={"location": location + below}).raise_for_status()

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "location-unreadable")["detail"]

    assert words in detail


def test_empty_files_and_those_not_committed_by_a_streaming_query_are_skipped(
    http: httpx.Client, s3: S3, name: str, location: str, tmp_path: Path
) -> None:
    days = [path for path in hive.data_files(tmp_path / "events") if "_temporary" not in path]
    sizes = [(tmp_path / "events" / path).stat().st_size for path in days]
    entries = [
        # Spark writes paths with s3a.
        f'{{"path":"s3a://tab/{name}/events/{path}","size":{size},"isDir":false,"action":"add"}}'
        for path, size in zip(days, sizes, strict=True)
    ]
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    prefix = f"{name}/events"
    s3.client.put_object(Bucket="tab", Key=f"{prefix}/ds=2026-11-01/empty", Body=b"")

    plain = refresh(http, name)["progress"]
    s3.client.put_object(
        Bucket="tab",
        Key=f"{prefix}/_spark_metadata/0",
        Body="\n".join(["v1", *entries[1:]]).encode(),
    )
    committed = refresh(http, name)["progress"]

    assert (plain["files_found"], plain["files_empty"], plain["files_uncommitted"]) == (6, 1, 0)
    assert (committed["files_found"], committed["files_uncommitted"]) == (5, 2)
    assert planned_paths(http, name) == days[1:]
