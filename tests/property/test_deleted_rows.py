"""Laws of sets of deleted rows: they hold the rows added, in memory or in scratch files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_tables.executor.deleted_rows import DeletedRows, Memory, RowNames

NUMBERS = st.one_of(st.integers(0, 3), st.sampled_from([2**29, 2**29 + 1, 2**62, 2**63 - 1]))
NAMES = st.tuples(NUMBERS, NUMBERS, NUMBERS)


def columns(names: Sequence[tuple[int, int, int]]) -> RowNames:
    return RowNames(*np.array(names, np.int64).reshape(-1, 3).T)


@examples(200)
@given(
    st.lists(st.lists(NAMES, max_size=12), max_size=6),
    st.lists(NAMES, max_size=20),
    st.integers(0, 20),
)
def test_a_row_is_held_exactly_if_it_was_added(
    added: list[list[tuple[int, int, int]]], asked: list[tuple[int, int, int]], max_names: int
) -> None:
    with closing(Memory(max_names)) as memory:
        # Two sets share the memory, and do not mix.
        one, other = DeletedRows(memory), DeletedRows(memory)
        for number, names in enumerate(added):
            (one, other)[number % 2].add(columns(names))

        for at, rows in enumerate((one, other)):
            held = {name for names in added[at::2] for name in names}
            everything = [*asked, *(name for names in added for name in names)]
            assert rows.hold(columns(everything)).tolist() == [name in held for name in everything]
        assert memory.held <= max_names
