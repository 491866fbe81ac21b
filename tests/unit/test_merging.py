"""`windrow_tables.merging`: files with the same values, types and metadata as those before."""

from __future__ import annotations

import math
import os
import tempfile
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.parquet_kinds import differences, every_kind_of_file
from windrow_tables.executor.spec import SortKey
from windrow_tables.merging.files import MergedFile, merge
from windrow_tables.merging.sources import Sources, UnfitFileError

KINDS = every_kind_of_file()
MAX_FOOTER_BYTES = 2**24


def merged(
    folder: Path, names: list[str], *sort: SortKey, target_bytes: int = 2**20
) -> list[MergedFile]:
    files = Sources(str(folder), MAX_FOOTER_BYTES, str(folder))
    sources = [files.open(name) for name in names]
    into = tempfile.mkdtemp(dir=folder)
    return merge(sources, sort, target_bytes, 1.0, os.path.join(into, "merged"))


def written(folder: Path, contents: list[bytes]) -> list[str]:
    for at, content in enumerate(contents):
        (folder / f"{at}.parquet").write_bytes(content)
    return [f"{at}.parquet" for at in range(len(contents))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_merged_file_differs_in_nothing_but_its_rows(kind: str, tmp_path: Path) -> None:
    names = written(tmp_path, KINDS[kind])

    (one,) = merged(tmp_path, names)

    before = [pq.ParquetFile(tmp_path / name) for name in names]
    assert differences(before, pq.ParquetFile(one.path)) == []
    assert one.size_bytes == Path(one.path).stat().st_size


def test_what_differs_is_noticed(tmp_path: Path) -> None:
    plain = {"id": [1], "a": [1.5]}
    others = [
        pa.table({"id": [1], "a": [2.5]}),
        pa.table({"id": [1], "a": pa.array([1.5], pa.float32())}),
        pa.table(plain, pa.schema([("id", pa.int64()), pa.field("a", pa.float64(), False)])),
        pa.table(plain).replace_schema_metadata({"k": "v"}),
        pa.concat_tables([pa.table(plain)] * 2),
    ]
    pq.write_table(pa.table(plain), tmp_path / "plain")
    for other in others:
        pq.write_table(other, tmp_path / "other")
        files = [pq.ParquetFile(tmp_path / name) for name in ("plain", "other")]
        assert differences(files[:1], files[1]) != []


def test_rows_keep_their_order_across_files_of_equal_size(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(40_000)), "t": [f"{at:032x}" for at in range(40_000)]})
    names = written(tmp_path, [as_file(table.slice(at, 1_000)) for at in range(0, 40_000, 1_000)])

    made = merged(tmp_path, names, target_bytes=128 * 2**10)

    assert pa.concat_tables([pq.read_table(one.path) for one in made]).equals(table)
    sizes = [one.size_bytes for one in made]
    assert len(sizes) > 2
    assert max(sizes) < 1.5 * 128 * 2**10
    assert min(sizes) > 0.5 * 128 * 2**10
    assert [one.rows for one in made] == [len(pq.read_table(one.path)) for one in made]


def test_there_are_fewer_files_if_rows_compress_better_together(tmp_path: Path) -> None:
    # Apart, each file stores the same long text once.
    table = pa.table({"t": ["x".join(map(str, range(5_000)))]})
    names = written(tmp_path, [as_file(table, compression="none") for _ in range(20)])
    assert sum((tmp_path / name).stat().st_size for name in names) > 2 * 200_000

    (one,) = merged(tmp_path, names, target_bytes=200_000)

    assert pq.read_table(one.path).equals(pa.concat_tables([table] * 20))
    assert [path.name for path in tmp_path.rglob("merged*")] == [Path(one.path).name]


# Unsorted values, and the same in Spark's ascending order.
ORDERS: list[tuple[pa.Array, list[Any]]] = [
    (pa.array([3, None, -1, 2]), [None, -1, 2, 3]),
    (pa.array([1.5, math.inf, None, -0.0]), [None, -0.0, 1.5, math.inf]),
    (pa.array(["b", "ä", None, "a"]), [None, "a", "b", "ä"]),
    (pa.array([2**32 - 1, None, 5, 0], pa.uint32()), [None, 0, 5, 2**32 - 1]),
    (
        pa.array([Decimal("2.50"), Decimal("-3.00"), None, Decimal("0.01")]),
        [None, Decimal("-3.00"), Decimal("0.01"), Decimal("2.50")],
    ),
]


