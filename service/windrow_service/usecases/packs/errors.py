"""What can go wrong with packs."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import ConflictError, InvalidError, NotFoundError


@dataclass(eq=False)
class PacksDisabledError(ConflictError):
    """No folder for packs is set."""

    message = "this coordinator has no folder for packs: {remedy}"
    remedy = (
        "set WINDROW_PACKS__FOLDER to a folder outside of all tables that the tables' readers "
        "can read"
    )


@dataclass(eq=False)
class UnpackableTableError(ConflictError):
    """No packs are made of the table.

    Attributes:
        reason: Why not, and what to do.
    """

    table: str
    reason: str
    message = "table {table!r} cannot be packed: {reason}"


class InvalidPackingError(InvalidError):
    """Files to pack are not described by partition columns alone."""


class InvalidPackError(InvalidError):
    """Published pack is not one of the table's files."""


@dataclass(eq=False)
class PackingRunOverError(ConflictError):
    """Run of a packer is over."""

    table: str
    run_id: str
    message = (
        "run {run_id} of a packer of table {table!r} is over, as it gave no sign of life in time, or rows "
        "were erased meanwhile: {remedy}"
    )
    remedy = "pack again"


@dataclass(eq=False)
class PackNotFoundError(NotFoundError):
    """Table has no such pack."""

    table: str
    pack_id: str
    message = "table {table!r} has no pack {pack_id!r}"
