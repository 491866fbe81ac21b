"""Packs and plans that somebody has meddled with: no other rows, no rows missing, and no process ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.spark.test_pack_reads import client, from_packs, overwrite, packed, rows_of
from tests.support.queries import pack_reads
from tests.support.servers import embedded
from tests.support.tables.packs import (
    forged,
    fresh_pack,
    hostile_footer,
    packs_for_few_files,
    with_footer,
    write_small_files,
)
from windrow.spark import recent_scans
from windrow_calls.plans import SplitPlan
from windrow_core.files.excerpts.thrift import LIST, STRUCT, Skimmer
from windrow_spark.errors import TaskFailedError
from windrow_spark.hadoop import hadoop_location
from windrow_spark.relation.packed import Packed, packed_files
from windrow_tables.errors import UnfitReadError

__all__ = ["client"]

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FILES = 60
_MOST_FOOTER_BYTES = 64 * 2**20
# Thrift: structs within structs, and a list of more structs than an array can have.
_DEEP, _LONG = pack_reads.DEEP, b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07"


@pytest.fixture(scope="module")
def table(client: windrow.Client, folder: Path) -> str:
    write_small_files(folder / "hostile", FILES, rows=400)
    return packed(client, folder / "hostile", "packs.hostile")


@pytest.fixture(scope="module")
def expected(spark: SparkSession, client: windrow.Client, table: str) -> list[str]:
    return rows_of(client.read(spark, table, reader="grouped"))


@pytest.fixture
def pack(client: windrow.Client, table: str) -> Path:
    """The table's only pack, which no query has read yet."""
    return fresh_pack(client, table)


def read(spark: SparkSession, client: windrow.Client, table: str) -> list[str]:
    return rows_of(client.read(spark, table))


def looked_at(spark: SparkSession, plan: SplitPlan) -> Packed:
    types = {column.name: column.type for column in plan.info.columns}
    home = hadoop_location(spark, plan.info.location)
    return packed_files(spark, plan, "auto", types, home, has_filter=False)


def with_packs(plan: SplitPlan, paths: Sequence[Path], size_bytes: int) -> SplitPlan:
    """Return a plan that says that some packs are others."""
    (pack,) = plan.info.packs
    packs = [pack.model_copy(update={"path": str(one), "size_bytes": size_bytes}) for one in paths]
    return replace(plan, info=plan.info.model_copy(update={"packs": packs}))


@pytest.mark.parametrize(
    ("start", "error"), [(_DEEP, "StackOverflowError"), (_LONG, "OutOfMemoryError")]
)
def test_a_footer_that_takes_more_memory_than_there_is_makes_its_pack_unreadable(
    spark: SparkSession,
    client: windrow.Client,
    table: str,
    pack: Path,
    expected: list[str],
    start: bytes,
    error: str,
) -> None:
    overwrite(pack, with_footer(b"PAR1", hostile_footer(start), pack.stat().st_size))

    assert read(spark, client, table) == expected
    scan = recent_scans(table)[0]
    assert (scan.packed_files, scan.unreadable_packs) == (0, [str(pack)])
    assert error in scan.why_files


def test_a_footer_that_is_said_to_be_large_is_never_read(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, folder: Path
) -> None:
    large = folder / "large.parquet"
    for length, reason in (
        (_MOST_FOOTER_BYTES, "its footer is damaged"),
        (_MOST_FOOTER_BYTES + 1, "its footer has 67108865 bytes, of at most 67108864"),
    ):
        size = length + 1_000
        # The file takes no place on a disk.
        large.write_bytes(b"")
        os.truncate(large, size - 8)
        with large.open("ab") as file:
            file.write(length.to_bytes(4, "little") + b"PAR1")
        outcome = looked_at(spark, with_packs(client.plan(table, accept=["packs"]), [large], size))

        assert (outcome.relation, outcome.files) == (None, 0)
        assert reason in outcome.reason
        assert outcome.unreadable == [str(large)]