@pytest.mark.parametrize(("values", "ascending"), ORDERS, ids=str)
def test_rows_are_sorted_as_spark_does(
    values: pa.Array, ascending: list[Any], tmp_path: Path
) -> None:
    table = pa.table({"id": range(4), "Value": values})
    names = written(tmp_path, [as_file(table.slice(at, 2)) for at in (0, 2)])

    for descending in (False, True):
        key = SortKey(name="value", descending=descending, nulls_first=True)
        (one,) = merged(tmp_path, names, key)
        present = ascending[1:]
        assert pq.read_table(one.path)["Value"].to_pylist() == [
            None,
            *(reversed(present) if descending else present),
        ]


def test_nan_is_last_and_int96_is_sorted_by_time(tmp_path: Path) -> None:
    rows = pa.table(
        {"f": [math.nan, 1.0, math.inf], "t": pa.array([3_000, -5_000, 2_000], pa.timestamp("ns"))}
    )
    names = written(tmp_path, [as_file(rows, use_deprecated_int96_timestamps=True)] * 2)

    for name, order in (("f", [1, 1, 2, 2, 0, 0]), ("t", [1, 1, 2, 2, 0, 0])):
        key = SortKey(name=name, descending=False, nulls_first=True)
        (one,) = merged(tmp_path, names, key)
        assert pq.read_table(one.path)["t"].equals(rows["t"].take(order))


def test_rows_are_not_sorted_by_a_column_whose_order_is_unknown(tmp_path: Path) -> None:
    names = written(tmp_path, [as_file(pa.table({"l": [[1]]}))] * 2)

    with pytest.raises(UnfitFileError, match="cannot be sorted by column 'l'"):
        merged(tmp_path, names, SortKey(name="l", descending=False, nulls_first=True))


def test_bounds_are_those_of_the_column_s_own_order(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "unsigned": pa.array([1, 2**64 - 1], pa.uint64()),
            "small": pa.array([200, 3], pa.uint8()),
            "half": pa.array([-2.5, 1.5]).cast(pa.float16()),
            "long": pa.array([Decimal(-5), Decimal(10) ** 30], pa.decimal128(38, 0)),
            "longer": pa.array([Decimal(-5), Decimal(10) ** 60], pa.decimal256(76, 0)),
            "bytes": [b"\xff", b"\x01"],
            "nan": [math.nan, 1.0],
        }
    )
    names = written(tmp_path, [as_file(rows)] * 2)

    (one,) = merged(tmp_path, names)

    groups = [pq.read_metadata(path).row_group(0) for path in (tmp_path / names[0], one.path)]
    for at in range(groups[0].num_columns):
        before, after = (group.column(at).statistics for group in groups)
        assert (after.min, after.max) == (before.min, before.max)
        assert after.null_count == 0


def test_int96_and_intervals_get_no_bounds(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array([2**40, 1], pa.timestamp("ns"))})
    names = written(tmp_path, [as_file(rows, use_deprecated_int96_timestamps=True)] * 2)

    (one,) = merged(tmp_path, names)

    assert pq.read_metadata(one.path).row_group(0).column(0).statistics is None


def test_bloom_filters_hold_the_merged_values(tmp_path: Path) -> None:
    rows = [pa.table({"t": [f"{at}-{row}" for row in range(50)], "u": [1] * 50}) for at in (0, 1)]
    names = written(
        tmp_path, [as_file(one, bloom_filter_options={"t": {"ndv": 50}}) for one in rows]
    )

    (one,) = merged(tmp_path, names)

    (chunks,) = (
        Sources(str(tmp_path), MAX_FOOTER_BYTES, str(tmp_path))
        .open(os.path.relpath(one.path, tmp_path))
        .footer()
        .chunks
    )
    assert [chunk.has_bloom for chunk in chunks] == [True, False]
    options = {"bloom_filter_options": {"t": {"ndv": 100}}, "write_page_checksum": True}
    by_arrow = as_file(pa.concat_tables(rows), **options)
    assert before_footer(Path(one.path).read_bytes()) == before_footer(by_arrow)


