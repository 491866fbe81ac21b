"""One description of an inventory's columns fits everything that has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow_core.files.rows import (
    NEWER_COLUMNS,
    ROW_COLUMNS,
    RowColumn,
    inventory_schema,
    rows_of,
)
from windrow_core.models import InventoryFile

_NAMES = [column.name for column in ROW_COLUMNS]


@pytest.mark.parametrize("column", ROW_COLUMNS, ids=_NAMES)
def test_a_column_has_a_value_for_files_about_which_nothing_is_known(column: RowColumn) -> None:
    values = column.unknown(2)

    assert values.type == column.type
    assert values.null_count == (2 if column.nullable else 0)


def test_columns_that_are_not_given_are_unknown() -> None:
    schema = inventory_schema(pa.schema([]), pa.schema([]))
    nothing = pa.array([{}], pa.struct([]))
    columns = {"path": pa.array(["a"]), "hosts": pa.array([["h"]]), "partition": nothing}

    rows = rows_of({**columns, "stats": nothing, "other": nothing}, schema, 1)

    assert rows.schema == schema
    assert rows.to_pylist()[0] == {
        "path": "a",
        "hosts": ["h"],
        "partition": {},
        "stats": {},
        **{
            column.name: column.unknown(1)[0].as_py()
            for column in ROW_COLUMNS
            if column.name not in columns
        },
    }


def test_files_sent_as_json_have_columns_that_may_be_published() -> None:
    sent = InventoryFile.model_fields.keys() - {"stats"}

    assert sent <= {column.name for column in ROW_COLUMNS if column.publishing != "refused"}
    assert sent >= {column.name for column in ROW_COLUMNS if column.publishing == "required"}


def test_columns_that_old_manifests_lack_may_be_null() -> None:
    assert all(column.nullable for column in NEWER_COLUMNS)
