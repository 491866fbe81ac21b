"""Laws of valid write ids: the answer for a range agrees with the answers for its ids."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.acid.write_ids import WriteIds

IDS = st.sets(st.integers(1, 12))


@examples(300)
@given(st.integers(0, 12), IDS, IDS, st.integers(1, 12), st.integers(0, 4))
def test_a_range_is_as_valid_as_its_ids(
    highest: int, opened: set[int], others: set[int], least: int, more: int
) -> None:
    aborted = others - opened
    listed = [",".join(map(str, sorted(ids))) for ids in (opened, aborted)]
    ids = WriteIds.parse(
        ":".join(["d.t", str(highest), str(min(opened, default=2**63 - 1)), *listed])
    )
    each = np.arange(least, least + more + 1)

    seen = [one <= highest and one not in opened and one not in aborted for one in each.tolist()]

    assert ids.are_valid(each).tolist() == seen
    share = "all" if all(seen) else "some" if any(seen) else "none"
    assert ids.share_of(least, least + more) == share
    unfinished = any(one > highest or one in opened for one in each.tolist())
    assert ids.has_unfinished(least, least + more) == unfinished
