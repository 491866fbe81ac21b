"""Whatever columns files have, merging them changes nothing but the number of files."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.parquet_kinds import differences
from tests.support.laws import examples
from windrow_tables.merging.files import merge
from windrow_tables.merging.sources import Sources

# A type, and a strategy of its values.
Typed = tuple[pa.DataType, st.SearchStrategy[Any]]


def integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    least = -(2 ** (bits - 1)) if signed else 0
    return st.integers(least, least + 2**bits - 1)


LEAVES: list[Typed] = [
    *((getattr(pa, f"int{bits}")(), integers(bits, signed=True)) for bits in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{bits}")(), integers(bits, signed=False)) for bits in (8, 16, 32, 64)),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=3)),
    (pa.large_string(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(5, 2), st.decimals(-999, 999, places=2)),
    (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    (pa.date32(), st.dates()),
    (pa.time64("ns"), st.integers(0, 86_399_999_999_999)),
    (pa.timestamp("ms"), integers(40, signed=True)),
    (pa.timestamp("us", "UTC"), integers(55, signed=True)),
    (pa.timestamp("ns"), integers(64, signed=True)),
    (pa.null(), st.none()),
]


@st.composite
def nested(draw: st.DrawFn, children: st.SearchStrategy[Typed]) -> Typed:
    """A list, a map or a struct."""
    type_, values = draw(children)
    nullable = draw(st.booleans())
    values = st.none() | values if nullable else values
    if pa.types.is_null(type_):
        nullable = True
    field = pa.field("item", type_, nullable)
    kind = draw(st.sampled_from(["list", "large", "map", "struct"]))
    if kind == "map":
        entries = st.lists(st.tuples(st.text(max_size=2), values), max_size=3)
        return pa.map_(pa.string(), field), entries
    if kind == "struct":
        other_type, others = draw(children)
        type_ = pa.struct([field.with_name("a"), pa.field("b b", other_type)])
        return type_, st.fixed_dictionaries({"a": values, "b b": st.none() | others})
    make = pa.list_ if kind == "list" else pa.large_list
    return make(field), st.lists(values, max_size=3)


COLUMNS = st.lists(
    st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4), min_size=1, max_size=4
)
OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["snappy", "none", "gzip", "zstd", "lz4", "brotli"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "write_page_index": st.booleans(),
        "store_schema": st.booleans(),
        "store_decimal_as_integer": st.booleans(),
        "use_compliant_nested_type": st.booleans(),
        "row_group_size": st.integers(1, 5),
    }
)


@examples(40)
@given(
    columns=COLUMNS,
    options=OPTIONS,
    target_bytes=st.integers(500, 5_000),
    lengths=st.lists(st.integers(0, 9), min_size=2, max_size=5),
    metadata=st.dictionaries(st.text("ab", min_size=1), st.text(max_size=3), max_size=2),
    data=st.data(),
)
def test_merged_files_have_the_rows_types_and_metadata_of_their_sources(
    columns: list[Typed],
    options: dict[str, Any],
    target_bytes: int,
    lengths: list[int],
    metadata: dict[str, str],
    data: st.DataObject,
) -> None:
    rows = sum(lengths)
    values = {"id": pa.array(range(rows), pa.int64())}
    for at, (type_, strategy) in enumerate(columns):
        drawn = data.draw(st.lists(st.none() | strategy, min_size=rows, max_size=rows))
        values[f"c.{at}"] = pa.array(drawn, type_)
    table = pa.table(values).replace_schema_metadata(metadata or None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = 0
        for at, length in enumerate(lengths):
            pq.write_table(table.slice(begin, length), folder / f"{at}", **options)
            begin += length
        files = Sources(name, 2**24, name)
        sources = [files.open(f"{at}") for at in range(len(lengths))]

        made = merge(sources, [], target_bytes, 1.0, str(folder / "merged"))

        before = [pq.ParquetFile(folder / f"{at}") for at in range(len(lengths))]
        begin = 0
        for one in made:
            after = pq.ParquetFile(one.path)
            begin += one.rows
            if len(made) == 1:
                assert differences(before, after) == []
            assert after.schema.equals(before[0].schema)
            assert after.metadata.num_rows == one.rows
        assert begin == rows
        read = pa.concat_tables([pq.read_table(one.path) for one in made])
        assert read.equals(pa.concat_tables([file.read() for file in before]))
