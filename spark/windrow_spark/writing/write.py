"""A whole planned write: count, plan, place, stage, check, commit."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation

from windrow_calls.arguments import checked
from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError, ProblemError
from windrow_core.files.access import is_of_system, why_unwritable
from windrow_core.models import (
    Column,
    KeyCounts,
    StreamBatch,
    TableInfo,
    WriteConflict,
    WriteMode,
    WriteOutcome,
    WritePlan,
    WritePlanRequest,
    WriteReport,
)
from windrow_spark.failures import stated_cause
from windrow_spark.interrupts import kept_interrupts
from windrow_spark.placement import default_parallelism, require_classic
from windrow_spark.writing.checking import Seconds, check_files, write_report
from windrow_spark.writing.counting import RowSums, count_rows, row_sums, sum_rows, sums_of
from windrow_spark.writing.errors import (
    NoSaltError,
    NotReproducibleError,
    StagingFailedError,
    UnfitRowsError,
)
from windrow_spark.writing.file_options import FileOptions
from windrow_spark.writing.folder_names import UnfitValueError
from windrow_spark.writing.lineage import lineage_of
from windrow_spark.writing.own_changes import note_change, without_further_changes
from windrow_spark.writing.phases import Phases, shown_phases
from windrow_spark.writing.regions import folder_values
from windrow_spark.writing.row_order import order_of
from windrow_spark.writing.salts import check_keys, check_salts, default_salts
from windrow_spark.writing.sampling import sampled_row_bytes
from windrow_spark.writing.schemas import fitted, partition_columns_of
from windrow_spark.writing.staging import stage
from windrow_tables.commits import TableWrite, begin

# The source of the rows per key: a pass over the data, the table's files, or its last write.
Counts: TypeAlias = Literal["count", "files", "history"]

_NO_ESTIMATE = "urn:windrow:problem:no-estimate"
_UNSALTED = {"coalesce", "repartition", "columns"}


def write(
    client: Coordinator,
    df: DataFrame,
    table: str,
    mode: WriteMode = "append",
    *,
    counts: Counts | None = None,
    conflict: WriteConflict = "fail",
    replace: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    batch: StreamBatch | None = None,
    on_staged: Callable[[Sequence[str]], None] | None = None,
    file_options: FileOptions | None = None,
    options: Mapping[str, Any],
) -> WriteReport:
    """Write rows to a table; see `Client.write`, and `begin` for `batch`.

    Args:
        client: The client of the table's coordinator.
        df: The rows.
        table: The table's name.
        mode: The mode.
        counts: Where the rows of each key come from.
        conflict: What happens to files that others publish meanwhile.
        replace: The values whose rows are replaced.
        progress: Whether progress is shown.
        batch: The batches of a stream.
        on_staged: Called before the commit with the folders of new files as Spark names them, to
            give their partitions to a catalog and to the table's list.
        file_options: How files are made.
        options: Options of the plan.
    """
    require_classic(df.sparkSession)
    if replace is not None and mode != "overwrite_partitions":
        raise InvalidArgumentError(
            "replace", f"replace needs mode 'overwrite_partitions', not {mode!r}"
        )
    info = client.table(table)
    preparation = _Preparation.of(info, df, mode, options, file_options)
    region = None if replace is None else folder_values(df.sparkSession, info, replace)
    with (
        without_further_changes(df.sparkSession.sparkContext),
        shown_phases(df.sparkSession.sparkContext, table, progress) as phases,
        begin(
            client,
            info,
            mode,
            conflict=conflict,
            replace=region,
            batch=batch,
            lists_partitions=on_staged is not None,
        ) as table_write,
        kept_interrupts() as check_interrupted,
    ):
        with _staging_errors(table):
            with phases.of_spark("counting"):
                # Outside the data's folder, so that none of it can be moved into the table.
                planning = _planned(client, preparation, counts, f"{table_write.folder}-sample")
            # A write that was cancelled meanwhile stops here, rather than after staging.
            table_write.check()
            check_interrupted()
            report = _staged(preparation, planning, table_write, phases)
            check_interrupted()
        if on_staged is not None:
            paths = table_write.inventory().files["path"].to_pylist()
            on_staged(sorted({path.rpartition("/")[0] for path in paths}))
        began_s = time.monotonic()
        with phases.show("moving") as on_moved:
            table_write.commit(report, on_moved=on_moved)
        note_change(client, table)
    return report.model_copy(update={"commit_seconds": round(time.monotonic() - began_s, 3)})


def plan_write(
    client: Coordinator,
    df: DataFrame,
    table: str,
    mode: WriteMode = "append",
    *,
    counts: Counts | None = None,
    options: Mapping[str, Any],
) -> WritePlan:
    """Plan how to write rows to a table; see `Client.plan_write`."""
    require_classic(df.sparkSession)
    preparation = _Preparation.of(client.table(table), df, mode, {"compare": True, **options})
    with tempfile.TemporaryDirectory(prefix="windrow-") as scratch, _staging_errors(table):
        sample_folder = f"{os.path.realpath(scratch)}/sample"
        return _planned(client, preparation, counts, sample_folder).plan


@dataclass(frozen=True, slots=True)
class _Preparation:
    """A write that has passed all checks that do not read the rows.

    Attributes:
        df: The rows, with the columns of the table.
        table: The table to write to.
        partition_columns: The table's partition columns.
        request: The caller's request, with salt columns chosen.
        order: The order of the rows, which files keep.
        file_options: How files are made.
        no_salt: Why there are no salt columns, if no column is suitable.
        is_repeatable: Whether every computation of the rows is known to give the same ones.
    """

    df: DataFrame
    table: TableInfo
    partition_columns: list[Column]
    request: WritePlanRequest
    order: Sequence[SparkColumn]
    file_options: FileOptions
    no_salt: NoSaltError | None
    is_repeatable: bool

    @classmethod
    def of(
        cls,
        table: TableInfo,
        df: DataFrame,
        mode: WriteMode,
        options: Mapping[str, Any],
        file_options: FileOptions | None = None,
    ) -> _Preparation:
        fields = {
            "compare": False,
            "parallelism": default_parallelism(df.sparkSession),
            **options,
            "table": table.name,
        }
        request = checked(WritePlanRequest, fields)
        rows = fitted(df, table, mode)
        columns = partition_columns_of(table)
        names = [column.name for column in columns]
        spec = table.definition.bucket_spec
        buckets = list(spec.columns) if spec is not None else []
        for name in (*buckets, *request.salt_columns):
            if name not in rows.columns:
                use = "bucketed by" if name in buckets else "to be salted by"
                raise UnfitRowsError(table.name, f"they lack column {name!r}, which it is {use}")
        lineage = lineage_of(rows)
        unstable = lineage.unstable
        check_keys([*names, *buckets], unstable)
        check_salts(rows, request.salt_columns, unstable)
        no_salt = None
        if not request.salt_columns:
            try:
                salts = default_salts(rows, names, unstable)
            except NoSaltError as error:
                no_salt = error
            else:
                request = request.model_copy(update={"salt_columns": salts})
        return cls(
            rows,
            table,
            columns,
            request,
            order_of(df).columns,
            file_options or FileOptions(),
            no_salt,
            lineage.is_repeatable,
        )

    @property
    def is_known(self) -> bool:
        """Whether the number of partitions and buckets is known from the table."""
        current = self.table.current_snapshot
        division = self.partition_columns or self.table.definition.bucket_spec
        return not division or (current is not None and current.file_count > 0)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.partition_columns]


@dataclass(frozen=True, slots=True)
class _Planning:
    """A plan, and the result of the pass over the rows that it is based on, if there was one.

    Attributes:
        plan: The write plan.
        keys: Rows of each key, if they were counted.
        rows: Number of rows, if they were counted.
        sums: Their sums, if they were hashed.
        count_seconds: Seconds for counting and planning.
    """

    plan: WritePlan
    keys: KeyCounts | None
    rows: int | None
    sums: RowSums | None
    count_seconds: float


def _planned(
    client: Coordinator, preparation: _Preparation, counts: Counts | None, sample_folder: str
) -> _Planning:
    if counts not in (None, *get_args(Counts)):
        raise ValueError(f"counts must be 'count', 'files' or 'history', not {counts!r}")
    request = preparation.request
    began_s = time.monotonic()
    keys: KeyCounts | None = None
    rows: int | None = None
    sums: RowSums | None = None
    # Range partitioning samples the rows first, so they cannot be summed while being written.
    hashed = not preparation.is_repeatable or request.scheme == "range_hash"
    static = (request.rows is not None or request.files is not None) and preparation.is_known
    if counts == "count" or (counts is None and not static):
        try:
            tally = count_rows(
                preparation.df,
                preparation.partition_columns,
                preparation.table.definition.bucket_spec,
                hashed=hashed,
            )
        except UnfitValueError as error:
            raise UnfitRowsError(preparation.table.name, str(error)) from error
        keys, rows, sums = tally.keys, tally.rows, tally.sums
        if keys is None:
            plan = _single_task(preparation, "repartition")
            return _Planning(plan, None, rows, sums, time.monotonic() - began_s)
        request = request.model_copy(update={"keys": keys, "rows": None})
    elif counts is not None:
        request = request.model_copy(update={"keys_from": counts})
    try:
        plan = client.write_plan(request)
    except ProblemError as error:
        row_bytes = None
        if error.problem.type == _NO_ESTIMATE and request.bytes_per_row is None:
            row_bytes = sampled_row_bytes(
                preparation.df,
                request.keys,
                _single_task(preparation, "coalesce"),
                preparation.table,
                sample_folder,
                preparation.file_options,
            )
        if row_bytes is None:
            raise
        plan = client.write_plan(request.model_copy(update={"bytes_per_row": row_bytes}))
    if preparation.no_salt is not None and _needs_salt(plan):
        raise preparation.no_salt
    return _Planning(plan, keys, rows, sums, time.monotonic() - began_s)


def _needs_salt(plan: WritePlan) -> bool:
    if plan.scheme == "exact" and plan.keys is not None:
        return max(plan.keys.files, default=0) > 1
    return plan.scheme not in _UNSALTED


def _single_task(
    preparation: _Preparation, scheme: Literal["coalesce", "repartition"]
) -> WritePlan:
    """Return the plan of a write by one task, for few rows or none."""
    return WritePlan(
        table=preparation.table.name,
        snapshot_id=None,
        target_file_bytes=preparation.request.target_file_size,
        target_file_rows=preparation.request.target_rows,
        basis="rows",
        row_size=None,
        rows=0,
        files=0,
        files_low=0,
        files_high=0,
        scheme=scheme,
        tasks=1,
        partition_columns=preparation.partition_columns,
        salt_columns=[],
        outcome=WriteOutcome(
            scheme=scheme,
            serves=True,
            reason="one task is enough",
            tasks=1,
            files=0,
            small_files=0,
            mean_file=0,
            largest_file=0,
            largest_task=0,
            mean_file_bytes=0,
            largest_file_bytes=0,
            largest_task_bytes=0,
            efficiency=1,
            collisions=0,
            severe_collisions=0,
            most_keys_in_a_task=0,
            exact=True,
        ),
    )


def _staged(
    preparation: _Preparation, planning: _Planning, write: TableWrite, phases: Phases
) -> WriteReport:
    """Stage the rows, and make sure that the files hold exactly the rows of the data."""
    df, names, table = preparation.df, preparation.names, preparation.table.name
    began_s = time.monotonic()
    data_sums = planning.sums
    file_sums = RowSums(0, 0)
    departure: Observation | None = None
    if data_sums is None and planning.plan.scheme != "range_hash":
        # Range partitioning samples first, which would observe rows twice.
        departure = Observation()
        df = df.observe(departure, *sums_of(df, names))
    if data_sums is None or data_sums.rows:
        arrival = Observation()
        with phases.of_spark("writing"):
            stage(
                df,
                planning.plan,
                preparation.table,
                write.folder,
                arrival,
                order=preparation.order,
                file_options=preparation.file_options,
            )
        file_sums = row_sums(arrival.get)
    written_s = time.monotonic()
    if departure is not None:
        # If there are no rows at all, Spark removes the observation from its plan.
        data_sums = row_sums(departure.get) if file_sums.rows else sum_rows(preparation.df, names)
    with phases.of_spark("checking"):
        files = write.inventory().files
        if file_sums != data_sums and planning.sums is None:
            # Rows of a map task that ran twice are observed twice; a separate pass is exact.
            data_sums = sum_rows(preparation.df, names)
    if file_sums != data_sums or planning.rows not in (None, file_sums.rows):
        there = (
            str(data_sums) if file_sums != data_sums else f"rows when counted: {planning.rows:,}"
        )
        raise NotReproducibleError(table, there, str(file_sums))
    seconds = Seconds(planning.count_seconds, written_s - began_s, time.monotonic() - written_s)
    try:
        report = write_report(
            df, planning.plan, preparation.partition_columns, files, file_sums, seconds
        )
    except UnfitValueError as error:
        raise UnfitRowsError(table, str(error)) from error
    check_files(table, files, file_sums, report.keys, planning.keys)
    return report


@contextmanager
def _staging_errors(table: str) -> Iterator[None]:
    """Turn errors of Spark and the file system into one that says in one line what failed."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StagingFailedError(table, stated_cause(error)) from error
    except OSError as error:
        reason = why_unwritable(error) if is_of_system(error) else str(error)
        raise StagingFailedError(table, reason) from error
