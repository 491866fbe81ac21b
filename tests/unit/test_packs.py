"""`windrow_tables.packs`: the rows of many files in one, with the same values, and its rights."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.parquet_kinds import every_kind_of_file
from tests.support.tables.packs import settle
from windrow_tables.merging.files import as_bits
from windrow_tables.merging.physical import physical_schema
from windrow_tables.merging.sources import Heads
from windrow_tables.packs.contents import Content, footer_of, reader_of
from windrow_tables.packs.making import MadePack, PackingJob, make_packs
from windrow_tables.packs.writing import SOURCE

BY_SPARK = {b"org.apache.spark.version": b"4.0.0"}
KINDS = every_kind_of_file({key.decode(): value.decode() for key, value in BY_SPARK.items()})
DAYS = pa.schema([("ds", pa.date32()), ("part", pa.string())])
_NOBODY = 65534
OLD_NS = 1_700_000_000 * 10**9


def file_in(folder: Path, name: str, content: bytes) -> Path:
    """Write a file that nobody has changed lately."""
    path = folder / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(OLD_NS, OLD_NS))
    return path


def files_of(folder: Path, names: list[str], days: Sequence[date | None] | None = None) -> pa.Table:
    """Return files as the inventory has them, each of a day of its own if none are given."""
    status = [(folder / "t" / name).stat() for name in names]
    rows = [pq.read_metadata(folder / "t" / name).num_rows for name in names]
    values = [
        pa.array(days or [date(2026, 1, 1 + at % 28) for at in range(len(names))]),
        pa.array([f"p {at}" for at in range(len(names))]),
    ]
    return pa.table(
        {
            "path": names,
            "size_bytes": [one.st_size for one in status],
            "mtime_ns": [one.st_mtime_ns for one in status],
            "etag": pa.nulls(len(names), pa.string()),
            "row_count": rows,
            "partition": pa.StructArray.from_arrays(values, fields=list(DAYS)),
        }
    )


def packs_of(
    folder: Path,
    names: list[str],
    min_sources: int = 1,
    days: Sequence[date | None] | None = None,
) -> tuple[list[MadePack], dict[str, str]]:
    """Pack files; return the packs, and why files were left."""
    job = PackingJob(
        location=str(folder / "t"),
        folder=str(folder / "packs"),
        home="home",
        run="0" * 16,
        partition=DAYS,
        min_sources=min_sources,
    )
    settle()
    packs, left = make_packs(job, files_of(folder, names, days))
    return packs, {names[one.source]: one.reason for one in left}


def small_file(*ids: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids)}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_pack_has_the_stored_values_of_its_files_bit_for_bit(kind: str, tmp_path: Path) -> None:
    contents = KINDS[kind]
    names = [f"{at}.parquet" for at in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        file_in(tmp_path, name, content)

    packs, left = packs_of(tmp_path, names)

    assert sum(len(one.sources) for one in packs) == len(names)
    assert not left
    heads = Heads()
    for one in packs:
        data = Path(one.path).read_bytes()
        table = reader_of(data, physical_schema(footer_of(data).head)).read_all()
        own = [Content.of(contents[number], heads) for number in one.sources]
        rows = pa.concat_tables([each.rows_of(physical_schema(each.head)) for each in own])
        assert as_bits(table.select(rows.schema.names)).equals(as_bits(rows))
        assert hashlib.sha256(data).hexdigest() == one.digest
        assert list(one.digests) == [hashlib.sha256(each.data).digest() for each in own]


def test_a_pack_says_of_each_row_its_partition_and_its_file(tmp_path: Path) -> None:
    for at in range(3):
        file_in(tmp_path, f"{at}.parquet", small_file(10 * at, 10 * at + 1))

    (pack,), _ = packs_of(tmp_path, ["0.parquet", "1.parquet", "2.parquet"])

    rows = pq.read_table(pack.path).to_pydict()
    assert rows["id"] == [0, 1, 10, 11, 20, 21]
    assert rows["ds"] == [date(2026, 1, 1 + at) for at in (0, 0, 1, 1, 2, 2)]
    assert rows["part"] == [f"p {at}" for at in (0, 0, 1, 1, 2, 2)]
    assert rows[SOURCE] == [0, 0, 1, 1, 2, 2]


def test_files_that_are_not_alike_are_in_packs_of_their_own(tmp_path: Path) -> None:
    file_in(tmp_path, "a.parquet", small_file(1))
    file_in(tmp_path, "b.parquet", small_file(2))
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["x"]}), sink)
    file_in(tmp_path, "c.parquet", sink.getvalue())

    packs, left = packs_of(tmp_path, ["a.parquet", "b.parquet", "c.parquet"], min_sources=2)

    assert [list(one.sources) for one in packs] == [[0, 1]]
    assert left == {"c.parquet": "only 1 files are like it"}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "INT96", "day"])
@pytest.mark.parametrize("nested", [False, True])
def test_files_with_old_dates_or_times_that_spark_may_refuse_stay_by_themselves(
    unit: str, nested: bool, tmp_path: Path
) -> None:
    moments = [
        datetime.fromisoformat(f"{at}+00:00")
        for at in ("1899-12-31T23:59:59", "1900-01-01T00:00:00")
    ]
    days = (date(1582, 10, 14), date(1582, 10, 15))
    type_ = pa.date32() if unit == "day" else pa.timestamp("ms" if unit == "INT96" else unit, "UTC")
    for at, name in ((0, "old"), (1, "new"), (0, "old by Spark")):
        values = pa.array([None, (days if unit == "day" else moments)[at], None], type_)
        column = pa.array([[{"a": one}] for one in values], pa.list_(pa.struct([("a", type_)])))
        table = pa.table({"v": column if nested else values})
        if "Spark" in name:
            table = table.replace_schema_metadata(BY_SPARK)
        sink = io.BytesIO()
        pq.write_table(table, sink, use_deprecated_int96_timestamps=unit == "INT96")
        file_in(tmp_path, f"{name}.parquet", sink.getvalue())

    packs, left = packs_of(tmp_path, ["old.parquet", "new.parquet", "old by Spark.parquet"])

    assert sorted(one for pack in packs for one in pack.sources) == [1, 2]
    assert left == {"old.parquet": "it has old dates or times, and does not say in which calendar"}


@pytest.mark.parametrize(
    ("version", "mark"), [(None, None), (b"2.4.8", None), (b"3.5.0", b""), (b"3.5.0", None)]
)
def test_files_of_old_partitions_are_in_packs_only_if_spark_reads_their_dates_as_they_are(
    version: bytes | None, mark: bytes | None, tmp_path: Path
) -> None:
    keys = {b"org.apache.spark.version": version, b"org.apache.spark.legacyDateTime": mark}
    table = pa.table({"id": [1]}).replace_schema_metadata(
        {key: value for key, value in keys.items() if value is not None}
    )
    for at in range(3):
        pq.write_table(table, file_in(tmp_path, f"{at}.parquet", b""))
        os.utime(tmp_path / "t" / f"{at}.parquet", ns=(OLD_NS, OLD_NS))
    names = ["0.parquet", "1.parquet", "2.parquet"]
    days = [date(1582, 10, 14), None, date(2026, 1, 1)]

    packs, left = packs_of(tmp_path, names, days=days)

    is_certain = version == b"3.5.0" and mark is None
    assert [list(one.sources) for one in packs] == [[0, 1, 2] if is_certain else [1, 2]]
    reason = "its partition has an old date or time, and its own may be in another calendar"
    assert left == ({} if is_certain else {"0.parquet": reason})


def test_what_changed_or_is_damaged_is_left_and_named(tmp_path: Path) -> None:
    names = ["gone.parquet", "grown.parquet", "cut.parquet", "good.parquet", "young.parquet"]
    for name in names:
        file_in(tmp_path, name, small_file(1, 2, 3))
    files = files_of(tmp_path, names)
    (tmp_path / "t" / "gone.parquet").unlink()
    file_in(tmp_path, "grown.parquet", small_file(*range(1000)))
    cut = tmp_path / "t" / "cut.parquet"
    content = cut.read_bytes()
    cut.write_bytes(content[:-4] + b"XXXX")
    os.utime(cut, ns=(OLD_NS, OLD_NS))
    os.utime(tmp_path / "t" / "young.parquet")
    files = files.set_column(
        2,
        "mtime_ns",
        pa.array([*[OLD_NS] * 4, (tmp_path / "t" / "young.parquet").stat().st_mtime_ns]),
    )
    job = PackingJob(
        location=str(tmp_path / "t"),
        folder=str(tmp_path / "packs"),
        home="home",
        run="0" * 16,
        partition=DAYS,
        min_sources=1,
    )

    settle()

    packs, left = make_packs(job, files)

    assert [list(one.sources) for one in packs] == [[3]]
    reasons = {names[one.source]: one.reason for one in left}
    assert reasons == {
        "gone.parquet": "it has changed since the last refresh",
        "grown.parquet": "it has changed since the last refresh",
        "cut.parquet": "it does not end as Parquet files do: part of it may be missing",
        "young.parquet": "it was written just now",
    }


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "expected"),
    [
        (0o644, 0o755, 0o444),
        (0o640, 0o755, 0o440),
        (0o600, 0o755, 0o400),
        (0o644, 0o700, 0o400),
        (0o644, 0o750, 0o440),
        (0o644, 0o744, 0o400),
        # The group of the folder is kept out.
        (0o644, 0o705, 0o400),
        (0o666, 0o777, 0o444),
    ],
)
def test_nobody_may_read_a_pack_who_cannot_reach_its_files(
    file_mode: int, folder_mode: int, expected: int, root: Path
) -> None:
    path = file_in(root, "k=1/a.parquet", small_file(1))
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)

    (pack,), _ = packs_of(root, ["k=1/a.parquet"])

    assert mode_of(pack.path) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_another_user_reads_no_row_of_a_partition_that_is_closed_to_them(root: Path) -> None:
    # The file of the second is theirs, in a folder that they cannot enter.
    for name in ("k=1/a.parquet", "k=2/a.parquet", "k=3/a.parquet"):
        file_in(root, name, small_file(1)).parent.chmod(0o700)
    os.chown(root / "t" / "k=2" / "a.parquet", _NOBODY, _NOBODY)
    (root / "t" / "k=3").chmod(0o755)

    packs, _ = packs_of(root, ["k=1/a.parquet", "k=2/a.parquet", "k=3/a.parquet"])

    for folder in (root / "packs", root / "packs" / "home"):
        folder.chmod(0o755)
    readable = {tuple(one.sources) for one in packs if _may_read(one.path)}
    assert readable == {(2,)}
    assert sum(len(one.sources) for one in packs) == 3


def _may_read(path: str) -> bool:
    done = subprocess.run(
        ["cat", path],
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
        check=False,
        capture_output=True,
    )
    return done.returncode == 0


def test_files_with_other_rights_are_in_packs_of_their_own(root: Path) -> None:
    for name, mode in (("a", 0o600), ("b", 0o644), ("c", 0o600)):
        file_in(root, f"{name}.parquet", small_file(1)).chmod(mode)

    packs, _ = packs_of(root, ["a.parquet", "b.parquet", "c.parquet"])

    assert {mode_of(one.path): list(one.sources) for one in packs} == {0o400: [0, 2], 0o444: [1]}
