"""What `CALL windrow.system.…` can do: maintenance of a table, from the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from windrow.client import Client
from windrow_calls.errors import InvalidArgumentError
from windrow_core.sizes import parse_size
from windrow_spark.sql.procedures import Parameter, Procedure

Row = dict[str, Any]
Arguments = Mapping[str, Any]

_TABLE = Parameter("table", "the table, such as 'sales.events'", is_needed=True)
_SEE_BOTH = Parameter(
    "readers_may_see_both",
    "consent, needed on HDFS and S3: readers that list folders may see old and new files for a while",
    "BOOLEAN",
)


def _refresh(client: Client, spark: SparkSession, arguments: Arguments) -> Row:
    table = arguments["table"]
    status = client.refresh(table, full=arguments.get("full", False), on_progress=lambda _: None)
    snapshot = status.snapshot or client.table(table).current_snapshot
    assert snapshot is not None
    return status.model_dump() | snapshot.model_dump() | {"seconds": status.seconds}


def _compact(client: Client, spark: SparkSession, arguments: Arguments) -> Row:
    try:
        parse_size(arguments.get("target_file_size"))
    except ValueError as error:
        raise InvalidArgumentError("target_file_size", str(error)) from error
    done = client.compact(spark, **arguments, on_progress=lambda _: None)
    reasons = [f"{path}: {reason}" for path, reason in done.left.items()]
    return {
        **{name: getattr(done, name) for name in _COMPACTION if hasattr(done, name)},
        "left_alone": "; ".join([*reasons, *done.alone]) or None,
    }


def _pack(client: Client, spark: SparkSession, arguments: Arguments) -> Row:
    from windrow_tables.packs.packing import pack_table

    done = pack_table(client, **arguments)
    return {
        "table": arguments["table"],
        "files_packed": done.files,
        "packs": len(done.packs),
        "bytes": sum(one.size_bytes for one in done.packs),
        "files_left": len(done.left),
        "core_seconds": done.core_seconds,
    }


def _maintain(client: Client, spark: SparkSession, arguments: Arguments) -> Row:
    from windrow_jobs.maintain import maintain

    pattern = arguments.get("tables", "*")
    total = maintain(lambda: spark, client, pattern=pattern)
    return {name: getattr(total, name) for name in _MAINTENANCE}


def _erase(client: Client, spark: SparkSession, arguments: Arguments) -> Row:
    from windrow_tables.erasing.erase import erase_rows
    from windrow_tables.erasing.keys import keys_of

    options = dict(arguments)
    values = options.pop("values", None)
    if values is not None and "key" not in options:
        raise InvalidArgumentError("values", "values need a key: name their column")
    keys = keys_of(values or []) if "key" in options else None
    done = erase_rows(client, **options, keys=keys)
    receipt = done.receipt
    return {
        **{name: getattr(done, name) for name in _ERASURE if hasattr(done, name)},
        "receipt_id": None if receipt is None else receipt.receipt_id,
        "receipt": None if receipt is None else receipt.model_dump_json(),
    }


_REFRESH = {
    "table": "STRING",
    "changed": "BOOLEAN",
    "snapshot_id": "BIGINT",
    "file_count": "BIGINT",
    "size_bytes": "BIGINT",
    "row_count": "BIGINT",
    "files_added": "BIGINT",
    "files_removed": "BIGINT",
    "seconds": "DOUBLE",
}
_COMPACTION = {
    "table": "STRING",
    "partitions": "BIGINT",
    "files_before": "BIGINT",
    "files_after": "BIGINT",
    "bytes_before": "BIGINT",
    "bytes_after": "BIGINT",
    "rows": "BIGINT",
    "left_alone": "STRING",
    "seconds": "DOUBLE",
}
_PACKING = {
    "table": "STRING",
    "files_packed": "BIGINT",
    "packs": "BIGINT",
    "bytes": "BIGINT",
    "files_left": "BIGINT",
    "core_seconds": "DOUBLE",
}
_MAINTENANCE = {
    "done": "BIGINT",
    "gave_up": "BIGINT",
    "failed": "BIGINT",
    "files_before": "BIGINT",
    "files_after": "BIGINT",
    "files_packed": "BIGINT",
    "files_dropped": "BIGINT",
    "seconds": "DOUBLE",
    "reason": "STRING",
}
_ERASURE = {
    "table": "STRING",
    "is_dry": "BOOLEAN",
    "rows_removed": "BIGINT",
    "files_total": "BIGINT",
    "files_read": "BIGINT",
    "files_rewritten": "BIGINT",
    "files_removed": "BIGINT",
    "files_checked": "BIGINT",
    "rows_left": "BIGINT",
    "snapshot_id": "BIGINT",
    "seconds": "DOUBLE",
    "receipt_id": "STRING",
    "receipt": "STRING",
}

PROCEDURES = (
    Procedure(
        name="refresh",
        description="Makes the coordinator look for new files of a table, and waits for it.",
        parameters=(
            _TABLE,
            Parameter(
                "full", "whether to compare every file, whatever the times of folders", "BOOLEAN"
            ),
        ),
        columns=_REFRESH,
        run=_refresh,
    ),
    Procedure(
        name="compact",
        description="Merges the small files of a table where that pays off.",
        parameters=(
            _TABLE,
            Parameter("target_file_size", "target size of a file, such as '128MB'"),
            Parameter("filter", "a condition on partition columns, which selects partitions"),
            _SEE_BOTH,
        ),
        columns=_COMPACTION,
        run=_compact,
    ),
    Procedure(
        name="pack",
        description="Copies the rows of a table's small files into packs outside of the table.",
        parameters=(
            _TABLE,
            Parameter(
                "rights_are_stated",
                "whether everyone who may read the folder of packs may read the table: needed on "
                "object stores",
                "BOOLEAN",
            ),
        ),
        columns=_PACKING,
        run=_pack,
    ),
    Procedure(
        name="maintain",
        description="Does the maintenance work that policies make due.",
        parameters=(Parameter("tables", "only of these tables, such as 'sales.*'"),),
        columns=_MAINTENANCE,
        run=_maintain,
    ),
    Procedure(
        name="erase",
        description="Erases rows from the files of a table, for good, with a receipt.",
        parameters=(
            _TABLE,
            Parameter("where", "a condition of Windrow; rows for which it is TRUE are erased"),
            Parameter("key", "instead, the column of keys, or a path such as 'payload.user.id'"),
            Parameter("values", "the keys, as texts", "ARRAY<STRING>"),
            Parameter("dry_run", "whether to find the rows only", "BOOLEAN"),
            _SEE_BOTH,
        ),
        columns=_ERASURE,
        run=_erase,
    ),
)
