"""No host is given more of a table's large files than its share, and each file has one place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow_spark.relation.native import beyond_share

MIB = 2**20


@given(
    files=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 200 * MIB)), min_size=1),
    more_hosts=st.integers(0, 3),
)
def test_a_host_keeps_its_share_and_at_most_one_file_more(
    files: list[tuple[int, int]], more_hosts: int
) -> None:
    names, host = np.unique([at for at, _ in files], return_inverse=True)
    sizes = np.array([size for _, size in files], np.int64)
    hosts = len(names) + more_hosts

    beyond = beyond_share(host, sizes, hosts)

    share = sizes.sum() / hosts
    for at in range(len(names)):
        own, left = sizes[host == at], ~beyond[host == at]
        excess = own[~left].sum()
        assert excess == 0 or excess >= 16 * MIB
        assert left[: left.sum()].all(), "the last files go"
        if excess:
            assert share <= own[left].sum() < share + own[left][-1]
        else:
            assert own.sum() < share + own.max() + 16 * MIB


def test_hosts_with_even_shares_keep_all_files() -> None:
    host, sizes = np.arange(9) % 3, np.full(9, 64 * MIB)

    assert not beyond_share(host, sizes, 3).any()


def test_executors_that_hold_no_file_get_a_share() -> None:
    beyond = beyond_share(np.zeros(9, np.int64), np.full(9, 64 * MIB), 3)

    assert beyond.sum() == 6
