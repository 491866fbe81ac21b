"""The client: every call of a coordinator, reads without Spark, reads and writes on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from windrow.calls.coordinator import Coordinator
from windrow.calls.transport import Transport
from windrow.installed import require_package
from windrow_core.models import WriteConflict, WriteMode, WritePlan, WriteReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.calls.plans import SplitPlan
    from windrow.scans.scan import Scan
    from windrow_spark.catalog.importing import ImportedTable
    from windrow_spark.relation.division import ReadExplanation


class Client(Coordinator):
    """Talks to one coordinator. Use it as a context manager, or call `close`.

    Every method raises `windrow.errors.ProblemError` (or a subclass) when the coordinator
    refuses, and `CoordinatorUnreachableError` when it does not answer.

    Args:
        transport: Carries the requests.
        on_close: Called after the transport is closed.
    """

    def __init__(self, transport: Transport, *, on_close: Callable[[], None] | None = None) -> None:
        super().__init__(transport)
        self._on_close = on_close

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and the coordinator if it is embedded."""
        self._transport.close()
        if self._on_close is not None:
            self._on_close()

    @property
    def is_embedded(self) -> bool:
        """Whether the coordinator runs inside this process, and no other can reach it."""
        return self._on_close is not None

    def read(
        self,
        spark: SparkSession,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        version: str | int | None = None,
        limit: int | None = None,
        max_staleness: int | None = None,
        reader: Literal["auto", "grouped", "native"] = "auto",
        **options: Any,
    ) -> DataFrame:
        """Return a table as a DataFrame; each query reads the columns and files that it needs.

        Spark's optimizer says which columns a query uses and how it filters them. That is planned,
        with one task per split group. All queries see the same snapshot; keep this client open for
        as long as they run. If a file has changed since the snapshot, the job fails with an error
        that names the file.

        Args:
            spark: The session that runs the tasks.
            table: Name of the table.
            filter: Rows to keep, as in `plan`; no query sees other rows.
            columns: Columns of the DataFrame, in this order; all by default.
            snapshot_id: Id of a snapshot; the current one by default.
            version: Instead of `snapshot_id`, a version in the table's own log, as in `plan`.
            limit: Maximum number of rows to return, no matter which; at most 2,147,483,647.
            max_staleness: Seconds, as in `plan`.
            reader: `auto` reads each file in the way that is estimated to be faster: small files in
                groups, large files with Spark's own reader. `grouped` reads all files in groups.
                `native` uses Spark's own reader for every file for which it returns the same rows.
            **options: As in `plan`. Options that are left out come from the session, for example
                `SET spark.windrow.max_split_size=128MB`, then from the table's `plan_options`. If
                the session does not set `parallelism`, it is Spark's default parallelism.
        """
        from windrow_spark.relation.table import open_table

        return open_table(
            self,
            spark,
            table,
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            version=version,
            limit=limit,
            max_staleness=max_staleness,
            reader=reader,
            options=options,
        )

    def explain_read(
        self,
        spark: SparkSession,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        version: str | int | None = None,
        reader: Literal["auto", "grouped", "native"] = "auto",
        **options: Any,
    ) -> ReadExplanation:
        """Return how many files a query would read with Spark's own reader or in groups, and why.

        Args:
            spark: The session that would run it.
            table: Name of the table.
            filter: The conditions of the query.
            columns: The columns that it uses; all by default.
            snapshot_id: Id of a snapshot; the current one by default.
            version: Instead of `snapshot_id`, a version in the table's own log, as in `plan`.
            reader: As in `read`.
            **options: As in `read`.
        """
        from windrow_spark.relation.table import explain_read

        return explain_read(
            self,
            spark,
            table,
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            version=version,
            reader=reader,
            options=options,
        )

    def scan(
        self,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        snapshot_id: int | None = None,
        version: str | int | None = None,
        max_staleness: int | None = None,
        threads: int | None = None,
        buffer_size: int | str = "64MB",
        **options: Any,
    ) -> Scan:
        """Plan a table for reading without Spark: into Arrow, pandas, Polars, DuckDB or workers.

        The rows are those of Spark. Every way to read the scan reads the files of this plan, of one
        snapshot; if one has changed since, reading fails with an error that names it. Formats that
        only Spark reads are refused. See `docs/how-to/scan.md`.

        Args:
            table: Name of the table.
            filter: Rows to keep, as in `plan`; applied to every row.
            columns: Columns to read, in this order; all by default.
            limit: Maximum number of rows to return, no matter which.
            snapshot_id: Id of a snapshot; the current one by default.
            version: Instead of `snapshot_id`, a version in the table's own log, as in `plan`.
            max_staleness: Seconds, as in `plan`.
            threads: How many threads read; by default as many as this process has cores.
            buffer_size: Most bytes of rows, as in memory, that wait for their consumer. Each thread
                holds some 32 MB more.
            **options: As in `plan`.
        """
        require_package("numpy", "scan")
        from windrow.scans.scan import open_scan

        arguments = {
            "filter": filter,
            "columns": columns,
            "limit": limit,
            "snapshot_id": snapshot_id,
            "version": version,
            "max_staleness": max_staleness,
            **options,
        }
        return open_scan(self, table, threads, buffer_size, arguments)

    def create_view(
        self, spark: SparkSession, table: str, name: str | None = None, **options: Any
    ) -> DataFrame:
        """Create a temporary view of a table in a session, for SQL; replaces a view of that name.

        Args:
            spark: The session.
            table: Name of the table.
            name: Name of the view; by default the table's name after its last dot: `events` for
                `sales.events`.
            **options: As in `read`.

        Returns:
            The DataFrame that `read` returns.
        """
        rows = self.read(spark, table, **options)
        view = table.rpartition(".")[2] if name is None else name
        rows.createOrReplaceTempView("`" + view.replace("`", "``") + "`")
        return rows

    def import_tables(
        self,
        spark: SparkSession,
        *tables: str,
        refresh: Literal["changed", "all", "none"] = "changed",
        trust_partitions: bool = False,
        take_over: bool = False,
        delete_vanished: bool = False,
    ) -> list[ImportedTable]:
        """Register tables of Spark's catalog, such as Hive's metastore, or follow their changes.

        Each becomes a table of the same name, with its format, columns, SerDe properties, buckets
        and partitions, wherever these lie. Plan options and Bloom columns that a table has here
        stay. Tables that cannot be read are listed with the reason; see `docs/how-to/metastore.md`.

        Args:
            spark: A classic session, built with `enableHiveSupport()` for Hive's metastore.
            *tables: Their names, such as `sales.events` or `sales.*`.
            refresh: Which of them get a new inventory: `changed`, those that are new or changed in
                the catalog; `all`, so that new files are found too; or `none`.
            trust_partitions: Whether to assume that known partitions have not moved, so that the
                catalog is asked only for their names. This takes less time, but misses a partition
                with a new location.
            take_over: Whether to import over tables of the same name that were registered in
                another way.
            delete_vanished: Whether to delete the registration of imported tables that the catalog
                no longer has; they are reported in any case.

        Returns:
            What was done with each table, by name.
        """
        from windrow_spark.catalog.importing import import_tables

        return import_tables(
            spark,
            self,
            tables,
            refresh=refresh,
            trust_partitions=trust_partitions,
            take_over=take_over,
            delete_vanished=delete_vanished,
        )

    def infer_columns(
        self,
        spark: SparkSession,
        location: str,
        format: str,
        format_options: Mapping[str, str | bool | int] | None = None,
    ) -> dict[str, str]:
        """Return the columns that Spark infers, for `register_table`; Spark reads all files.

        Args:
            spark: The session.
            location: Folder of the files, as Spark sees it.
            format: `csv` or `json`; files of other formats state their columns.
            format_options: As for `register_table`.
        """
        from windrow_spark.inferring import infer_columns

        return infer_columns(spark, location, format, format_options or {})

    def read_buckets(
        self,
        spark: SparkSession,
        table: str,
        *,
        filter: str | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        max_staleness: int | None = None,
    ) -> DataFrame:
        """Read a bucketed table, one task per bucket, so that Spark need not shuffle it.

        Spark joins two such DataFrames on their bucket columns, and aggregates by them, without
        moving rows. Spark's hash of each row is compared with its bucket; a query that finds a row
        in the wrong bucket fails. If Spark cannot use the buckets, a warning says why, and Spark
        shuffles.

        Args:
            spark: The session.
            table: Name of the table.
            filter: Rows to keep, as in `plan`.
            columns: Columns to read, in this order, including all bucket columns; all by default.
                Spark cannot prune them afterwards.
            snapshot_id: Id of a snapshot; the current one by default.
            max_staleness: Seconds, as in `plan`.
        """
        from windrow_spark.relation.buckets import open_buckets

        return open_buckets(
            self,
            spark,
            table,
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            max_staleness=max_staleness,
        )

    def join_buckets(
        self,
        spark: SparkSession,
        left: str,
        right: str,
        *,
        on: Sequence[str] | None = None,
        how: str = "inner",
    ) -> DataFrame:
        """Join two tables that are bucketed alike, one task per bucket, without a shuffle.

        The rows are those of `left.join(right, on, how)`. To read fewer columns or rows, join the
        DataFrames that `read_buckets` returns.

        Args:
            spark: The session.
            left: Name of a table.
            right: Name of another table, or of the same.
            on: The bucket columns that both tables have in common, which is also the default.
            how: As in Spark: `inner`, `left`, `right`, `full`, `left_semi`, `left_anti`.

        Raises:
            BucketsDifferError: The tables are bucketed differently, or by other columns.
        """
        from windrow_spark.relation.buckets import check_alike

        names = check_alike(self, left, right, on)
        rows = self.read_buckets(spark, left)
        return rows.join(self.read_buckets(spark, right), names, how)

    def read_plan(self, spark: SparkSession, plan: SplitPlan) -> DataFrame:
        """Read one plan, with exactly its columns and files, however little a query needs.

        Its `count()` decodes only the columns of residual filters.

        Args:
            spark: The session that runs the tasks.
            plan: A plan that `plan` returned.
        """
        from windrow.spark import read_plan

        rows = read_plan(spark, plan.info, plan.groups)
        return rows if plan.info.limit is None else rows.limit(plan.info.limit)

    def write(
        self,
        df: DataFrame,
        table: str,
        mode: WriteMode = "append",
        *,
        counts: Literal["count", "files", "history"] | None = None,
        conflict: WriteConflict = "fail",
        replace: Mapping[str, Any] | None = None,
        progress: bool | None = None,
        **options: Any,
    ) -> WriteReport:
        """Write rows to a table, in files of the wanted size, and publish them.

        Rows are counted by key, placed as the coordinator plans, staged beside the table,
        compared with the input, and moved in partition by partition. A failure before the first
        move leaves the table as it was; a later one is repaired by the next write, or by
        `windrow write recover`.

        Args:
            df: Rows with the table's columns, of a classic session.
            table: Name of the table; its location must be a local path on the driver and all
                executors, or on HDFS or S3.
            mode: `append`; `overwrite`, which replaces all rows; or `overwrite_partitions`, which
                replaces the rows of partitions that get new ones.
            counts: Where the rows per key come from: `count` (the default), a pass over the rows;
                `files`, the table's files; `history`, its last write. The last two need no pass,
                and suit rows with a similar distribution. With the option `rows` or `files`, no
                pass is needed either.
            conflict: What happens to files that others publish during this write and that the mode
                would remove: `fail` refuses the write, `overwrite` removes them.
            replace: With mode `overwrite_partitions`, values of partition columns, for example
                `{"ds": "2026-11-01"}`: all rows with these values are replaced, also where no new
                row arrives, and the new rows must have them. `{}` replaces all rows, and unlike
                `overwrite` keeps the columns of the table.
            progress: Whether to show the progress of counting, writing, checking and moving; by
                default in a terminal and in a notebook.
            **options: See `windrow_core.models.WritePlanRequest`, for example
                `target_file_size="64MB"`, `target_rows`, `scheme`, `files_per_key`,
                `bytes_per_row`, `salt_columns` or `max_files`.

        Raises:
            UnfitRowsError: Columns or partition values do not fit the table.
            UnstableColumnError: A column that decides where rows go may have another value in each
                attempt.
            NoSaltError: Large keys must be divided, but no column can divide them.
            TooManyKeysError: There are more keys than a plan may have.
            StagingFailedError: A Spark task failed.
            NotReproducibleError: The rows written differ from the input.
            SparkConnectError: The session is one of Spark Connect.
            WriteConflictError: Meanwhile, others have published files that this write would remove.
            WriteError: The table cannot be written, or the commit failed.
            ProblemError: The coordinator refuses.
        """
        from windrow_spark.writing.write import write

        return write(
            self,
            df,
            table,
            mode,
            counts=counts,
            conflict=conflict,
            replace=replace,
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
        from windrow_spark.writing.write import plan_write

        return plan_write(self, df, table, mode, counts=counts, options=options)
