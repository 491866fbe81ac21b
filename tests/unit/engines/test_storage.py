"""What layouts of files mean for the engines that read them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.inventory.files import take_inline
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.storage import stored

TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("type_", "is_in_table", "as_int96", "unfit"),
    [
        (TIME, True, True, {"polars", "pyiceberg"}),
        (pa.list_(TIME), True, True, {"polars", "pyiceberg"}),
        (pa.struct([("t", TIME)]), True, True, {"polars", "pyiceberg"}),
        (TIME, False, True, set()),
        (TIME, True, False, set()),
    ],
)
def test_int96_that_is_read_is_refused_to_readers_that_take_it_for_nanoseconds(
    tmp_path: Path, type_: pa.DataType, is_in_table: bool, as_int96: bool, unfit: set[str]
) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", type_)])
    options = {"use_deprecated_int96_timestamps": as_int96}
    pq.write_table(schema.empty_table(), tmp_path / "f", **options)
    (layout,) = take_inline(str(tmp_path)).files["layout"].to_pylist()
    table = schema if is_in_table else pa.schema([("id", pa.int64())])

    meaning = stored(layout, TableColumns.of(table, pa.schema([])))

    assert meaning.trouble is None
    assert set(meaning.unfit) == unfit
    assert all("column 'v' is stored as INT96" in why for why in meaning.unfit.values())
