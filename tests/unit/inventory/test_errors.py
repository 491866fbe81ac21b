"""Errors of the inventory come back whole from other processes."""

from __future__ import annotations

import pickle

import pytest

from windrow_service.inventory import (
    BloomColumnError,
    BucketNumberError,
    ColumnNameError,
    CorruptManifestError,
    DuplicateColumnError,
    FileChangedError,
    InvalidInventoryError,
    InvalidLocationError,
    InventoryCancelledError,
    InventoryError,
    LocationError,
    PartitionLayoutError,
    PartitionValueError,
    SchemaConflictError,
    TotalsTooLargeError,
    UnknownTypeError,
    UnreadableFileError,
    UnsupportedTypeError,
)

ERRORS = [
    BloomColumnError("x", "is not there"),
    BucketNumberError("f", 4, 4),
    ColumnNameError("", "f", 1024),
    CorruptManifestError("why"),
    DuplicateColumnError("a", "A", "f"),
    FileChangedError(("a", "b")),
    InvalidInventoryError("why"),
    InvalidLocationError("x", "why"),
    InventoryCancelledError(),
    LocationError("/f", "is not there"),
    PartitionLayoutError("a", "b", "why"),
    PartitionValueError("p=x", "p", "x", "int"),
    SchemaConflictError("x", "int", "a", "string", "b"),
    TotalsTooLargeError("row_count", 3, 2),
    UnknownTypeError("foo", "why"),
    UnreadableFileError((("a", "why"),)),
    UnsupportedTypeError("x", "time64[us]", "f"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_back_from_a_worker_process(error: InventoryError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_every_kind_of_error_is_tried_here() -> None:
    def leaves(kind: type[Exception]) -> set[type[Exception]]:
        children = kind.__subclasses__()
        return {leaf for child in children for leaf in leaves(child)} if children else {kind}

    assert {type(error) for error in ERRORS} == leaves(InventoryError)
