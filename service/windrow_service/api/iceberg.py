"""`/iceberg/v1`: a read-only catalog of tables as Iceberg's REST specification has it.

Its contract is Iceberg's, not a part of `openapi.yaml`. Each call is authorized by the names of
tables, as all others are.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse

from windrow_service.api.authentication import PrincipalDep, checked
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.errors import BodyTooLargeError
from windrow_service.api.iceberg_errors import ROOT
from windrow_service.api.iceberg_requests import (
    BETWEEN_LEVELS,
    DEFAULT,
    MAX_NAME,
    READER,
    TABLE,
    client_of,
    first_of,
    levels_of,
    names_of,
)
from windrow_service.api.page_tokens import PageTokens
from windrow_service.api.parameters import PageTokensDep, etag, version_of
from windrow_service.api.services import EnginesDep, EngineServices, services_of
from windrow_service.engines.clients import (
    DUCKDB,
    asks_for_the_top_alone,
    misreads_plans,
    misreads_settings,
    reader_behind,
)
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.access.errors import TooManyGuessesError, UnauthenticatedError
from windrow_service.usecases.engines.describe import TableDescription
from windrow_service.usecases.engines.errors import (
    CatalogDisabledError,
    NamespaceNotFoundError,
    ReadOnlyCatalogError,
    UnfitTableError,
    ViewNotFoundError,
)
from windrow_service.usecases.engines.fitness import unfitness
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True)
class _Page:
    """The part of a list that a call asks for; without a size, all that is left."""

    tokens: PageTokens
    token: str | None
    size: int | None

    def of(self, listing: str, names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
        """Return the names of the part, and the token of the next one, if there is one."""
        after = self.tokens.read_text(f"iceberg:{listing}", self.token or None)
        left = sorted(name for name in names if name > after)
        some = left[: self.size]
        if len(some) == len(left):
            return some, {}
        return some, {"next-page-token": self.tokens.make(f"iceberg:{listing}", some[-1])}


async def _page(
    tokens: PageTokensDep,
    token: Annotated[str | None, Query(alias="pageToken", max_length=4096)] = None,
    size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
) -> _Page:
    return _Page(tokens, token, size)


_PageDep = Annotated[_Page, Depends(_page)]
router = GuardedRouter(include_in_schema=False)
# Callers without a token ask for one here.
tokens = APIRouter(include_in_schema=False)

_NAMESPACES = f"{ROOT}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLES_AT_A_TIME = 1_000
_MAX_FIELDS = 20
# Longer than any token; more would keep the event loop busy.
_MAX_FORM_BYTES = 2**17
_ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
)
# Behind it, a table's name has a condition on the partitions that are wanted.
_PART = "$"
_CALLS = [
    (method, re.compile(re.sub(r"{[^/]+}", "[^/]+", path.removeprefix("/v1/{prefix}/"))))
    for method, path in map(str.split, (*_ENDPOINTS, "GET config", "POST oauth/tokens"))
]
_METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]
_ACTIONS = (
    ("POST namespaces", "creating a namespace"),
    ("POST namespaces/[^/]+/tables", "creating a table"),
    ("POST namespaces/[^/]+/tables/[^/]+", "committing to a table"),
    ("DELETE namespaces/[^/]+/tables/[^/]+", "dropping a table"),
    ("POST namespaces/[^/]+/register", "registering a table"),
    ("POST tables/rename", "renaming a table"),
    ("POST transactions/commit", "committing a transaction"),
    ("DELETE namespaces/[^/]+", "dropping a namespace"),
    ("POST namespaces/[^/]+/properties", "changing a namespace"),
    (r"\w+ (namespaces/[^/]+/)?views(/.*)?", "changing views"),
)


@router.get(f"{ROOT}/config", dependencies=[READ])
async def config() -> dict[str, Any]:
    """Return what clients need to know first."""
    return {"defaults": {}, "overrides": {}, "endpoints": list(_ENDPOINTS)}


@router.get(_NAMESPACES, dependencies=[READ])
async def list_namespaces(
    services: EnginesDep,
    principal: PrincipalDep,
    page: _PageDep,
    request: Request,
    parent: str = "",
) -> dict[str, Any]:
    """List the namespaces directly below another one that have tables the caller may read."""
    above = levels_of(parent) if parent else ()
    deepest = len(above) + 1
    if not above and asks_for_the_top_alone(client_of(request)):
        deepest = MAX_NAME
    children = {
        namespace[:length]
        async for namespace, _ in _tables(services, principal)
        if namespace[: len(above)] == above
        for length in range(len(above) + 1, min(deepest, len(namespace)) + 1)
    }
    if above and not children:
        await _require(services, principal, above)
    names, token = page.of(f"namespaces:{parent}", map(BETWEEN_LEVELS.join, children))
    return {"namespaces": [levels_of(name) for name in names], **token}


@router.get(_NAMESPACE, dependencies=[READ])
async def load_namespace(
    namespace: str, services: EnginesDep, principal: PrincipalDep
) -> dict[str, Any]:
    """Return a namespace."""
    levels = levels_of(namespace)
    await _require(services, principal, levels)
    return {"namespace": levels, "properties": {}}


@router.head(_NAMESPACE, dependencies=[READ])
async def namespace_exists(
    namespace: str, services: EnginesDep, principal: PrincipalDep
) -> Response:
    """Return whether a namespace exists."""
    await _require(services, principal, levels_of(namespace))
    return Response(status_code=204)


@router.get(f"{_NAMESPACE}/tables", dependencies=[READ])
async def list_tables(
    namespace: str, services: EnginesDep, principal: PrincipalDep, page: _PageDep
) -> dict[str, Any]:
    """List the tables of a namespace that can be described, as far as their definitions tell."""
    levels = levels_of(namespace)
    await _require(services, principal, levels)
    all_names = [
        table.info.name.rpartition(".")[2]
        async for namespace_of, table in _tables(services, principal)
        if namespace_of == levels and _is_listed(table)
    ]
    names, token = page.of(f"tables:{namespace}", all_names)
    return {"identifiers": [{"namespace": levels, "name": name} for name in names], **token}


@router.head(TABLE, dependencies=[READ])
async def table_exists(
    namespace: str, table: str, services: EnginesDep, principal: PrincipalDep
) -> Response:
    """Return whether a table is listed."""
    for name in names_of(namespace, table.partition(_PART)[0]):
        with suppress(TableNotFoundError):
            principal.require_table("read", name)
            if _is_listed(await services.tables.get(name)):
                return Response(status_code=204)
    raise TableNotFoundError(name)


@router.get(TABLE, dependencies=[READ])
async def load_table(
    namespace: str,
    table: str,
    services: EnginesDep,
    principal: PrincipalDep,
    request: Request,
    snapshots: Annotated[Literal["all", "refs"], Query()] = "all",
    if_none_match: Annotated[str | None, Header(max_length=256)] = None,
) -> Response:
    """Return a table's metadata, which is made for new snapshots at the first call."""
    if services.describe is None or services.describe_part is None:
        raise CatalogDisabledError
    describe, describe_part = services.describe, services.describe_part
    client = client_of(request)
    reader = reader_behind(client, request.headers.get(READER, ""))
    table, _, condition = table.partition(_PART)

    async def described(name: str) -> TableDescription:
        if condition:
            description = await describe_part(name, condition)
        else:
            description = await describe(name, all_snapshots=snapshots == "all")
        if reader is not None and reader in description.unfit:
            raise UnfitTableError(name, description.unfit[reader])
        return description

    description = await first_of(principal, names_of(namespace, table), described)
    headers = etag(description.version)
    if version_of(if_none_match) == description.version:
        return Response(status_code=304, headers=headers)
    path = json.dumps(description.metadata_path).encode()
    # Others plan as they like; parts have no plans.
    must_plan = bool(condition) or misreads_plans(client, description.partition)
    must_plan = must_plan and not misreads_settings(client)
    config_ = b'{"scan-planning-mode":"client"}' if must_plan else b"{}"
    body = b'{"metadata-location":%s,"metadata":%s,"config":%s}'
    metadata = description.metadata
    if reader == DUCKDB and description.for_duckdb is not None:
        metadata = description.for_duckdb
    body %= path, metadata, config_
    return Response(body, media_type="application/json", headers=headers)


