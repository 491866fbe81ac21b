"""Writes of DataFrames: as many files as the target asks for, made safely and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from windrow.models import WriteConflict, WriteMode, WritePlan, WriteReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.client import Client


class FrameWriteCalls:
    """The part of a client that writes DataFrames."""

    def write(
        self,
        df: DataFrame,
        table: str,
        mode: WriteMode = "append",
        *,
        counts: Literal["count", "files", "history"] | None = None,
        conflict: WriteConflict = "fail",
        progress: bool | None = None,
        **options: Any,
    ) -> WriteReport:
        """Write rows to a table, in files of the size that is wanted, and publish them.

        Rows are counted by key, placed as the coordinator plans, staged beside the table, read
        back and compared with the input, and moved in partition by partition. What fails before
        the first of them is moved leaves the table as it was; what fails later is finished by the
        next write, or by `windrow write recover`.

        Args:
            df: Rows with the table's columns, of a classic session.
            table: Its name; its location must be a local path of the driver and all executors.
            mode: `append`; `overwrite`: all that is there goes; `overwrite_partitions`: what is
                there goes in partitions that get new rows.
            counts: Where the rows per key come from: `count`, a pass over the rows, which is what
                is done by default; `files`, the table's own; `history`, its last write. The last
                two need no pass, and serve where the rows are spread alike; nor does giving
                `rows` or `files`.
            conflict: What becomes of files that others publish while this write runs, where the
                mode would remove them: `fail`, the write is refused; `overwrite`, they go.
            progress: Whether to show how far it is: counting, writing, checking, moving. By
                default it is shown in a terminal and in a notebook.
            **options: See `windrow.models.WritePlanRequest`, for example
                `target_file_size="64MB"`, `target_rows`, `scheme`, `files_per_key`,
                `bytes_per_row`, `salt_columns` or `max_files`.

        Raises:
            UnfitRowsError: Columns or partition values do not fit the table.
            UnstableColumnError: A column that decides where rows go may differ at each attempt.
            NoSaltError: Large keys are to be divided, and no column can do it.
            TooManyKeysError: There are more keys than a plan may have.
            StagingFailedError: A Spark task failed.
            NotReproducibleError: The rows in the files are not those of the data.
            SparkConnectError: The session is one of Spark Connect.
            WriteConflictError: Others have published files meanwhile that would go.
            WriteError: The table cannot be written, or the commit failed.
            ProblemError: The coordinator refuses.
        """
        from windrow.spark.writing.write import write

        return write(
            cast("Client", self),
            df,
            table,
            mode,
            counts=counts,
            conflict=conflict,
            progress=progress,
            options=options,
        )

    def plan_write(
        self,
        df: DataFrame,
        table: str,
        mode: WriteMode = "append",
        *,
        counts: Literal["count", "files", "history"] | None = None,
        **options: Any,
    ) -> WritePlan:
        """Plan what `write` would do with the same arguments, and compare all schemes."""
        from windrow.spark.writing.write import plan_write

        return plan_write(cast("Client", self), df, table, mode, counts=counts, options=options)
