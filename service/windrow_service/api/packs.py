"""Calls about packs: what is worth one, and publishing, listing and withdrawing them."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Path, Request, Response, status

from windrow_core.files.packs import PLAN_KEY, RUN_ID
from windrow_core.files.streams import stream_of
from windrow_core.models.packs import (
    SHA256_PATTERN,
    NewPack,
    Pack,
    PackingPlan,
    PackingRequest,
    PackingRunRequest,
    PackList,
)
from windrow_service.api.authorization import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.bodies import (
    ARROW_STREAM,
    STREAM,
    columns_or_json,
    read_columns_or_json,
)
from windrow_service.api.json_shapes import FILES
from windrow_service.api.parameters import AcceptHeader, TableNamePath, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import PacksDep
from windrow_service.usecases.packs.errors import PackNotFoundError

_MOST = 1_000

router = GuardedRouter(tags=["packs"])

RunIdPath = Annotated[
    str, Path(pattern=f"^{RUN_ID}$", description="Id of the run: 16 random hexadecimal digits.")
]
PackIdPath = Annotated[str, Path(pattern=SHA256_PATTERN, description="SHA-256 of the pack.")]


@router.post(
    "/tables/{name}/packing-plans",
    operation_id="plan_packing",
    dependencies=[READ_TABLE],
    response_model=PackingPlan,
    responses={200: STREAM, **problem_responses(400, 404, 409, 413, 422, 503)},
)
async def plan_packing(
    name: TableNamePath,
    request: PackingRequest,
    services: PacksDep,
    accept: AcceptHeader = "application/json",
) -> Response:
    """Find the small files of a table that are worth a pack, with what that costs and saves.

    Nothing is changed or stored. With `Accept: application/vnd.apache.arrow.stream`, the answer is a
    stream of the files, in the order in which packs have them: the number of the `piece` to pack them
    in, `path`, `size_bytes`, `mtime_ns`, `etag`, `row_count` and `partition`. The metadata
    `windrow:packing-plan` of its schema has the figures as JSON.
    """
    plan, files = await services.plan(name, request)
    if ARROW_STREAM not in accept:
        return await json_answer(plan)
    files = files.replace_schema_metadata({PLAN_KEY: plan.model_dump_json()})
    body = await asyncio.to_thread(stream_of, files)
    return Response(body, media_type=ARROW_STREAM)


@router.put(
    "/tables/{name}/packing-runs/{run_id}",
    operation_id="renew_packing_run",
    status_code=status.HTTP_204_NO_CONTENT,
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 409, 422, 503, 504),
)
async def renew_packing_run(
    name: TableNamePath, run_id: RunIdPath, request: PackingRunRequest, services: PacksDep
) -> None:
    """Begin a run of a packer, or say that it is alive; the caller makes up its id.

    All names of what the packer writes into the folder of packs begin with `pack-` and this id. A
    packer that is killed is silent: once its lease is over, it can no longer publish anything, and
    what is in the folder by these names and was not published is removed. An erasure of rows of the
    table ends its runs at once.
    """
    await services.renew_run(name, run_id, request)


@router.post(
    "/tables/{name}/packs",
    operation_id="publish_pack",
    status_code=status.HTTP_201_CREATED,
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 409, 413, 422, 503, 504),
    openapi_extra=columns_or_json(NewPack),
)
async def publish_pack(
    name: TableNamePath,
    request: Request,
    services: PacksDep,
) -> Pack:
    """Publish a pack that was made of files of the table; the same one again changes nothing.

    An Arrow IPC stream has the files that it was made of, in its order: `path`, `size_bytes`,
    `mtime_ns`, `etag` and `row_count` as the packing plan has them, and `digest`, the SHA-256 of each
    file's bytes. The metadata `windrow:pack` of its schema describes the pack as JSON: `definition`
    as in the packing plan, `path`, `digest` (SHA-256 of its bytes), `size_bytes` and `row_count`. Up
    to 10,000 files can also be sent as JSON, with digests in hexadecimal digits.

    The pack lies in the folder that the packing plan names, as `pack-<id of the run><first 16 digits
    of its digest>.parquet`, and the run is not over. From now on plans of readers that accept packs, and tables as engines see them,
    have it in place of those of its files that are still the same.
    """
    runner = services.publish.runner
    body = await read_columns_or_json(request, runner, NewPack, FILES)
    return await services.publish(name, body)


@router.get(
    "/tables/{name}/packs",
    operation_id="list_packs",
    dependencies=[READ_TABLE],
    response_model=PackList,
    responses=problem_responses(404, 422, 503),
)
async def list_packs(name: TableNamePath, services: PacksDep) -> Response:
    """List the packs of a table, newest first, with those withdrawn or removed in the last 90 days.

    At most 1,000 are listed.
    """
    table = await services.tables.get(name)
    return await json_answer(
        PackList(packs=list(await services.packs.of_table(table.table_id, _MOST)))
    )


@router.delete(
    "/tables/{name}/packs/{pack_id}",
    operation_id="withdraw_pack",
    status_code=status.HTTP_204_NO_CONTENT,
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 422, 503, 504),
)
async def withdraw_pack(name: TableNamePath, pack_id: PackIdPath, services: PacksDep) -> None:
    """Withdraw a pack: plans no longer offer it, and its file is removed soon.

    The table's files are not touched.
    """
    table = await services.tables.get(name)
    packs = await services.packs.of_table(table.table_id, _MOST)
    if all(pack.pack_id != pack_id for pack in packs):
        raise PackNotFoundError(name, pack_id)
    await services.packs.withdraw(pack_id, name, "somebody withdrew it")
