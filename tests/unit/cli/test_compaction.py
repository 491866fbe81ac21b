"""`windrow compact --dry-run` and `windrow advise`, against a real coordinator process."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import Command


@pytest.fixture
def crowded(windrow: Command, tables_root: Path) -> str:
    """A table of two days: one of eight files from eight tasks, one of a single file."""
    folder, job = tables_root / "crowded", uuid.UUID(int=7)
    for day, tasks in ((1, 8), (2, 1)):
        for task in range(tasks):
            path = folder / f"ds=2026-11-0{day}" / f"part-{task:05d}-{job}.c000.parquet"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), path)
    windrow("table", "register", "crowded.events", str(folder))
    assert windrow("table", "refresh", "crowded.events").code == 0
    return "crowded.events"


def test_a_worker_is_asked_to_compact_and_options_of_a_job_are_refused(
    windrow: Command, crowded: str
) -> None:
    said = windrow("compact", crowded, "--by-worker")
    nothing = windrow("compact", crowded, "--by-worker", "--folder", "ds=1999-01-01")
    refused = windrow("compact", crowded, "--by-worker", "--min-files", "9")

    assert f"{crowded}: 1 piece of work waits for a worker" in said.out
    assert "has no small files to merge" in nothing.out
    assert refused.code == 2
    assert "--by-worker can be combined only with --folder" in " ".join(refused.err.split())


def test_a_dry_run_shows_what_is_worth_compacting_and_why_the_rest_is_not(
    windrow: Command, crowded: str
) -> None:
    said = windrow("compact", crowded, "--dry-run")

    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "Compaction of crowded.events, snapshot 1"
    assert re.fullmatch(r"small files\t8 \(.+\), under 64 MB each", lines[1])
    assert lines[2].startswith("become\t1 of ")
    (row,) = (line.split() for line in lines if "ds=2026-11-01" in line)
    assert row[1:3] == ["8", "8"]
    assert any("1" in line and "fewer than 2 small files" in line for line in lines)


def test_a_limit_that_excludes_worthwhile_files_is_named_with_the_lost_gain(
    windrow: Command, crowded: str
) -> None:
    said = " ".join(windrow("compact", crowded, "--dry-run", "--min-files", "9").out.split())

    assert "no partition is worth compacting" in said
    assert "with --min-files 8, 8 of them would become 1 for 0.0" in said
    assert " s of one core, and each read of them would save 0.001 s" in said


def test_a_dry_run_as_json_is_the_pages_of_the_plan(windrow: Command, crowded: str) -> None:
    said = windrow("compact", crowded, "--dry-run", "--json", "--min-files", "2")

    (page,) = json.loads(said.out)["pages"]
    assert page["partitions"]["folders"] == ["ds=2026-11-01"]
    assert page["totals"]["becomes"] == 1


def test_a_dry_run_says_if_nothing_is_worth_it(windrow: Command, crowded: str) -> None:
    said = windrow("compact", crowded, "--dry-run", "--filter", "ds = '2026-11-02'")

    assert said.out.splitlines()[:2] == [
        "Compaction of crowded.events, snapshot 1",
        "files\t1; no partition is worth compacting",
    ]
    said = windrow("compact", crowded, "--dry-run", "--worth-reads", "1")
    assert "it would take more than 1 read to pay off (--worth-reads)" in said.out


def test_bad_options_are_refused_in_one_line(windrow: Command, crowded: str) -> None:
    for option, value, words in (
        ("--target-size", "many", "not a size"),
        ("--min-files", "1", "min-files"),
        ("--max-batch-bytes", "1MB", "a batch must hold a file"),
        ("--filter", "id = 1", "partition columns"),
    ):
        said = windrow("compact", crowded, "--dry-run", option, value)
        assert said.code != 0
        assert said.err.count("\n") == 1
        assert words in said.err


def test_advice_shows_writes_and_what_would_have_helped(windrow: Command, crowded: str) -> None:
    said = windrow("advise", crowded)

    assert (said.code, said.err) == (0, "")
    text = " ".join(said.out.split())
    assert text.startswith("Advice for crowded.events, snapshot 1 files 9, ")
    assert re.search(
        "would be 2 files of .+ on average in the same partitions, with a target of 128 MB", text
    )
    assert "many tasks 9 files instead of 2: " in text
    assert "`client.write` would have made 2 files" in text


def test_advice_as_json_is_the_answer(windrow: Command, crowded: str) -> None:
    found = json.loads(windrow("advise", crowded, "--json", "--target-size", "1KB").out)

    assert (found["target_file_bytes"], found["files"]) == (1024, 9)
