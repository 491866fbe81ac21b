"""No write changes files that a summary lists (`_metadata`), so whoever reads by it goes on reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.support.faults.writers import report_of, stage
from tests.support.tables import hive
from windrow.client import Client
from windrow_core.models import WriteMode
from windrow_jobs.compact import compact
from windrow_tables.commits import begin
from windrow_tables.commits.errors import UnfitLocationError

DAY, OTHER = "ds=2026-11-02", "ds=2026-11-01"


def summarise(folder: Path, name: str) -> None:
    """Write a summary of all files beneath a folder."""
    footers = []
    for path in hive.data_files(folder):
        footer = pq.read_metadata(folder / path)
        footer.set_file_path(path)
        footers.append(footer)
    pq.write_metadata(pq.read_schema(next(folder.rglob("*.parquet"))), folder / name, footers)


def write(mode: WriteMode) -> Callable[[Client, str], object]:
    def written(client: Client, table: str) -> object:
        with begin(client, table, mode) as begun:
            return begun.commit(report_of(stage(begun.folder, {f"{DAY}/new.parquet": [1]})))

    return written


def drop(client: Client, table: str) -> object:
    return client.drop_partitions(table, "ds = '2026-11-02'")


WRITES = {
    "append": write("append"),
    "overwrite": write("overwrite"),
    "overwrite_partitions": write("overwrite_partitions"),
    "drop": drop,
}


def no_spark() -> NoReturn:
    raise AssertionError("there is nothing to do")


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize(("folder", "kind"), [("", "_metadata"), (DAY, "_common_metadata")])
def test_a_write_is_refused_where_a_summary_lists_files(
    client: Client, events: str, location: Path, way: str, folder: str, kind: str
) -> None:
    summary = location / folder / kind
    summarise(summary.parent, kind)
    files = hive.data_files(location)
    rows = ds.parquet_dataset(str(summary)).to_table()

    with pytest.raises(UnfitLocationError, match=f"{kind}' lists its files for readers"):
        WRITES[way](client, events)

    assert ds.parquet_dataset(str(summary)).to_table().equals(rows)
    assert hive.data_files(location) == files
    assert not client.refresh(events, full=True).changed


def test_compaction_leaves_what_a_summary_lists_without_a_session(
    client: Client, events: str, location: Path
) -> None:
    summarise(location, "_metadata")
    rows = ds.parquet_dataset(str(location / "_metadata")).to_table()

    done = compact(no_spark, client, events, min_files=2, worth_reads=10**9)

    assert (done.batches, done.conflicts, len(done.left)) == (0, 0, 3)
    assert all("_metadata' lists its files" in reason for reason in done.left.values())
    assert ds.parquet_dataset(str(location / "_metadata")).to_table().equals(rows)


def test_a_write_goes_to_partitions_beside_a_summary_and_to_those_with_an_empty_one(
    client: Client, events: str, location: Path
) -> None:
    summarise(location / OTHER, "_metadata")
    (location / "_metadata").touch()

    WRITES["overwrite_partitions"](client, events)

    assert [path for path in hive.data_files(location) if DAY in path] == [f"{DAY}/new.parquet"]
    assert len(ds.parquet_dataset(str(location / OTHER / "_metadata")).to_table()) == 20


def test_a_summary_of_the_table_also_counts_between_it_and_its_partitions(
    client: Client, name: str, location: Path
) -> None:
    hive.write_file(location / "year=2026" / "month=11" / "a.parquet", [1])
    hive.write_file(location / "year=2027" / "month=11" / "a.parquet", [2])
    client.register_table(name, str(location))
    client.refresh(name)
    summarise(location / "year=2026", "_metadata")

    with begin(client, name, "append") as begun:
        report = report_of(stage(begun.folder, {"year=2026/month=12/b.parquet": [3]}))
        with pytest.raises(UnfitLocationError, match="year=2026/_metadata' lists its files"):
            begun.commit(report)
    with begin(client, name, "append") as begun:
        begun.commit(report_of(stage(begun.folder, {"year=2027/month=12/b.parquet": [4]})))

    assert sorted(client.scan(name).to_table()["id"].to_pylist()) == [1, 2, 4]
