"""Delta tables read through Windrow, compared with what deltalake reads."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.programs.delta_writer import write
from tests.support.laws import is_nightly
from tests.support.servers import embedded
from tests.support.tables.delta_tables import (
    PUBLISHED,
    DeltaLog,
    add,
    column,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_vectors,
)
from windrow_calls.errors import ProblemError, RefreshFailedError

pytestmark = pytest.mark.usefixtures("interpreted")

# Each kind of commit is among these.
_COMMITS = 125 if is_nightly() else 60
_VERSIONS = 20 if is_nightly() else 8
_ZONE = "spark.sql.session.timeZone"
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInRead"


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    allowed = (str(folder), str(PUBLISHED))
    with embedded.client(folder / "state", allowed_locations=allowed) as client:
        yield client


_numbers = itertools.count()


def _registered(client: windrow.Client, location: Path, **options: str) -> str:
    name = f"delta.t{next(_numbers)}"
    client.register_table(name, location=str(location), format="delta", format_options=options)
    return name


def _rows(table: pa.Table) -> list[str]:
    """Return rows that compare equal if their values do, whatever the order of columns and rows."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def _theirs(location: Path, version: int | None = None) -> list[str]:
    table = QueryBuilder().register("t", DeltaTable(location, version=version))
    rows: list[str] = _rows(pa.table(table.execute("SELECT * FROM t").read_all()))
    return rows


