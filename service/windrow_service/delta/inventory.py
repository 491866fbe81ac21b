"""Take the inventory of a Delta table, or the changes in it, from its log."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, wait
from contextlib import nullcontext
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.formats import SMALL_FILE_BYTES
from windrow_core.models import LogFigures
from windrow_service.delta.errors import DeltaLogError, DeltaVersionError
from windrow_service.delta.reading import (
    LoggedTable,
    LogState,
    Read,
    packed,
    read_since,
    read_version,
    unpacked,
)
from windrow_service.inventory.build import unchanged
from windrow_service.inventory.footers.isolation import (
    DAMAGES,
    IsolatedExecutor,
    LostProcessError,
    damage_in,
)
from windrow_service.inventory.look import Inventory, PreviousInventory
from windrow_service.inventory.progress import ProgressMeter

# The columns of files that `figures_of` needs.
FIGURED = ("size_bytes", "deletes")

_CHECK_EVERY_S = 0.2


def take_version(
    table: LoggedTable,
    version: str | None,
    previous: PreviousInventory | None,
    meter: ProgressMeter,
    executor: Executor | None = None,
) -> Inventory:
    """Return the files of a version.

    Args:
        table: The table.
        version: The version; None for the newest.
        previous: The inventory that changes are counted from.
        meter: Counts the files.
        executor: Reads the log, and stays open; None for a process of its own.

    Raises:
        DeltaLogError: The log cannot be read.
        DeltaFeatureError: The table needs readers to know a feature that is not known here.
        DeltaVersionError: The log does not have the version.
    """
    number = _number(table.location, version) if version is not None else None
    read = _isolated(executor, table, meter, read_version, table, number)
    assert read is not None
    files = read.files
    same = _same_count(files, previous)
    return Inventory(
        files=files,
        data_schema=read.shape.data,
        partition_schema=read.shape.partition,
        added_count=len(files) - same,
        removed_count=(len(previous.files) if previous is not None else 0) - same,
        folder_count=0,
        footers_read=0,
        folders=read.state.encoded(),
        table_version=str(read.state.version),
        log=figures_of(files.select(FIGURED), read),
    )


def take_change(
    table: LoggedTable, state: LogState, meter: ProgressMeter, executor: Executor | None = None
) -> Read | None:
    """Return what has changed since a version; None if the whole table must be read again.

    Args:
        table: The table.
        state: The state of the log at that version.
        meter: Counts the files.
        executor: As for `take_version`.

    Raises:
        DeltaLogError: The log cannot be read.
        DeltaFeatureError: The table needs readers to know a feature that is not known here.
    """
    if state.time_zone != table.time_zone:
        return None
    return _isolated(executor, table, meter, read_since, table, state)


def figures_of(files: pa.Table, read: Read) -> LogFigures:
    """Return figures of a version, from its files and the log.

    Args:
        files: The columns `FIGURED` of all files of the version.
        read: The version, as read from the log.
    """
    small = files["size_bytes"].filter(pc.less(files["size_bytes"], SMALL_FILE_BYTES))
    deletes = pc.list_flatten(files["deletes"])
    counts = pc.struct_field(deletes, "row_count")
    moment = read.committed_ms
    return LogFigures(
        committed_at=_moment(moment) if moment is not None else None,
        versions=read.state.version + 1 - read.state.first,
        small_files=len(small),
        small_bytes=pc.sum(small, min_count=0).as_py(),
        delete_files=len(deletes),
        deleted_rows=None if counts.null_count else pc.sum(counts, min_count=0).as_py(),
    )


def _moment(milliseconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None


def _number(location: str, version: str) -> int:
    if not (version.isascii() and version.isdecimal() and len(version) < 20):
        raise DeltaVersionError(
            location, version[:40], "versions of Delta tables are numbers from 0"
        )
    return int(version)


def _same_count(files: pa.Table, previous: PreviousInventory | None) -> int:
    rows = unchanged(files, previous)
    if previous is None or rows.null_count == len(rows):
        return 0
    # Rows of a file may have been deleted since.
    before = previous.files["delete_bytes"].take(rows)
    same = pc.fill_null(pc.equal(before, files["delete_bytes"]), False)
    count: int = pc.sum(same, min_count=0).as_py()
    return count


def _isolated(
    executor: Executor | None,
    table: LoggedTable,
    meter: ProgressMeter,
    read: Callable[..., Read | None],
    *args: object,
) -> Read | None:
    """Read the log in a process whose end does no harm."""
    with nullcontext(executor) if executor is not None else IsolatedExecutor(1) as pool:
        future = pool.submit(packed, read, *args)
        try:
            while not wait([future], _CHECK_EVERY_S).done:
                meter.check_cancelled()
            answer = future.result()
        except LostProcessError as error:
            damage = f"cannot be read: reading its log failed ({error.last_words})"
            raise DeltaLogError(table.location, error.why(damage)) from error
        except DAMAGES as error:
            # The log says what it must not, wherever that was met.
            damage = f"is damaged: reading its log failed ({damage_in(error)}); restore it"
            raise DeltaLogError(table.location, damage) from error
        except OSError as error:
            if not is_of_system(error):
                raise
            why = f"cannot be read: {why_inaccessible(error)}"
            raise DeltaLogError(table.location, why) from error
        except BaseException:
            if pool is not executor and isinstance(pool, IsolatedExecutor):
                pool.kill()
            raise
    if answer is None:
        return None
    version_read = unpacked(table, answer)
    meter.add(files_found=len(version_read.files))
    return version_read
