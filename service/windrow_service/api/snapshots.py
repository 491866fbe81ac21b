"""Calls about snapshots: publish an inventory, list snapshots and their partitions, expire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import Header, Path, Query, Request, Response, status
from pydantic import AwareDatetime

from windrow_core.files.figures import MOST_COLUMNS
from windrow_core.models import (
    WRITE_ID_PATTERN,
    AddedFilesInfo,
    ExpiredSnapshots,
    GainedFiles,
    InventoryChange,
    PartitionValuesPage,
    PublishedSnapshot,
    PublishMode,
    SnapshotExpiry,
    SnapshotPage,
)
from windrow_service.api.authorization import ADMIN_TABLE, READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.bodies import ARROW_STREAM, STREAM, columns_or_json, read_columns_or_json
from windrow_service.api.idempotency import KeptAnswer, OnceDep
from windrow_service.api.json_shapes import FILES
from windrow_service.api.parameters import (
    AcceptHeader,
    ListPageDep,
    TableNamePath,
    json_answer,
    version_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import SnapshotsDep
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.usecases.snapshots.publish import Published, SentInventory
from windrow_service.wire.partitions import page_json, page_of, stream_of

_NO_SNAPSHOT_YET = 2**31 - 1

ModeQuery = Annotated[
    PublishMode | None,
    Query(
        description="`full`, the default: the body lists all files of the table. `delta`: "
        "it lists what has changed."
    ),
]
ListedAtQuery = Annotated[
    AwareDatetime | None,
    Query(
        description="When the listing of the files began; `max_staleness` of plans refers to it.",
        examples=["2026-11-21T08:00:00Z"],
    ),
]
FiguresQuery = Annotated[
    Sequence[str],
    Query(
        description="Columns of whole numbers, of decimals of at most 18 digits, or of dates. Only "
        "Arrow streams have their figures.",
        max_length=MOST_COLUMNS,
    ),
]
IfSnapshotHeader = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="Publish only if this is still the table's ETag, or its current snapshot in "
        'the form `"snapshot-7"`.',
        max_length=256,
    ),
]

WriteIdQuery = Annotated[
    str | None,
    Query(
        pattern=WRITE_ID_PATTERN,
        description="The write that has moved the files in and is in state `committing`. Files "
        "that it removed need not be in the table.",
    ),
]

SinceQuery = Annotated[
    int,
    Query(ge=0, le=_NO_SNAPSHOT_YET, description="The older snapshot; 0 means before the first."),
]

FirstQuery = Annotated[
    int, Query(ge=0, le=_NO_SNAPSHOT_YET, description="Position of the first file to count.")
]
MaxFilesQuery = Annotated[
    int | None, Query(ge=1, le=_NO_SNAPSHOT_YET, description="Most files up to `end`.")
]
MaxBytesQuery = Annotated[
    int | None,
    Query(ge=1, le=2**62, description="Most bytes up to `end`; a single file may have more."),
]

SnapshotIdPath = Annotated[
    int, Path(ge=1, le=_NO_SNAPSHOT_YET, description="Id of a snapshot of the table.")
]

router = GuardedRouter(tags=["snapshots"])
_DEFAULT_PARTITIONS = 1_000


@router.post(
    "/tables/{name}/snapshots",
    operation_id="publish_inventory",
    status_code=status.HTTP_201_CREATED,
    responses=problem_responses(404, 409, 412, 413, 422, 503, 504),
    openapi_extra=columns_or_json(InventoryChange),
    dependencies=[WRITE_TABLE],
    response_model=PublishedSnapshot,
)
async def publish_inventory(
    name: TableNamePath,
    request: Request,
    services: SnapshotsDep,
    once: OnceDep,
    mode: ModeQuery = None,
    listed_at: ListedAtQuery = None,
    write_id: WriteIdQuery = None,
    if_match: IfSnapshotHeader = None,
) -> Response:
    """Make an inventory taken elsewhere, or a change to it, the table's current snapshot.

    An Arrow IPC stream has the columns `path` (relative to the location), `size_bytes`,
    `mtime_ns` and `row_count` (null if unknown; never for Parquet and ORC). Optional columns
    are `bucket`, `hosts`, `row_group_offsets`, `delete_count`, `delete_bytes`, `stats_see_nan`,
    `grouped_columns` (names, in lower case, of the file's columns that Spark's own Parquet reader
    may read differently from the grouped reader), `native_columns` (names of an ORC file's columns
    that only Spark's own reader reads correctly), `layout` (how a Parquet file's columns are stored:
    a number in a JSON list of texts, which the metadata `windrow:layouts` of the column has; Windrow's
    client writes them, and without them other engines are refused the table), `stats` (a struct with a struct of `min`, `max`
    and `null_count` for each column) and `bloom`. A delta also has `change`: `added`, or `removed`,
    for which only the path is used. Up to 10,000 files can also be sent as JSON.

    Columns must be plain: dictionaries, run-end encoding, views and extension types are refused.
    Decoded, the columns may take at most `max_publish_decoded_bytes`.

    For an unchanged file, columns that are not sent keep their values. The columns of the
    files are the declared ones; else those in the stream's metadata `windrow:columns`, a JSON list
    of `{"name": …, "type": …}` with Spark SQL types; else those of the current snapshot or, if
    there is none, of `stats`.

    Without `If-Match`, a delta is applied to whatever snapshot is current when it arrives. While a
    write is moving files in, only that write may publish.
    """
    content = await read_columns_or_json(request, services.runner, InventoryChange, FILES)
    if isinstance(content, InventoryChange):
        if mode is not None and content.mode not in (None, mode):
            raise InvalidInventoryError(f"the body says {content.mode}, but mode={mode}")
        mode = content.mode or mode
    inventory = SentInventory(
        content=content, mode=mode or "full", listed_at=listed_at, write_id=write_id
    )
    change = once(_snapshot_answer)
    result = await services.publish(name, inventory, version_of(if_match), change)
    return _snapshot_answer(result).response()


def _snapshot_answer(result: Published) -> KeptAnswer:
    return KeptAnswer.of(result.snapshot, version=result.version, is_new=True)


@router.get(
    "/tables/{name}/snapshots",
    operation_id="list_snapshots",
    dependencies=[READ_TABLE],
    response_model=SnapshotPage,
    responses=problem_responses(404, 422, 503),
)
async def list_snapshots(
    name: TableNamePath, services: SnapshotsDep, page: ListPageDep
) -> Response:
    """List a table's snapshots, newest first, a page at a time."""
    listing = f"snapshots:{name}"
    before = page.begin(listing, _NO_SNAPSHOT_YET)
    snapshots = await services.snapshots.page(name, before, page.limit())
    return await json_answer(
        SnapshotPage(
            snapshots=snapshots,
            next_page_token=page.next_token(listing, snapshots, lambda last: last.snapshot_id),
        )
    )


