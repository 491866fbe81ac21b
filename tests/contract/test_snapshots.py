"""Snapshots over HTTP and from the command line: import, history, expiry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN
from windrow_cli.app import run

FILES = pa.table(
    {
        "path": ["a", "b", "c"],
        "size_bytes": [1, 2, 3],
        "mtime_ns": [1, 1, 1],
        "row_count": [1, 1, 1],
        "hosts": [["h1"], [], ["h1", "h2"]],
    }
)


@pytest.fixture
def table(http: httpx.Client, name: str, location: Path) -> str:
    columns = [{"name": "id", "type": "bigint"}]
    definition = {"location": str(location), "columns": columns}
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    return name


def write(files: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(files, path)
    elif path.suffix == ".csv":
        joined = pa.array([";".join(hosts) for hosts in files["hosts"].to_pylist()])
        pa.csv.write_csv(files.set_column(4, "hosts", joined), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, files.to_pylist())))
    else:
        make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with path.open("wb") as sink, make(sink, files.schema) as writer:
            writer.write_table(files)
    return path


def ran(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> Any:
    assert run(["table", *words, "--url", url, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows", ".csv", ".jsonl"])
def test_an_inventory_is_imported_from_a_file(
    url: str, table: str, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(FILES, tmp_path / f"files{suffix}")

    published = ran(capsys, url, "import", table, str(file))

    assert (published["file_count"], published["size_bytes"]) == (3, 6)
    body = {"table": table, "options": {"max_split_size": 1}}
    groups = httpx.post(f"{url}/plans", verify=PLAIN, json=body).json()["groups"]
    hosts = {group["splits"][0]["path"]: group["hosts"] for group in groups}
    assert hosts == {"a": ["h1"], "b": [], "c": ["h1", "h2"]}


def test_a_change_is_imported_and_shown_and_old_snapshots_expire(
    url: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, url, "import", table, str(write(FILES, tmp_path / "files.parquet")))
    changes = pa.array(["removed", "removed", "added"])
    file = write(FILES.append_column("change", changes), tmp_path / "change.parquet")

    assert run(["table", "import", table, str(file), "--url", url]) == 2
    assert "--delta" in capsys.readouterr().err
    assert run(["table", "import", table, str(file), "--delta", "--url", url]) == 0
    assert "0 files added, 2 removed" in capsys.readouterr().out
    stale = ["--delta", "--if-match", "snapshot-1"]
    assert run(["table", "import", table, str(file), *stale, "--url", url]) == 1
    capsys.readouterr()
    assert run(["table", "snapshots", table, "--url", url]) == 0
    assert "manifests" in capsys.readouterr().out
    found = ran(capsys, url, "snapshots", table)["snapshots"]
    assert [one["file_count"] for one in found] == [1, 3]

    gone = ran(capsys, url, "expire", table, "--keep-last", "1", "--max-age-hours", "0")

    assert gone == {"snapshot_ids": [1]}
    assert len(ran(capsys, url, "snapshots", table)["snapshots"]) == 1


def test_a_file_that_is_not_an_inventory_is_refused_in_one_line(
    url: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "files.parquet"
    broken.write_bytes(b"no")

    for file in (broken, tmp_path / "none.csv", tmp_path):
        assert run(["table", "import", table, str(file), "--url", url]) == 1
        assert str(file) in capsys.readouterr().err.strip()


def test_expiry_keeps_the_current_snapshot_and_those_within_the_limits(
    http: httpx.Client, table: str
) -> None:
    for _ in range(3):
        http.post(f"/tables/{table}/snapshots", json={"added": []}).raise_for_status()
    path = f"/tables/{table}/snapshots/expire"

    assert http.post(path, json={}).json() == {"snapshot_ids": []}
    young = {"keep_last": 1, "max_age_seconds": 3600}
    assert http.post(path, json=young).json() == {"snapshot_ids": []}
    all_old = {"keep_last": 1, "max_age_seconds": 0}
    assert http.post(path, json=all_old).json() == {"snapshot_ids": [1, 2]}
    assert http.get(f"/tables/{table}").json()["current_snapshot"]["snapshot_id"] == 3
    problem_of(http.post(path, json={"keep_last": 0}), 422, "invalid-request")
    problem_of(http.post("/tables/none/snapshots/expire", json={}), 404, "table-not-found")


def gained(http: httpx.Client, table: str, since: int) -> list[str]:
    answer = http.get(f"/tables/{table}/gained-files", params={"since": since})
    assert answer.status_code == 200, answer.text
    assert answer.json()["complete"]
    folders: list[str] = answer.json()["folders"]
    return folders


def test_gained_files_are_new_and_changed_ones(
    http: httpx.Client, name: str, location: Path
) -> None:
    columns = [{"name": "id", "type": "bigint"}]
    definition = {"location": str(location), "columns": columns}
    http.put(f"/tables/{name}", json=definition).raise_for_status()

    def file(path: str, size_bytes: int = 1) -> dict[str, Any]:
        return {"path": path, "size_bytes": size_bytes, "mtime_ns": 1, "row_count": 1}

    first = [file(f"ds={day}/{one}") for day in range(5) for one in "ab"]
    changes: list[dict[str, Any]] = [
        {"mode": "full", "added": first},
        {"mode": "delta", "added": [file("ds=7/a")], "removed": ["ds=0/a"]},
        {"mode": "delta", "added": [file("ds=1/a", 2)], "removed": ["ds=7/a"]},
        {"mode": "full", "added": [*first[2:], file("ds=9/a")]},
    ]
    path = f"/tables/{name}/gained-files"
    problem_of(http.get(path, params={"since": 0}), 409, "table-not-refreshed")
    for change in changes:
        http.post(f"/tables/{name}/snapshots", json=change).raise_for_status()

    assert gained(http, name, 0) == [*(f"ds={day}" for day in range(1, 5)), "ds=9"]
    assert gained(http, name, 1) == ["ds=9"]
    assert gained(http, name, 2) == ["ds=9"]
    assert gained(http, name, 3) == ["ds=1", "ds=9"]
    assert gained(http, name, 4) == []
    problem_of(http.get(path, params={"since": 5}), 404, "snapshot-not-found")


@pytest.mark.parametrize(
    ("others", "folders"),
    [([], []), (["ds=1/late"], ["ds=1"]), (["ds=2/late"], ["ds=1", "ds=2"])],
)
def test_only_rows_that_a_compaction_has_merged_are_no_gain(
    http: httpx.Client, name: str, location: Path, others: list[str], folders: list[str]
) -> None:
    """A compaction that lists the table may publish what others have put there."""
    columns = [{"name": "id", "type": "bigint"}]
    http.put(f"/tables/{name}", json={"location": str(location), "columns": columns})

    def file(path: str, rows: int = 1) -> dict[str, Any]:
        return {"path": path, "size_bytes": rows, "mtime_ns": 1, "row_count": rows}

    def publish(*files: dict[str, Any], **params: str) -> None:
        body = {"mode": "full", "added": list(files)}
        http.post(f"/tables/{name}/snapshots", json=body, params=params).raise_for_status()

    publish(file("ds=1/a"), file("ds=1/b"), file("ds=2/a"))
    write = {"host": "driver-1", "process": 7, "kind": "compaction", "mode": "append"}
    for state in ("staging", "committing"):
        path = f"/tables/{name}/writes/{'c' * 32}"
        http.put(path, json={**write, "state": state}).raise_for_status()
    merged = [file("ds=1/ab", rows=2), file("ds=2/a"), *map(file, others)]
    publish(*merged, write_id="c" * 32)

    assert gained(http, name, 1) == folders
    assert gained(http, name, 0) == ["ds=1", "ds=2"]
