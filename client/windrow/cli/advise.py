"""`windrow advise`: show which writes made a table's small files, and how to avoid them."""

from __future__ import annotations

from windrow.calls.compaction import DEFAULT_TARGET_SIZE
from windrow.cli.arguments import TableName
from windrow.cli.compaction_render import table_advice
from windrow.connecting import connect
from windrow.terminal.consoles import show_result
from windrow.terminal.options import DEFAULT_URL, AsJson, TargetSize, Url


def advise(
    table: TableName,
    target_size: TargetSize = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show where small files come from, and how to avoid them."""
    with connect(url, check=False) as client:
        advice = client.advise(table, target_file_size=target_size or DEFAULT_TARGET_SIZE)
    show_result(advice, lambda: table_advice(advice), as_json)
