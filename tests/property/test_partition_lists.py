"""Laws of lists of partitions: which are refused, and which values files have."""

from __future__ import annotations

from itertools import permutations
from pathlib import PurePosixPath

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.inventory.errors import PartitionListError
from windrow_service.inventory.listing.partition_lists import (
    ListedPartitions,
    partitions_in,
    read_partitions,
)

LOCATION = "/t"
NULL = "__HIVE_DEFAULT_PARTITION__"
TYPES = pa.schema([("a", pa.string()), ("b", pa.string())])

names = st.sampled_from(["x", "x!", "xy", "a=1", "a=1 "])
# Folders beside the location, folders whose names begin like it, and folders in it.
folders = st.builds(
    lambda root, parts: "/".join([root, *parts]),
    st.sampled_from(["/t", "/t/p", "/tt", "/u"]),
    st.lists(names, min_size=1, max_size=3),
)
texts = st.text(min_size=1, max_size=4).filter(lambda text: "\0" not in text) | st.just(NULL)
lists = st.lists(st.tuples(st.tuples(texts, texts), folders), max_size=6)


def sent(rows: list[tuple[tuple[str, str], str]]) -> pa.Table:
    return pa.table(
        {
            "values": pa.array([list(values) for values, _ in rows], pa.list_(pa.string())),
            "location": pa.array([folder for _, folder in rows], pa.string()),
        }
    )


def contradict(rows: list[tuple[tuple[str, str], str]]) -> bool:
    """Return whether one folder is in another, or two partitions have the same values."""
    places = [PurePosixPath(folder) for _, folder in rows]
    return len({values for values, _ in rows}) < len(rows) or any(
        one == other or one in other.parents for one, other in permutations(places, 2)
    )


@given(lists)
@examples(200)
def test_partitions_share_neither_values_nor_files_and_come_back_as_they_were(
    rows: list[tuple[tuple[str, str], str]],
) -> None:
    try:
        listed = read_partitions(sent(rows), LOCATION, TYPES, list)
    except PartitionListError:
        assert contradict(rows)
        return
    assert not contradict(rows)
    kept = ListedPartitions.decoded(listed.encoded())
    shown = kept.page(LOCATION, 0, len(rows) + 1)
    assert sorted((tuple(values), folder) for values, folder in shown) == sorted(rows)
    # The order in which partitions are sent does not change the list.
    assert read_partitions(sent(rows[::-1]), LOCATION, TYPES, list).encoded() == listed.encoded()


@given(lists.filter(lambda rows: not contradict(rows)), st.randoms(use_true_random=False))
@examples(100)
def test_a_file_has_the_values_of_the_partition_whose_folder_it_lies_in(
    rows: list[tuple[tuple[str, str], str]], chance: object
) -> None:
    listed = read_partitions(sent(rows), LOCATION, TYPES, list)
    absolute = [f"{folder}/{file}" for _, folder in rows for file in ("f", "g=h")]
    paths = pa.chunked_array(
        [[path.removeprefix(f"{LOCATION}/") for path in absolute]], pa.string()
    )
    found = partitions_in(listed, paths, TYPES, LOCATION).values.to_pylist()
    wanted = [
        {name: None if text == NULL else text for name, text in zip("ab", values, strict=True)}
        for values, _ in rows
        for _ in range(2)
    ]
    assert found == wanted
