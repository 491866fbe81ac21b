"""Calls about snapshots: publish an inventory, history, expiry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response, status
from pydantic import AwareDatetime

from windrow.models import (
    WRITE_ID_PATTERN,
    ExpiredSnapshots,
    GainedFiles,
    InventoryChange,
    PublishedSnapshot,
    PublishMode,
    SnapshotExpiry,
    SnapshotPage,
)
from windrow_service.api.access import ADMIN, READ, WRITE
from windrow_service.api.bodies import JSON, read_json
from windrow_service.api.deps import (
    ARROW_STREAM,
    PageSizeQuery,
    PageTokenQuery,
    PageTokensDep,
    ServicesDep,
    TableNamePath,
    version_of,
)
from windrow_service.api.once import Answer, OnceDep
from windrow_service.api.problems import problem_responses
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.usecases.snapshots.publish import Published, SentInventory

_NO_SNAPSHOT_YET = 2**31 - 1

ModeQuery = Annotated[
    PublishMode | None,
    Query(
        description="`full`, the default: what is sent is all files there are. `delta`: it is "
        "what changed."
    ),
]
ListedAtQuery = Annotated[
    AwareDatetime | None,
    Query(
        description="When the look at the files began; `max_staleness` of plans goes by it.",
        examples=["2026-11-21T08:00:00Z"],
    ),
]
IfSnapshotHeader = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="Do it only if the table's ETag still is this, or its current snapshot, as "
        '`"snapshot-7"`.',
        max_length=256,
    ),
]

WriteIdQuery = Annotated[
    str | None,
    Query(
        pattern=WRITE_ID_PATTERN,
        description="The write that has moved the files in, and is in state `committing`. Files "
        "that it removed need not be known.",
    ),
]

SinceQuery = Annotated[
    int,
    Query(ge=0, le=_NO_SNAPSHOT_YET, description="The older snapshot; 0 is before the first."),
]

router = APIRouter(tags=["snapshots"])
_DEFAULT_PAGE = 100
_PUBLISH_BODY = {
    "required": True,
    "content": {
        ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
        JSON.decode(): {"schema": {"$ref": "#/components/schemas/InventoryChange"}},
    },
}


@router.post(
    "/tables/{name}/snapshots",
    operation_id="publish_inventory",
    status_code=status.HTTP_201_CREATED,
    responses=problem_responses(404, 409, 412, 413, 422, 503, 504),
    openapi_extra={"requestBody": _PUBLISH_BODY},
    dependencies=[WRITE],
    response_model=PublishedSnapshot,
)
async def publish_inventory(
    name: TableNamePath,
    request: Request,
    services: ServicesDep,
    once: OnceDep,
    mode: ModeQuery = None,
    listed_at: ListedAtQuery = None,
    write_id: WriteIdQuery = None,
    if_match: IfSnapshotHeader = None,
) -> Response:
    """Make an inventory that was taken elsewhere, or a change, the table's current snapshot.

    An Arrow IPC stream has the columns `path` (relative to the location), `size_bytes`,
    `mtime_ns`, `row_count`, and where known `bucket`, `hosts`, `row_group_offsets`,
    `delete_count`, `delete_bytes`, `stats_see_nan`, `stats` (a struct of a struct of `min`,
    `max` and `null_count` for each column) and `bloom`. A delta has `change` as well: `added`,
    or `removed`, of which only the path is looked at. Up to 10,000 files go as JSON, too.

    Columns are plain: neither dictionaries, runs and views nor extension types. Decoded, they
    take at most `max_publish_decoded_bytes`.

    What is not sent of a file that is there unchanged stays as it was. The columns of the files
    are those declared; else those in the stream's metadata `windrow:columns`, a JSON list of
    `{"name": …, "type": …}` with types of Spark SQL; else those of the current snapshot, or of
    `stats` where there is none.

    Without `If-Match`, a delta goes on top of whatever is current when it gets there. While a
    write moves files in, only that write may publish.
    """
    body = await request.body()
    content: bytes | InventoryChange = body
    if request.headers.get("content-type", "").lower().startswith(JSON.decode()):
        content = await services.runner.run(lambda: read_json(InventoryChange, body))
        if mode is not None and content.mode not in (None, mode):
            raise InvalidInventoryError(f"the body says {content.mode}, and mode={mode}")
        mode = content.mode or mode
    sent = SentInventory(
        content=content, mode=mode or "full", listed_at=listed_at, write_id=write_id
    )
    change = once(_published)
    made = await services.publish_inventory(name, sent, version_of(if_match), change)
    return _published(made).response()


def _published(made: Published) -> Answer:
    return Answer(
        status=status.HTTP_201_CREATED,
        headers={"ETag": f'"{made.version}"'},
        body=made.snapshot.model_dump_json(),
    )


@router.get(
    "/tables/{name}/snapshots",
    operation_id="list_snapshots",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def list_snapshots(
    name: TableNamePath,
    services: ServicesDep,
    page_tokens: PageTokensDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
) -> SnapshotPage:
    """List a table's snapshots, newest first, a page at a time."""
    limit = page_size or _DEFAULT_PAGE
    listing = f"snapshots:{name}"
    before = page_tokens.read_number(listing, page_token, _NO_SNAPSHOT_YET)
    found = await services.snapshots.page(name, before, limit + 1)
    more = len(found) > limit
    return SnapshotPage(
        snapshots=list(found[:limit]),
        next_page_token=page_tokens.make(listing, found[limit - 1].snapshot_id) if more else None,
    )


@router.get(
    "/tables/{name}/gained-files",
    operation_id="find_gained_files",
    dependencies=[READ],
    responses=problem_responses(404, 409, 422, 503),
)
async def find_gained_files(
    name: TableNamePath, services: ServicesDep, since: SinceQuery
) -> GainedFiles:
    """Tell in which folders the current snapshot has files that an older one has not.

    A write that replaces files asks once it is `committing`, and nobody else may publish: what
    came after it began is not for it to remove. A file that was written anew counts as gained.
    """
    return await services.find_gained_files(name, since)


@router.post(
    "/tables/{name}/snapshots/expire",
    operation_id="expire_snapshots",
    dependencies=[ADMIN],
    response_model=ExpiredSnapshots,
    responses=problem_responses(400, 404, 413, 422, 503, 504),
)
async def expire_snapshots(
    name: TableNamePath, expiry: SnapshotExpiry, services: ServicesDep, once: OnceDep
) -> Response:
    """Drop snapshots that are neither among the last ones nor young.

    The current one stays, and those that a plan is pinned to which has not expired.
    """
    max_age = None if expiry.max_age_seconds is None else timedelta(seconds=expiry.max_age_seconds)
    gone = await services.expire_snapshots(name, expiry.keep_last, max_age, once(_expired))
    return _expired(gone).response()


def _expired(snapshot_ids: Sequence[int]) -> Answer:
    body = ExpiredSnapshots(snapshot_ids=list(snapshot_ids)).model_dump_json()
    return Answer(status=status.HTTP_200_OK, body=body)