def test_all_queries_share_sixteen_threads_that_open_packs(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, folder: Path
) -> None:
    copies = [folder / f"copy-{number}.parquet" for number in range(50)]
    for copy in copies:
        copy.hardlink_to(pack)
    plan = with_packs(client.plan(table, accept=["packs"]), copies, pack.stat().st_size)

    for _ in range(2):
        assert looked_at(spark, plan).files == FILES
    threads: Any = spark.sparkContext._jvm.java.lang.Thread.getAllStackTraces().keySet()
    own = [thread for thread in threads if thread.getName() == "windrow-packs"]
    assert len(own) == 16
    assert all(thread.isDaemon() for thread in own)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pack_row": -1},
        {"pack_row": None},
        {"pack_row": 24_000 - 399},
        {"pack_row": 2**62},
        {"row_count": 0},
        {"row_count": -5},
        {"row_count": None},
        {"row_count": 24_001},
        {"row_count": 2**62},
        {"pack": 1},
        {"pack": -2},
    ],
    ids=str,
)
def test_a_plan_of_rows_that_a_pack_lacks_is_refused_by_name(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, wrong: dict[str, Any]
) -> None:
    plan = client.plan(table, accept=["packs"])
    assert looked_at(spark, plan).files == FILES
    name = str(pack) if "pack" not in wrong else "pack number"
    with pytest.raises(UnfitReadError, match=rf"(?s)packs.hostile.*{name}.*spark.windrow.packs"):
        looked_at(spark, edited(plan, wrong))


def test_a_plan_that_gives_two_files_the_same_rows_is_refused(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path
) -> None:
    plan = client.plan(table, accept=["packs"])
    splits = [one for some in plan.groups["splits"].to_pylist() for one in some]
    first, second = sorted(splits, key=lambda split: split["pack_row"])[-2:]
    for row in (first["pack_row"], second["pack_row"] - 1):
        with pytest.raises(UnfitReadError, match="or are those of another file"):
            looked_at(spark, edited(plan, {"pack_row": row}, second["path"]))


def edited(plan: SplitPlan, changes: dict[str, Any], path: str = "") -> SplitPlan:
    """Return a plan with changes of one of its splits: the first, or the one of a path."""
    splits = plan.groups["splits"].to_pylist()
    all_ = [one for some in splits for one in some]
    next(one for one in all_ if path in ("", one["path"])).update(changes)
    at = plan.groups.column_names.index("splits")
    column = pa.array(splits, plan.groups.schema.field("splits").type)
    return replace(plan, groups=plan.groups.set_column(at, "splits", column))


def with_groups_swapped(footer: bytes) -> bytes:
    """Return the footer of a file of two row groups with the second one first."""
    skimmer = Skimmer(footer)
    for number, kind in skimmer.fields():
        if (number, kind) != (4, LIST):
            skimmer.skip(kind)
            continue
        assert skimmer.listed() == (2, STRUCT)
        places = [skimmer.at]
        for _ in range(2):
            skimmer.skip(STRUCT)
            places.append(skimmer.at)
    first, second, end = places
    return footer[:first] + footer[second:end] + footer[first:second] + footer[end:]


