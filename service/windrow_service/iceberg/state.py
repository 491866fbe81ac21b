"""The state kept with a snapshot, so that the next refresh reads only new manifests."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import pyarrow as pa

from windrow_service.iceberg.manifests import DELETE_ENTRIES, MANIFESTS

# For each data file, in the order of the inventory: its manifest, and the values by which delete
# files are matched.
FILES = pa.schema(
    [
        pa.field("manifest", pa.int32(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("partition_key", pa.string(), nullable=False),
    ]
)
DELETES = DELETE_ENTRIES.append(pa.field("manifest", pa.int32(), nullable=False))

_VERSION, _SHAPE = b"version", b"shape"
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


def shape_of(location: str, columns: pa.Schema, partition_columns: tuple[str, ...]) -> bytes:
    """Return a digest of everything that the columns of an inventory depend on."""
    digest = hashlib.sha256(columns.serialize())
    digest.update(repr((location, partition_columns)).encode())
    return digest.hexdigest().encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotState:
    """The state kept with a snapshot.

    Attributes:
        version: Id of the snapshot.
        shape: Digest of its inventory's columns; see `shape_of`.
        manifests: `MANIFESTS`.
        files: `FILES`.
        deletes: `DELETES`.
    """

    version: str
    shape: bytes
    manifests: pa.Table
    files: pa.Table
    deletes: pa.Table

    def encoded(self) -> bytes:
        """Return the state as bytes."""
        sink = io.BytesIO()
        head = {_VERSION: self.version.encode(), _SHAPE: self.shape}
        manifests = self.manifests.replace_schema_metadata(head)
        for table in (manifests, self.files, self.deletes):
            with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as stream:
                stream.write_table(table)
        return sink.getvalue()

    @classmethod
    def of(cls, encoded: bytes | None) -> SnapshotState | None:
        """Return the state from its bytes; None if they are something else."""
        if encoded is None:
            return None
        source = pa.BufferReader(encoded)
        try:
            manifests, files, deletes = (pa.ipc.open_stream(source).read_all() for _ in range(3))
        except (pa.ArrowException, OSError):
            return None
        head = manifests.schema.metadata or {}
        schemas = (manifests.schema, files.schema, deletes.schema)
        pairs = zip(schemas, (MANIFESTS, FILES, DELETES), strict=True)
        if head.keys() != {_VERSION, _SHAPE} or not all(one.equals(two) for one, two in pairs):
            return None
        return cls(
            version=head[_VERSION].decode(),
            shape=head[_SHAPE],
            manifests=manifests,
            files=files,
            deletes=deletes,
        )
