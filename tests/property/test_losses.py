"""A type that Spark would write otherwise is found, however deep it lies in a column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from windrow_jobs.losses import loss

# Types in a file, and as Spark writes them.
Types = tuple[pa.DataType, pa.DataType]

ALIKE = [
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.decimal128(20, 3),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
]
UNLIKE = [
    (pa.uint8(), pa.int16()),
    (pa.uint64(), pa.decimal128(20, 0)),
    (pa.float16(), pa.float32()),
    (pa.timestamp("ms"), pa.timestamp("us")),
    (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
    (pa.binary(3), pa.binary()),
    (pa.int32(), pa.int64()),
    (pa.large_string(), pa.string()),
    (pa.decimal128(5, 2), pa.decimal128(6, 2)),
]


def nested(types: st.SearchStrategy[Types]) -> st.SearchStrategy[Types]:
    """Types within lists, maps and structs."""

    def struct(children: list[Types]) -> Types:
        file, spark = zip(*children, strict=True)
        return (
            pa.struct([(f"f{at}", each) for at, each in enumerate(file)]),
            pa.struct([(f"f{at}", each) for at, each in enumerate(spark)]),
        )

    return st.one_of(
        types.map(lambda each: (pa.list_(each[0]), pa.list_(pa.field("element", each[1])))),
        types.map(lambda each: (pa.map_(pa.string(), each[0]), pa.map_(pa.string(), each[1]))),
        st.lists(types, min_size=1, max_size=3).map(struct),
    )


LEAVES = st.sampled_from([*((type_, type_) for type_ in ALIKE), *UNLIKE])
COLUMNS = st.lists(st.recursive(LEAVES, nested, max_leaves=4), min_size=1, max_size=3)


def leaves(type_: pa.DataType) -> list[pa.DataType]:
    if not type_.num_fields:
        return [type_]
    return [leaf for at in range(type_.num_fields) for leaf in leaves(type_.field(at).type)]


@given(columns=COLUMNS, is_one_left_out=st.booleans())
def test_a_loss_is_named_if_and_only_if_there_is_one(
    columns: list[Types], is_one_left_out: bool
) -> None:
    schema = pa.schema([(f"c{at}", file) for at, (file, _) in enumerate(columns)])
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    types = {f"c{at}": spark for at, (_, spark) in enumerate(columns)}
    if is_one_left_out:
        del types["c0"]

    found = loss(pq.ParquetFile(pa.BufferReader(sink.getvalue())), types)

    unlike = {file for file, _ in UNLIKE}
    is_lost = is_one_left_out or any(leaf in unlike for file, _ in columns for leaf in leaves(file))
    assert (found is not None) == is_lost
    if is_one_left_out:
        assert found == "column 'c0' is none of the table's"