def test_row_groups_in_another_order_than_their_bytes_make_a_pack_unreadable(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    rows, size = pq.read_table(pack), pack.stat().st_size
    overwrite(pack, forged(rows, size, group_rows=12_000, compression="zstd"))
    assert read(spark, client, table) == expected
    assert from_packs(table) == FILES

    content = forged(rows, size, group_rows=12_000, compression="zstd", edit=with_groups_swapped)
    overwrite(pack, content)
    assert read(spark, client, table) == expected
    assert "its row groups are damaged" in recent_scans(table)[0].why_files


def test_another_pack_of_the_same_size_and_time_fails_queries_that_have_begun(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    state = pack.stat()
    rows = client.read(spark, table)
    rows._jdf.queryExecution().toRdd()
    assert from_packs(table) == FILES
    table_ = pq.read_table(pack)
    at = table_.column_names.index("id")
    others = table_.set_column(at, "id", pa.array(range(len(table_)), pa.int64()))
    overwrite(pack, forged(others, state.st_size, group_rows=100_000, compression="zstd"))
    os.utime(pack, ns=(state.st_atime_ns, state.st_mtime_ns))

    with pytest.raises(TaskFailedError, match=rf"pack '{pack}' cannot be read .*it has changed"):
        rows_of(rows)
    assert read(spark, client, table) == expected
    assert recent_scans(table)[0].unreadable_packs == [str(pack)]


def test_a_page_that_takes_more_memory_than_there_is_fails_the_query_alone(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    rows = pq.read_table(pack)
    long = pa.array([" " * 140_000_000, *[""] * (len(rows) - 1)])
    content = forged(
        pa.table({"x": long, **{name: rows[name] for name in rows.column_names if name != "x"}}),
        pack.stat().st_size,
        compression="zstd",
        use_dictionary=False,
        data_page_size=2**30,
    )
    # The header of the first page: its kind, and its size, in five bytes, which becomes the largest.
    assert content.startswith(b"PAR1\x15\x00\x15")
    overwrite(pack, content[:7] + b"\xfe\xff\xff\xff\x0f" + content[12:])

    with pytest.raises(TaskFailedError, match=rf"pack '{pack}' cannot be read .*OutOfMemoryError"):
        read(spark, client, table)
    assert read(spark, client, table) == expected
    assert recent_scans(table)[0].unreadable_packs == [str(pack)]


def test_jobs_of_rdds_note_packs_that_their_tasks_could_not_read(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    content = pack.read_bytes()
    overwrite(pack, content[:3_000] + bytes(3_000) + content[6_000:])
    rows = client.read(spark, table)
    with pytest.raises(Exception, match=r"pack .* cannot be read .* with a new DataFrame"):
        rows.rdd.count()
    assert rows_of(rows.where("id >= 0")) == expected
    assert recent_scans(table)[0].packed_files == 0


def test_packs_that_vanish_while_queries_run_cost_an_error_or_nothing(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    content = pack.read_bytes()
    outcomes: list[list[str] | str] = []

    def ask() -> None:
        for _ in range(3):
            try:
                outcomes.append(read(spark, client, table))
            except TaskFailedError as error:
                outcomes.append(error.kind)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    while any(asker.is_alive() for asker in askers):
        pack.unlink()
        # Python's own file is another one, with the same bytes.
        pack.write_bytes(content)
        time.sleep(0.005)
    for asker in askers:
        asker.join()

    assert len(outcomes) == 9
    assert all(one in (expected, "UnreadablePackError") for one in outcomes)
    assert read(spark, client, table) == expected


def test_what_lies_in_place_of_a_pack_is_followed_or_not_read(
    spark: SparkSession, client: windrow.Client, table: str, pack: Path, expected: list[str]
) -> None:
    elsewhere = pack.with_name("elsewhere")
    pack.rename(elsewhere)
    pack.symlink_to(elsewhere)
    assert read(spark, client, table) == expected
    assert from_packs(table) == FILES
    for make in (pack.mkdir, lambda: os.mkfifo(pack), lambda: pack.symlink_to(pack)):
        pack.rmdir() if pack.is_dir() else pack.unlink()
        make()
        assert read(spark, client, table) == expected
        assert recent_scans(table)[0].unreadable_packs == [str(pack)]
    pack.unlink()


def test_packs_are_read_from_folders_of_any_name(spark: SparkSession, folder: Path) -> None:
    state, location = folder / "ä b%20c'd#e?f", folder / "of any name"
    write_small_files(location, rows=5)
    with packs_for_few_files(), embedded.client(state, [str(folder)]) as client:
        packed(client, location, "any")
        expected = rows_of(client.read(spark, "any", reader="grouped"))
        assert read(spark, client, "any") == expected
        assert from_packs("any") == FILES
        (pack,) = (Path(one.path) for one in client.list_packs("any"))
        overwrite(pack, pack.read_bytes().replace(b"\x15", b"\x16", 3))

        with pytest.raises(TaskFailedError, match=r"pack .* cannot be read"):
            read(spark, client, "any")
        assert read(spark, client, "any") == expected


def test_packs_are_read_and_refused_alike_on_every_spark(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    also_on_older_sparks: list[dict[str, Any]],
) -> None:
    for found in (
        pack_reads.outcomes(spark, client, folder),
        *(older["packs"] for older in also_on_older_sparks),
    ):
        assert found["different"] == []
        assert found["files"] == [pack_reads.FILES] * len(found["files"])
        errors, are_same = zip(*(found[name] for name in ("damaged", "other", "deep")), strict=True)
        assert all(are_same)
        assert "could not verify" in errors[0]
        assert "cannot be read (java.io.IOException: it has changed)" in errors[1]
        assert errors[2] == ""
