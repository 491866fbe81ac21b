"""Which plans can be read in groups."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.models import Plan
from windrow_tables.errors import OnlySparkReadsError, UnfitReadError, UnsupportedDeletesError


def check_files(plan: Plan) -> None:
    """Refuse files that cannot be read in groups."""
    if not plan.reading.files.is_grouped:
        raise OnlySparkReadsError(
            plan.table,
            plan.format,
            "this call reads all files in groups",
            "read it with `client.read` on a classic session",
        )
    follows_deletes = plan.reading.names_rows or plan.reading.is_logged
    if plan.summary.delete_files and not follows_deletes:
        raise UnsupportedDeletesError(plan.table, plan.summary.delete_files)


def check_groups(plan: Plan, groups: pa.Table) -> None:
    """Refuse groups with files that the grouped reader would read differently from Spark's."""
    type_ = groups.schema.field("splits").type.value_type
    # An older coordinator has no such column.
    if type_.get_field_index("grouped") < 0:
        return
    splits = pa.chunked_array([chunk.flatten() for chunk in groups["splits"].chunks], type_)
    are_alike = pc.struct_field(splits, "grouped")
    if pc.all(are_alike).as_py() is not False:
        return
    at = pc.index(are_alike, False).as_py()
    if plan.reading.names_rows:
        raise UnfitReadError(
            f"one of the columns asked for has values in file {splits[at].as_py()['path']!r} of "
            f"transactional table {plan.table!r} that cannot be read exactly",
            "leave out char columns, times in lists, maps and structs, and times and decimals "
            "without statistics in the file, or compact the table in Hive ('major')",
        )
    raise OnlySparkReadsError(
        plan.table,
        plan.format,
        "this call reads all files in groups",
        'leave the column out, or use `client.read` on a classic session, without `reader="grouped"`',
        splits[at].as_py()["path"],
    )
