"""Inventories: which files a table has, and what their footers say."""

from windrow_core.files.chunks import FooterGroup
from windrow_core.files.types import spark_type
from windrow_service.inventory.build import Inventory, PreviousInventory, take_inventory
from windrow_service.inventory.errors import (
    AcidFolderError,
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
    UnreadableFootersError,
    UnreadableTypeError,
)
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.footers.reading import read_footers
from windrow_service.inventory.listing.walking import Listing, list_files
from windrow_service.inventory.manifests.encoding import (
    Manifest,
    cut_files,
    decode_manifest,
    encode_manifest,
)
from windrow_service.inventory.progress import OnProgress
from windrow_service.inventory.spark_types import arrow_type

__all__ = [
    "AcidFolderError",
    "BloomColumnError",
    "BucketNumberError",
    "ColumnNameError",
    "CorruptManifestError",
    "DuplicateColumnError",
    "FileChangedError",
    "FooterGroup",
    "InvalidInventoryError",
    "InvalidLocationError",
    "Inventory",
    "InventoryCancelledError",
    "InventoryError",
    "IsolatedExecutor",
    "Listing",
    "LocationError",
    "Manifest",
    "OnProgress",
    "PartitionLayoutError",
    "PartitionValueError",
    "PreviousInventory",
    "SchemaConflictError",
    "TotalsTooLargeError",
    "UnknownTypeError",
    "UnreadableFootersError",
    "UnreadableTypeError",
    "arrow_type",
    "cut_files",
    "decode_manifest",
    "encode_manifest",
    "list_files",
    "read_footers",
    "spark_type",
    "take_inventory",
]
