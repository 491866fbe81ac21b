"""An inventory cut into immutable manifests, named by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files import trust
from windrow_core.files.arrays import flat
from windrow_core.files.rows import (
    EXCERPT_FIELDS,
    EXTRA_FIELDS,
    FIXED_FIELDS,
    NEWER_COLUMNS,
    ROW_COLUMNS,
)
from windrow_core.files.types import stored_as
from windrow_service.inventory.errors import CorruptManifestError
from windrow_service.planner.pruning.ranges import range_of

MANIFEST_FILES = 50_000

_WRITE_OPTIONS = pa.ipc.IpcWriteOptions(
    metadata_version=pa.ipc.MetadataVersion.V5, compression=pa.Codec("zstd", compression_level=3)
)

# Null in this column means that a file's footer has to be read again.
_BY_RULES = "grouped_columns"
# Metadata of a manifest's schema: under which rules the footers of its files were read.
_RULES_KEY = b"windrow:rules"

_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manifest:
    """A manifest as one snapshot sees it: rows that never change, minus removed ones.

    Attributes:
        manifest_id: SHA-256 of the encoded rows, 64 lower-case hexadecimal digits.
        first_path: Least path of its rows, including removed ones.
        last_path: Greatest path of its rows, including removed ones. Other manifests may have
            paths between the two.
        ranges: A table of ranges as in `planner.pruning.ranges`, of this manifest and perhaps of
            others in the same snapshot. The counts are those of live rows; the bounds hold for
            all rows.
        row: The manifest's row in `ranges`.
        removed: Positions of removed rows, ascending.
        data: The rows as an Arrow IPC stream; None if they are stored already.
    """

    manifest_id: str
    first_path: str
    last_path: str
    ranges: pa.Table
    row: int = 0
    removed: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    data: bytes | None = None

    @property
    def file_count(self) -> int:
        """Number of live rows, at least 1."""
        count: int = self.ranges["file_count"][self.row].as_py()
        return count

    @property
    def range(self) -> pa.Table:
        """The manifest's range, as one row."""
        return self.ranges.slice(self.row, 1)

    def without(self, positions: npt.NDArray[np.int64], size_bytes: int) -> Manifest | None:
        """Return the manifest without some more of its rows; None if no row is left.

        Args:
            positions: Rows that are not removed yet, without duplicates.
            size_bytes: Bytes of the files in those rows.
        """
        file_count = self.file_count - len(positions)
        if not file_count:
            return None
        left_bytes = self.range["size_bytes"][0].as_py() - size_bytes
        counts = {"file_count": file_count, "size_bytes": left_bytes}
        range_ = self.range
        for name, count in counts.items():
            at = range_.schema.get_field_index(name)
            range_ = range_.set_column(at, name, pa.array([count], pa.int64()))
        positions_gone = np.union1d(self.removed, positions).astype(np.int32)
        return replace(self, ranges=range_, row=0, removed=positions_gone)


