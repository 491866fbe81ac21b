"""Kinds of places where tables lie."""

from __future__ import annotations

import pytest

from windrow_core.files.places import DISK, HDFS, OBJECTS, Place, place_of
from windrow_core.files.schemes import SCHEMES


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("/data/events", DISK),
        ("hdfs://lake/events", HDFS),
        *((f"{one.name}://bucket/events", OBJECTS) for one in SCHEMES if one.is_object),
    ],
)
def test_a_location_lies_in_the_place_that_its_scheme_names(location: str, place: Place) -> None:
    assert place_of(location) is place


def test_only_disks_replace_files_at_once_and_answer_without_requests() -> None:
    assert [one.shows_both for one in (DISK, HDFS, OBJECTS)] == [False, True, True]
    assert DISK.request_s < HDFS.request_s < OBJECTS.request_s
