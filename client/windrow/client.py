"""The client: every call of a coordinator, reads without Spark, reads, writes and jobs on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, get_args

from windrow.reads import SparkReads
from windrow_calls.arguments import check_choice, check_first
from windrow_calls.installed import require_package
from windrow_calls.outcomes import Compaction, Warmth
from windrow_calls.terminal.waiting import waiting
from windrow_calls.transport import Transport
from windrow_core.cards import Card, Shown, card_of
from windrow_core.models import WriteConflict, WriteMode, WritePlan, WriteReport
from windrow_core.sizes import parse_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow_calls.diagnosis import Diagnosis
    from windrow_tables.commits.removal import Removal
    from windrow_tables.erasing.erase import Erasure
    from windrow_tables.packs.packing import PackOutcome
    from windrow_tables.scans.scan import Scan


_COUNTS = ("count", "files", "history")


class Client(Shown, SparkReads):
    """Talks to one coordinator. Use it as a context manager, or call `close`.

    | to | use |
    |---|---|
    | register a table and list its files | `register_table`, `refresh`, `table`, `tables` |
    | read on Spark | `read`, `create_view` for SQL |
    | read without Spark | `scan` |
    | write on Spark | `write`, `plan_write` |
    | read small files like large ones, in any engine | `pack`, `plan_packing`, `list_packs` |
    | erase rows, with proof | `erase` |
    | merge small files on Spark | `compact`, `plan_compaction`, `advise` |
    | see why a read is planned as it is | `plan`, `explain`, `past_plans` |
    | keep files on the disks of workers | `cache_table`, `cache`, `warm` |
    | find out what is missing where it runs | `doctor` |

    Every method raises `windrow.errors.ProblemError` (or a subclass) when the coordinator
    refuses, and `CoordinatorUnreachableError` when it does not answer.

    Args:
        transport: Carries the requests.
        on_close: Called after the transport is closed.
    """

    _waiting = staticmethod(waiting)

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
        """Close the connections, and the coordinator if it is embedded.

        Example:
            client = windrow.connect()
            client.close()
        """
        self._transport.close()
        if self._on_close is not None:
            self._on_close()

    @property
    def is_embedded(self) -> bool:
        """Whether the coordinator runs inside this process, and no other can reach it."""
        return self._on_close is not None

    def doctor(self, spark: SparkSession | None = None) -> Diagnosis:
        """Check this machine, the coordinator and a Spark session, and say how to fix failures.

        Nothing is changed. See `docs/how-to/doctor.md`.

        Args:
            spark: A session to check, too: its kind and version, its JVM, and the Python that its
                tasks run, for which a small job runs.

        Example:
            client.doctor(spark)
        """
        from windrow.doctor import diagnosis

        return diagnosis(self._transport, spark)

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

        Example:
            scan = client.scan("sales.events", filter="ds >= '2026-11-01'", columns=["id", "amount"])
            scan.to_pandas()
        """
        require_package("numpy", "scan")
        from windrow_tables.scans.scan import open_scan

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

    def pack(
        self,
        table: str,
        *,
        processes: int | None = None,
        rights_are_stated: bool = False,
        **options: Any,
    ) -> PackOutcome:
        """Copy the rows of small files into packs outside of the table, which read like large files.

        The table stays as it is. Spark, scans and other engines then read the packs instead of the
        files that are still the same. See `docs/how-to/packs.md`.

        Args:
            table: Name of the table.
            processes: How many processes pack. By default this one does, in one thread: Python runs a
                script from its beginning in each process that it starts, so guard yours by
                `if __name__ == "__main__":` before you name a number. `windrow pack` uses all cores.
            rights_are_stated: Whether everyone who may read the folder of packs may read the whole
                table; needed on object stores, where Windrow cannot check that.
            **options: As in `plan_packing`.

        Example:
            client.pack("sales.events").packs
        """
        require_package("numpy", "scan")
        from windrow_calls.terminal.consoles import error_console
        from windrow_tables.packs.packing import pack_table

        return pack_table(
            self,
            table,
            processes=processes,
            rights_are_stated=rights_are_stated,
            console=error_console(),
            **options,
        )

    def erase(
        self,
        table: str,
        *,
        key: str | None = None,
        values: Iterable[Any] | None = None,
        where: str | Mapping[str, Any] | None = None,
        dry_run: bool = False,
        processes: int | None = None,
        readers_may_see_both: bool = False,
    ) -> Erasure:
        """Erase rows from the files of a table, and make sure that they are gone.

        Only files that hold such rows are rewritten; their other rows, types and metadata stay as
        they are. One commit moves the new files in, and all files that may hold such rows are read
        once more. No Spark is needed. See `docs/how-to/erase.md`.

        Args:
            table: Name of the table, which consists of Parquet files where `write` can write.
            key: Column of the keys, or a path such as `payload.user.id`; lists are searched.
            values: The keys: a list, or a column of Arrow. Nulls are ignored.
            where: Instead of keys, a condition, as in `plan`; rows for which it is TRUE are erased.
            dry_run: Whether only to look for the rows.
            processes: How many processes work. By default threads of this one do: Python runs a script
                from its beginning in each process that it starts, so guard yours by
                `if __name__ == "__main__":` before you name a number. `windrow erase` uses all cores.
            readers_may_see_both: Whether readers that list folders may find rows twice until old files
                are removed; needed for tables on HDFS and S3.

        Raises:
            UnerasableFilesError: Files cannot be read or rewritten.
            RestlessTableError: Others add such rows faster than they are erased.
            WriteError: The table cannot be written, or the commit failed.
            ProblemError: The coordinator refuses.

        Example:
            client.erase("sales.events", key="user_id", values=[7, 11])
            client.erase("sales.events", where="user_id = 7", dry_run=True)
        """
        require_package("numpy", "scan")
        from windrow_calls.terminal.consoles import error_console
        from windrow_tables.erasing.erase import erase_rows
        from windrow_tables.erasing.keys import keys_of

        return erase_rows(
            self,
            table,
            key=key,
            keys=None if key is None else keys_of(values if values is not None else []),
            where=where,
            dry_run=dry_run,
            processes=processes,
            readers_may_see_both=readers_may_see_both,
            console=error_console(),
        )

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
        """Write rows to a table, in files of the target size, and publish them.

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

        Example:
            client.write(new_events, "sales.events", target_file_size="64MB")
            client.write(new_events, "sales.events", mode="overwrite_partitions")
        """
        _check_write(df, table, mode, counts)
        check_choice("conflict", conflict, get_args(WriteConflict))
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

    def drop_partitions(
        self, table: str, filter: str | Mapping[str, Any], *, dry_run: bool = False
    ) -> Removal:
        """Remove partitions of a table: their files, and their folders if nothing else is in them.

        One commit removes the files that are in the current snapshot; files that others add
        meanwhile stay. A failure leaves the table as it was, or the removal is finished by the next
        write. No Spark is needed.

        Args:
            table: Name of the table, which lies where `write` can write.
            filter: A condition on partition columns, as in `plan`, for example
                `"ds < '2025-01-01'"`. Null values match only `IS NULL`.
            dry_run: Whether only to return what would be removed.

        Raises:
            UnfitRemovalError: The table has no partitions, or the filter names other columns.
            PartitionChangedError: A file has changed since the table's last refresh.
            WriteError: The table cannot be written, or the commit failed.
            ProblemError: The coordinator refuses.

        Example:
            client.drop_partitions("sales.events", "ds < '2025-01-01'", dry_run=True)
        """
        from windrow_tables.commits.removal import drop_partitions

        return drop_partitions(self, table, filter, dry_run=dry_run)

    def plan_write(
        self,
        df: DataFrame,
        table: str,
        mode: WriteMode = "append",
        *,
        counts: Literal["count", "files", "history"] | None = None,
        **options: Any,
    ) -> WritePlan:
        """Plan what `write` would do with the same arguments, and compare all schemes.

        Example:
            plan = client.plan_write(new_events, "sales.events")
            plan.files, plan.scheme
        """
        _check_write(df, table, mode, counts)
        from windrow_spark.writing.write import plan_write

        return plan_write(self, df, table, mode, counts=counts, options=options)

    def compact(
        self,
        spark: SparkSession,
        table: str,
        *,
        target_file_size: int | str = "128MB",
        filter: str | None = None,
        readers_may_see_both: bool = False,
        on_progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Compaction:
        """Merge the small files of a table where that pays off; a second run has no work.

        Rows and columns stay as they are, and readers see the old files or the new. Each batch of
        partitions is committed separately, so that a run that was stopped leaves whole ones.
        `plan_compaction` shows what would be rewritten.

        Args:
            spark: A classic session, which rewrites the files.
            table: Name of the table.
            target_file_size: Target size of a file, in bytes or as text such as `"256MB"`.
            filter: Filter on partition columns only, which selects the partitions to consider.
            readers_may_see_both: Whether readers that list folders may find old and new files, and
                so rows twice, until the old ones are removed; needed for tables on HDFS and S3.
            on_progress: Called with each step and its outcome; by default, they are shown in a
                terminal or a notebook while the job runs.
            **options: See `windrow_core.models.CompactionRequest`, for example `min_files=10`.

        Raises:
            NoConsentError: The table needs `readers_may_see_both`.
            SparkConnectError: The session is one of Spark Connect.
            WriteError: Nothing can be committed to the table.

        Example:
            client.compact(spark, "sales.events", filter="ds < '2026-11-01'")
        """
        check_first(spark, "createDataFrame", "a session", f"client.compact(spark, {table!r})")
        size_bytes: Any = parse_size(target_file_size)
        from windrow_jobs.compact import compact

        with self._waiting(f"{table}: looking for small files") as show:
            return compact(
                lambda: spark,
                self,
                table,
                target_file_size=size_bytes,
                filter=filter,
                readers_may_see_both=readers_may_see_both,
                on_progress=on_progress or (lambda text: show(f"{table}: {text}")),
                **options,
            )

    def warm(
        self,
        spark: SparkSession,
        table: str,
        rule: str | None = None,
        *,
        on_progress: Callable[[str], None] | None = None,
    ) -> Warmth:
        """Fetch a table's cacheable files into the caches of the workers chosen for them.

        Files that the workers hold already are not fetched again.

        Args:
            spark: A classic session with executors on the workers' hosts. Its
                `spark.locality.wait` is the time for which a task waits for the host that caches its
                files; `60s` is long enough.
            table: Name of the table.
            rule: One of the table's rules; all by default.
            on_progress: Called with each step, and regularly with its progress; by default, these are
                shown in a terminal or a notebook while the job runs.

        Raises:
            SparkConnectError: The session is one of Spark Connect.

        Example:
            client.warm(spark, "sales.events", "november")
        """
        check_first(spark, "createDataFrame", "a session", f"client.warm(spark, {table!r})")
        from windrow_jobs.warm import warm

        with self._waiting(f"{table}: looking for cacheable files") as show:
            tell = on_progress or (lambda text: show(f"{table}: {text}"))
            return warm(lambda: spark, self, table, rule, tell)


def _check_write(df: object, table: str, mode: str, counts: str | None) -> None:
    """Refuse wrong arguments of a write before anything else is done."""
    check_first(df, "sparkSession", "a DataFrame of Spark", f"client.write(df, {table!r})")
    check_choice("mode", mode, get_args(WriteMode))
    if counts is not None:
        check_choice("counts", counts, _COUNTS)


@card_of.register
def _(client: Client) -> Card:
    state = "closed" if client.is_closed else "open"
    where = "in this process" if client.is_embedded else client.url
    facts = [("coordinator", where), ("state", state)]
    # Nothing is asked to show a client: it may be away, or slow.
    count = client.table_count
    if count is not None:
        facts.append(("tables", f"{count:,} when last listed"))
    return Card("Windrow client", facts)
