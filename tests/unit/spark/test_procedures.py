"""The page of SQL statements names every procedure, with what it takes and gives."""

from __future__ import annotations

from pathlib import Path

from windrow.procedures import PROCEDURES

PAGE = Path(__file__).parents[3] / "docs/how-to/sql.md"


def test_the_page_has_a_row_for_each_procedure() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for one in PROCEDURES:
        (row,) = [row for row in rows if row.startswith(f"| `{one.name}` |")]
        _, _, takes, _, gives, _ = row.split("|")
        assert takes.replace("`", "").strip().split(", ") == [each.name for each in one.parameters]
        assert gives.replace("`", "").strip().split(", ") == list(one.columns)
