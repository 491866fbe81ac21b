"""Groups divided among workers: each split once, and about as much for each."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_tables.groups.cutting import OPEN_COST, shares_of

SPLIT = pa.struct([("path", pa.string()), ("length", pa.int64())])
GROUPS = pa.schema(
    [
        ("group_id", pa.int64()),
        ("size_bytes", pa.int64()),
        ("residual_filter", pa.string()),
        ("splits", pa.list_(SPLIT)),
    ]
)
LENGTHS = st.lists(
    st.lists(st.integers(1, 10) | st.integers(1, 2**26), min_size=1, max_size=6), max_size=6
)


def groups_of(lengths: list[list[int]]) -> pa.Table:
    rows = [
        {
            "group_id": number,
            "size_bytes": sum(sizes),
            "residual_filter": f"filter of {number}",
            "splits": [
                {"path": f"{number}/{nth}", "length": size} for nth, size in enumerate(sizes)
            ],
        }
        for number, sizes in enumerate(lengths)
    ]
    return pa.Table.from_pylist(rows, GROUPS)


@examples(100)
@given(LENGTHS, st.integers(1, 9))
def test_each_worker_has_about_as_much_and_each_split_is_read_once_by_its_own_filter(
    lengths: list[list[int]], count: int
) -> None:
    groups = groups_of(lengths)

    shares = shares_of(groups, count)

    assert len(shares) == count
    pieces = [piece for share in shares for piece in share.to_pylist()]
    assert all(piece["splits"] for piece in pieces)
    assert [split["path"] for piece in pieces for split in piece["splits"]] == [
        f"{number}/{nth}" for number, sizes in enumerate(lengths) for nth in range(len(sizes))
    ]
    for piece in pieces:
        numbers = {split["path"].partition("/")[0] for split in piece["splits"]}
        assert {piece["residual_filter"]} == {f"filter of {number}" for number in numbers}
        assert piece["size_bytes"] == sum(split["length"] for split in piece["splits"])
    costs = [size + OPEN_COST for sizes in lengths for size in sizes]
    for share in shares:
        splits = [split for piece in share.to_pylist() for split in piece["splits"]]
        own = sum(split["length"] + OPEN_COST for split in splits)
        # At either end, at most half of a split is another worker's part.
        assert own <= sum(costs) / count + max(costs, default=0)
