"""Which locations overlap others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow_service.inventory.listing.locations import lies_under, overlaps

_PATHS = st.lists(st.sampled_from(["a", "b", "a b", "a-", "a.b", "ab"]), max_size=4)
_LOCATIONS = st.one_of(
    _PATHS.map(lambda parts: "/" + "/".join(parts)),
    _PATHS.map(lambda parts: "/".join(["s3://a", *parts])),
)


@given(st.lists(_LOCATIONS, max_size=5), st.lists(_LOCATIONS, max_size=8))
def test_a_location_overlaps_another_if_one_lies_under_the_other(
    locations: list[str], others: list[str]
) -> None:
    overlapping = [
        location
        for location in locations
        if any(lies_under(location, other) or lies_under(other, location) for other in others)
    ]

    assert list(overlaps(locations, others)) == overlapping
