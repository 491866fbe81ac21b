"""The content of a table's metadata file; read in a process that may be lost."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydantic import ValidationError as InvalidModelError
from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from windrow_core.files.file_fields import FIELD_ID
from windrow_core.files.limits import TooWideError, refuse_deep, refuse_wide, refuse_wide_json
from windrow_service.iceberg.errors import IcebergMetadataError, IcebergVersionError
from windrow_service.iceberg.schemas import UnreadTypeError, arrow_schema

MAX_METADATA_BYTES = 64 * 2**20

# Schemas of the past are in the metadata too, and each takes time: so many times the fields of one.
_SCHEMAS = 10
# What lists, maps and structs have, and other types do not.
_PARTS = frozenset(("element", "value", "fields"))
_VERSIONS = (1, 2, 3)
_SHOWN = 10
_MAIN = "main"
_NO_SNAPSHOT = -1
_GZIP = b"\x1f\x8b"
_LIMIT = 2**63
# Nanoseconds of later times exceed 64 bits.
_MOST_MS = _LIMIT // 1_000_000 - 1
# Half of a pair of escapes, which stands for no character by itself, or a whole pair.
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec.

    Attributes:
        id: Id of the field.
        source_id: Id of the column that it is derived from.
        transform: Its transform, as written in the metadata, for example `day` or `truncate[4]`.
        type: Iceberg's name of its values' type; empty if no schema has the column.
    """

    id: int
    source_id: int
    transform: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as of one snapshot.

    Attributes:
        path: The metadata file.
        location: Location of the table, as stated in the metadata.
        columns: Columns with field metadata; see `windrow_service.iceberg.schemas`.
        current_ids: Field ids of the columns that the table has now, by name in lower case.
        snapshot_id: Id of the snapshot; None if the table has no snapshot yet.
        manifest_list: Path of the snapshot's list of manifests; None if there is none.
        committed_ms: When the snapshot was committed, in milliseconds since 1970.
        times_ms: When each snapshot in the metadata was committed, by id.
        specs: Fields of each partition spec, by id.
        snapshot_count: Number of snapshots in the metadata.
    """

    path: str
    location: str
    columns: pa.Schema
    current_ids: Mapping[str, int]
    snapshot_id: int | None
    manifest_list: str | None
    committed_ms: int | None
    times_ms: Mapping[int, int]
    specs: Mapping[int, tuple[PartitionField, ...]]
    snapshot_count: int

    @property
    def identities(self) -> pa.Schema:
        """The columns by whose own values files have ever been partitioned, by their field ids.

        Those that are no columns now have the type null.
        """
        types = {field_id(field): field.type for field in self.columns}
        sources = {
            field.source_id
            for spec in self.specs.values()
            for field in spec
            if field.transform == "identity"
        }
        return pa.schema([(str(id_), types.get(id_, pa.null())) for id_ in sorted(sources)])


def field_id(field: pa.Field) -> int:
    """Return the id of a column."""
    return int(field.metadata[FIELD_ID])


def read_metadata(content: bytes, path: str, version: str | None, max_fields: int) -> TableState:
    """Return the state of a table at one snapshot, as its metadata file describes it.

    Args:
        content: Content of the file.
        path: Path of the file.
        version: Branch or tag, or id of a snapshot; None for `main`.
        max_fields: Most fields of one schema.
    """
    content_json = parsed_metadata(content, path, max_fields)
    _require_lists(content_json, path)
    try:
        metadata = TableMetadataUtil.parse_obj(content_json)
    except InvalidModelError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IcebergMetadataError(path, f"is not valid: {where}: {first['msg']}") from error
    except (ValidationError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise IcebergMetadataError(path, f"is not valid: {error}") from error
    _require_times(metadata, path)
    snapshot, schema_id = _chosen(metadata, path, version or _MAIN)
    try:
        columns = _columns(metadata, content_json, schema_id)
    except TooWideError as error:
        raise IcebergMetadataError(path, f"has {error}") from error
    except UnreadTypeError as error:
        raise IcebergMetadataError(path, f"cannot be read here: {error}") from error
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise IcebergMetadataError(path, f"is not valid: {error}") from error
    return TableState(
        path=path,
        location=metadata.location,
        columns=columns,
        current_ids={one.name.lower(): one.field_id for one in metadata.schema().fields},
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        manifest_list=(snapshot.manifest_list or None) if snapshot else None,
        committed_ms=snapshot.timestamp_ms if snapshot else None,
        times_ms={one.snapshot_id: one.timestamp_ms for one in metadata.snapshots},
        specs={spec.spec_id: _fields(spec, metadata) for spec in metadata.partition_specs},
        snapshot_count=len(metadata.snapshots),
    )


def parsed_metadata(content: bytes, path: str, max_fields: int) -> dict[str, Any]:
    """Return the JSON of a metadata file, after looking at what Windrow reads of it at all.

    Args:
        content: Content of the file.
        path: Path of the file.
        max_fields: Most fields of one schema.

    Raises:
        IcebergMetadataError: It is too large, not JSON, of a newer version, or of an encrypted table.
    """
    if content.startswith(_GZIP):
        content = _inflated(content, path)
    beyond: list[str] = []
    try:
        refuse_wide_json(content, _SCHEMAS * max_fields)
        metadata = json.loads(content, parse_int=lambda digits: _whole(digits, beyond))
        if beyond or _HALF_CHARACTER.search(content):
            _refuse_odd(metadata, "", path)
        for schema in _schemas(metadata):
            refuse_wide(_count(schema), max_fields)
        refuse_wide(_fields_in_specs(metadata), max_fields)
    except TooWideError as error:
        raise IcebergMetadataError(path, f"has {error}") from error
    except (ValueError, RecursionError) as error:
        raise IcebergMetadataError(path, "is damaged: it is not JSON") from error
    version = metadata.get("format-version") if isinstance(metadata, dict) else None
    if version is None:
        raise IcebergMetadataError(path, "is not the metadata of a table: it has no version")
    if version not in _VERSIONS:
        raise IcebergMetadataError(
            path,
            f"has Iceberg's format version {version}, which Windrow cannot read: write the table "
            "in version 3 or less",
        )
    if metadata.get("encryption-keys") or (metadata.get("properties") or {}).get(
        "encryption.key-id"
    ):
        raise IcebergMetadataError(
            path,
            "states that the table is encrypted, which Windrow cannot read: read it with Spark",
        )
    return dict(metadata)


def _schemas(metadata: Any) -> Iterator[Any]:
    """Yield the schemas in metadata."""
    if isinstance(metadata, dict):
        yield metadata.get("schema")
        if isinstance(schemas := metadata.get("schemas"), list):
            yield from schemas


def _fields_in_specs(metadata: Any) -> int:
    """Return the number of fields in all partition specs and sort orders."""
    if not isinstance(metadata, dict):
        return 0
    specs = [{"fields": metadata.get("partition-spec")}]
    for name in ("partition-specs", "sort-orders"):
        if isinstance(some := metadata.get(name), list):
            specs += [one for one in some if isinstance(one, dict)]
    lists = [one.get("fields") for one in specs]
    return sum(len(one) for one in lists if isinstance(one, list))


def _count(value: Any, levels: int = -1) -> int:
    """Return the number of types in a schema, which may not be nested too deeply."""
    if isinstance(value, list):
        return sum(_count(one, levels) for one in value)
    if isinstance(value, dict):
        levels += not _PARTS.isdisjoint(value)
        refuse_deep(levels)
        return ("type" in value) + sum(_count(one, levels) for one in value.values())
    return 0


def _whole(digits: str, beyond: list[str]) -> int:
    number = int(digits)
    if not -_LIMIT <= number < _LIMIT:
        beyond.append(digits)
    return number


def _refuse_odd(value: Any, where: str, path: str) -> None:
    """Refuse numbers beyond 64 bits and texts that are not Unicode, by the name of their field."""
    if isinstance(value, dict):
        for name, one in value.items():
            _refuse_odd(name, where or "the names of its fields", path)
            _refuse_odd(one, f"{where}.{name}" if where else name, path)
    elif isinstance(value, list):
        for at, one in enumerate(value):
            _refuse_odd(one, f"{where}[{at}]", path)
    elif isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
        raise IcebergMetadataError(path, f"is not valid: {where}: the number exceeds 64 bits")
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise IcebergMetadataError(path, f"is not valid: {where}: not Unicode") from error


def _require_lists(metadata: Mapping[str, Any], path: str) -> None:
    for one in metadata.get("snapshots") or ():
        if isinstance(one, dict) and "manifests" in one and not one.get("manifest-list"):
            raise IcebergMetadataError(
                path,
                f"has snapshot {one.get('snapshot-id')} without a list of manifests, as writers of "
                "Iceberg's first version left it, with its `manifests` in the metadata, which "
                "Windrow cannot read: commit to the table with a later release of Iceberg, then expire "
                "this snapshot",
            )


def _require_times(metadata: TableMetadata, path: str) -> None:
    for one in metadata.snapshots:
        if not 0 <= one.timestamp_ms <= _MOST_MS:
            raise IcebergMetadataError(
                path,
                f"is not valid: snapshots: timestamp-ms of snapshot {one.snapshot_id} is "
                f"{one.timestamp_ms}, which is not a time in milliseconds",
            )


def _inflated(content: bytes, path: str) -> bytes:
    inflating = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = inflating.decompress(content, MAX_METADATA_BYTES)
    except zlib.error as error:
        raise IcebergMetadataError(path, "is damaged: it cannot be unpacked") from error
    if not inflating.eof:
        raise IcebergMetadataError(
            path, f"is cut off, or has more than {MAX_METADATA_BYTES:,} bytes: expire snapshots"
        )
    return text


def _chosen(metadata: TableMetadata, path: str, version: str) -> tuple[Snapshot | None, int]:
    """Return the requested snapshot, and the id of the schema that it is read with."""
    by_id = {str(one.snapshot_id): one for one in metadata.snapshots}
    current = metadata.current_schema_id
    if version == _MAIN:
        id_, is_branch = metadata.current_snapshot_id, True
        if id_ is None or id_ == _NO_SNAPSHOT:
            return None, current
    elif version in metadata.refs:
        ref = metadata.refs[version]
        id_, is_branch = ref.snapshot_id, ref.snapshot_ref_type == SnapshotRefType.BRANCH
    elif version in by_id:
        id_, is_branch = int(version), False
    else:
        newest = sorted(metadata.snapshots, key=lambda one: -one.timestamp_ms)
        names = [*sorted(metadata.refs), *(str(one.snapshot_id) for one in newest)]
        raise IcebergVersionError(path, version, tuple(names[:_SHOWN]))
    snapshot = by_id.get(str(id_))
    if snapshot is None:
        raise IcebergMetadataError(path, f"is damaged: snapshot {id_} of {version!r} is missing")
    # A branch is read with the table's current columns, a tag or snapshot with its own.
    schema_id = None if is_branch else snapshot.schema_id
    return snapshot, current if schema_id is None else schema_id


def _columns(
    metadata: TableMetadata, metadata_json: Mapping[str, Any], schema_id: int
) -> pa.Schema:
    schema = next((one for one in metadata.schemas if one.schema_id == schema_id), None)
    if schema is None:
        raise ValueError(f"schema {schema_id} is missing")
    texts: Sequence[Mapping[str, Any]] = metadata_json.get("schemas") or [metadata_json["schema"]]
    as_json = next((one for one in texts if one.get("schema-id", 0) == schema_id), texts[-1])
    mapping = metadata.name_mapping()
    return arrow_schema(schema, as_json, list(mapping) if mapping is not None else [])


def _fields(spec: PartitionSpec, metadata: TableMetadata) -> tuple[PartitionField, ...]:
    return tuple(
        PartitionField(one.field_id, one.source_id, str(one.transform), _type(one, metadata))
        for one in spec.fields
    )


def _type(field: IcebergField, metadata: TableMetadata) -> str:
    for schema in reversed(metadata.schemas):
        with suppress(ValueError):
            return str(field.transform.result_type(schema.find_type(field.source_id)))
    return ""
