"""Iceberg's manifests, from the columns of Windrow's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat
from windrow_core.files.calendars import FIRST_GREGORIAN_DAY, SETTLED_US, has_calendar
from windrow_core.files.table_paths import is_outside
from windrow_core.files.types import stored_as
from windrow_service.avro import encoding
from windrow_service.engines.columns import NameTree, TableColumns, joined_trees
from windrow_service.engines.entry_schemas import decimal_width, entry_schema
from windrow_service.engines.storage import REWRITE, Stored, stored
from windrow_service.inventory.manifests.encoding import Manifest

# Raise it when the same manifest, or the record of the same snapshot, gets other content.
EDITION = 6
# The columns of Windrow's manifests that Iceberg's are made from.
NEEDED = (
    "path",
    "size_bytes",
    "row_count",
    "delete_count",
    "deletes",
    "partition",
    "stats",
    "layout",
)
# Longer bounds of texts are left out.
_MAX_BOUND_BYTES = 256
_EXISTING = 0
_DATA = 0
# The partition spec of the table's own files, and the one of files that hold several partitions.
OWN_SPEC, NO_SPEC = 0, 1
# Iceberg's client for Java passes over deletes of the number 0.
DATA_SEQUENCE, VECTOR_SEQUENCE = 0, 1


class UnfitFileError(ValueError):
    """Other engines would read a file wrongly; the text names it, and says what to do."""


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """What a list of manifests says about one of them.

    Attributes:
        length: Bytes of the manifest.
        file_count: Number of its files, or of its deletion vectors.
        row_count: Number of their rows, or of those that the vectors name.
        partitions: For each partition column, whether a value is null, and the encoded least and
            greatest value in hexadecimal digits, or None.
        spec_id: Number of the files' partition spec.
    """

    length: int
    file_count: int
    row_count: int
    partitions: Sequence[tuple[bool, str | None, str | None]]
    spec_id: int = OWN_SPEC


@dataclass(frozen=True, slots=True)
class ManifestFigures:
    """What is known about a manifest and its files.

    Attributes:
        files: What a list of manifests says about it.
        vectors: The same of the manifest of the files' deletion vectors; None if there are none.
        spellings: How the files spell their columns, by their names in lower case.
        within: What lies in columns of files that the table lacks, by their names in lower case.
        inner: How the files call what lies in lists and maps; see `InnerNames`.
        unfit: For each reader that would fail on a file, or read other values, the file and why.
    """

    files: ListedManifest
    vectors: ListedManifest | None
    spellings: Mapping[str, Sequence[str]]
    within: NameTree
    inner: Mapping[str, Sequence[str]]
    unfit: Mapping[str, str]

    def to_text(self) -> str:
        """Return them as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> ManifestFigures:
        """Return them from JSON."""
        parts = json.loads(text)
        vectors = parts.pop("vectors")
        return cls(
            files=ListedManifest(**parts.pop("files")),
            vectors=None if vectors is None else ListedManifest(**vectors),
            **parts,
        )


def manifest_name(manifest: Manifest, location: str, columns: TableColumns) -> str:
    """Return the name of a manifest, which says everything that its content depends on."""
    names = [columns.names] if columns.names else []
    digest = hashlib.sha256(json.dumps([EDITION, location, columns.as_schema(), *names]).encode())
    digest.update(manifest.manifest_id.encode())
    digest.update(manifest.removed.tobytes())
    return digest.hexdigest()[:40]


def described(
    files: pa.Table, location: str, columns: TableColumns, spec_id: int = OWN_SPEC
) -> tuple[bytes, ManifestFigures]:
    """Return a manifest of some files as Iceberg has it; their deletion vectors are in another one.

    Args:
        files: n files, with the columns `NEEDED`.
        location: The table's location.
        columns: The table's columns.
        spec_id: Number of the files' partition spec.

    Raises:
        UnfitFileError: Other engines would read one of the files wrongly.
    """
    lengths = pc.fill_null(pc.list_value_length(files["deletes"]), 0)
    at = int(pc.index(pc.greater(files["delete_count"], lengths), True).as_py())
    if at >= 0:
        raise UnfitFileError(
            f"file {files['path'][at].as_py()!r} has deleted rows, and the inventory does not say "
            "which: read the table with Windrow's client"
        )
    storage = _storage(files, columns)
    at = int(pc.index(files["row_count"].is_null(), True).as_py())
    if at >= 0:
        raise UnfitFileError(
            f"file {files['path'][at].as_py()!r}: its number of rows is not known: let a refresh "
            "read the footers"
        )
    blocks = (
        _entries(files.slice(begin, encoding.BLOCK_ROWS), location, columns)
        for begin in range(0, len(files), encoding.BLOCK_ROWS)
    )
    head = header(columns, "data", spec_id)
    content = encoding.avro_file(entry_schema(columns), head, blocks)
    row_count = int(pc.sum(files["row_count"]).as_py())
    return content, ManifestFigures(
        files=listed(content, files, columns, row_count, spec_id),
        vectors=None,
        **storage,
    )


