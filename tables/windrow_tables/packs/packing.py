"""Packs the small files of a table, in several processes and without Spark."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError, WindrowError
from windrow_calls.terminal.progress import counting
from windrow_core.cards import Card, Grid, Shown, card_of, seconds_text
from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.figures import FIGURES
from windrow_core.files.schemes import is_object
from windrow_core.models.packs import Pack, PackDescription, PackingPlan
from windrow_core.sizes import size_text
from windrow_tables.executor.parents import LostProcessError, end_with_parent
from windrow_tables.packs.making import LeftFile, MadePack, PackingJob, make_packs, remove_pack

# Files that are like no other one stay as they are.
_FEWEST = 2
# A packer that is silent for as long is presumed dead; of a renewal, two may fail.
_LEASE_S = 60
_RENEWALS = 3
_IDENTITY = ["path", "size_bytes", "mtime_ns", "etag", "row_count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOutcome(Shown):
    """The outcome of packing a table.

    Attributes:
        plan: What was planned.
        packs: The packs that were published.
        core_seconds: Time of all cores that packed, together.
        left: Paths of files that are in none after all, and why.
    """

    plan: PackingPlan
    packs: Sequence[Pack]
    core_seconds: float
    left: Sequence[tuple[str, str]] = field(default=())

    @property
    def files(self) -> int:
        """Number of files whose rows are in these packs."""
        return sum(one.source_count for one in self.packs)


@card_of.register
def _(outcome: PackOutcome) -> Card:
    size_bytes = sum(one.size_bytes for one in outcome.packs)
    plan = card_of(outcome.plan)
    facts = [
        ("files packed", f"{outcome.files:,} of {outcome.plan.files:,}"),
        ("cost", f"{seconds_text(outcome.core_seconds)} of one core"),
        ("packs", f"{len(outcome.packs):,} ({size_text(size_bytes)})"),
    ]
    reasons = Counter(reason for _, reason in outcome.left).most_common()
    rows = [(f"{count:,}", reason) for reason, count in reasons]
    left = [Grid(("files>", "why…"), rows, "Left out")] if rows else []
    return replace(plan, facts=facts, grids=[*left, *plan.grids])


def pack_table(
    client: Coordinator,
    table: str,
    *,
    processes: int | None = None,
    rights_are_stated: bool = False,
    console: Console | None = None,
    **options: Any,
) -> PackOutcome:
    """Pack the small files of a table, and publish each pack as soon as it is made.

    Args:
        client: Says what to pack, and gets the packs.
        table: Name of the table.
        processes: How many processes pack, each of which holds one pack in memory; by default this
            one does, in one thread. One that is started from a script runs the script from its
            beginning.
        rights_are_stated: That whoever may read the folder of packs may read the whole table: on
            object stores, only their operator knows.
        console: Where progress is shown; None for nowhere.
        **options: As for `plan_packing`.

    Raises:
        InvalidArgumentError: The table lies on an object store, and nobody has stated its rights.
        LostProcessError: A process was lost.
        OSError: A pack cannot be written.
    """
    plan, files = client.packing_files(table, pieces=processes or 1, **options)
    if is_object(plan.location) and not rights_are_stated:
        raise InvalidArgumentError(
            "rights_are_stated",
            f"who may read {plan.location} cannot be seen from here: make sure that nobody else may "
            f"read {plan.folder}, and say so",
        )
    if not len(files):
        return PackOutcome(plan=plan, packs=[], core_seconds=0.0)
    packs: list[Pack] = []
    left: list[tuple[str, str]] = []
    total_s = 0.0
    with packing_run(client, table, plan) as run:
        job = job_of(plan, files, run, _FEWEST)
        if not processes:
            work = _made_here(job, files)
        else:
            work = _made(plan, job, files, processes, console)
        for piece, seconds, new_packs, left_files in work:
            total_s += seconds
            for at, one in enumerate(new_packs):
                try:
                    packs.append(published(client, table, plan, piece, one))
                except BaseException:
                    for left_over in new_packs[at:]:
                        remove_pack(job, left_over)
                    raise
            paths = piece["path"].take(pa.array([one.source for one in left_files], pa.int64()))
            left += zip(paths.to_pylist(), [one.reason for one in left_files], strict=True)
    return PackOutcome(plan=plan, packs=packs, core_seconds=total_s, left=left)


def job_of(plan: PackingPlan, files: pa.Table, run: str, min_sources: int) -> PackingJob:
    """Return how the packs of a plan are made.

    Args:
        plan: The plan.
        files: Its files.
        run: Id of the run.
        min_sources: Fewest files that are worth a pack.
    """
    return PackingJob(
        location=plan.location,
        folder=plan.folder,
        home=plan.home,
        run=run,
        partition=pa.schema(list(files.schema.field("partition").type)),
        min_sources=min_sources,
    )


@contextmanager
def packing_run(client: Coordinator, table: str, plan: PackingPlan) -> Iterator[str]:
    """Yield the id of a run, and tell the coordinator that it is alive until the block ends.

    If the block fails, or this process is killed, the coordinator removes what was written and not
    published.

    Args:
        client: The coordinator's client.
        table: Name of the table.
        plan: What is packed.
    """
    run, end = secrets.token_hex(8), threading.Event()
    client.renew_packing_run(table, run, plan.snapshot_id, _LEASE_S)

    def renew() -> None:
        while not end.wait(_LEASE_S / _RENEWALS):
            # Otherwise the coordinator may be back next time, or publishes nothing any more.
            with suppress(WindrowError):
                client.renew_packing_run(table, run, plan.snapshot_id, _LEASE_S)

    keeper = threading.Thread(target=renew, name="windrow-packing", daemon=True)
    keeper.start()
    try:
        yield run
    finally:
        end.set()
        keeper.join()
    with suppress(WindrowError):
        client.renew_packing_run(table, run, plan.snapshot_id, 0)


def _made_here(
    job: PackingJob, files: pa.Table
) -> Iterator[tuple[pa.Table, float, list[MadePack], list[LeftFile]]]:
    """Yield the same as `_made` for a single piece, which this process makes packs of."""
    yield files, *_timed(job, files)


def _made(
    plan: PackingPlan,
    job: PackingJob,
    files: pa.Table,
    processes: int,
    console: Console | None,
) -> Iterator[tuple[pa.Table, float, list[MadePack], list[LeftFile]]]:
    """Yield pieces, with the core seconds and packs that were made of each, as they come."""
    pieces = [files.filter(pc.equal(files["piece"], at)) for at in range(plan.pieces)]
    # Forked processes would share connections, and locks of Arrow's threads.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        min(processes, len(pieces)),
        mp_context=spawn,
        # Nobody would publish what they write.
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    )
    with pool, counting(console) as bar:
        task = bar.add_task(f"packing {plan.table}", total=plan.files)
        waiting: dict[Future[Any], pa.Table] = {
            pool.submit(_timed, job, piece): piece for piece in pieces
        }
        try:
            for done in as_completed(list(waiting)):
                piece = waiting.pop(done)
                yield piece, *done.result()
                bar.advance(task, len(piece))
        except BaseException as error:
            # Those that are being made come to an end.
            for one in waiting:
                one.cancel()
            for one in [one for one in waiting if not one.cancelled()]:
                with suppress(Exception):
                    for pack in one.result()[1]:
                        remove_pack(job, pack)
            if isinstance(error, BrokenProcessPool):
                raise LostProcessError(f"the packing of table {plan.table!r}") from error
            raise


def _timed(job: PackingJob, piece: pa.Table) -> tuple[float, list[MadePack], list[LeftFile]]:
    began_s = time.process_time()
    packs, left = make_packs(job, piece)
    return time.process_time() - began_s, packs, left


def published(
    client: Coordinator, table: str, plan: PackingPlan, piece: pa.Table, pack: MadePack
) -> Pack:
    """Publish a pack of some files, and return it."""
    sources = piece.select(_IDENTITY).take(pa.array(pack.sources, pa.int64()))
    description = PackDescription(
        definition=plan.definition,
        path=pack.path,
        digest=pack.digest,
        size_bytes=pack.size_bytes,
        row_count=pack.row_count,
        kind=pack.kind,
    )
    inodes, changes_ns = zip(*(mark or (None, None) for mark in pack.marks), strict=True)
    beside = {
        "digest": pa.array(pack.digests, pa.binary(32)),
        "inode": pa.array(inodes, pa.uint64()),
        "changed_ns": pa.array(changes_ns, pa.int64()),
    }
    for name, column in beside.items():
        sources = sources.append_column(name, column)
    figures = pack.figures
    # A table of texts alone has none, and is not even as long as there are files.
    columns = make_struct(list(map(flat, figures.columns)), list(figures.schema), len(sources))
    sources = sources.append_column(FIGURES, columns)
    return client.publish_pack(table, description, sources)