@router.get(f"{_NAMESPACE}/views", dependencies=[READ])
async def list_views(
    namespace: str, services: EnginesDep, principal: PrincipalDep
) -> dict[str, Any]:
    """List views, of which there are none."""
    await _require(services, principal, levels_of(namespace))
    return {"identifiers": []}


@router.api_route(f"{_NAMESPACE}/views/{{view}}", methods=["GET", "HEAD"], dependencies=[READ])
async def load_view(view: str) -> Response:
    """Refuse to return a view."""
    raise ViewNotFoundError(view)


@router.api_route(f"{ROOT}/{{path:path}}", methods=_METHODS, dependencies=[READ])
async def refuse(path: str, request: Request) -> Response:
    """Refuse what would change something, and what does not exist."""
    if request.method in ("GET", "HEAD"):
        raise HTTPException(404)
    call = f"{request.method} {path}"
    action = next((words for pattern, words in _ACTIONS if re.fullmatch(pattern, call)), call)
    methods = {method for method, pattern in _CALLS if pattern.fullmatch(path)}
    raise ReadOnlyCatalogError(action, ", ".join(sorted(methods)))


@tokens.post(f"{ROOT}/oauth/tokens")
async def exchange_token(request: Request) -> Response:
    """Give a client its token back: with Iceberg's clients, a token is the secret of a credential."""
    client_id, secret = await _credential(request)
    try:
        await checked(request, secret, services_of(request).access.authenticate, client_id)
    except UnauthenticatedError as error:
        body = {"error": "invalid_client", "error_description": str(error)}
        return JSONResponse(body, 401)
    except TooManyGuessesError as error:
        body = {"error": "temporarily_unavailable", "error_description": str(error)}
        return JSONResponse(body, 429, headers={"Retry-After": str(error.retry_after_s)})
    return JSONResponse(
        {
            "access_token": secret or "",
            "token_type": "bearer",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        },
        headers={"Cache-Control": "no-store"},
    )


