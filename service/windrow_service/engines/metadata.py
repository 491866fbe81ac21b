"""Lists of manifests, and a table's metadata, as Iceberg has them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.models import TableInfo
from windrow_service.avro import encoding
from windrow_service.engines.columns import (
    InnerNames,
    NameTree,
    TableColumns,
    joined_trees,
    mapped_fields,
    name_mapping,
)
from windrow_service.engines.manifests import (
    DATA_SEQUENCE,
    NO_SPEC,
    OWN_SPEC,
    VECTOR_SEQUENCE,
    ListedManifest,
    ManifestFigures,
)

NAME_MAPPING = "schema.name-mapping.default"
# Engines write files before they commit, which is refused here. In the table's folder, the next
# refresh would take them for the table's own; no engine has a file system of this name. And they
# remove files that no snapshot names without any commit, unless the table says that it is not theirs.
READ_ONLY = {
    **dict.fromkeys(("write.data.path", "write.metadata.path"), "read-only://write-with-windrow"),
    # DuckDB writes deletion vectors into the folder `data` of the table's own, unless it must not.
    **dict.fromkeys(
        ("write.delete.mode", "write.update.mode", "write.merge.mode"), "copy-on-write"
    ),
    "gc.enabled": "false",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_PARTITION_ID = 1000
_DATA, _DELETES = 0, 1


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """What the metadata says about a snapshot; it never changes.

    Attributes:
        snapshot_id: The snapshot's number, which is also its sequence number.
        timestamp_ms: When it was made, in milliseconds since 1970.
        schema: Its columns, as Iceberg's schema.
        spec: Its partition columns, as the fields of Iceberg's partition spec.
        last_id: The greatest id of its fields.
        spellings: How its files spell their columns, by their names in lower case.
        manifest_list: Where its list of manifests is.
        manifests: Names of its manifests.
        vectors: Those of them of which some files have deletion vectors.
        figures: Totals, as texts.
        names: How files call the fields of Delta's column mapping, by their ids; empty without it.
        within: What lies in columns of its files that it lacks, by their names in lower case.
        inner: How its files call what lies in lists and maps; see `InnerNames`.
        unfit: For each reader that would fail on a file, or read other values, the file and why.
        of_packs: Names of files that say which packs stand for some of its files; empty for none.
    """

    snapshot_id: int
    timestamp_ms: int
    schema: dict[str, Any]
    spec: list[dict[str, Any]]
    last_id: int
    spellings: dict[str, list[str]]
    manifest_list: str
    manifests: list[str]
    vectors: list[str]
    figures: dict[str, str]
    names: dict[int, str]
    within: NameTree
    inner: dict[str, list[str]]
    unfit: dict[str, str]
    of_packs: list[str] = field(default_factory=list)

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def of_text(cls, text: str) -> SnapshotRecord:
        """Return it from JSON."""
        parts = json.loads(text)
        names = {int(number): name for number, name in parts.pop("names").items()}
        return cls(**parts, names=names)

    @property
    def types(self) -> dict[int, str]:
        """The type of each partition column, by its id."""
        types = {field["id"]: json.dumps(field["type"]) for field in self.schema["fields"]}
        return {one["source-id"]: types[one["source-id"]] for one in self.spec}

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """How its files call the columns of Delta's column mapping."""
        return mapped_fields(self.schema["fields"], self.names, {}, {}, InnerNames({}))


def beside_the_last(records: Sequence[SnapshotRecord]) -> list[SnapshotRecord]:
    """Return the records that the metadata of a table can have beside the last one.

    It has one partition spec, and one mapping of names: a name in files has one id, and an id one name,
    also within columns.

    Args:
        records: Records of snapshots, oldest first; the last one is always among the result.
    """
    current = records[-1]
    text_of: dict[int | str, str] = {}
    some: list[SnapshotRecord] = []
    for one in reversed(records):
        entries = {
            key: json.dumps(entry)
            for entry in one.mapping
            for key in (entry["field-id"], entry["names"][0])
        }
        if (
            one.spec == current.spec
            and one.types == current.types
            and bool(one.names) == bool(current.names)
            and all(text_of.get(key, text) == text for key, text in entries.items())
        ):
            text_of |= entries
            some.append(one)
    return some[::-1]


