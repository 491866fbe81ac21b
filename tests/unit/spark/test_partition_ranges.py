"""A query whose conditions leave more ranges of partitions than a plan may name."""

from __future__ import annotations

from typing import Any, cast

import pytest

from windrow_core.models.partitions import MAX_PARTITION_RANGES
from windrow_spark.relation.requests import Files
from windrow_spark.relation.scans import Pin, Source, planned
from windrow_tables.errors import UnfitReadError


def test_too_many_ranges_of_partitions_are_refused_before_anything_is_asked() -> None:
    nobody = Source(cast(Any, None), cast(Any, None))
    pin = Pin(
        source="",
        table="sales.events",
        registration=1,
        snapshot_id=1,
        filter=None,
        types={},
        options={},
        reader="auto",
    )
    ranges = [(2 * number, 2 * number + 1) for number in range(MAX_PARTITION_RANGES + 1)]

    with pytest.raises(UnfitReadError, match=r"50,001 separate ranges .* 'sales\.events'"):
        planned(nobody, pin, [], Files(partitions=ranges))
