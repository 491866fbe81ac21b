"""Which packs are packed anew together, which stay within a limit, and what that comes to."""

from __future__ import annotations

import numpy as np
import pytest

from windrow_service.planner.upkeep.packs import packs_to_join, worth_keeping


def joined(counts: list[int], kinds: list[str | None] | None = None, pieces: int = 2) -> list[bool]:
    sizes = np.array(counts, np.int64) * 5_000
    own_kinds = kinds or ["a"] * len(counts)
    return packs_to_join(own_kinds, np.array(counts, np.int64), sizes, pieces).tolist()


def test_sixteen_packs_of_a_tier_are_joined_and_others_stay() -> None:
    assert not any(joined([100] * 15 + [4_000]))
    assert joined([100] * 14 + [16, 4_097, 255]) == [True] * 15 + [False, True]


def test_packs_of_several_kinds_or_of_an_unknown_one_are_not_joined() -> None:
    assert not any(joined([100] * 16, ["a"] * 8 + ["b"] * 8))
    assert not any(joined([100] * 16, [None] * 16))
    assert joined([100] * 32, ["a", "b"] * 16) == [True] * 32


def test_packs_that_stand_for_nothing_are_left() -> None:
    assert not any(joined([0] * 20))


@pytest.mark.parametrize("pieces", [1, 2, 8, 64])
def test_packs_that_would_become_as_many_again_are_left(pieces: int) -> None:
    for count in (100, 2_000, 20_000, 50_000):
        for many in (16, 64):
            if any(joined([count] * many, pieces=pieces)):
                becomes = max(1, min(pieces, many * count // 2_000), many * count // 50_000)
                assert 2 * becomes <= many


def test_large_packs_are_left() -> None:
    sizes = np.full(16, 60 * 2**20)
    assert not packs_to_join(["a"] * 16, np.full(16, 100), sizes, 1).any()


def test_packs_that_save_most_for_their_bytes_stay_within_a_limit() -> None:
    saved, sizes = np.array([1.0, 4.0, 2.0, 3.0]), np.array([10, 10, 10, 40])
    assert worth_keeping(saved, sizes, 30).tolist() == [True, True, True, False]
    assert worth_keeping(saved, sizes, 20).tolist() == [False, True, True, False]
    assert worth_keeping(saved, sizes, 9).tolist() == [False] * 4


@pytest.mark.parametrize("each_day", [1, 24])
def test_a_file_is_packed_thrice_at_most_in_sixty_days(each_day: int) -> None:
    """New files that come evenly, each time packed at once."""
    packs, written, files = [], 0, 60
    for _ in range(60 * each_day):
        again = [one for one, is_joined in zip(packs, joined(packs), strict=True) if is_joined]
        packs = [one for one, is_joined in zip(packs, joined(packs), strict=True) if not is_joined]
        packs.append(files + sum(again))
        written += packs[-1]

    assert written / sum(packs) <= 3
    assert len(packs) <= 45
