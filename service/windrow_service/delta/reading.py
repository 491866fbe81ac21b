"""Read one version of a Delta table from its log, or the changes since a version.

Logs are untrusted, and some damaged files make Arrow end the process: run this in a process whose
end does no harm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat, lists_of
from windrow_core.files.limits import MAX_FIELDS
from windrow_core.files.rows import inventory_schema, rows_of
from windrow_service.delta.actions import (
    Head,
    LogChanges,
    changes_of,
    committed_ms,
    head_of_lines,
    keys_of,
)
from windrow_service.delta.checkpoints import read_files, read_head
from windrow_service.delta.errors import DeltaLogError
from windrow_service.delta.log import (
    BEGINNING_BYTES,
    Commits,
    LogGoneError,
    beginning_of,
    commits_from,
    first_commit,
    hinted_version,
    list_log,
    refuse_missing,
)
from windrow_service.delta.paths import decoded
from windrow_service.delta.schemas import Shape, refuse_unknown, shape_of
from windrow_service.delta.statistics import of_struct, typed
from windrow_service.delta.values import partition_values
from windrow_service.delta.vectors import deletes_of

# A log may be cleaned up, or its checkpoints written anew, while it is read.
_ATTEMPTS = 5
_NS_PER_MS = 10**6
# Limits the memory that statistics take while they are read.
_BATCH_FILES = 2**15


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTable:
    """A table whose log is read.

    Attributes:
        location: Its canonical location.
        roots: Canonical folders and URIs that files outside the location may lie under.
        time_zone: Time zone of the sessions that wrote partition values without one; None if not
            known.
        max_fields: Most fields that it may have.
    """

    location: str
    roots: tuple[str, ...] = ()
    time_zone: str | None = None
    max_fields: int = MAX_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state that is needed to follow the log from a version on.

    Attributes:
        version: The version.
        digest: Digest of the beginning of its commit, which tells whether the log is still the same.
        first: The first version whose commit the log still had.
        protocol: The last `protocol`.
        metadata: The last `metaData`.
        time_zone: As in `LoggedTable`.
    """

    version: int
    digest: str
    first: int
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    time_zone: str | None

    def encoded(self) -> bytes:
        """Return the state as bytes."""
        return json.dumps({"delta": asdict(self)}, sort_keys=True).encode()

    @classmethod
    def of(cls, encoded: bytes | None) -> LogState | None:
        """Return the state that bytes encode; None if they encode something else."""
        try:
            return cls(**json.loads(encoded or b"null")["delta"])
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A version, or the changes since another version, as read from the log.

    Attributes:
        state: The version, and how to follow the log from there.
        shape: The table's columns.
        files: All files, or those that were added since the other version: an inventory, but
            unordered, because ordering takes as much memory again.
        removed: Paths of files that are gone since then.
        committed_ms: When the version was committed, in milliseconds since 1970; None if the log
            does not say.
    """

    state: LogState
    shape: Shape
    files: pa.Table
    removed: pa.Array
    committed_ms: int | None


def packed(read: Callable[..., Read | None], *args: object) -> tuple[Read, bytes] | None:
    """Read a log, and return its files separately, as bytes that take little memory.

    Args:
        read: One of the functions below.
        args: Its arguments.
    """
    version = read(*args)
    if version is None:
        return None
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, version.files.schema, options=options) as writer:
        writer.write_table(version.files)
    return replace(version, files=version.files.slice(0, 0)), sink.getvalue().to_pybytes()


def unpacked(table: LoggedTable, answer: tuple[Read, bytes]) -> Read:
    """Return the result of `packed`, with its files in the order of inventories."""
    read, content = answer
    with pa.ipc.open_stream(content) as reader:
        files = reader.read_all()
    return replace(read, files=in_path_order(table.location, files))


def in_path_order(location: str, files: pa.Table) -> pa.Table:
    """Return files in the order of inventories."""
    files = files.take(pc.sort_indices(files["path"]))
    paths = flat(files["path"])
    twice = pc.equal(paths[1:], paths[:-1])
    if pc.any(twice).as_py():
        path = paths[pc.index(twice, True).as_py()].as_py()
        raise DeltaLogError(location, f"is damaged: its log has file {path!r} twice; restore it")
    return files


def read_version(table: LoggedTable, version: int | None) -> Read:
    """Read a version from the log, the newest by default."""
    missing = ""
    for attempt in range(_ATTEMPTS):
        try:
            return _read_version(table, version, may_hint=attempt == 0)
        except LogGoneError as error:
            missing = str(error)
    raise DeltaLogError(
        table.location,
        f"is damaged: {missing!r} of its log is missing, without which later versions cannot be "
        "read: restore it",
    )


def _read_version(table: LoggedTable, version: int | None, *, may_hint: bool) -> Read:
    location = table.location
    start = hinted_version(location) if may_hint else 0
    listing = list_log(location, start)
    checkpoint = listing.checkpoint_at(version)
    if checkpoint is None and start:
        listing = list_log(location)
        checkpoint = listing.checkpoint_at(version)
    if checkpoint is None and listing.commits[:1] != (0,):
        if version is not None and listing.checkpoints:
            refuse_missing(location, version, listing)
        raise DeltaLogError(
            location, "lacks the beginning of its log, and a checkpoint in its place: restore it"
        )
    if version is not None and version > listing.newest:
        refuse_missing(location, version, listing)
    head, names = read_head(location, checkpoint) if checkpoint else (Head(), [])
    last = listing.newest if version is None else version
    commits = commits_from(location, checkpoint.version + 1 if checkpoint else 0, last)
    for body in commits.bodies:
        head = head.then(head_of_lines(location, body)[0])
    own = beginning_of(location, last) if not commits.bodies else None
    return _typed(table, head, commits, names, 0, own or b"")


def read_since(table: LoggedTable, state: LogState) -> Read | None:
    """Return what has changed since a version; None if the whole table must be read again."""
    location = table.location
    listing = list_log(location, state.version)
    # Its log was cleaned up, or written anew.
    own = beginning_of(location, state.version)
    if own is None or _digest(own) != state.digest:
        return None
    try:
        commits = commits_from(location, state.version + 1, listing.newest)
    except LogGoneError:
        return None
    head = Head(state.protocol, state.metadata)
    for body in commits.bodies:
        news, _ = head_of_lines(location, body)
        if news.metadata is not None:
            return None
        head = head.then(news)
    return _typed(table, head, commits, [], state.first, own)


def _typed(
    table: LoggedTable,
    head: Head,
    commits: Commits,
    names: Sequence[str],
    first: int,
    own: bytes,
) -> Read:
    """Return a version; without commits, `own` is the beginning of its own one."""
    location = table.location
    if head.protocol is None or head.metadata is None:
        raise DeltaLogError(
            location,
            "has a log without protocol or metadata, which every log begins with: restore it",
        )
    refuse_unknown(location, head.protocol)
    shape = shape_of(location, head.protocol, head.metadata, table.max_fields)
    partition = [shape.log_names[name] for name in shape.partition.names]
    changes = changes_of(location, commits.bodies, partition)
    tables = [
        _inventory(table, shape, rows, parsed)
        for rows, parsed in _live(location, names, partition, changes)
    ]
    schema = inventory_schema(shape.data, shape.partition)
    files = pa.concat_tables([schema.empty_table(), *tables])
    paths = decoded(location, changes.paths, table.roots)
    newest = commits.bodies[-1][:BEGINNING_BYTES] if commits.bodies else own
    state = LogState(
        version=commits.last,
        digest=_digest(newest),
        first=first_commit(location, first, commits.last),
        protocol=head.protocol,
        metadata=head.metadata,
        time_zone=table.time_zone,
    )
    return Read(
        state=state,
        shape=shape,
        files=files,
        removed=paths.filter(pc.invert(pc.is_in(paths, flat(files["path"])))),
        committed_ms=committed_ms(location, _whole_lines(newest)),
    )


def _digest(beginning: bytes) -> str:
    return hashlib.sha256(beginning).hexdigest()


def _whole_lines(beginning: bytes) -> bytes:
    is_cut = len(beginning) == BEGINNING_BYTES
    return beginning.rpartition(b"\n")[0] if is_cut else beginning


def _live(
    location: str, names: Sequence[str], partition: list[str], changes: LogChanges
) -> Iterator[tuple[pa.Table, pa.StructArray | None]]:
    """Yield the files that are in the version, and their statistics if these are structs."""
    for name in names:
        for rows, parsed in read_files(location, name, partition):
            keys = keys_of(flat(rows["path"]), flat(rows["deletionVector"]))
            is_live = pc.invert(pc.is_in(keys, changes.keys))
            yield rows.filter(is_live), parsed.filter(is_live) if parsed is not None else None
    for start in range(0, len(changes.added), _BATCH_FILES):
        yield changes.added.slice(start, _BATCH_FILES), None


def _inventory(
    table: LoggedTable, shape: Shape, rows: pa.Table, parsed: pa.StructArray | None
) -> pa.Table:
    """Return added files as an unsorted inventory."""
    location, count = table.location, len(rows)
    schema = inventory_schema(shape.data, shape.partition)
    texts = flat(rows["stats"])
    if parsed is not None and texts.null_count == count:
        statistics = of_struct(parsed, shape, count)
    else:
        statistics = typed(texts, shape)
    deletes = deletes_of(location, flat(rows["deletionVector"]), table.roots)
    vector_bytes = pc.fill_null(pc.struct_field(flat(rows["deletionVector"]), "sizeInBytes"), 0)
    has_vector = deletes.is_valid()
    columns = {
        "path": decoded(location, flat(rows["path"]), table.roots),
        "size_bytes": rows["size"],
        "mtime_ns": pc.multiply(rows["modificationTime"], _NS_PER_MS),
        "row_count": statistics.row_count,
        "delete_count": pc.cast(has_vector, pa.int32()),
        "delete_bytes": vector_bytes,
        "grouped_columns": lists_of(pa.array(shape.widened, pa.string()), count),
        "deletes": deletes,
        "partition": partition_values(
            location,
            flat(rows["partitionValues"]),
            shape.partition,
            shape.log_names,
            table.time_zone,
        ),
        "stats": statistics.stats,
    }
    return rows_of(columns, schema, count)
