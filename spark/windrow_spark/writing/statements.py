"""What statements of Spark's that write become: planned writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from windrow_calls.coordinator import Coordinator
from windrow_core.models import TableInfo, WriteMode, WriteReport
from windrow_spark.writing.file_options import FileOptions, is_of_files
from windrow_spark.writing.options import OF_PLANS, write_options
from windrow_spark.writing.recent_writes import Write, note
from windrow_spark.writing.regions import folder_values
from windrow_spark.writing.schemas import partition_columns_of
from windrow_spark.writing.write import write

# `dynamic` replaces partitions that get new rows, as in `spark.sql.sources.partitionOverwriteMode`.
Use: TypeAlias = Literal["append", "overwrite", "dynamic"]

MODE_OPTION = "partitionoverwritemode"


def run(
    client: Coordinator,
    rows: DataFrame,
    table: TableInfo,
    use: Use,
    partition: Mapping[str, SparkColumn],
    options: Mapping[str, str],
    file_options: FileOptions | None = None,
    on_staged: Callable[[Sequence[str]], None] | None = None,
) -> WriteReport:
    """Write the rows of a statement, and keep the report for `recent_writes`.

    Args:
        client: The client of the table's coordinator.
        rows: The rows, as Spark has fitted them to the table.
        table: The table.
        use: What the statement does with rows that the table has.
        partition: The values of partition columns that an overwrite names, as constants; without
            any, all rows are replaced.
        options: Options of the writer, as texts.
        file_options: How files are made; by default as `options` say.
        on_staged: See `write`.

    Raises:
        InvalidArgumentError: An option is unknown, or its value is not valid.
        WriteError: See `Client.write`.
    """
    session = rows.sparkSession
    if file_options is None:
        file_options = FileOptions({n: text for n, text in options.items() if is_of_files(n)})
    texts = {name.lower(): text for name, text in options.items() if not is_of_files(name)}
    if texts.pop(MODE_OPTION, "").lower() == "dynamic" and use == "overwrite":
        use = "dynamic"
    arguments = write_options(session, texts)
    mode: WriteMode = "append" if use == "append" else "overwrite_partitions"
    replace = None
    if use == "overwrite" or (use == "dynamic" and not partition_columns_of(table)):
        replace = folder_values(session, table, partition)
    report = write(
        client,
        rows,
        table.name,
        mode,
        replace=replace,
        counts=arguments.get("counts"),
        conflict=arguments.get("conflict", "fail"),
        progress=arguments.get("progress"),
        on_staged=on_staged,
        file_options=file_options,
        options={name: value for name, value in arguments.items() if name in OF_PLANS},
    )
    all_options = {**file_options.options, **arguments}
    note(Write(table=table.name, mode=mode, replace=replace, options=all_options, report=report))
    return report
