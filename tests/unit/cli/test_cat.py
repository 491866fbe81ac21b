"""`windrow cat`: rows of a table in the shell."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.unit.cli.conftest import Command
from windrow_calls.terminal.listings import PIPE_WIDTH
from windrow_cli.rows_render import as_csv, as_json_lines, as_table

VALUES = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "x": pa.array([0.5, float("nan")]),
        "money": pa.array([Decimal("1.10"), Decimal("12345678901234567890.00")]),
        "text": ['a "b",\nü', ""],
        "raw": pa.array([b"\x00\xff", None]),
        "day": [date(1200, 2, 29), None],
        "at": pa.array([datetime(2026, 11, 1, 12, tzinfo=timezone.utc), None]),
        "list": pa.array([[1, None], None], pa.list_(pa.int8())),
        "nest": pa.array([{"a": Decimal("2.5")}, None]),
        "pairs": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "numbers": pa.array([[(1, "v")], None], pa.map_(pa.int64(), pa.string())),
    }
)


def test_json_has_every_value_and_an_object_on_each_line() -> None:
    first, second = map(json.loads, "".join(as_json_lines(VALUES.to_reader())).splitlines())

    assert first == {
        "n": 1,
        "x": 0.5,
        "money": "1.10",
        "text": 'a "b",\nü',
        "raw": "AP8=",
        "day": "1200-02-29",
        "at": "2026-11-01T12:00:00Z",
        "list": [1, None],
        "nest": {"a": "2.5"},
        "pairs": {"k": 1},
        "numbers": [[1, "v"]],
    }
    assert {name for name, value in second.items() if value is None} == {
        *("n", "raw", "day", "at", "list", "nest", "numbers"),
    }
    assert (second["x"], second["money"], second["pairs"]) == ("NaN", "12345678901234567890.00", {})


def test_csv_tells_nulls_from_empty_texts() -> None:
    rows = VALUES.select(["n", "text", "at", "list"])

    assert "".join(as_csv(rows.to_reader())) == (
        '"n","text","at","list"\n1,"a ""b"",\nü","2026-11-01T12:00:00Z","[1, null]"\n,"",,\n'
    )


@pytest.fixture(scope="module")
def stock(tables_root: Path) -> Path:
    folder = tables_root / "stock"
    for day, first in (("2026-11-01", 0), ("2026-11-02", 30)):
        (folder / f"ds={day}").mkdir(parents=True)
        ids = list(range(first, first + 30))
        rows = pa.table({"id": ids, "name": [None, *(f"[b]{n}[/b]" for n in ids[1:])]})
        pq.write_table(rows, folder / f"ds={day}" / "1.parquet")
    return folder


def test_rows_are_printed_as_a_table_csv_or_json(windrow: Command, stock: Path) -> None:
    windrow("table", "register", "cat.stock", str(stock))
    windrow("table", "refresh", "cat.stock")

    few = windrow("cat", "cat.stock", "--where", "id = 30")
    none = windrow("cat", "cat.stock", "--where", "id < 0")
    table = windrow("cat", "cat.stock")
    json_lines = windrow("cat", "cat.stock", "--columns", "ds,id", "--format", "json")
    csv = windrow("cat", "cat.stock", "--columns", "id", "--format", "csv", "--limit", "3")

    assert [line.split() for line in few.out.splitlines() if line.strip("─ ")] == [
        ["id", "name", "ds"],
        ["30", "NULL", "2026-11-02"],
    ]
    assert "no row matches" in none.out
    assert table.out.count("\n") == 21
    assert "[b]" in table.out
    rows = [json.loads(line) for line in json_lines.out.splitlines()]
    assert sorted(row["id"] for row in rows) == list(range(60))
    assert {row["ds"] for row in rows} == {"2026-11-01", "2026-11-02"}
    assert csv.out.startswith('"id"\n')
    assert csv.out.count("\n") == 4


def test_columns_that_have_no_room_are_named_and_pipes_get_all() -> None:
    rows = as_table(pa.table({f"column_{n}": ["twelve letters"] for n in range(8)}))

    def lines(width: int) -> list[str]:
        console = Console(width=width, color_system=None)
        with console.capture() as output:
            console.print(rows)
        return output.get().splitlines()

    assert max(map(len, lines(60))) <= 60
    assert " ".join(" ".join(lines(60)).split()).endswith(
        "not shown, for lack of room: column_3, column_4, column_5, column_6, column_7 "
        "(--columns chooses) 1 row"
    )
    assert [len(line.split("\t")) for line in lines(PIPE_WIDTH)] == [8, 8]


def test_what_cannot_be_printed_is_one_line_with_the_remedy(
    windrow: Command, tables_root: Path
) -> None:
    folder = tables_root / "lines"
    folder.mkdir()
    (folder / "1.csv").write_text("1\n")
    windrow("table", "register", "cat.lines", str(folder), "--format", "csv", "--column", "a:int")
    windrow("table", "refresh", "cat.lines")

    said = windrow("cat", "cat.lines")

    assert said.code == 1
    assert said.err.startswith("windrow: table 'cat.lines' is csv, which only Spark's own reader")
    assert said.err.count("\n") == 1