def in_ms(at: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return int(at.timestamp() * 1000)


def in_us(at: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def table_uuid(table: TableInfo, number: int) -> str:
    """Return a name of a table that no other table has, on any coordinator.

    Args:
        table: The table.
        number: Its number in the database.
    """
    text = f"{table.created_at.isoformat()} {number} {table.definition.location}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:windrow:table:{text}"))


def joined_spellings(some: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Return all spellings of each column."""
    names: dict[str, set[str]] = {}
    for one in some:
        for name, spellings in one.items():
            names.setdefault(name, set()).update(spellings)
    return {name: sorted(spellings) for name, spellings in names.items()}


def first_of_each(some: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the first text of each key."""
    return {key: text for one in reversed(some) for key, text in one.items()}


def manifest_list(
    snapshot_id: int,
    columns: TableColumns,
    manifests: Sequence[tuple[str, str | None, ManifestFigures]],
    positions: Sequence[tuple[str, ListedManifest]] = (),
) -> bytes:
    """Return a list of manifests.

    Files count as existing ones: which of them a snapshot has added, its manifests do not say.

    Args:
        snapshot_id: The snapshot.
        columns: Its columns.
        manifests: The manifests: where they are and, if they have some, where those of their
            files' deletion vectors are; and their figures.
        positions: Where manifests of files with positions of deleted rows are, and their figures.
    """
    data = [(path, one.files) for path, _, one in manifests]
    vectors = [(path, one.vectors) for _, path, one in manifests if path and one.vectors]
    deletes = [*vectors, *positions]
    counts = [len(data), len(deletes)]
    content = encoding.longs(np.repeat([_DATA, _DELETES], counts))
    sequence = encoding.longs(np.repeat([DATA_SEQUENCE, VECTOR_SEQUENCE], counts))
    paths = pa.array([path for path, _ in data + deletes], pa.string())
    figures: list[ListedManifest] = [one for _, one in data + deletes]

    def numbers(name: str) -> pa.Array:
        return encoding.longs(np.array([getattr(one, name) for one in figures], np.int64))

    summaries = pa.array([_summaries(one) for one in figures], pa.binary())
    zero = encoding.long(0)
    rows = encoding.rows(
        [
            encoding.data(paths),
            numbers("length"),
            numbers("spec_id"),
            content,
            sequence,
            sequence,
            encoding.long(snapshot_id),
            # files added, existing and deleted; the same of rows
            zero,
            numbers("file_count"),
            zero * 2,
            numbers("row_count"),
            zero,
            encoding.optional(summaries),
        ]
    )
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null",
        "sequence-number": str(snapshot_id),
        "format-version": "3" if vectors else "2",
    }
    return encoding.avro_file(_LIST_SCHEMA, metadata, [rows])


def _summaries(figures: ListedManifest) -> bytes:
    parts = []
    for has_null, lower, upper in figures.partitions:
        parts.append(b"\x01" if has_null else b"\x00")
        # Whether a value is NaN is not known.
        parts.append(b"\x00")
        for end in (lower, upper):
            parts.append(b"\x00" if end is None else b"\x02" + encoding.datum(bytes.fromhex(end)))
    count = encoding.long(len(figures.partitions)) if figures.partitions else b""
    return count + b"".join(parts) + b"\x00"


def inner_names(records: Sequence[SnapshotRecord]) -> InnerNames:
    """Return how the files of a table's snapshots, oldest first, call what lies in lists and maps."""
    return InnerNames(joined_spellings([one.inner for one in beside_the_last(records)]))


