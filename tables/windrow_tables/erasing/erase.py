"""Erase rows from a table: plan, find them and write files anew, commit, look again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_calls.terminal.progress import counting
from windrow_core.cards import Card, Grid, Shown, card_of, seconds_text
from windrow_core.files.keys import fitted, key_column
from windrow_core.files.places import place_of
from windrow_core.files.remote import contents_of
from windrow_core.files.type_texts import canonical_type
from windrow_core.filter_text import text_without_values
from windrow_core.models import Column, WriteReport
from windrow_core.models.erasures import (
    ErasurePlan,
    ErasureReceipt,
    ErasureReport,
    ErasureRequest,
)
from windrow_core.sizes import SMALL, size_text
from windrow_tables.commits import TableWrite, begin
from windrow_tables.commits.errors import (
    PartitionChangedError,
    StagedFilesError,
    UnfitLocationError,
)
from windrow_tables.commits.locations import writable_location
from windrow_tables.erasing.errors import (
    RestlessTableError,
    UnerasableFilesError,
)
from windrow_tables.erasing.processes import Workers
from windrow_tables.erasing.task import (
    ErasedFile,
    ErasingJob,
    Refusal,
    paths_of,
)
from windrow_tables.executor.rebasing import Calendars
from windrow_tables.executor.spec import ReadSpec
from windrow_tables.groups.specs import in_files

# Where batches of streams wait in a table's folder.
_STREAMS = "_windrow/streams"
# Others may add, or change, files as often.
_ROUNDS = 5
# As a catalog's list of partitions allows.
_NO_PLACE = "no new file can go to its folder, which is not named `column=value`"


@dataclass(slots=True, kw_only=True, repr=False)
class Erasure(Shown):
    """Rows that were erased from a table, or would be.

    Attributes:
        table: Name of the table.
        is_dry: Whether nothing was changed.
        keys: Number of distinct keys that rows can have; None if a condition was given.
        null_keys: Nulls among the keys, which no row has.
        files_total: Files of the table.
        files_read: Files that could hold such rows, by partition values, bounds and Bloom filters.
        bytes_read: Their size.
        files_rewritten: Files that were written anew, without these rows.
        files_removed: Files all of whose rows went.
        rows_removed: Rows that went.
        bytes_before: Size of the files that went.
        bytes_after: Size of the new ones.
        files_checked: Files that could still hold such rows, and were read once more after all.
        rows_left: Rows that were there then: none.
        snapshot_id: The snapshot without the rows; None if nothing was changed.
        seconds: How long it took.
        receipt: The coordinator's receipt; None of a dry run.
    """

    table: str
    is_dry: bool = False
    keys: int | None = None
    null_keys: int = 0
    files_total: int = 0
    files_read: int = 0
    bytes_read: int = 0
    files_rewritten: int = 0
    files_removed: int = 0
    rows_removed: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    files_checked: int = 0
    rows_left: int = 0
    snapshot_id: int | None = None
    seconds: float = 0.0
    receipt: ErasureReceipt | None = None


@card_of.register
def _(erasure: Erasure) -> Card:
    dry, receipt = erasure.is_dry, erasure.receipt
    facts = [] if erasure.keys is None else [("keys", f"{erasure.keys:,}")]
    facts += [
        ("files that may hold rows", f"{erasure.files_read:,} of {erasure.files_total:,}"),
        ("rows", f"{erasure.rows_removed:,}"),
        ("files to rewrite" if dry else "files rewritten", f"{erasure.files_rewritten:,}"),
        ("files to remove" if dry else "files removed", f"{erasure.files_removed:,}"),
    ]
    if not dry:
        sizes = f"{size_text(erasure.bytes_before)}, now {size_text(erasure.bytes_after)}"
        again = f"{erasure.files_checked:,} files, {erasure.rows_left:,} rows"
        facts += [("bytes", sizes), ("checked again", again)]
    facts.append(("time", seconds_text(erasure.seconds)))
    grids = []
    if receipt is not None:
        facts.append(
            ("receipt", f"{receipt.receipt_id}, {receipt.last_byte_at:%Y-%m-%d %H:%M:%S} UTC")
        )
        rows = [(text,) for text in receipt.not_reached]
        grids.append(Grid(("not reached…",), rows))
    return Card(f"Erasure from {erasure.table}" + (", dry run" if dry else ""), facts, grids)


def erase_rows(
    client: Coordinator,
    table: str,
    *,
    key: str | None = None,
    keys: pa.Array | None = None,
    where: str | Mapping[str, Any] | None = None,
    dry_run: bool = False,
    processes: int | None = None,
    readers_may_see_both: bool = False,
    console: Console | None = None,
) -> Erasure:
    """Erase rows from a table; see `Client.erase`.

    Args:
        client: Says which files may hold them, and gets the new ones.
        table: Name of the table.
        key: The column of the keys.
        keys: The keys.
        where: Instead, a condition.
        dry_run: Whether only to look.
        processes: How many processes work; by default threads of this one do, one for each core.
            A process that is started from a script runs the script from its beginning.
        readers_may_see_both: As for `Client.compact`.
        console: Where progress is shown; None for nowhere.
    """
    began_s, began_at = time.monotonic(), datetime.now(timezone.utc)
    if (key is None) == (where is None):
        raise InvalidArgumentError(
            "key", "give either a key with its values, or a condition (where)"
        )
    request = ErasureRequest.model_validate({"key": key, "filter": where})
    try:
        location = writable_location(client.table(table))
    except UnfitLocationError:
        # Of tables that no rows are erased from, the coordinator knows what to use there.
        client.erasure_files(table, request, keys)
        raise
    if place_of(location).shows_both and not (dry_run or readers_may_see_both):
        raise InvalidArgumentError(
            "readers_may_see_both",
            f"readers that list the folders of {table!r} find old and new files, and so rows twice, "
            "until the old ones are removed: if all readers use Windrow, or may see that for a while, "
            "confirm it (--readers-may-see-both)",
        )
    with Workers(table, processes) as workers:
        work = _Work(client, table, request, keys, workers, console)
        work.look(dry_run=dry_run)
        if not dry_run:
            work.finish(location, began_at)
    work.done.seconds = time.monotonic() - began_s
    return work.done


@dataclass(slots=True)
class _Matches:
    """What processes have found and written, so far."""

    files: list[ErasedFile] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(one.removals for one in self.files)


class _Work:
    """One erasure."""

    def __init__(
        self,
        client: Coordinator,
        table: str,
        request: ErasureRequest,
        keys: pa.Array | None,
        workers: Workers,
        console: Console | None,
    ) -> None:
        self.done = Erasure(table=table)
        self._client = client
        self._table = table
        self._request = request
        self._keys = keys
        self._workers = workers
        self._console = console
        self._rule = request.key or ""
        if keys is not None:
            self.done.null_keys = keys.null_count

    def look(self, *, dry_run: bool) -> None:
        """Erase until nothing is left, or only look."""
        done, reason = self.done, "files kept coming"
        done.is_dry = dry_run
        if dry_run:
            plan, files = self._planned()
            self._note(plan, self._checked(self._searched(plan, files, None)))
            return
        for _ in range(_ROUNDS):
            try:
                self._round()
            except PartitionChangedError as error:
                reason = f"{error.path} {error.reason}"
                continue
            plan, files = self._planned()
            left = self._searched(plan, files, None)
            done.files_checked, done.rows_left = plan.files, left.rows
            if not (left.rows or left.refusals):
                return
        raise RestlessTableError(self._table, reason)

    def finish(self, location: str, began_at: datetime) -> None:
        """Have the coordinator erase what it keeps, and sign a receipt."""
        done = self.done
        waiting, _ = contents_of(f"{location}/{_STREAMS}")
        names = set(ErasureReport.model_fields) & set(Erasure.__dataclass_fields__)
        report = {name: getattr(done, name) for name in names}
        beside = {"rule": self._rule, "started_at": began_at, "waiting_batches": len(waiting)}
        done.receipt = self._client.finish_erasure(
            self._table, ErasureReport.model_validate(report | beside)
        )

    def _round(self) -> None:
        """Find rows, and commit the files without them."""
        with begin(self._client, self._table, kind="removal", lists_partitions=True) as write:
            began_s = time.monotonic()
            plan, files = self._planned()
            matches = self._checked(self._searched(plan, files, write))
            if not matches.files:
                self._note(plan, matches)
                return
            write.check()
            report = _report(matches.files, time.monotonic() - began_s)
            try:
                snapshot = write.commit(report, replaces=paths_of(matches.files))
            except StagedFilesError as error:
                path = next(
                    (one.path for one in matches.files if one.new_path == error.path), error.path
                )
                raise UnerasableFilesError(self._table, 1, path, _NO_PLACE) from error
            # Not before: a commit that meets a change is made again.
            self._note(plan, matches)
            self.done.snapshot_id = snapshot.snapshot_id

    def _planned(self) -> tuple[ErasurePlan, pa.Table]:
        self._client.refresh(self._table, full=True, on_progress=lambda _: None)
        plan, files = self._client.erasure_files(self._table, self._request, self._keys)
        if plan.filter is not None:
            self._rule = text_without_values(plan.filter)
        return plan, files

    def _note(self, plan: ErasurePlan, matches: _Matches) -> None:
        done = self.done
        done.files_total = plan.files_total
        done.files_read += plan.files
        done.bytes_read += plan.size_bytes
        done.rows_removed += matches.rows
        for one in matches.files:
            if one.removals < one.row_count:
                done.files_rewritten += 1
            else:
                done.files_removed += 1
            done.bytes_before += one.size_bytes
            done.bytes_after += one.new_bytes

    def _checked(self, matches: _Matches) -> _Matches:
        """Make sure that no file stands in the way."""
        if matches.refusals:
            first = matches.refusals[0]
            if all(one.has_changed for one in matches.refusals):
                raise PartitionChangedError(
                    self._table, first.path.rpartition("/")[0], first.path, "has changed"
                )
            first = next(one for one in matches.refusals if not one.has_changed)
            raise UnerasableFilesError(self._table, len(matches.refusals), first.path, first.reason)
        return matches

    def _searched(self, plan: ErasurePlan, files: pa.Table, write: TableWrite | None) -> _Matches:
        """Find the rows in files, and write these anew if there is a write."""
        matches = _Matches()
        if not len(files):
            return matches
        schemas = [_schema_of(some) for some in (plan.columns, plan.partition_columns)]
        keys = self._fitted(plan, *schemas)
        if keys is not None:
            self.done.keys = len(keys)
            if not len(keys):
                return matches
        job = ErasingJob(
            spec=_spec_of(plan, *schemas).packed(),
            filter=plan.filter,
            column=(plan.columns or plan.partition_columns)[0].name,
            fields=tuple(plan.key_fields),
            staging=None if write is None else write.folder,
            tag=uuid.uuid4().hex[:8] if write is None else write.write_id[:8],
            max_footer_bytes=self._client.config().limits.max_footer_bytes,
        )
        verb = "looking through" if write is None else "erasing from"
        with counting(self._console) as bar:
            task = bar.add_task(f"{verb} {self._table}", total=len(files))
            for outcomes, refusals in self._workers.answers(
                job, keys, files, partial(bar.advance, task)
            ):
                if write is not None:
                    write.check()
                matches.files += outcomes
                matches.refusals += refusals
        return matches

    def _fitted(self, plan: ErasurePlan, data: pa.Schema, partition: pa.Schema) -> pa.Array | None:
        if self._keys is None:
            return None
        types = {one.name: one.type for one in (*data, *partition)}
        assert self._request.key is not None
        return fitted(self._keys, key_column(types, self._request.key))


def _spec_of(plan: ErasurePlan, data: pa.Schema, partition: pa.Schema) -> ReadSpec:
    return ReadSpec(
        table=plan.table,
        location=plan.location,
        data=in_files(data, plan.file_fields),
        hidden=pa.schema([]),
        partition=partition,
        output=(*data.names, *partition.names),
        # As scans without Spark.
        calendars=Calendars(zone=""),
        keeps_rows=True,
    )


def _schema_of(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(one.name, canonical_type(one.type)) for one in columns])


def _report(files: Sequence[ErasedFile], seconds: float) -> WriteReport:
    sizes = np.array([one.new_bytes for one in files if one.new_path is not None], np.int64)
    rows = [one.row_count - one.removals for one in files]
    target = max((one.size_bytes for one in files), default=0)
    return WriteReport(
        scheme="exact",
        basis="static",
        target_file_bytes=target,
        tasks=len(files),
        rows=sum(rows),
        files=len(sizes),
        small_files=int(np.count_nonzero(sizes < target * SMALL)),
        bytes=int(sizes.sum()),
        largest_file_bytes=int(sizes.max(initial=0)),
        row_hash="",
        count_seconds=0.0,
        write_seconds=round(seconds, 3),
        check_seconds=0.0,
        commit_seconds=0.0,
    )
