"""The write demo's report, from invented measurements."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from windrow_core.models import WriteReport
from windrow_demo.errors import DemoError
from windrow_demo.measuring import Fingerprint
from windrow_demo.pictures import save_picture
from windrow_demo.writes import WritesOutcome, WrittenTable
from windrow_demo.writes_report import writes_as_json, writes_report

ROWS = Fingerprint(columns=(("id", "bigint"),), row_count=1_000, hash_sum=Decimal(17))
OUTCOME = WritesOutcome(
    days=10,
    tasks=50,
    target_bytes=65_536,
    source=ROWS,
    exploded=WrittenTable(
        title="50 tasks without a plan",
        sizes=pa.array([1_500] * 500),
        write_s=12.0,
        read_s=6.0,
        rows=ROWS,
    ),
    planned=WrittenTable(
        title="client.write",
        sizes=pa.array([60_000] * 9 + [20_000]),
        write_s=4.0,
        read_s=1.0,
        rows=ROWS,
    ),
    report=WriteReport(
        scheme="exact",
        basis="size",
        target_file_bytes=65_536,
        planned_files=10,
        tasks=9,
        rows=1_000,
        files=10,
        small_files=1,
        bytes=560_000,
        largest_file_bytes=60_000,
        row_hash="11",
        count_seconds=0.5,
        write_seconds=2.5,
        check_seconds=0.7,
        commit_seconds=0.3,
    ),
)


def _text(outcome: WritesOutcome) -> str:
    console = Console(record=True, width=100, file=io.StringIO())
    for renderable in writes_report(outcome):
        console.print(renderable)
    return console.export_text()


def test_the_report_shows_both_tables_and_the_gain_of_the_plan() -> None:
    text = _text(OUTCOME)

    assert "500 files" in text
    assert "50x fewer" in text
    assert "3.0x faster" in text
    assert "6.0x faster" in text
    assert "730,000 files" in text
    assert "Both tables hold the same 1,000 rows" in text


def test_lost_rows_are_reported() -> None:
    lost = replace(ROWS, row_count=999)
    outcome = replace(OUTCOME, planned=replace(OUTCOME.planned, rows=lost))

    assert not outcome.agreed
    assert "do NOT hold the same rows" in _text(outcome)
    assert "client.write: 999 rows" in _text(outcome)


def test_small_files_in_json_are_those_under_half_of_the_target() -> None:
    said = json.loads(json.dumps(writes_as_json(OUTCOME)))

    assert [table["files"] for table in said["tables"]] == [500, 10]
    assert [table["small_files"] for table in said["tables"]] == [500, 1]
    assert said["agreed"] is True
    assert said["report"]["planned_files"] == 10


def test_the_picture_is_an_svg_that_loads_nothing_from_a_server(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"

    save_picture(file, "writes", *writes_report(OUTCOME))

    drawing = file.read_text()
    assert drawing.startswith("<svg")
    assert "500" in drawing
    assert "url(http" not in drawing
    assert "href" not in drawing


def test_a_picture_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match=r"cannot be written to .*No such file"):
        save_picture(tmp_path / "no" / "picture.svg", "x", "text")
