"""Files as the scan tasks of Iceberg's REST protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_core.files.table_paths import is_outside
from windrow_service.planner.pruning.bounds import Bools


def scan_tasks(files: pa.Table, location: str, certain: Bools, residual: str | None) -> list[bytes]:
    """Return a task for each file, as JSON.

    Args:
        files: n files, with the columns `path`, `partition`, `row_count` and `size_bytes`.
        location: The table's location.
        certain: For each file, whether every row is wanted.
        residual: The filter that the rows of the other files have to pass, as JSON; None for none.
    """
    above = location.rstrip("/") + "/"
    columns = [map(_json, values.to_pylist()) for values in flat(files["partition"]).flatten()]
    partitions = zip(*columns, strict=True) if columns else ((),) * len(files)
    # Always there: PyIceberg takes a task without one for a file that is wanted whole.
    left = "" if residual is None else f',"residual-filter":{residual}'
    whole = "" if residual is None else ',"residual-filter":true'
    return [
        (
            '{"data-file":{"content":"data","file-path":'
            f"{json.dumps(path if is_outside(path) else above + path)}"
            f',"file-format":"parquet","spec-id":0,"partition":[{",".join(partition)}]'
            f',"file-size-in-bytes":{size},"record-count":{rows}}}{whole if is_whole else left}}}'
        ).encode()
        for path, partition, size, rows, is_whole in zip(
            files["path"].to_pylist(),
            partitions,
            np.asarray(files["size_bytes"]).tolist(),
            np.asarray(files["row_count"]).tolist(),
            certain.tolist(),
            strict=True,
        )
    ]


def _json(value: Any) -> str:
    """Return a partition value as Iceberg's JSON form of single values."""
    if isinstance(value, datetime):
        return json.dumps(value.isoformat(timespec="microseconds"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    return json.dumps(format(value, "f") if isinstance(value, Decimal) else value)


def joined(tasks: Sequence[bytes]) -> bytes:
    """Return a JSON list of tasks."""
    return b"[" + b",".join(tasks) + b"]"
