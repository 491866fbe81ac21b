"""What a stream reads of a table's history, as a coordinator tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import windrow
from windrow_core.models import WriteUpdate
from windrow_spark.streaming.history import History, Position
from windrow_spark.streaming.options import source_options

COMPACTION, APPEND = "c" * 32, "a" * 32


def test_a_compaction_that_began_before_a_read_write_and_ended_after_it_is_skipped(
    client: windrow.Client, name: str, location: Path
) -> None:
    client.register_table(name, str(location), columns={"id": "bigint"})

    def tell(
        write_id: str,
        kind: Literal["write", "compaction"],
        state: Literal["staging", "committing", "published"],
    ) -> None:
        mode = "append" if kind == "write" else "overwrite_partitions"
        fields = {"kind": kind, "mode": mode, "state": state, "host": "a", "process": 7}
        client.put_write(name, write_id, WriteUpdate.model_validate(fields))

    def file(path: str) -> dict[str, object]:
        return {"path": path, "size_bytes": 10, "mtime_ns": 1, "row_count": 2}

    client.publish(name, [file("one"), file("two")])
    tell(COMPACTION, "compaction", "staging")
    tell(APPEND, "write", "staging")
    tell(APPEND, "write", "committing")
    client.publish_delta(name, added=[file("three")], write_id=APPEND)
    tell(APPEND, "write", "published")
    tell(COMPACTION, "compaction", "committing")
    client.publish_delta(name, added=[file("both")], removed=["one", "two"], write_id=COMPACTION)
    tell(COMPACTION, "compaction", "published")
    options, _ = source_options({})

    end = History(client, name, options).next(Position(2, 1))

    assert end == Position(3, 3)
    assert end.files_after(Position(2, 1)).end == 0