def before_footer(content: bytes) -> bytes:
    return content[: -8 - int.from_bytes(content[-8:-4], "little")]


def test_a_damaged_page_is_noticed(tmp_path: Path) -> None:
    table = pa.table({"id": range(1_000)})
    content = bytearray(as_file(table, compression="none", write_page_checksum=True))
    at = content.index((500).to_bytes(8, "little"))
    content[at] ^= 1
    names = written(tmp_path, [as_file(table), bytes(content)])

    with pytest.raises(OSError, match="CRC"):
        merged(tmp_path, names)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "part of it may be missing"),
        (b"PAR1" + bytes(4) + b"PARE", "encrypted"),
        (b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1", "part of it may be missing"),
        (b"PAR1" + bytes(8) + (8).to_bytes(4, "little") + b"PAR1", "its footer is damaged"),
    ],
)
def test_files_without_a_whole_footer_are_unfit(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    written(tmp_path, [content])

    with pytest.raises(UnfitFileError, match=reason):
        Sources(str(tmp_path), MAX_FOOTER_BYTES, str(tmp_path)).open("0.parquet")


def test_a_link_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "secret").write_bytes(as_file(pa.table({"id": [1]})))
    (tmp_path / "table" / "0.parquet").symlink_to(tmp_path / "secret")

    with pytest.raises(OSError, match="leads out of the table's location"):
        Sources(str(tmp_path / "table"), MAX_FOOTER_BYTES, str(tmp_path)).open("0.parquet")


# Damaged, encrypted, or of a kind that Arrow does not read.
UNFIT = {
    "ARROW-GH-45185",
    "ARROW-GH-47662",
    "ARROW-RS-GH-6229-DICTHEADER",
    "ARROW-RS-GH-6229-LEVELS",
    "PARQUET-1481",
    "empty_group_test",
    "encrypt_columns_plaintext_footer",
    "fuzz-5683528215035904",
    "fuzz-5697144926502912",
    "incorrect_map_schema",
    "internal_6165",
    "uniform_encryption",
}
PUBLISHED = sorted((Path(__file__).parents[1] / "fixtures").glob("*/*.parquet"))


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_a_published_file_is_merged_with_itself_or_refused(file: Path, tmp_path: Path) -> None:
    names = written(tmp_path, [file.read_bytes()] * 2)
    if file.stem in UNFIT:
        with pytest.raises((UnfitFileError, OSError, pa.ArrowException)):
            merged(tmp_path, names)
        return

    (one,) = merged(tmp_path, names, target_bytes=2**30)

    before = [pq.ParquetFile(tmp_path / name) for name in names]
    assert differences(before, pq.ParquetFile(one.path)) == []


def as_file(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_some_rows_differs_in_nothing_else(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(KINDS[kind][0])
    source = Sources(str(tmp_path), 2**24, "").open("a.parquet")
    before = pq.ParquetFile(tmp_path / "a.parquet")
    first = before.read().slice(0, 1)
    for at, column in enumerate(first.columns):
        if pa.types.is_dictionary(column.type):
            # Of those values alone that are left.
            encoded = column.cast(column.type.value_type).dictionary_encode().cast(column.type)
            first = first.set_column(at, first.schema.field(at), encoded)

    (one,) = merge([source.only(np.arange(source.rows) == 0)], [], 2**62, 1.0, str(tmp_path / "n"))

    expected: Any = SimpleNamespace(
        schema=before.schema,
        schema_arrow=before.schema_arrow,
        metadata=before.metadata,
        num_row_groups=before.num_row_groups,
        read=lambda: first,
    )
    differing = differences([expected], pq.ParquetFile(one.path))
    # Nulls and NaN have no bounds.
    assert [one for one in differing if not one.endswith((": bounds", ": index of pages"))] == []
    with pytest.raises(UnfitFileError, match="another number of rows"):
        source.only(np.ones(source.rows + 1, np.bool_))
