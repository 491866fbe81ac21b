"""The snapshot that a query means: the current one, `VERSION AS OF` or `TIMESTAMP AS OF`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from windrow_calls.coordinator import Coordinator
from windrow_core.models import SnapshotInfo, TableInfo
from windrow_tables.errors import UnfitReadError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def current_snapshot(table: TableInfo) -> SnapshotInfo:
    """Return the current snapshot of a table.

    Raises:
        UnfitReadError: It has none.
    """
    if table.current_snapshot is None:
        raise UnfitReadError(
            f"table {table.name!r} has no snapshot yet",
            f"client.refresh({table.name!r}) makes the first",
        )
    return table.current_snapshot


def snapshot_of_version(client: Coordinator, table: TableInfo, version: str) -> SnapshotInfo:
    """Return the snapshot that `VERSION AS OF` names.

    Args:
        client: The client that plans.
        table: The table.
        version: `snapshot-7` is the snapshot with id 7, and so is `7` unless the table has a log of
            its own: then it is a version there, as `client.read(…, version=…)` takes it.

    Raises:
        UnfitReadError: There is no such snapshot.
        WindrowError: There is no snapshot of such a version.
    """
    if table.definition.kind.has_versions and not re.fullmatch(r"snapshot-\d+", version):
        snapshot_id = client.probe(table.name, version=version).info.snapshot_id
        return _snapshot(client, table, snapshot_id)
    number = version.removeprefix("snapshot-")
    if not re.fullmatch(r"\d{1,18}", number):
        raise UnfitReadError(
            f"{version!r} is no snapshot of table {table.name!r}",
            "VERSION AS OF takes the id of a snapshot, a whole number",
        )
    return _snapshot(client, table, int(number))


def _snapshot(client: Coordinator, table: TableInfo, snapshot_id: int) -> SnapshotInfo:
    current = table.current_snapshot
    if current is not None and current.snapshot_id == snapshot_id:
        return current
    ids = []
    for snapshot in client.snapshots(table.name):
        if snapshot.snapshot_id == snapshot_id:
            return snapshot
        ids.append(snapshot.snapshot_id)
    raise UnfitReadError(f"table {table.name!r} has no snapshot {snapshot_id}", _choice(ids))


def _choice(ids: list[int]) -> str:
    if not ids:
        return "it has none yet: call client.refresh"
    return f"name one of {', '.join(map(str, ids[:10]))}{', …' if len(ids) > 10 else ''}"


def snapshot_at(client: Coordinator, table: TableInfo, time_us: int) -> SnapshotInfo:
    """Return the snapshot that was current at a time.

    Args:
        client: The client that plans.
        table: The table.
        time_us: Microseconds since 1970 in UTC.

    Raises:
        UnfitReadError: No snapshot that still exists is certain to have been current then.
    """
    if table.definition.kind.has_versions:
        # Snapshots of older versions may have been made beside the current one.
        raise UnfitReadError(
            f"which snapshot of table {table.name!r} was current at a time is not known, since it "
            "has versions of its own",
            "name one of them with VERSION AS OF",
        )
    current = current_snapshot(table)
    time = _EPOCH + timedelta(microseconds=time_us)
    if current.created_at <= time:
        return current
    later = current
    for snapshot in client.snapshots(table.name):
        if snapshot.created_at <= time:
            # Ids are consecutive: others in between have been dropped.
            if snapshot.snapshot_id + 1 == later.snapshot_id:
                return snapshot
            raise UnfitReadError(
                f"the snapshot of table {table.name!r} that was current at {_text(time)} has been "
                "dropped",
                f"the nearest are {snapshot.snapshot_id} of {_text(snapshot.created_at)} and "
                f"{later.snapshot_id} of {_text(later.created_at)}: name one with VERSION AS OF",
            )
        later = snapshot
    raise UnfitReadError(
        f"no snapshot of table {table.name!r} is known that was current at {_text(time)}",
        f"the oldest is {later.snapshot_id} of {_text(later.created_at)}",
    )


def _text(time: datetime) -> str:
    return time.astimezone(timezone.utc).isoformat(sep=" ", timespec="seconds")
