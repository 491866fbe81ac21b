"""Calls about erasures: which files may hold rows to erase, and receipts."""

from __future__ import annotations

import asyncio

import pyarrow as pa
from fastapi import Request, Response, status

from windrow_core.models.erasures import (
    ERASURE_KEY,
    ErasurePlan,
    ErasureReceipt,
    ErasureReport,
    ErasureRequest,
    ReceiptCheck,
)
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.bodies import ARROW_STREAM, STREAM, columns_or_json, read_columns_or_json
from windrow_service.api.json_shapes import COLUMNS
from windrow_service.api.parameters import AcceptHeader, TableNamePath, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import ErasuresDep

router = GuardedRouter(tags=["erasures"])


@router.post(
    "/tables/{name}/erasure-plans",
    operation_id="plan_erasure",
    dependencies=[READ_TABLE],
    response_model=ErasurePlan,
    responses={200: STREAM, **problem_responses(400, 404, 409, 413, 422, 503)},
    openapi_extra=columns_or_json(ErasureRequest),
)
async def plan_erasure(
    name: TableNamePath,
    request: Request,
    services: ErasuresDep,
    accept: AcceptHeader = "application/json",
) -> Response:
    """Find the files of a table that may hold rows to erase, by partition values, bounds and Bloom filters.

    Nothing is changed or stored, keys and conditions least of all. An Arrow IPC stream has keys in its
    one column; the metadata `windrow:erasure` of its schema names it as JSON: `{"key": "user_id"}`. Up
    to 10,000 keys, or a condition, can also be sent as JSON. With
    `Accept: application/vnd.apache.arrow.stream`, the answer is a stream of the files: `path`,
    `size_bytes`, `mtime_ns`, `etag`, `row_count` and `partition`. The metadata `windrow:erasure` of its
    schema has the figures as JSON.
    """
    body = await read_columns_or_json(request, services.plan.runner, ErasureRequest, COLUMNS)
    plan, files = await services.plan(name, body)
    if ARROW_STREAM not in accept:
        return await json_answer(plan)
    content = await asyncio.to_thread(_stream_of, plan, files)
    return Response(content, media_type=ARROW_STREAM)


def _stream_of(plan: ErasurePlan, files: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    schema = files.schema.with_metadata({ERASURE_KEY: plan.model_dump_json()})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_table(files.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


@router.post(
    "/tables/{name}/erasures",
    operation_id="finish_erasure",
    status_code=status.HTTP_201_CREATED,
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 409, 413, 422, 503, 504),
)
async def finish_erasure(
    name: TableNamePath, report: ErasureReport, services: ErasuresDep
) -> ErasureReceipt:
    """Erase what the coordinator keeps of rows that have gone from a table's files, and sign a receipt.

    Bounds of files that are gone leave the manifests, all snapshots but the current one are dropped,
    and so are plans of the table; packs with rows of files that are gone are removed at once, and so
    are old descriptions for other engines. The receipt names what is not reached. It is recorded in
    the audit log. The same request again erases what is left, and gives another receipt.
    """
    return await services.finish(name, report)


@router.post(
    "/erasures/verify",
    operation_id="verify_receipt",
    dependencies=[READ],
    responses=problem_responses(404, 413, 422),
)
async def verify_receipt(
    receipt: ErasureReceipt, services: ErasuresDep, principal: PrincipalDep
) -> ReceiptCheck:
    """Verify that this coordinator signed a receipt of an erasure, and that nobody changed it."""
    principal.require_table("read", receipt.table)
    is_genuine = services.finish.is_genuine(receipt)
    return ReceiptCheck(receipt_id=receipt.receipt_id, is_genuine=is_genuine)
