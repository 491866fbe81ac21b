"""Reads of tables on Spark, and what brings tables of Spark's catalog to the coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from windrow_calls.arguments import check_choice, check_first
from windrow_calls.coordinator import Coordinator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow_calls.plans import SplitPlan
    from windrow_spark.catalog.importing import ImportedTable
    from windrow_spark.relation.division import ReadExplanation


_READERS = ("auto", "grouped", "native")


class SparkReads(Coordinator):
    """A coordinator whose tables Spark reads."""

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

        Spark's optimizer says which columns a query uses and how it filters them, and Windrow plans
        exactly that, with one task per split group. All queries see the same snapshot; keep this
        client open for as long as they run. If a file has changed since the snapshot, the job fails
        with an error that names the file.

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

        Example:
            events = client.read(spark, "sales.events", filter="ds >= '2026-11-01'")
            events.groupBy("country").sum("amount").show()
        """
        check_first(spark, "createDataFrame", "a session", f"client.read(spark, {table!r})")
        check_choice("reader", reader, _READERS)
        from windrow_spark.relation.table import ReadOptions, open_table

        read = ReadOptions(
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            version=version,
            limit=limit,
            max_staleness=max_staleness,
            reader=reader,
            options=options,
        )
        return open_table(self, spark, table, read)

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

        Example:
            client.explain_read(spark, "sales.events", filter="country = 'SE'").reason
        """
        check_first(spark, "createDataFrame", "a session", f"client.explain_read(spark, {table!r})")
        check_choice("reader", reader, _READERS)
        from windrow_spark.relation.table import ReadOptions, explain_read

        read = ReadOptions(
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            version=version,
            reader=reader,
            options=options,
        )
        return explain_read(self, spark, table, read)

    def create_view(
        self, spark: SparkSession, table: str, name: str | None = None, **options: Any
    ) -> DataFrame:
        """Create a temporary view of a table in a session, for SQL.

        Args:
            spark: The session.
            table: Name of the table.
            name: Name of the view, which replaces a view of that name; by default the table's name
                after its last dot: `events` for `sales.events`.
            **options: As in `read`.

        Returns:
            The DataFrame that `read` returns.

        Raises:
            InvalidArgumentError: No name is given, and the view of the default name reads another
                table.

        Example:
            client.create_view(spark, "sales.events")
            spark.sql("SELECT count(*) FROM events WHERE ds = '2026-11-01'").show()
        """
        check_first(spark, "createDataFrame", "a session", f"client.create_view(spark, {table!r})")
        from windrow_spark.relation.views import free_name

        rows = self.read(spark, table, **options)
        view = free_name(spark, table) if name is None else name
        rows.createOrReplaceTempView("`" + view.replace("`", "``") + "`")
        return rows

    def read_plan(self, spark: SparkSession, plan: SplitPlan) -> DataFrame:
        """Read one plan, with exactly its columns and files, however little a query needs.

        Its `count()` decodes only the columns of residual filters.

        Args:
            spark: The session that runs the tasks.
            plan: A plan that `plan` returned.

        Example:
            plan = client.plan("sales.events", filter="ds = '2026-11-01'")
            client.read_plan(spark, plan).count()
        """
        check_first(spark, "createDataFrame", "a session", "client.read_plan(spark, plan)")
        from windrow.spark import read_plan

        rows = read_plan(spark, plan.info, plan.groups)
        return rows if plan.info.limit is None else rows.limit(plan.info.limit)

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

        Example:
            orders = client.read_buckets(spark, "sales.orders", columns=["customer", "total"])
            orders.groupBy("customer").sum("total").show()
        """
        from windrow_spark.relation.buckets import open_buckets
        from windrow_spark.relation.table import ReadOptions

        read = ReadOptions(
            filter=filter, columns=columns, snapshot_id=snapshot_id, max_staleness=max_staleness
        )
        return open_buckets(self, spark, table, read)

    def join_buckets(
        self,
        spark: SparkSession,
        left: str,
        right: str,
        *,
        on: Sequence[str] | None = None,
        how: str = "inner",
    ) -> DataFrame:
        """Join two tables with the same buckets, one task per bucket, without a shuffle.

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

        Example:
            client.join_buckets(spark, "sales.orders", "sales.customers").show()
        """
        from windrow_spark.relation.buckets import check_alike

        names = check_alike(self, left, right, on)
        rows = self.read_buckets(spark, left)
        return rows.join(self.read_buckets(spark, right), names, how)

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

        Example:
            columns = client.infer_columns(spark, "/data/clicks", "json")
            client.register_table("web.clicks", "/data/clicks", "json", columns=columns)
        """
        from windrow_spark.inferring import infer_columns

        return infer_columns(spark, location, format, format_options or {})

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

        Each table keeps its name, format, columns, SerDe properties, buckets and partitions,
        wherever their folders are. Plan options and Bloom columns that you have set stay. Tables
        that cannot be read are listed with the reason; see `docs/how-to/metastore.md`.

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

        Example:
            for table in client.import_tables(spark, "shop.*"):
                print(table.name, table.outcome)
        """
        from windrow_spark.catalog.importing import import_tables

        with self._waiting("looking for tables") as show:
            return import_tables(
                spark,
                self,
                tables,
                refresh=refresh,
                trust_partitions=trust_partitions,
                take_over=take_over,
                delete_vanished=delete_vanished,
                on_table=lambda one: show(f"{one.name}: {one.outcome}"),
            )