def header(columns: TableColumns, content: str, spec_id: int = OWN_SPEC) -> dict[str, str]:
    """Return what a manifest says about itself.

    Args:
        columns: The table's columns.
        content: What it names: `data`, `positions` (of deleted rows), or `deletes` (vectors).
        spec_id: Number of its files' partition spec.
    """
    return {
        "schema": json.dumps(columns.as_schema()),
        "schema-id": str(columns.schema_id),
        "partition-spec": json.dumps(columns.as_spec()),
        "partition-spec-id": str(spec_id),
        # Only deletion vectors are newer.
        "format-version": "3" if content == "deletes" else "2",
        "content": "data" if content == "data" else "deletes",
    }


def listed(
    content: bytes,
    files: pa.Table,
    columns: TableColumns,
    row_count: int,
    spec_id: int = OWN_SPEC,
) -> ListedManifest:
    """Return what a list of manifests says about one of them.

    Args:
        content: The manifest.
        files: Its files.
        columns: The table's columns.
        row_count: The number of rows that it says.
        spec_id: Number of the files' partition spec.
    """
    partitions = [_summary(values) for _, values in _partitions(files, columns)]
    return ListedManifest(len(content), len(files), row_count, partitions, spec_id)


def _storage(files: pa.Table, columns: TableColumns) -> dict[str, Any]:
    """Return the figures that come from the layouts of files."""
    kinds: list[Stored] = []
    unfit: dict[str, str] = {}
    layouts = flat(files["layout"])
    for layout in pc.unique(layouts).to_pylist():
        kind = stored(layout, columns)
        kinds.append(kind)
        if kind.trouble is None and not kind.old and kind.unfit.keys() <= unfit.keys():
            continue
        same = files.filter(layouts.is_null() if layout is None else pc.equal(layouts, layout))
        path = same["path"][0].as_py()
        if kind.trouble is not None:
            raise UnfitFileError(f"file {path!r}: {kind.trouble}")
        for field in kind.old:
            _require_settled(same, field)
        for reader, why in kind.unfit.items():
            unfit.setdefault(reader, f"file {path!r}: {why}")
    return {
        "spellings": _all_names([kind.spellings for kind in kinds]),
        "within": joined_trees(kind.within for kind in kinds),
        "inner": _all_names([kind.inner for kind in kinds]),
        "unfit": unfit,
    }


