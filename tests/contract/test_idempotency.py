"""A change under an Idempotency-Key is made once, and always gets the same answer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.api.contract import document
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from windrow_service import administration
from windrow_service.settings import Settings
from windrow_service.store.database import embedded_url, open_database, server_url
from windrow_service.store.idempotency import SqlOnceStore

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
DEFINITION = {
    "columns": [{"name": "id", "type": "bigint"}],
    "partition_columns": [{"name": "ds", "type": "date"}],
}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    database = {}
    if request.param == "postgresql":
        database = {"database_url": request.getfixturevalue("upgraded_postgresql_url")}
    return Settings.model_validate(
        {"state_dir": tmp_path / "state", "allowed_locations": (str(tmp_path),)} | database
    )


@pytest.fixture
def http(settings: Settings) -> Iterator[httpx.Client]:
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    return {"location": str(tmp_path / "t"), **DEFINITION}


def inventory(path: str) -> bytes:
    files = {
        "path": [f"ds=2026-11-01/{path}"],
        "size_bytes": pa.array([5], pa.int64()),
        "mtime_ns": pa.array([1], pa.int64()),
        "row_count": pa.array([1], pa.int64()),
    }
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, (rows := pa.table(files)).schema) as stream:
        stream.write_table(rows)
    return sink.getvalue()


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def same(first: httpx.Response, again: httpx.Response) -> None:
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    for name in ("ETag", "Location", "Content-Type"):
        assert again.headers.get(name) == first.headers.get(name)


def test_a_repeated_change_gets_the_first_answer_even_if_the_table_has_changed_since(
    http: httpx.Client, table: dict[str, Any]
) -> None:
    first = http.put("/tables/t", json=table, headers=key("a"))
    assert first.status_code == 201, first.text
    http.put("/tables/t", json=table | {"sort_columns": [{"name": "id"}]}).raise_for_status()

    same(first, http.put("/tables/t", json=table, headers=key("a")))

    assert http.get("/tables/t").json()["definition"]["sort_columns"] != []


def test_a_repeated_publication_makes_no_second_snapshot(
    http: httpx.Client, table: dict[str, Any]
) -> None:
    etag = http.put("/tables/t", json=table).headers["ETag"]
    headers = ARROW | key("b") | {"If-Match": etag}

    first, again = (
        http.post("/tables/t/snapshots", content=inventory("a"), headers=headers) for _ in range(2)
    )

    assert first.status_code == 201, first.text
    same(first, again)
    assert first.headers["ETag"] == http.get("/tables/t").headers["ETag"]
    assert len(http.get("/tables/t/snapshots").json()["snapshots"]) == 1


def test_a_repeated_deletion_does_not_delete_a_table_created_since(
    http: httpx.Client, table: dict[str, Any]
) -> None:
    http.put("/tables/t", json=table).raise_for_status()
    first = http.delete("/tables/t", headers=key("c"))
    assert first.status_code == 204
    http.put("/tables/t", json=table).raise_for_status()

    same(first, http.delete("/tables/t", headers=key("c")))

    assert http.get("/tables/t").is_success


def test_a_key_cannot_be_reused_for_another_request(
    http: httpx.Client, table: dict[str, Any]
) -> None:
    first = http.put("/tables/t", json=table, headers=key("d"))
    other = table | {"sort_columns": [{"name": "id"}]}

    for answer in (
        http.put("/tables/t", json=other, headers=key("d")),
        http.put("/tables/other", json=table, headers=key("d")),
        http.put("/tables/t?x=1", json=table, headers=key("d")),
        http.put("/tables/t", json=table, headers=key("d") | {"If-Match": first.headers["ETag"]}),
        http.delete("/tables/t", headers=key("d")),
    ):
        problem = problem_of(answer, 422, "idempotency-key-reused")
        assert "use a new key" in problem["detail"]
    same(first, http.put("/tables/t", json=table, headers=key("d")))


def test_a_refused_change_leaves_its_key_free(http: httpx.Client, table: dict[str, Any]) -> None:
    publish: dict[str, Any] = {"content": inventory("a"), "headers": ARROW | key("e")}
    problem_of(http.delete("/tables/t", headers=key("f")), 404, "table-not-found")
    problem_of(http.post("/tables/t/snapshots", **publish), 404, "table-not-found")
    stale = key("g") | {"If-Match": '"0"'}
    problem_of(http.put("/tables/t", json=table, headers=stale), 412, "table-changed")

    assert http.put("/tables/t", json=table, headers=key("g")).status_code == 201
    assert http.post("/tables/t/snapshots", **publish).status_code == 201
    assert http.delete("/tables/t", headers=key("f")).status_code == 204


@pytest.mark.parametrize("bad", ["", "a b", "x" * 129, "k\xe9y", "a\tb"])
def test_an_invalid_key_is_refused(http: httpx.Client, table: dict[str, Any], bad: str) -> None:
    headers = [(b"Idempotency-Key", bad.encode("latin-1"))]

    problem_of(http.put("/tables/t", json=table, headers=headers), 422, "invalid-request")


def test_keys_of_128_characters_are_kept(http: httpx.Client, table: dict[str, Any]) -> None:
    longest = key("!~" * 64)

    same(*(http.put("/tables/t", json=table, headers=longest) for _ in range(2)))


def test_each_caller_has_its_own_keys(settings: Settings, table: dict[str, Any]) -> None:
    guarded = settings.model_copy(update={"require_tokens": True})

    async def create(name: str) -> str:
        async with administration.open_tokens(guarded) as tokens:
            return (await tokens.create(name, ["admin"], None))[1]

    with start_blocking_portal() as portal:
        secrets = [portal.call(create, name) for name in ("one", "two")]
    with running(guarded) as url:
        answers = [
            httpx.put(
                f"{url}/tables/{at}",
                verify=PLAIN,
                json=table,
                headers=key("k") | {"Authorization": f"Bearer {secret}"},
            )
            for at, secret in enumerate(secrets)
        ]

    assert [answer.status_code for answer in answers] == [201, 201]


def test_keys_are_forgotten_once_they_have_expired(
    http: httpx.Client, settings: Settings, table: dict[str, Any]
) -> None:
    http.put("/tables/t", json=table, headers=key("old")).raise_for_status()
    now = datetime.now(timezone.utc)

    async def purged(at: datetime) -> int:
        given = settings.database_url
        url = server_url(given.get_secret_value()) if given else embedded_url(settings.state_dir)
        database = await open_database(url)
        try:
            return await SqlOnceStore(database).purge(at)
        finally:
            await database.aclose()

    with start_blocking_portal() as portal:
        assert portal.call(purged, now + timedelta(hours=23)) == 0
        assert portal.call(purged, now + timedelta(hours=25)) == 1
    again = http.put("/tables/t", json=table, headers=key("old"))
    assert again.status_code == 200
    assert "Idempotency-Replayed" not in again.headers


def test_every_change_accepts_a_key_except_those_that_need_none() -> None:
    keyless = {
        f"{method} {path}"
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if method != "get"
        and "Idempotency-Key" not in {one["name"] for one in operation.get("parameters", ())}
    }

    # Requests that change nothing.
    asked = {
        "post /write-plans",
        "post /tables/{name}/compaction-plans",
        "post /tables/{name}/packing-plans",
        "post /tables/{name}/erasure-plans",
        "post /erasures/verify",
        "post /policies/{pattern}/retention",
    }
    # Requests that have the same effect if repeated.
    assert keyless - asked <= {
        "post /tables/{name}/refresh",
        "delete /tables/{name}/refresh",
        "put /tables/{name}/packing-runs/{run_id}",
        "post /tables/{name}/packs",
        "post /tables/{name}/erasures",
        "delete /tables/{name}/packs/{pack_id}",
        "delete /tokens/{token_id}",
        "put /workers/{worker_id}",
        "delete /workers/{worker_id}",
        "post /workers/{worker_id}/cached-files",
        "put /tables/{name}/writes/{write_id}",
        "delete /tables/{name}/writes/{write_id}",
        "post /maintenance/rounds",
        "post /tables/{name}/maintenance/requests",
        "delete /tables/{name}/maintenance/requests",
        "post /scan-reports",
        "put /maintenance/claims/{claim_id}",
        # Work whose claim nobody heard of is given to another worker after its lease.
        "post /maintenance/claims",
    }


def test_a_large_body_is_part_of_the_compared_request(
    http: httpx.Client, table: dict[str, Any]
) -> None:
    http.put("/tables/t", json=table).raise_for_status()
    body = b"x" * 2**20
    headers = ARROW | key("large")
    problem_of(
        http.post("/tables/t/snapshots", content=body, headers=headers), 422, "invalid-inventory"
    )

    # The request was refused, so its key is still free.
    answer = http.post("/tables/t/snapshots", content=inventory("a"), headers=headers)
    assert answer.status_code == 201
    problem_of(
        http.post("/tables/t/snapshots", content=body, headers=headers),
        422,
        "idempotency-key-reused",
    )
