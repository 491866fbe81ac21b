"""One table turns errors into RFC 9457 problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from windrow_core.files.acid.write_ids import WriteIdsError
from windrow_core.models import Problem
from windrow_service.api.body_budget import BodiesFullError
from windrow_service.api.browsers import FormOutdatedError
from windrow_service.api.html.rendering import is_page, problem_page
from windrow_service.api.json_shapes import BodyTooComplexError
from windrow_service.delta import errors as delta
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.iceberg import errors as iceberg
from windrow_service.inventory import errors as inventory
from windrow_service.planner import errors as planner
from windrow_service.planner.writes import errors as write_planning
from windrow_service.usecases import errors as usecases
from windrow_service.usecases.access import errors as access
from windrow_service.usecases.caches import errors as caches
from windrow_service.usecases.plans import errors as plans
from windrow_service.usecases.snapshots import errors as snapshots
from windrow_service.usecases.tables import errors as tables
from windrow_service.usecases.upkeep import errors as upkeep
from windrow_service.usecases.writes import errors as writes

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:windrow:problem:"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A type of problem: its status, the last part of its URI, and its title."""

    status: HTTPStatus
    slug: str
    title: str


class BodyTooLargeError(HTTPException):
    """The request's body is larger than the coordinator accepts.

    This is an HTTPException because FastAPI hides any other error raised while it reads a body.
    """

    def __init__(self, max_bytes: int, setting: str | None, *, takes_arrow: bool = False) -> None:
        super().__init__(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        self.max_bytes = max_bytes
        self.setting = setting
        self.takes_arrow = takes_arrow

    def __str__(self) -> str:
        remedy = "send less" if self.setting is None else f"send less, or raise {self.setting}"
        if self.takes_arrow:
            remedy = f"send an Arrow stream, which may be much longer, {remedy}"
        return f"the body is larger than {self.max_bytes:,} bytes: {remedy}"


UNAUTHORIZED, FORBIDDEN = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN
NOT_FOUND, CONFLICT = HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT
INVALID, UNAVAILABLE = HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE

KINDS: Mapping[type[Exception], ProblemType] = {
    access.UnauthenticatedError: ProblemType(UNAUTHORIZED, "unauthenticated", "Token required"),
    access.IssuerUnavailableError: ProblemType(
        UNAVAILABLE, "issuer-unavailable", "Issuer is not available"
    ),
    access.SignInNotOfferedError: ProblemType(
        NOT_FOUND, "sign-in-not-offered", "No such way to sign in"
    ),
    access.SignInOutdatedError: ProblemType(
        HTTPStatus.BAD_REQUEST, "sign-in-outdated", "Sign-in is outdated"
    ),
    access.SignInRefusedError: ProblemType(
        FORBIDDEN, "sign-in-refused", "Issuer refused the sign-in"
    ),
    access.SignInUnconfirmedError: ProblemType(
        FORBIDDEN, "sign-in-unconfirmed", "Issuer did not confirm the sign-in"
    ),
    access.NothingGrantedError: ProblemType(FORBIDDEN, "nothing-granted", "Nothing is granted"),
    access.ScopeMissingError: ProblemType(FORBIDDEN, "scope-missing", "Token lacks a scope"),
    access.TokenNotFoundError: ProblemType(NOT_FOUND, "token-not-found", "Token not found"),
    access.InvalidTokenError: ProblemType(INVALID, "invalid-token-request", "Token cannot be made"),
    tables.TableNotFoundError: ProblemType(NOT_FOUND, "table-not-found", "Table not found"),
    snapshots.SnapshotNotFoundError: ProblemType(
        NOT_FOUND, "snapshot-not-found", "Snapshot not found"
    ),
    plans.PlanNotFoundError: ProblemType(NOT_FOUND, "plan-not-found", "Plan not found"),
    plans.PlanSnapshotGoneError: ProblemType(
        HTTPStatus.GONE, "plan-snapshot-gone", "Snapshot of the plan is gone"
    ),
    plans.PlanNotCompletedError: ProblemType(
        CONFLICT, "plan-not-completed", "Plan has no groups yet"
    ),
    plans.PlanCancelledError: ProblemType(CONFLICT, "plan-cancelled", "Plan was deleted"),
    plans.PlansFullError: ProblemType(
        UNAVAILABLE, "plans-full", "Stored plans take too much space"
    ),
    snapshots.RefreshNotFoundError: ProblemType(
        NOT_FOUND, "refresh-not-found", "Refresh not found"
    ),
    snapshots.RefreshNotRunningError: ProblemType(
        NOT_FOUND, "refresh-not-running", "No refresh is running"
    ),
    snapshots.RefreshCancelledError: ProblemType(
        CONFLICT, "refresh-cancelled", "Refresh was cancelled"
    ),
    snapshots.RefreshAbandonedError: ProblemType(
        UNAVAILABLE, "refresh-abandoned", "Refresh was abandoned"
    ),
    usecases.PageTokenError: ProblemType(NOT_FOUND, "page-not-found", "Page not found"),
    snapshots.TableNotRefreshedError: ProblemType(
        CONFLICT, "table-not-refreshed", "Table has no snapshot yet"
    ),
    snapshots.TableContendedError: ProblemType(
        UNAVAILABLE, "table-contended", "Others keep publishing the table"
    ),
    snapshots.BloomColumnsChangedError: ProblemType(
        CONFLICT, "bloom-columns-changed", "Bloom filter columns of the table have changed"
    ),
    tables.TransactionalTableError: ProblemType(
        CONFLICT, "transactional-table", "Table is transactional"
    ),
    tables.ListedPartitionsError: ProblemType(
        CONFLICT, "listed-partitions", "Table has a list of partitions"
    ),
    inventory.PartitionListError: ProblemType(
        INVALID, "partition-list", "List of partitions does not fit the table"
    ),
    snapshots.NotTransactionalError: ProblemType(
        CONFLICT, "not-transactional", "Table is not transactional"
    ),
    snapshots.VersionNotKnownError: ProblemType(
        NOT_FOUND, "version-not-known", "No snapshot of the table has this version"
    ),
    snapshots.NotLoggedError: ProblemType(CONFLICT, "not-logged", "Table keeps no versions"),
    tables.LoggedTableError: ProblemType(
        CONFLICT, "logged-table", "Table is kept by its own engine"
    ),
    snapshots.WriteIdsNeededError: ProblemType(
        CONFLICT, "write-ids-needed", "Valid write ids are needed"
    ),
    iceberg.IcebergMetadataError: ProblemType(
        CONFLICT, "iceberg-metadata", "Metadata of an Iceberg table cannot be read"
    ),
    iceberg.IcebergVersionError: ProblemType(
        NOT_FOUND, "iceberg-version", "Iceberg table has no such version"
    ),
    iceberg.IcebergNotInstalledError: ProblemType(
        CONFLICT, "iceberg-not-installed", "PyIceberg is not installed"
    ),
    inventory.AcidFolderError: ProblemType(
        CONFLICT, "acid-folder", "Folders of a transactional table are not usable"
    ),
    snapshots.PartitionsNotListedError: ProblemType(
        CONFLICT, "partitions-not-listed", "Table has no list of partitions yet"
    ),
    snapshots.ColumnsNotDeclaredError: ProblemType(
        CONFLICT, "columns-not-declared", "Columns of this format must be declared"
    ),
    tables.TableChangedError: ProblemType(
        HTTPStatus.PRECONDITION_FAILED, "table-changed", "Table has changed"
    ),
    tables.UnconfirmedReplacementError: ProblemType(
        CONFLICT, "unconfirmed-replacement", "Change would drop snapshots or partitions"
    ),
    tables.LocationNotAllowedError: ProblemType(
        FORBIDDEN, "location-not-allowed", "Location is not allowed"
    ),
    tables.LocationSharedError: ProblemType(
        FORBIDDEN, "location-shared", "Location may have files of other tables"
    ),
    tables.InvalidTableError: ProblemType(
        INVALID, "invalid-table", "Table definition is not valid"
    ),
    plans.InvalidColumnsError: ProblemType(INVALID, "invalid-columns", "Columns are not valid"),
    usecases.BusyError: ProblemType(UNAVAILABLE, "busy", "Coordinator has too much to do"),
    usecases.TooManyRequestsError: ProblemType(
        HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", "Caller sends too many requests"
    ),
    usecases.StoreUnavailableError: ProblemType(
        UNAVAILABLE, "store-unavailable", "Coordinator's database cannot be used"
    ),
    usecases.OutcomeUnknownError: ProblemType(
        HTTPStatus.GATEWAY_TIMEOUT, "outcome-unknown", "Change may or may not have been made"
    ),
    usecases.IdempotencyKeyReusedError: ProblemType(
        INVALID, "idempotency-key-reused", "Idempotency-Key was used for another request"
    ),
    inventory.InvalidLocationError: ProblemType(
        INVALID, "invalid-location", "Location is not valid"
    ),
    caches.WorkerNotFoundError: ProblemType(NOT_FOUND, "worker-not-found", "Worker not found"),
    caches.TooManyWorkersError: ProblemType(CONFLICT, "too-many-workers", "Too many live workers"),
    caches.CacheFullError: ProblemType(CONFLICT, "cache-full", "Worker holds too many files"),
    caches.CacheUnavailableError: ProblemType(
        UNAVAILABLE, "cache-unavailable", "Cache map cannot be used"
    ),
    caches.CacheRuleNotFoundError: ProblemType(
        NOT_FOUND, "cache-rule-not-found", "Cache rule not found"
    ),
    caches.CacheRuleChangedError: ProblemType(
        HTTPStatus.PRECONDITION_FAILED, "cache-rule-changed", "Cache rule has changed"
    ),
    caches.TooManyCacheRulesError: ProblemType(
        CONFLICT, "too-many-cache-rules", "Table has too many cache rules"
    ),
    caches.CacheRulesTooLongError: ProblemType(
        CONFLICT, "cache-rules-too-long", "Cache rules of the table are too long"
    ),
    caches.InvalidCacheRuleError: ProblemType(
        INVALID, "invalid-cache-rule", "Cache rule is not valid"
    ),
    writes.WriteNotFoundError: ProblemType(NOT_FOUND, "write-not-found", "Write not found"),
    tables.WriteInProgressError: ProblemType(
        CONFLICT, "write-in-progress", "A write is moving files into the table"
    ),
    writes.WriteStateError: ProblemType(CONFLICT, "write-state", "Write is in another state"),
    writes.WriteCancelledError: ProblemType(CONFLICT, "write-cancelled", "Write was cancelled"),
    writes.WriteNotCancellableError: ProblemType(
        CONFLICT, "write-not-cancellable", "Write cannot be cancelled any more"
    ),
    writes.WriteTakenError: ProblemType(
        CONFLICT, "write-taken", "Write belongs to another process"
    ),
    snapshots.InventoryOutdatedError: ProblemType(
        CONFLICT, "inventory-outdated", "Inventory is older than a write"
    ),
    upkeep.InvalidCompactionError: ProblemType(
        INVALID, "invalid-compaction", "Selection of partitions is not valid"
    ),
    upkeep.FormatNotCompactableError: ProblemType(
        CONFLICT, "format-not-compactable", "Files of this format cannot be compacted"
    ),
    delta.DeltaLogError: ProblemType(CONFLICT, "delta-log", "Log of a Delta table cannot be read"),
    delta.DeltaFeatureError: ProblemType(
        CONFLICT, "delta-feature", "Delta table uses an unknown feature"
    ),
    delta.DeltaVersionError: ProblemType(
        NOT_FOUND, "delta-version", "Delta table does not have the version"
    ),
    inventory.LocationError: ProblemType(
        CONFLICT, "location-unreadable", "Location cannot be listed"
    ),
    inventory.PartitionLayoutError: ProblemType(
        CONFLICT, "partition-layout", "Folders do not form partitions"
    ),
    inventory.PartitionValueError: ProblemType(
        CONFLICT, "partition-value", "Folder does not fit its partition column"
    ),
    inventory.BucketNumberError: ProblemType(
        CONFLICT, "bucket-number", "File does not fit the bucket spec"
    ),
    inventory.UnknownTypeError: ProblemType(INVALID, "unknown-type", "Not a Spark SQL type"),
    inventory.UnreadableTypeError: ProblemType(
        CONFLICT, "unsupported-type", "Type of a column cannot be read"
    ),
    inventory.BloomColumnError: ProblemType(
        CONFLICT, "bloom-column", "Column cannot have Bloom filters"
    ),
    inventory.SchemaConflictError: ProblemType(
        CONFLICT, "schema-conflict", "Types of a column conflict"
    ),
    inventory.ColumnNameError: ProblemType(CONFLICT, "column-name", "Column has no usable name"),
    inventory.DuplicateColumnError: ProblemType(
        CONFLICT, "duplicate-column", "Two columns have the same name"
    ),
    inventory.UnreadableFootersError: ProblemType(
        CONFLICT, "unreadable-file", "File cannot be read"
    ),
    inventory.FileChangedError: ProblemType(
        CONFLICT, "file-changed", "File changed during the refresh"
    ),
    inventory.TextColumnsError: ProblemType(
        CONFLICT, "text-columns", "Table of text must have one column of strings"
    ),
    inventory.InvalidInventoryError: ProblemType(
        INVALID, "invalid-inventory", "Inventory cannot be accepted"
    ),
    inventory.TotalsTooLargeError: ProblemType(
        INVALID, "totals-too-large", "Totals of the files are too large"
    ),
    inventory.CorruptManifestError: ProblemType(
        HTTPStatus.INTERNAL_SERVER_ERROR, "corrupt-manifest", "Stored manifest is damaged"
    ),
    InvalidFilterError: ProblemType(INVALID, "invalid-filter", "Filter is not valid"),
    planner.UnknownStrategyError: ProblemType(INVALID, "unknown-strategy", "Strategy is not known"),
    planner.PlanTooLargeError: ProblemType(
        INVALID, "plan-too-large", "Plan holds too many files or splits"
    ),
    planner.FiltersTooLongError: ProblemType(
        INVALID, "filters-too-long", "Filters of all groups are too long"
    ),
    write_planning.UnhashableTypeError: ProblemType(
        INVALID, "unhashable-type", "Spark's hash of this type is not known"
    ),
    write_planning.InvalidKeysError: ProblemType(
        INVALID, "invalid-keys", "Keys of the write are not valid"
    ),
    write_planning.NoEstimateError: ProblemType(
        INVALID, "no-estimate", "Too little is known about the write"
    ),
    write_planning.TooManyFilesError: ProblemType(
        INVALID, "too-many-files", "Write would make too many files"
    ),
    write_planning.SchemeUnfitError: ProblemType(
        INVALID, "scheme-unfit", "Scheme cannot place these rows"
    ),
    plans.InvalidOptionsError: ProblemType(INVALID, "invalid-request", "Request is not valid"),
    WriteIdsError: ProblemType(INVALID, "invalid-write-ids", "Valid write ids cannot be read"),
    RequestValidationError: ProblemType(INVALID, "invalid-request", "Request is not valid"),
    FormOutdatedError: ProblemType(HTTPStatus.FORBIDDEN, "form-outdated", "Form is outdated"),
    BodyTooLargeError: ProblemType(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "Request body is too large"
    ),
    BodiesFullError: ProblemType(
        UNAVAILABLE, "bodies-full", "Bodies of all requests take too much memory"
    ),
    BodyTooComplexError: ProblemType(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-complex", "Request body has too many parts"
    ),
}

_TRY_LATER = (
    BodiesFullError,
    access.IssuerUnavailableError,
    plans.PlanNotCompletedError,
    plans.PlansFullError,
    snapshots.RefreshAbandonedError,
    usecases.BusyError,
    usecases.StoreUnavailableError,
    caches.CacheUnavailableError,
    snapshots.TableContendedError,
    usecases.TooManyRequestsError,
)
_SHOWN_ISSUES = 10
_MOST_CHARACTERS = 500
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_UNKNOWN = ProblemType(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "Coordinator failed")


@dataclass(frozen=True, slots=True)
class ProblemAnswer:
    """A problem as it is sent to the caller."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def describe(error: Exception, instance: str | None = None) -> ProblemAnswer:
    """Return the problem for an error; an unlisted error reveals nothing about itself."""
    if isinstance(error, snapshots.RefreshFailedError):
        return _repeated(error.problem, instance)
    kind = KINDS.get(type(error), _UNKNOWN)
    body: dict[str, Any] = {
        "type": PREFIX + kind.slug,
        "title": kind.title,
        "status": int(kind.status),
        "detail": _encodable(_detail(error))
        if kind is not _UNKNOWN
        else "something went wrong in the coordinator; its log has the details",
    }
    if instance is not None:
        body["instance"] = instance
    headers = {}
    if isinstance(error, _TRY_LATER):
        headers["Retry-After"] = str(error.retry_after_s)
    elif isinstance(error, access.UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    elif isinstance(error, access.ScopeMissingError):
        # RFC 6750, section 3.
        challenge = f'Bearer error="insufficient_scope", scope="{error.scope}"'
        headers["WWW-Authenticate"] = challenge
    return ProblemAnswer(body, headers)


def _repeated(problem: Mapping[str, Any], instance: str | None) -> ProblemAnswer:
    where = {} if instance is None else {"instance": instance}
    headers = {"Retry-After": "1"} if problem["status"] == UNAVAILABLE else {}
    return ProblemAnswer({**problem, **where}, headers)


def install(app: FastAPI) -> None:
    """Make an application answer every failure with a problem."""
    for error_type in (*KINDS, snapshots.RefreshFailedError):
        app.add_exception_handler(error_type, _answer)
    app.add_exception_handler(HTTPException, _answer_http)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries for problems with these statuses, and for 500.

    They refer to a schema that `add_problem_schema` adds to the document.
    """
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in (*statuses, 500)
    }