def test_a_live_table_is_read_at_the_version_of_each_refresh_and_nothing_else(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    live = folder / "live"
    command = [sys.executable, "-m", "tests.programs.delta_writer", str(live), str(_COMMITS)]
    frames: dict[int, DataFrame] = {}
    read_at_once: dict[int, list[str]] = {}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as writer:
        while not (live / "_delta_log" / f"{0:020}.json").exists():
            assert writer.poll() is None
        name = _registered(client, live)
        while writer.poll() is None:
            version = _refreshed(client, name)
            if len(frames) < _VERSIONS and version >= len(frames) * _COMMITS // _VERSIONS:
                frames[version] = client.read(spark, name, version=str(version))
            if len(read_at_once) < 3 and version >= _COMMITS // 2 * len(read_at_once):
                read_at_once[version] = _rows(
                    frames[version].toArrow()
                    if version in frames
                    else client.read(spark, name, version=str(version)).toArrow()
                )
        assert writer.returncode == 0
    assert _refreshed(client, name) == DeltaTable(live).version()
    # Versions that the writer passed too quickly; no refresh saw them as current.
    for version in range(3, _COMMITS, _COMMITS // _VERSIONS):
        if len(frames) < _VERSIONS and version not in frames:
            client.refresh(name, version=str(version))
            frames[version] = client.read(spark, name, version=str(version))

    together = reduce(
        DataFrame.unionByName,
        [frame.withColumn("version", F.lit(version)) for version, frame in frames.items()],
    ).toArrow()

    assert len(frames) == _VERSIONS
    for version in frames:
        mine = together.filter(pa.compute.equal(together["version"], version)).drop(["version"])
        assert _rows(mine) == _theirs(live, version)
    for version, rows in read_at_once.items():
        assert rows == _theirs(live, version)


def _refreshed(client: windrow.Client, name: str) -> int:
    snapshot = client.refresh(name).snapshot
    assert snapshot is not None
    assert snapshot.table_version is not None
    return int(snapshot.table_version)


def test_published_tables_have_the_rows_that_deltalake_reads(
    spark: SparkSession, client: windrow.Client
) -> None:
    # The log of the first has lost its files; deltalake does not read the second, and reads the
    # year 9999 in the third as 1816.
    special = {"cleaned-up", "type-widening", "edge-timestamps"}
    tables = [path for path in PUBLISHED.iterdir() if path.is_dir() and path.name not in special]
    for location in sorted(tables):
        name = _registered(client, location)
        client.refresh(name)
        assert _rows(client.read(spark, name).toArrow()) == _theirs(location), location.name
    name = _registered(client, PUBLISHED / "edge-timestamps")
    client.refresh(name)
    dates = client.read(spark, name, columns=["BIG_DATE"]).toArrow()["BIG_DATE"].to_pylist()
    assert sorted(dates) == [datetime(9999, 12, day, tzinfo=timezone.utc) for day in (30, 31)]


def test_widened_columns_are_read_as_by_sparks_own_reader(
    spark: SparkSession, client: windrow.Client
) -> None:
    location = PUBLISHED / "type-widening"
    name = _registered(client, location)
    client.refresh(name)
    ours = client.read(spark, name)
    files = [str(path) for path in location.glob("*.parquet")]
    # Spark expects longer integers in the files of these columns, and refuses them.
    alone = ["byte_decimal", "short_decimal"]

    # deltalake does not read such tables.
    theirs = spark.read.schema(ours.schema).parquet(*files).drop(*alone).toArrow()

    assert len(files) == 2
    assert _rows(ours.drop(*alone).toArrow()) == _rows(theirs)
    assert _rows(client.read(spark, name, reader="native").drop(*alone).toArrow()) == _rows(theirs)
    rest = ours.select(*alone).toArrow()
    assert {one: sorted(map(str, rest[one].to_pylist())) for one in alone} == {
        "byte_decimal": ["1.0", "123.4"],
        "short_decimal": ["12345.6", "2.0"],
    }


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_times_are_what_the_log_says_whatever_files_say(
    type_: str, spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    # In 2026, in 1850 and never.
    values = [1_793_511_000_123_456, -3_786_825_600_000_000, None]
    columns: dict[str, pa.Array] = {}
    types: dict[str, Any] = {}
    for unit in ("ms", "us"):
        for zone in (None, "UTC"):
            times = pa.array(values, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
            times = times.cast(pa.timestamp(unit, zone))
            name = f"{unit}_{zone}"
            columns[name], types[name] = times, type_
            columns[f"{name}_list"] = pa.ListArray.from_arrays([0, 1, 1, 3], times)
            types[f"{name}_list"] = {"type": "array", "elementType": type_, "containsNull": True}
            columns[f"{name}_struct"] = pa.StructArray.from_arrays([times, times], ["gone", "A"])
            types[f"{name}_struct"] = {"type": "struct", "fields": [column("a", type_)]}
    log = DeltaLog(folder / type_)
    int96 = log.folder / "int96.parquet"
    pq.write_table(pa.table(columns), int96, use_deprecated_int96_timestamps=True)
    features = ["timestampNtz"] if type_ == "timestamp_ntz" else []
    log.commit(
        protocol(3 if features else 1, *features),
        metadata([column(name, one) for name, one in types.items()]),
        log.write_file("a.parquet", pa.table(columns)),
        add(int96.name, rows=3, size=int96.stat().st_size),
    )
    name = _registered(client, log.folder)
    client.refresh(name)
    files = [str(path) for path in log.folder.glob("*.parquet")]
    schema = client.read(spark, name).schema
    before = {key: spark.conf.get(key) for key in (_ZONE, _CALENDAR)}
    try:
        spark.conf.set(_ZONE, "America/New_York")
        for calendar in ("LEGACY", "CORRECTED"):
            spark.conf.set(_CALENDAR, calendar)
            theirs = _rows(spark.read.schema(schema).parquet(*files).toArrow())
            assert _rows(client.read(spark, name, reader="grouped").toArrow()) == theirs
        assert _rows(client.read(spark, name).toArrow()) == theirs
        assert _rows(client.read(spark, name, reader="native").toArrow()) == theirs
        assert _rows(client.scan(name).to_table()) == theirs
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def test_files_of_a_clone_are_read_where_they_are(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    source = DeltaLog(folder / "cloned from")
    wrote = source.write_file("p=1/a b.parquet", pa.table({"id": range(5)}))["add"]
    clone = DeltaLog(folder / "clone")
    vectors = write_vectors(source.folder, [[0, 4]])
    path = f"file://{source.folder}/p=1/a b.parquet".replace(" ", "%20")
    beside = {**vectors[0], "storageType": "p"}
    file = next(source.folder.glob("deletion_vector_*"))
    beside["pathOrInlineDv"] = f"file://{file}".replace(" ", "%20")
    clone.commit(
        protocol(3, "deletionVectors"),
        metadata([column("id", "long")]),
        {"add": {**wrote, "path": path, "deletionVector": beside}},
        clone.write_file("b.parquet", pa.table({"id": [9]})),
    )
    name = _registered(client, clone.folder)
    client.refresh(name)

    assert sorted(row.id for row in client.read(spark, name).collect()) == [1, 2, 3, 9]


def test_deletion_vectors_in_files_and_in_the_log_are_applied(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    log = DeltaLog(folder / "vectors")
    log.commit(
        protocol(3, "deletionVectors"),
        metadata([column("id", "long"), column("p", "integer")], ["p"]),
    )
    files = [
        log.write_file(
            f"p={at % 3}/{at}.parquet",
            pa.table({"id": range(at * 100, at * 100 + 100)}),
            partitionValues={"p": str(at % 3)},
        )
        for at in range(9)
    ]
    log.commit(*files)
    gone: dict[int, list[int]] = {
        0: [0],
        1: [99],
        2: list(range(100)),
        4: list(range(0, 100, 3)),
        5: [],
    }
    described = write_vectors(log.folder, [gone[0], gone[1]]) + write_vectors(
        log.folder, [gone[2]], prefix="ab"
    )
    vectors = dict(zip((0, 1, 2), described, strict=True)) | {4: inline_vector(gone[4])}
    for at, vector in vectors.items():
        path = files[at]["add"]["path"]
        log.commit(remove(path), {"add": {**files[at]["add"], "deletionVector": vector}})
    name = _registered(client, log.folder)
    client.refresh(name, version="1")
    client.refresh(name)

    for version in (1, log.version):
        read = client.read(spark, name, version=str(version))
        assert _rows(read.toArrow()) == _theirs(log.folder, version)
    assert client.read(spark, name).count() == 900 - sum(map(len, gone.values()))
    info = client.table(name).current_snapshot
    assert info is not None
    assert info.log is not None
    assert (info.log.delete_files, info.log.deleted_rows) == (4, 136)
    # More rows of one file are deleted, and the deletes of another are undone.
    again = inline_vector([0, 1, 2])
    log.commit(
        remove(files[0]["add"]["path"], deletionVector=vectors[0]),
        {"add": {**files[0]["add"], "deletionVector": again}},
    )
    log.commit(remove(files[4]["add"]["path"], deletionVector=vectors[4]), files[4])
    client.refresh(name)
    assert _rows(client.read(spark, name).toArrow()) == _theirs(log.folder)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_are_renamed_dropped_and_added_again_are_those_of_the_log(
    mode: str, spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    log = DeltaLog(folder / f"mapped-by-{mode}")
    inner = {"type": "struct", "fields": [_mapped("x", "long", 4), _mapped("y", "string", 5)]}
    first = [_mapped("id", "long", 1), _mapped("a", "string", 2), _mapped("s", inner, 3)]
    mapping = {"delta.columnMapping.mode": mode}
    log.commit(
        protocol(2), metadata([*first, _mapped("p", "integer", 6)], ["p"], mapping), _file(log, 0)
    )
    inner = {"type": "struct", "fields": [_mapped("z", "long", 4), _mapped("x", "string", 7)]}
    # `a` was dropped, and a new column has its name; `id`, `s.x` and `p` were renamed.
    second = [_mapped("key", "long", 1), _mapped("a", "string", 8), _mapped("s", inner, 3)]
    log.commit(metadata([*second, _mapped("q", "integer", 6)], ["q"], mapping))
    log.commit(_file(log, 1))
    name = _registered(client, log.folder)
    client.refresh(name, version="0")
    client.refresh(name)

    before = client.read(spark, name, version="0").toArrow().to_pylist()
    after = client.read(spark, name, filter="key >= 10").toArrow().to_pylist()
    rows = client.read(spark, name).toArrow().sort_by("key").to_pylist()

    assert sorted(row["id"] for row in before) == [0, 1, 2]
    assert before[0].keys() == {"id", "a", "s", "p"}
    assert {(row["a"], row["s"]["y"], row["p"]) for row in before} == {("a", "y", 0)}
    assert [(row["key"], row["a"], row["s"], row["q"]) for row in rows] == [
        *((key, None, {"z": key, "x": None}, 0) for key in (0, 1, 2)),
        *((key, "new", {"z": key, "x": "new"}, 1) for key in (10, 11, 12)),
    ]
    assert len(after) == 3


def _mapped(name: str, type_: Any, number: int) -> dict[str, Any]:
    known = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return column(name, type_, **known)


def _file(log: DeltaLog, generation: int) -> Any:
    """Write a file of three rows, with the physical column names of the log."""
    keys = pa.array(range(generation * 10, generation * 10 + 3), pa.int64())
    inner = [("col-4", 4, keys)]
    columns = [("col-1", 1, keys)]
    if generation:
        inner.append(("col-7", 7, pa.array(["new"] * 3)))
        columns.append(("col-8", 8, pa.array(["new"] * 3)))
    else:
        inner.append(("col-5", 5, pa.array(["y"] * 3)))
        columns.append(("col-2", 2, pa.array(["a"] * 3)))
    fields = [_with_id(*one) for one in inner]
    struct = pa.StructArray.from_arrays([values for *_, values in inner], fields=fields)
    columns.append(("col-3", 3, struct))
    rows = pa.table(
        [one[2] for one in columns], schema=pa.schema([_with_id(*one) for one in columns])
    )
    return log.write_file(f"{generation}.parquet", rows, partitionValues={"col-6": str(generation)})


def _with_id(name: str, number: int, values: pa.Array) -> pa.Field:
    return pa.field(name, values.type, metadata={"PARQUET:field_id": str(number)})


def test_a_refresh_finds_the_rows_after_maintenance_by_delta_itself(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "kept"
    write(location, 12)
    name = _registered(client, location)
    client.refresh(name)
    old = client.plan(name)
    table = DeltaTable(location)
    table.optimize.compact()
    table.optimize.z_order(["id"])
    client.refresh(name)
    before = _rows(client.read(spark, name).toArrow())
    assert before == _theirs(location)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    table.create_checkpoint()
    table.cleanup_metadata()
    client.refresh(name)
    assert _rows(client.read(spark, name).toArrow()) == before
    with pytest.raises(Exception, match="refresh"):
        client.read_plan(spark, old).collect()


def test_operations_left_to_delta_are_refused_with_the_alternative(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "refusing"
    write(location, 3)
    name = _registered(client, location)
    client.refresh(name)
    frame = client.read(spark, name)

    refused: list[tuple[Any, str]] = [
        (lambda: client.write(frame, name), "OPTIMIZE"),
        (lambda: client.publish_delta(name, removed=["a"]), "a refresh finds its files"),
        (lambda: list(client.plan_compaction(name)), "OPTIMIZE"),
    ]
    for call, instead in refused:
        with pytest.raises(windrow.WindrowError, match=instead):
            call()
    with pytest.raises(ProblemError, match="--version 1"):
        client.plan(name, version="1")
    with pytest.raises(RefreshFailedError, match="newest version is 2"):
        client.refresh(name, version="77")
    assert client.advise(name)
