"""Problems in the form that clients of Iceberg's REST catalogs expect below `/iceberg`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

ROOT = "/iceberg/v1"
# Iceberg's status and type for problems that have others of their own.
_BY_SLUG = {
    "table-not-found": (404, "NoSuchTableException"),
    "table-not-refreshed": (404, "NoSuchTableException"),
    "namespace-not-found": (404, "NoSuchNamespaceException"),
    "view-not-found": (404, "NoSuchViewException"),
    "page-not-found": (400, "BadRequestException"),
    "unfit-table": (406, "UnsupportedOperationException"),
    "catalog-disabled": (406, "UnsupportedOperationException"),
    "unfit-scan": (406, "UnsupportedOperationException"),
    "scan-plan-not-found": (404, "NoSuchPlanIdException"),
    "scan-task-not-found": (404, "NoSuchPlanTaskException"),
    "read-only-catalog": (405, "UnsupportedOperationException"),
}
_BY_STATUS = {
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    405: "UnsupportedOperationException",
    429: "TooManyRequestsException",
    500: "InternalServerError",
    503: "SlowDownException",
}


def is_below(path: str) -> bool:
    """Return whether a path is one of the catalog's."""
    return path.startswith(f"{ROOT}/")


def iceberg_error(problem: Mapping[str, Any], headers: Mapping[str, str]) -> JSONResponse:
    """Return a problem as Iceberg's error."""
    slug = problem["type"].rpartition(":")[2]
    status = problem["status"]
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    status, type_ = _BY_SLUG.get(slug, (status, _BY_STATUS.get(status, "BadRequestException")))
    error = {"message": problem["detail"], "type": type_, "code": int(status)}
    return JSONResponse({"error": error}, status, headers=dict(headers))