async def _credential(request: Request) -> tuple[str, str | None]:
    """Return the client id and the secret in a header or form; None if there is no secret."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            client_id, _, secret = base64.b64decode(text).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        return client_id, secret
    body = await request.body()
    if len(body) > _MAX_FORM_BYTES:
        raise BodyTooLargeError(_MAX_FORM_BYTES, None)
    try:
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS))
    except ValueError:
        fields = {}
    return fields.get("client_id", ""), fields.get("client_secret")


async def _tables(
    services: EngineServices, principal: Principal
) -> AsyncIterator[tuple[tuple[str, ...], StoredTable]]:
    after = ""
    while True:
        page = await services.tables.page(after, _TABLES_AT_A_TIME, principal.tables)
        for table in page:
            yield tuple(table.info.name.split(".")[:-1]) or DEFAULT, table
        if not page.more:
            return
        after = page[-1].info.name


async def _require(services: EngineServices, principal: Principal, levels: tuple[str, ...]) -> None:
    async for namespace, _ in _tables(services, principal):
        if namespace[: len(levels)] == levels:
            return
    raise NamespaceNotFoundError(".".join(levels)[:MAX_NAME])


def _is_listed(table: StoredTable) -> bool:
    return table.info.current_snapshot is not None and unfitness(table.info.definition) is None
