"""Tasks request their next files from object stores ahead of time, within bounds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.servers.slow_store import slow_store
from windrow_tables.executor.prefetching import most_prefetched_bytes
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import MIB, ReadLimits, ReadSpec

FILES = 8
# More than is decoded in one go.
ROWS = 200_000


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> pa.RecordBatch:
    """Splits of files of 1.6 MB each, in a bucket."""
    folder = tmp_path_factory.mktemp("stores") / "bucket"
    folder.mkdir()
    rows = pa.table({"x": np.random.default_rng(1).random(ROWS)})
    for at in range(FILES):
        pq.write_table(rows, folder / f"{at}.parquet", use_dictionary=False)
    states = [(folder / f"{at}.parquet").stat() for at in range(FILES)]
    return pa.RecordBatch.from_pydict(
        {
            "path": [f"{at}.parquet" for at in range(FILES)],
            "start": [0] * FILES,
            "length": [state.st_size for state in states],
            "size_bytes": [state.st_size for state in states],
            "mtime_ns": [int(state.st_mtime) * 10**9 for state in states],
            "row_count": [ROWS] * FILES,
            "partition": pa.array([{}] * FILES, pa.struct([])),
            "folder": [str(folder.parent)] * FILES,
        }
    )


@pytest.mark.parametrize("columns", [("x",), ()], ids=["files", "footers"])
@pytest.mark.parametrize(
    ("limits", "most_files"),
    [
        pytest.param(ReadLimits(prefetch_files=3), 4, id="few files"),
        pytest.param(ReadLimits(prefetch_bytes=4 * MIB), 4, id="few bytes"),
    ],
)
def test_large_files_that_are_held_whole_are_requested_before_their_turn(
    splits: pa.RecordBatch,
    monkeypatch: pytest.MonkeyPatch,
    columns: tuple[str, ...],
    limits: ReadLimits,
    most_files: int,
) -> None:
    spec = ReadSpec(
        table="t",
        location="s3://bucket",
        data=pa.schema([(name, pa.float64()) for name in columns]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=columns,
        limits=limits,
    )
    with (
        slow_store(Path(splits["folder"][0].as_py())) as store,
        object_proxy(store.environment["AWS_ENDPOINT_URL"]) as proxy,
    ):
        directed(monkeypatch, store.environment, proxy)
        proxy.delay(0.05)
        counts: Counter[str] = Counter()

        rows = sum(batch.num_rows for batch in read_group(spec, splits, None, counts=counts))

        seen = proxy.counts()

    assert rows == FILES * ROWS
    assert seen.requests.total() == FILES
    by_files = limits.prefetch_files == 3 or columns
    assert 2 <= seen.most_in_flight <= (most_files if by_files else FILES)
    assert most_prefetched_bytes(counts) <= limits.prefetch_bytes + 2 * MIB


def directed(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], proxy: ObjectProxy
) -> None:
    for name, value in {**environment, "AWS_ENDPOINT_URL": proxy.url}.items():
        monkeypatch.setenv(name, value)
