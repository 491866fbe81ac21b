"""The fields in which two definitions differ, as the audit log records them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow_core.models import TableDefinition
from windrow_service.usecases.field_changes import FieldChange, field_changes

COLUMNS = [{"name": "id", "type": "bigint"}, {"name": "kind", "type": "int", "default": "0"}]
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
DEFINITIONS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), VALUES | st.dictionaries(st.sampled_from("xy"), VALUES)
)


def table(**fields: object) -> dict[str, object]:
    return TableDefinition.model_validate({"location": "/data"} | fields).model_dump(mode="json")


def test_fields_are_texts_as_people_write_them() -> None:
    before = table(columns=COLUMNS[:1], sort_columns=[{"name": "id", "descending": True}])
    after = table(format="orc", columns=COLUMNS, plan_options={"parallelism": 8})

    assert field_changes(before, after) == [
        FieldChange("format", "parquet", "orc"),
        FieldChange("columns", "id bigint", "id bigint, kind int default=0"),
        FieldChange("sort_columns", "id descending=true", None),
        FieldChange("plan_options.parallelism", None, "8"),
    ]


def test_filters_are_sql() -> None:
    tree = {"op": "gt", "column": "ds", "value": "2026-11-01"}

    assert field_changes({"filter": tree}, {"filter": "ds > '2026-11-08'"}) == [
        FieldChange("filter", "ds > '2026-11-01'", "ds > '2026-11-08'")
    ]


def test_of_long_values_the_part_that_differs_is_recorded() -> None:
    columns = ", ".join(f"c{number} int" for number in range(10_000))

    (change,) = field_changes({"columns": columns}, {"columns": columns.replace("c7000 int", "X")})

    before, after = change.before or "", change.after or ""
    assert "c6999 int, c7000 int, c7001" in before
    assert "c6999 int, X, c7001" in after
    assert max(len(before), len(after)) < 1_100


@given(DEFINITIONS, DEFINITIONS)
def test_fields_are_those_whose_texts_differ(
    before: dict[str, object], after: dict[str, object]
) -> None:
    there = field_changes(before, after)
    back = field_changes(after, before)

    assert field_changes(before, before) == []
    assert all(one.before != one.after for one in there)
    assert {(one.name, one.before, one.after) for one in there} == {
        (one.name, one.after, one.before) for one in back
    }
    set_after = {one.name: one.after for one in field_changes(None, after)}
    assert all(set_after.get(one.name) == one.after for one in there)
