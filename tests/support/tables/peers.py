"""Which files other readers find in a table, to compare with; run them where a crash does no harm."""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa


def found_by_delta_rs(location: str) -> set[str] | None:
    """Return the paths of a Delta table's files; None if it is refused."""
    from deltalake import DeltaTable

    try:
        actions = pa.table(DeltaTable(location).get_add_actions())
        return {unquote(path) for path in actions["path"].to_pylist()}
    except BaseException:
        # It panics, too.
        return None
