"""`windrow advise`: show which writes made a table's small files, and how to avoid them."""

from __future__ import annotations

from windrow.connecting import connect
from windrow_calls.compaction import DEFAULT_TARGET_SIZE
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import TargetSize
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn
from windrow_cli.arguments import TableName


def advise(
    table: TableName,
    target_size: TargetSize = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show where small files come from, and how to avoid them."""
    with connect(url, check=False) as client:
        advice = client.advise(table, target_file_size=target_size or DEFAULT_TARGET_SIZE)
    show_result(advice, lambda: drawn(advice), as_json)
