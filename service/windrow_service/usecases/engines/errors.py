"""Errors of tables that other engines cannot read."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Fault
from windrow_service.usecases.errors import NotFoundError, UnavailableError, UseCaseError


class UnsupportedError(UseCaseError):
    """Base of what the catalog for other engines does not do."""

    fault = Fault.INVALID


@dataclass(eq=False)
class UnfitTableError(UnsupportedError):
    """Other engines cannot read the table.

    Attributes:
        reason: Why not, and what to do.
    """

    table: str
    reason: str
    message = "table {table!r} cannot be read by other engines: {reason}"


@dataclass(eq=False)
class MetadataUnavailableError(UnavailableError):
    """Folder of the metadata for other engines cannot be used.

    Attributes:
        reason: Why not, and what to do.
        retry_after_s: Seconds after which to try again.
    """

    reason: str
    retry_after_s: int = 5
    message = "the metadata for other engines cannot be written or read ({reason}): {remedy}"
    remedy = "fix that, then try again"


@dataclass(eq=False)
class UnfitPartError(UnsupportedError):
    """Part of a table cannot be named by the column."""

    table: str
    column: str
    message = "column {column!r} is not a partition column of table {table!r}: {remedy}"
    remedy = "name only partition columns behind `$`, and put other conditions into the query"


@dataclass(eq=False)
class CatalogDisabledError(UnsupportedError):
    """Catalog for other engines is not set up."""

    message = "this coordinator does not serve tables to other engines: {remedy}"
    remedy = (
        "set WINDROW_ENGINES__METADATA_FOLDER to an absolute path that is the same for the "
        "engines, outside of all tables, and restart the coordinator"
    )


@dataclass(eq=False)
class ReadOnlyCatalogError(UnsupportedError):
    """Catalog for other engines is read-only."""

    action: str
    methods: str
    message = "{action} is not possible, because this catalog is read-only: {remedy}"
    remedy = (
        "write with Windrow (`client.write`, `INSERT INTO windrow.…` on Spark), register and delete "
        "tables with `windrow table`"
    )


@dataclass(eq=False)
class NamespaceNotFoundError(NotFoundError):
    """Namespace not found."""

    namespace: str
    message = "no namespace {namespace!r} with a table that you may read: {remedy}"
    remedy = (
        "a namespace is the part of a table's name before the last dot; tables without a dot are "
        "in `default`"
    )


@dataclass(eq=False)
class ViewNotFoundError(NotFoundError):
    """View not found."""

    view: str
    message = "no view {view!r}: {remedy}"
    remedy = "this catalog has only tables"


@dataclass(eq=False)
class UnfitScanError(UnsupportedError):
    """Scan cannot be planned for the engine.

    Attributes:
        reason: Why not.
    """

    table: str
    reason: str
    message = "scans of table {table!r} cannot be planned here: {reason}: {remedy}"
    remedy = (
        "let the engine plan itself, as engines do by default (`scan-planning-mode` is `client`)"
    )


@dataclass(eq=False)
class ScanPlanNotFoundError(NotFoundError):
    """Plan of a scan not found."""

    table: str
    message = "table {table!r} has no such plan, or another caller made it: {remedy}"
    remedy = "plan the scan again"


@dataclass(eq=False)
class ScanTaskNotFoundError(NotFoundError):
    """Task of a plan of a scan not found."""

    table: str
    message = "table {table!r} has no plan with such a task, or another caller made it: {remedy}"
    remedy = "plan the scan again"