def table_metadata(
    table: TableInfo,
    number: int,
    records: Sequence[SnapshotRecord],
    inner: InnerNames,
) -> dict[str, Any]:
    """Return a table's metadata.

    Args:
        table: The table.
        number: Its number in the database.
        records: Its snapshots, oldest first; the last one is the current one. Older ones with other
            partition columns, or another mapping of names, are left out.
        inner: From `inner_names`.
    """
    current = records[-1]
    history = beside_the_last(records)
    schemas = {one.schema["schema-id"]: one.schema for one in history}
    spellings = joined_spellings([one.spellings for one in history])
    all_fields = {field["id"]: field for one in history for field in one.schema["fields"]}
    names = {number: name for one in history for number, name in one.names.items()}
    fields = list(all_fields.values())
    within = joined_trees([one.within for one in history])
    mapping = (
        mapped_fields(fields, names, spellings, within, inner)
        if names
        else name_mapping(fields, spellings, within, inner)
    )
    has_vectors = any(one.vectors for one in history)
    snapshots = [_snapshot(one, history[at - 1] if at else None) for at, one in enumerate(history)]
    return {
        # Engines that do not know deletion vectors refuse the later version.
        **({"format-version": 3, "next-row-id": 0} if has_vectors else {"format-version": 2}),
        "table-uuid": table_uuid(table, number),
        "location": table.definition.location,
        "last-sequence-number": current.snapshot_id,
        "last-updated-ms": current.timestamp_ms,
        "last-column-id": max(one.last_id for one in history),
        "schemas": list(schemas.values()),
        "current-schema-id": current.schema["schema-id"],
        "partition-specs": _specs(current.spec, has_packs=any(one.of_packs for one in history)),
        "default-spec-id": OWN_SPEC,
        "last-partition-id": _FIRST_PARTITION_ID - 1 + len(current.spec),
        "properties": {
            **READ_ONLY,
            NAME_MAPPING: json.dumps(mapping),
        },
        "current-snapshot-id": current.snapshot_id,
        "snapshots": snapshots,
        "snapshot-log": [
            {"snapshot-id": one.snapshot_id, "timestamp-ms": one.timestamp_ms} for one in history
        ],
        "metadata-log": [],
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "refs": {"main": {"snapshot-id": current.snapshot_id, "type": "branch"}},
        "statistics": [],
        "partition-statistics": [],
    }


def _specs(own: list[dict[str, Any]], *, has_packs: bool) -> list[dict[str, Any]]:
    specs = [{"spec-id": OWN_SPEC, "fields": own}]
    # Two equal specs would be one.
    return [*specs, {"spec-id": NO_SPEC, "fields": []}] if has_packs and own else specs


def _snapshot(record: SnapshotRecord, parent: SnapshotRecord | None) -> dict[str, Any]:
    return {
        "snapshot-id": record.snapshot_id,
        **({} if parent is None else {"parent-snapshot-id": parent.snapshot_id}),
        "sequence-number": record.snapshot_id,
        "timestamp-ms": record.timestamp_ms,
        # Whatever happened: readers of what was added must not take it for less than it was.
        "summary": {"operation": "overwrite", **record.figures},
        "manifest-list": record.manifest_list,
        "schema-id": record.schema["schema-id"],
    }


def _field(name: str, number: int, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": number, **more}


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field("contains_null", 509, "boolean"),
        _field("contains_nan", 518, ["null", "boolean"], default=None),
        _field("lower_bound", 510, ["null", "bytes"], default=None),
        _field("upper_bound", 511, ["null", "bytes"], default=None),
    ],
}
_LIST_SCHEMA = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", 500, "string"),
        _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"),
        _field("content", 517, "int"),
        _field("sequence_number", 515, "long"),
        _field("min_sequence_number", 516, "long"),
        _field("added_snapshot_id", 503, "long"),
        _field("added_files_count", 504, "int"),
        _field("existing_files_count", 505, "int"),
        _field("deleted_files_count", 506, "int"),
        _field("added_rows_count", 512, "long"),
        _field("existing_rows_count", 513, "long"),
        _field("deleted_rows_count", 514, "long"),
        _field(
            "partitions",
            507,
            ["null", {"type": "array", "items": _SUMMARY, "element-id": 508}],
            default=None,
        ),
    ],
}
