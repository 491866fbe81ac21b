"""Read a transactional table of many deltas: delete deltas once per group, or once per split.

    python benchmarks/acid.py [--quick] [--json FILE]

A table of 2,000 small deltas, from which 200 delete deltas have deleted rows, is planned by a
coordinator inside this process, and its groups are read here as tasks read them, without Spark:
once as planned, so that each group opens its delete deltas once, and once with a group for each
split, like readers that open the delete deltas for each split. Both must give the same rows. Times
are CPU times; the two ways take turns.
"""

from __future__ import annotations

import io
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
from common import Result, arguments, console, write_json
from rich import box
from rich.table import Table as RichTable

from windrow.client import Client
from windrow.connecting import embedded
from windrow_calls.terminal.consoles import show
from windrow_core.cards import seconds_text
from windrow_tables.executor.acid import DeleteFile
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadSpec

NAME = "acid"
DELTAS, DELETE_DELTAS, ROWS, DELETED = 2_000, 200, 200, 50
QUICK_DELTAS, QUICK_DELETE_DELTAS = 40, 10
COLUMNS = {"id": pa.int64(), "amount": pa.float64()}
BUCKET = 1 << 29  # bucket 0, statement 0
_INSERT, _DELETE = 0, 2


def main() -> None:
    """Run the benchmark."""
    parser = arguments(str(__doc__).partition("\n")[0])
    args = parser.parse_args()
    deltas, delete_deltas = (
        (QUICK_DELTAS, QUICK_DELETE_DELTAS) if args.quick else (DELTAS, DELETE_DELTAS)
    )
    with TemporaryDirectory(prefix="windrow-acid-") as folder:
        location = Path(folder) / "table"
        generate(location, deltas, delete_deltas)
        with embedded(Path(folder) / "state", allowed_locations=[folder]) as client:
            results = measured(client, location, runs=1 if args.quick else args.runs)
        shutil.rmtree(location)
    _show(results)
    if args.json:
        write_json(args.json, NAME, results)


def generate(location: Path, deltas: int, delete_deltas: int) -> None:
    """Write deltas of ROWS rows each, and delete deltas of DELETED rows from any delta."""
    console.print(f"writing {deltas:,} deltas and {delete_deltas:,} delete deltas")
    random = np.random.default_rng(7)
    for write in range(1, deltas + 1):
        names = np.full(ROWS, write), np.arange(ROWS)
        ids = (write - 1) * ROWS + np.arange(ROWS)
        row = pa.StructArray.from_arrays(
            [pa.array(ids), pa.array(random.random(ROWS))], names=list(COLUMNS)
        )
        _write(location / _folder("delta", write), _INSERT, *names, write, row)
    gone = random.choice(deltas * ROWS, delete_deltas * DELETED, replace=False)
    for at, rows_of_delta in enumerate(gone.reshape(delete_deltas, DELETED)):
        write, rows_of_delta = deltas + 1 + at, np.sort(rows_of_delta)
        nothing = pa.nulls(DELETED, pa.struct(list(COLUMNS.items())))
        names = rows_of_delta // ROWS + 1, rows_of_delta % ROWS
        _write(location / _folder("delete_delta", write), _DELETE, *names, write, nothing)


def _folder(kind: str, write: int) -> str:
    return f"{kind}_{write:07d}_{write:07d}_0000"


def _write(
    folder: Path, operation: int, writes: Any, rows: Any, write: int, row: pa.StructArray
) -> None:
    count = len(rows)
    table = pa.table(
        {
            "operation": pa.array(np.full(count, operation), pa.int32()),
            "originalTransaction": pa.array(writes, pa.int64()),
            "bucket": pa.array(np.full(count, BUCKET), pa.int32()),
            "rowId": pa.array(rows, pa.int64()),
            "currentTransaction": pa.array(np.full(count, write), pa.int64()),
            "row": row,
        }
    )
    sink = io.BytesIO()
    orc.write_table(table, sink)
    folder.mkdir(parents=True)
    (folder / "bucket_00000").write_bytes(sink.getvalue())


def measured(client: Client, location: Path, runs: int) -> list[Result]:
    """Plan the table, and read it both ways in turns."""
    client.register_table("acid", str(location), "orc", transactional="full")
    client.refresh("acid")
    plan = client.plan("acid", parallelism=2)
    spec = ReadSpec(
        table="acid",
        location=str(location),
        data=pa.schema(list(COLUMNS.items())),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(COLUMNS),
        format="orc",
        names_rows=True,
    )
    ways = {"group": list(_groups(plan.groups)), "split": list(_splits(plan.groups))}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    opened: dict[str, int] = {}
    answers = set()
    for run in range(runs):
        for way, groups in ways.items():
            console.print(f"run {run + 1}: delete deltas once per {way}")
            counts: Counter[str] = Counter()
            started = time.process_time()
            answers.add(_read(spec, groups, counts))
            seconds[way].append(time.process_time() - started)
            opened[way] = counts["delete_files"]
    if len(answers) != 1:
        raise SystemExit(f"the ways differ: {sorted(answers)}")
    if opened["group"] != plan.summary.delete_opens:
        raise SystemExit(
            f"{opened['group']} delete files were opened, and {plan.summary.delete_opens} planned"
        )
    case = (
        f"{plan.summary.files_planned:,} deltas in {len(plan):,} groups, "
        f"{plan.summary.delete_opens // max(len(plan), 1):,} delete deltas"
    )
    figures = {way: statistics.median(times) for way, times in seconds.items()}
    return [
        Result(
            case=case,
            metric=metric,
            unit=unit,
            windrow=of["group"],
            peer="once per split",
            peer_value=of["split"],
        )
        for metric, unit, of in (
            ("CPU time", "s", figures),
            ("delete files opened", "files", opened),
        )
    ]


_Group = tuple[pa.RecordBatch, Sequence[DeleteFile]]


def _groups(groups: pa.Table) -> Iterator[_Group]:
    for splits, files in zip(groups["splits"], groups["delete_files"].to_pylist(), strict=True):
        yield pa.RecordBatch.from_struct_array(splits.values), [DeleteFile(**one) for one in files]


def _splits(groups: pa.Table) -> Iterator[_Group]:
    for splits, files in _groups(groups):
        for at in range(splits.num_rows):
            yield splits.slice(at, 1), files


def _read(spec: ReadSpec, groups: Sequence[_Group], counts: Counter[str]) -> tuple[int, int]:
    """Return the number of rows, and the sum of their ids."""
    rows = ids = 0
    for splits, files in groups:
        for batch in read_group(spec, splits, None, None, counts, files):
            rows += batch.num_rows
            ids += int(batch["id"].to_numpy().sum())
    return rows, ids


def _show(results: Sequence[Result]) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, title=results[0].case)
    for name in ("", "once per group", "once per split", "times"):
        table.add_column(name, justify="right" if name else "left")
    for one in results:
        text_of = seconds_text if one.unit == "s" else "{:,}".format
        ratio = f"{one.ratio:.0f}"
        table.add_row(one.metric, text_of(one.windrow), text_of(one.peer_value), ratio)
    show(table)


if __name__ == "__main__":
    main()