@router.get(
    "/tables/{name}/snapshots/{snapshot_id}/partitions",
    operation_id="list_partition_values",
    dependencies=[READ_TABLE],
    response_model=PartitionValuesPage,
    responses={200: STREAM, **problem_responses(404, 422, 503)},
)
async def list_partition_values(
    name: TableNamePath,
    snapshot_id: SnapshotIdPath,
    services: SnapshotsDep,
    page: ListPageDep,
    figures: FiguresQuery = (),
    accept: AcceptHeader = "application/json",
) -> Response:
    """List the partitions of a snapshot: the distinct partition values among its files.

    The order is that of the values, nulls first, and never changes: a partition's number is its
    position, from 0. Plans of the snapshot can name the partitions that they need by these numbers.
    A table without partition columns has one partition, without values, if it has files.

    With `Accept: application/vnd.apache.arrow.stream`, the answer is a stream of all partitions:
    one row for each, by number, with the partition columns, then `file_count`, `size_bytes` and
    `row_count`. The metadata of its schema has the `registration` of the table, as plans have it.

    With `figures`, the stream has further columns: `packed_rows`, the rows of a partition all of
    whose files are in packs, and else null; and for each column that is named, what its packs tell of
    its values: their `count`, the `least`, the `greatest`, and their sum, `total`. These are integers:
    of decimals without their scale, of dates days since 1970. They are null where packs have none,
    and everywhere if columns times partitions are more than ten million.
    """
    partitions = await services.show_partition_values(name, snapshot_id)
    if ARROW_STREAM in accept:
        if figures:
            more = await services.partition_figures(name, snapshot_id, figures)
            for field, column in zip(more.schema, more.columns, strict=True):
                partitions = partitions.append_column(field, column)
        body = await asyncio.to_thread(stream_of, partitions)
        return Response(body, media_type=ARROW_STREAM)
    listing = f"partition-values:{name}:{snapshot_id}"
    start = page.begin(listing, 0)
    limit = page.limit(_DEFAULT_PARTITIONS)
    texts = await asyncio.to_thread(lambda: page_of(partitions, start, limit))
    end = start + len(texts)
    token = page.next_token(listing, texts, lambda _: end)
    return Response(page_json(snapshot_id, texts, token), media_type="application/json")