def add_problem_schema(document: dict[str, Any]) -> None:
    """Add the schema that `problem_responses` refers to."""
    document["components"]["schemas"]["Problem"] = Problem.model_json_schema()


async def _answer(request: Request, error: Exception) -> Response:
    return problem_answer(request, error)


def problem_answer(request: Request, error: Exception) -> Response:
    """Return the answer to a failed request."""
    answer = describe(error, request.url.path)
    return _answer_with(request, answer.body, answer.headers)


def _answer_with(request: Request, body: dict[str, Any], headers: Mapping[str, str]) -> Response:
    request_id = request.state.request_id
    body = {**body, "request_id": request_id}
    request.state.problem = body
    if body["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        # By this id, operators find the details in the log.
        body["detail"] += f" (request {request_id})"
    if is_page(request.url.path):
        return problem_page(request, body, headers)
    return JSONResponse(body, body["status"], headers=headers, media_type=MEDIA_TYPE)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    body = {
        "type": PREFIX + phrase.lower().replace(" ", "-"),
        "title": phrase,
        "status": error.status_code,
        "detail": f"{request.method} {request.url.path}: {phrase.lower()}; /docs lists every call",
        "instance": request.url.path,
    }
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    return _answer_with(request, body, headers)


def _methods_at(request: Request) -> set[str]:
    """Return the methods of all calls on a path; the router names only those of the first."""
    return {
        method
        for method in _METHODS
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
    }


def _encodable(text: str) -> str:
    # JSON may hold half of a surrogate pair, and a message may quote it.
    return text.encode("utf-8", "backslashreplace").decode()


def _detail(error: Exception) -> str:
    if isinstance(error, RequestValidationError):
        issues = error.errors()
        shown = [_issue(issue) for issue in issues[:_SHOWN_ISSUES]]
        more = len(issues) - len(shown)
        return "; ".join([*shown, f"and {more:,} more errors"] if more else shown)
    return str(error)


def _issue(issue: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in issue["loc"])
    said = f"{where}: {issue['msg'].removeprefix('Value error, ')}"
    # A caller's own key may be megabytes long.
    return said if len(said) <= _MOST_CHARACTERS else f"{said[:_MOST_CHARACTERS]}…"
