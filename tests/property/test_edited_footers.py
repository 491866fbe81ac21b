"""Parquet files whose footers were edited at random: a refusal that names the file, or its rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.test_footer_bombs import MOST_BYTES, peak_bytes
from tests.support.files.footers import edit, edit_at_random
from tests.support.laws import times
from windrow_core.files.errors import InventoryError
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.look import Look

_PUBLISHED = Path(__file__).parents[1] / "fixtures" / "duckdb"
_COUNT = 8
_ROWS = pa.table(
    {
        "id": range(_COUNT),
        "text": [f"text {n % 3}" if n % 4 else None for n in range(_COUNT)],
        "price": [Decimal(n) / 4 for n in range(_COUNT)],
        "at": pa.array(range(_COUNT), pa.timestamp("us", "UTC")),
        "tags": [[n, None] if n % 2 else [] for n in range(_COUNT)],
        "inner": [{"a": n, "b": {"c": str(n)}} for n in range(_COUNT)],
        "by_name": pa.array([[("k", n)] for n in range(_COUNT)], pa.map_(pa.string(), pa.int32())),
    }
)


@pytest.fixture(scope="module")
def executor() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as executor:
        yield executor


@settings(max_examples=times(20_000, by_day=50), deadline=None)
@given(seed=st.integers(0, 2**63))
def test_an_edited_footer_is_refused_by_the_name_of_its_file_or_read(
    seed: int, executor: IsolatedExecutor
) -> None:
    with TemporaryDirectory() as folder:
        pq.write_table(_ROWS, Path(folder, "good.parquet"), row_group_size=3)
        pq.write_table(_ROWS, Path(folder, "edited.parquet"), row_group_size=3)
        edit(Path(folder, "edited.parquet"), lambda footer: edit_at_random(footer, Random(seed)))

        counts, refusal = _counts(folder, executor)

        if refusal is not None:
            assert "edited.parquet" in refusal
            assert len(refusal) < 3_000
        else:
            assert counts["good.parquet"] == _COUNT
            assert counts["edited.parquet"] >= 0
    # Whatever it declares, nothing is reserved for it.
    assert peak_bytes(executor) < MOST_BYTES


def _counts(folder: str, executor: IsolatedExecutor) -> tuple[dict[str, int], str | None]:
    """Return the rows of each file, or the words of a refusal."""
    try:
        files = take_inventory(Look(location=folder), executor=executor).files
    except InventoryError as error:
        return {}, str(error)
    return dict(zip(files["path"].to_pylist(), files["row_count"].to_pylist(), strict=True)), None


@pytest.mark.parametrize("name", ["internal_6165.parquet", "empty_group_test.parquet"])
def test_published_footers_are_refused_by_name_or_read(
    name: str, executor: IsolatedExecutor, tmp_path: Path
) -> None:
    shutil.copy(_PUBLISHED / name, tmp_path / "edited.parquet")

    counts, refusal = _counts(str(tmp_path), executor)

    assert counts == {"edited.parquet": 1} if refusal is None else "edited.parquet" in refusal