@router.get(
    "/tables/{name}/snapshots/{snapshot_id}/added-files",
    operation_id="count_added_files",
    dependencies=[READ_TABLE],
    response_model=AddedFilesInfo,
    responses=problem_responses(404, 422, 503),
)
async def count_added_files(
    name: TableNamePath,
    snapshot_id: SnapshotIdPath,
    services: SnapshotsDep,
    since: SinceQuery = 0,
    first: FirstQuery = 0,
    max_files: MaxFilesQuery = None,
    max_bytes: MaxBytesQuery = None,
) -> Response:
    """Count the files that a snapshot has and an older one lacks, and those that fit within limits.

    The order of these files is that of their paths, and never changes: a plan can name some of them
    by their positions (`additions`). A rewritten file counts as added and as removed.
    """
    limits = (first, max_files, max_bytes)
    return await json_answer(await services.count_added_files(name, snapshot_id, since, *limits))


@router.get(
    "/tables/{name}/gained-files",
    operation_id="find_gained_files",
    dependencies=[READ_TABLE],
    response_model=GainedFiles,
    responses=problem_responses(404, 409, 422, 503),
)
async def find_gained_files(
    name: TableNamePath, services: SnapshotsDep, since: SinceQuery
) -> Response:
    """List the folders with files in the current snapshot that an older snapshot does not have.

    A write that replaces files makes this call once it is `committing`, when nobody else may
    publish: it must not remove files that were added after it began. A rewritten file counts as
    gained; those that compactions published do not, since they have no new rows.
    """
    return await json_answer(await services.find_gained_files(name, since))


@router.post(
    "/tables/{name}/snapshots/expire",
    operation_id="expire_snapshots",
    dependencies=[ADMIN_TABLE],
    response_model=ExpiredSnapshots,
    responses=problem_responses(400, 404, 413, 422, 503, 504),
)
async def expire_snapshots(
    name: TableNamePath, expiry: SnapshotExpiry, services: SnapshotsDep, once: OnceDep
) -> Response:
    """Drop snapshots that are neither young nor among the newest.

    Young snapshots are dropped too if they are beyond the coordinator's maximum number, or beyond
    `keep_last` if that is larger. The current snapshot stays, and so do those that unexpired plans
    are pinned to.
    """
    max_age = None if expiry.max_age_seconds is None else timedelta(seconds=expiry.max_age_seconds)
    snapshot_ids = await services.expire(name, expiry.keep_last, max_age, once(_expiry_answer))
    return _expiry_answer(snapshot_ids).response()


def _expiry_answer(snapshot_ids: Sequence[int]) -> KeptAnswer:
    return KeptAnswer.of(ExpiredSnapshots(snapshot_ids=list(snapshot_ids)))