def _all_names(some: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    names: dict[str, set[str]] = {}
    for one in some:
        for key, name in one.items():
            names.setdefault(key, set()).add(name)
    return {key: sorted(all_names) for key, all_names in names.items()}


def _require_settled(files: pa.Table, field: pa.Field) -> None:
    """Refuse files that may hold values of a column that are others in the calendar before Gregory's."""
    stats, count = flat(files["stats"]), len(files)
    if has_calendar(field.type) and field.name in stats.type.names:
        least, _, nulls = pc.struct_field(stats, field.name).flatten()
        first = FIRST_GREGORIAN_DAY if pt.is_date(field.type) else SETTLED_US
        is_settled = pc.greater_equal(least.cast(stored_as(field.type)), first)
        is_sure = pc.or_kleene(is_settled, pc.equal(nulls, flat(files["row_count"])))
    else:
        is_sure = pa.repeat(False, count)
    at = int(pc.index(pc.fill_null(is_sure, False), False).as_py())
    if at >= 0:
        raise UnfitFileError(
            f"file {files['path'][at].as_py()!r}: column {field.name!r} may hold dates or times in "
            f"the calendar before Gregory's, which engines do not know: {REWRITE}"
        )


def _entries(files: pa.Table, location: str, columns: TableColumns) -> pa.Array:
    count = len(files)
    rows = np.asarray(files["row_count"], np.int64)
    row_counts = encoding.longs(rows)
    null_counts, lower, upper = _statistics(flat(files["stats"]), columns)
    # To Iceberg's library null is less than any value, unless these counts say that there is nothing
    # else: Trino would return the rows of null partitions for conditions such as `n < 2`.
    null_counts += [
        (columns.ids[field.name.lower()], pc.if_else(values.is_null(), row_counts, None))
        for field, values in _partitions(files, columns)
    ]
    # A decoder pays for each entry of a map, and readers need a column's number of values only to
    # see that all of them are null.
    all_null = [
        (key, pc.if_else(pc.equal(nulls, row_counts), row_counts, None))
        for key, nulls in null_counts
    ]
    return encoding.rows(
        [
            entry_head(DATA_SEQUENCE) + encoding.long(_DATA),
            encoding.data(absolute_paths(files["path"], location)),
            encoding.datum(b"PARQUET"),
            *partition_values(files, columns),
            row_counts,
            encoding.longs(np.asarray(files["size_bytes"], np.int64)),
            no_sizes(count),
            encoding.optional(encoding.number_map(all_null, count)),
            encoding.optional(encoding.number_map(null_counts, count)),
            encoding.optional(encoding.number_map(lower, count)),
            encoding.optional(encoding.number_map(upper, count)),
        ]
    )


def no_sizes(count: int) -> pa.Array:
    """Return the sizes of columns of n files, of which nothing is said: PyIceberg asks for a map."""
    return encoding.optional(encoding.number_map([], count))


def entry_head(sequence: int) -> bytes:
    """Return what comes first in entries: a status, no snapshot, and both sequence numbers."""
    number = b"\x02" + encoding.long(sequence)
    return encoding.long(_EXISTING) + b"\x00" + number + number


def absolute_paths(paths: pa.ChunkedArray, location: str) -> pa.Array:
    """Return the absolute paths or URIs of files.

    Args:
        paths: Their paths, as in inventories.
        location: The table's location.
    """
    paths = flat(paths)
    outside = pa.array([is_outside(path) for path in paths.to_pylist()], pa.bool_())
    below = pc.binary_join_element_wise(pa.scalar(location.rstrip("/") + "/"), paths, "")
    return pc.if_else(outside, paths, below)


def partition_values(files: pa.Table, columns: TableColumns) -> list[pa.Array]:
    """Return the encoded values of each partition column of some files."""
    return [encoding.optional(_encoded(values)) for _, values in _partitions(files, columns)]


_ById = list[tuple[int, pa.Array]]


def _statistics(stats: pa.StructArray, columns: TableColumns) -> tuple[_ById, _ById, _ById]:
    null_counts: _ById = []
    bounds: tuple[_ById, _ById] = ([], [])
    for field, values in zip(stats.type, stats.flatten(), strict=True):
        key = columns.ids[field.name.lower()]
        *ends, nulls = values.flatten()
        counts = encoding.longs(np.asarray(pc.fill_null(nulls, 0), np.int64))
        null_counts.append((key, pc.if_else(nulls.is_valid(), counts, None)))
        for some, end in zip(bounds, ends, strict=True):
            plain = _bound(end)
            if plain is not None:
                some.append((key, plain))
    return null_counts, *bounds


def _bound(values: pa.Array) -> pa.Array | None:
    """Return values in Iceberg's form of bounds; None if it has another order, or NaN."""
    if pt.is_floating(values.type) or pt.is_decimal(values.type) or pt.is_binary(values.type):
        return None
    plain = _plain(values)
    if pt.is_string(values.type):
        short = pc.less_equal(pc.binary_length(plain), _MAX_BOUND_BYTES)
        plain = pc.if_else(short, plain, None)
    return encoding.data(plain)


def _plain(values: pa.Array) -> pa.Array:
    """Return values as Iceberg writes single ones; null stays null."""
    if pt.is_string(values.type):
        return values.cast(pa.binary())
    if pt.is_decimal(values.type):
        content = _decimal_bytes(values, 16)
        return pa.array([one and _shortest(one) for one in content.to_pylist()], pa.binary())
    numbers = values.cast(stored_as(values.type))
    numbers = pc.cast(numbers, _number_type(numbers.type))
    content = encoding.fixed(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False))
    return pc.if_else(values.is_valid(), content, None)


def _number_type(type_: pa.DataType) -> pa.DataType:
    if pt.is_boolean(type_):
        return pa.int8()
    return pa.int64() if type_ == pa.int64() else pa.int32()


def _decimal_bytes(values: pa.Array, width: int) -> pa.Array:
    """Return decimals as big-endian numbers of a width in bytes; null stays null."""
    raw = np.frombuffer(values.buffers()[1], np.uint8)
    raw = raw[values.offset * 16 : (values.offset + len(values)) * 16].reshape(-1, 16)
    content = np.ascontiguousarray(raw[:, ::-1][:, 16 - width :])
    flat_bytes = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(values), [None, pa.py_buffer(content)]
    )
    return pc.if_else(values.is_valid(), flat_bytes.cast(pa.binary()), None)


def _shortest(number: bytes) -> bytes:
    value = int.from_bytes(number, "big", signed=True)
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def _encoded(values: pa.Array) -> pa.Array:
    """Return the Avro encodings of partition values; null stays null."""
    type_ = values.type
    if pt.is_string(type_):
        return encoding.data(values)
    if pt.is_decimal(type_):
        return _decimal_bytes(values, decimal_width(type_.precision))
    if pt.is_boolean(type_):
        return _plain(values)
    numbers = pc.fill_null(values.cast(stored_as(type_)).cast(pa.int64()), 0)
    return pc.if_else(values.is_valid(), encoding.longs(np.asarray(numbers)), None)


def _partitions(files: pa.Table, columns: TableColumns) -> Iterator[tuple[pa.Field, pa.Array]]:
    partition = flat(files["partition"])
    yield from zip(columns.partition, partition.flatten(), strict=True)


def _summary(values: pa.Array) -> tuple[bool, str | None, str | None]:
    ends = pc.min_max(values)
    texts = []
    for name in ("min", "max"):
        plain = _plain(pa.array([ends[name].as_py()], values.type))[0].as_py()
        texts.append(None if plain is None else plain.hex())
    return bool(values.null_count), texts[0], texts[1]