def cut_files(
    files: pa.Table,
    manifest_files: int = MANIFEST_FILES,
    check: Callable[[], None] = lambda: None,
) -> list[Manifest]:
    """Cut files into new manifests of even size, in path order.

    Args:
        files: n files, sorted by path.
        manifest_files: Most files of a manifest.
        check: Called between manifests and between columns; raises to stop.
    """
    pieces = -(-len(files) // manifest_files)
    edges = [len(files) * piece // pieces for piece in range(pieces + 1)] if pieces else []
    manifests = []
    for first, last in pairwise(edges):
        rows = files.slice(first, last - first)
        data = encode_manifest(rows, check)
        manifests.append(
            Manifest(
                manifest_id=hashlib.sha256(data).hexdigest(),
                first_path=rows["path"][0].as_py(),
                last_path=rows["path"][-1].as_py(),
                ranges=range_of(rows, check),
                data=data,
            )
        )
    return manifests


def encode_manifest(files: pa.Table, check: Callable[[], None] = lambda: None) -> bytes:
    """Return the rows as bytes that depend only on their values and types, and on `trust.RULES`."""
    for names in (EXCERPT_FIELDS, ("layout",)):
        if names[0] in files.column_names and _is_null(files, names):
            files = files.drop_columns(list(names))
    table = _canonical(files, check)
    table = table.replace_schema_metadata({_RULES_KEY: str(trust.RULES)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE_OPTIONS) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode_manifest(
    data: bytes,
    *,
    columns: Collection[str] | None = None,
    bloom: bool = True,
    excerpts: bool = True,
) -> pa.Table:
    """Return the rows of a manifest.

    If it was made under other rules, `grouped_columns` is null: unknown, until a refresh reads the
    files' footers again.

    Args:
        data: The result of `encode_manifest`.
        columns: The columns wanted, or None for all; others cost nothing.
        bloom: Whether Bloom filters are wanted; if there are any, they are most of the bytes.
        excerpts: Whether `EXTRA_FIELDS` are wanted, which may be as large; if not, they are null.

    Raises:
        CorruptManifestError: The bytes are not a manifest.
    """
    if not data.endswith(_END_OF_STREAM):
        # Arrow accepts a stream that stops between two messages as complete.
        raise CorruptManifestError("its end is missing")

    def is_wanted(name: str) -> bool:
        return (columns is None or name in columns) and (bloom or name != "bloom")

    def is_read(name: str) -> bool:
        return is_wanted(name) and (excerpts or name not in EXTRA_FIELDS)

    try:
        with pa.ipc.open_stream(data) as reader:
            names = reader.schema.names
            read = [at for at, name in enumerate(names) if is_read(name)]
            if len(read) == len(names):
                return _with_added_columns(reader.read_all(), is_wanted)
        options = pa.ipc.IpcReadOptions(included_fields=read)
        with pa.ipc.open_stream(data, options=options) as reader:
            return _with_added_columns(reader.read_all(), is_wanted)
    except (pa.ArrowException, OSError) as error:
        raise CorruptManifestError(str(error)) from error


def follows_rules(data: bytes) -> bool:
    """Return whether the files of a manifest were read under `trust.RULES`.

    Raises:
        CorruptManifestError: The bytes are not a manifest.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            return _has_rules(reader.schema)
    except (pa.ArrowException, OSError) as error:
        raise CorruptManifestError(str(error)) from error


def _has_rules(schema: pa.Schema) -> bool:
    rules: bytes | None = (schema.metadata or {}).get(_RULES_KEY)
    return rules == str(trust.RULES).encode()


def _is_null(files: pa.Table, names: Collection[str]) -> bool:
    return all(files[name].null_count == len(files) for name in names)


def _with_added_columns(files: pa.Table, is_wanted: Callable[[str], bool]) -> pa.Table:
    """Return a manifest's rows under the current schema.

    Older manifests lack some columns, and do not allow null in another.
    """
    at = files.schema.get_field_index(_BY_RULES)
    if at >= 0 and not _has_rules(files.schema):
        unknown = pa.nulls(len(files), files.schema.field(at).type)
        files = files.set_column(at, files.schema.field(at), unknown)
    files = files.replace_schema_metadata(None)
    for column in NEWER_COLUMNS:
        if column.name not in files.column_names and is_wanted(column.name):
            at = min(ROW_COLUMNS.index(column), files.num_columns)
            files = files.add_column(at, column.field, column.unknown(len(files)))
    fields_now = {field.name: field for field in FIXED_FIELDS}
    now = pa.schema([fields_now.get(field.name, field) for field in files.schema])
    return files if now.equals(files.schema) else pa.table(files.columns, schema=now)


def _canonical(table: pa.Table, check: Callable[[], None]) -> pa.Table:
    columns = [_canonical_array(flat(column), check) for column in table.columns]
    fields = [pa.field(one.name, one.type, one.nullable) for one in table.schema]
    return pa.table(columns, schema=pa.schema(fields))


def _canonical_array(array: pa.Array, check: Callable[[], None]) -> pa.Array:
    """Return an equal array whose bytes depend only on its values.

    Otherwise the bytes under a null, and before and after a slice, are arbitrary.
    """
    check()
    if pt.is_struct(array.type):
        children = [_canonical_array(child, check) for child in array.flatten()]
        validity = _validity(array)
        return pa.Array.from_buffers(
            array.type, len(array), [validity], array.null_count, children=children
        )
    if pt.is_list(array.type):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
        buffers = [_validity(array), pa.py_buffer(offsets.astype(np.int32).tobytes())]
        values = _canonical_array(array.flatten(), check)
        return pa.Array.from_buffers(
            array.type, len(array), buffers, array.null_count, children=[values]
        )
    if pt.is_dictionary(array.type):
        codes = pc.unique(array.indices).drop_null()
        values = _canonical_array(array.dictionary.take(codes), check)
        indices = _canonical_array(pc.index_in(array.indices, codes), check)
        return pa.DictionaryArray.from_arrays(indices, values)
    if array.null_count == 0 or pt.is_null(array.type):
        return array
    own_buffers = pc.fill_null(array, _zero(array.type)).buffers()
    return pa.Array.from_buffers(array.type, len(array), [_validity(array), *own_buffers[1:]])


def _validity(array: pa.Array) -> pa.Buffer | None:
    if array.null_count == 0:
        return None
    mask = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(mask, bitorder="little").tobytes())


def _zero(type_: pa.DataType) -> pa.Scalar:
    if pt.is_string(type_) or pt.is_binary(type_) or pt.is_large_binary(type_):
        return pa.scalar(b"", pa.binary()).cast(type_)
    if pt.is_decimal(type_):
        return pa.scalar(Decimal(0), type_)
    return pa.scalar(0, pa.int8()).cast(stored_as(type_)).cast(type_)
