"""Outlines: what the footers of a writer's files have in common, apart from where chunks lie."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from windrow_core.files.calendars import DATETIME_MARK, VERSION
from windrow_core.files.excerpts.chunk_ranges import Ints
from windrow_core.files.excerpts.row_groups import row_groups
from windrow_core.files.excerpts.thrift import (
    BINARY,
    END,
    INT,
    LIST,
    LONG,
    STRUCT,
    Skimmer,
    ThriftError,
    field,
    integer,
    list_head,
    listed,
    text,
)

# Longer outlines would fill inventories and plans. 5,000 columns written by Arrow take a quarter.
MAX_OUTLINE_BYTES = 4 * 2**20

_ARROW_SCHEMA = b"ARROW:schema"
# Metadata that readers use besides the schema: calendars of dates and times.
_KEYS = (VERSION, DATETIME_MARK, b"org.apache.spark.legacyINT96", b"org.apache.spark.timeZone")
_CODECS = {
    "UNCOMPRESSED": 0,
    "SNAPPY": 1,
    "GZIP": 2,
    "BROTLI": 4,
    "ZSTD": 6,
    "LZ4": 7,  # not Hadoop's LZ4, for which Arrow has no name
}
_MR = re.compile(r"parquet-mr\b(?: version (\d+)\.(\d+)\.(\d+))?")
# In earlier versions, lengths of chunks did not count all of their bytes.
_MR_COUNTS_SINCE = (1, 2, 9)

_TYPE, _NAME, _CHILDREN = 1, 4, 5  # fields of Parquet's SchemaElement
_FOOTER_SCHEMA = 2
_VERSIONS = (1, 2)
_MAX_ELEMENTS = 2**14
_MAX_DEPTH = 64


class OutlineColumn(NamedTuple):
    """A top-level column.

    Attributes:
        name: Name as the files spell it.
        schema: Its part of the schema, in Thrift.
        leaves: For each of its leaves, the beginning of the metadata of a chunk, in Thrift.
        arrow: Its type in Arrow, as a schema of one field; None if the files do not state it.
    """

    name: str
    schema: bytes
    leaves: Sequence[bytes]
    arrow: bytes | None


@dataclass(frozen=True)
class Outline:
    """What the footers of some files have in common.

    Attributes:
        version: Version of the format.
        created_by: The writer; readers work around its known faults.
        keys: Metadata for readers besides the schema.
        columns: The top-level columns.
    """

    version: int
    created_by: str
    keys: Mapping[str, str]
    columns: Sequence[OutlineColumn]
    # Beginning and end of all footers. Not `cached_property`, which cannot be pickled by value.
    _ends: list[bytes] = dataclasses.field(default_factory=list, init=False, compare=False)

    @property
    def leaf_count(self) -> int:
        """How many leaves the columns have."""
        return sum(len(column.leaves) for column in self.columns)

    def only(self, names: Sequence[str]) -> tuple[Outline, list[int]]:
        """Return the outline of some columns, and the numbers of their leaves.

        Args:
            names: Names of columns, in any case; unknown names are ignored.
        """
        lower_names = {name.lower() for name in names}
        columns: list[OutlineColumn] = []
        leaves: list[int] = []
        at = 0
        for column in self.columns:
            if column.name.lower() in lower_names:
                columns.append(column)
                leaves += range(at, at + len(column.leaves))
            at += len(column.leaves)
        return Outline(self.version, self.created_by, self.keys, columns), leaves

    def to_text(self) -> str:
        """Return it as JSON."""
        columns = [
            {
                "name": column.name,
                "schema": _in_ascii(column.schema),
                "leaves": [_in_ascii(leaf) for leaf in column.leaves],
                "arrow": _in_ascii(column.arrow) if column.arrow is not None else None,
            }
            for column in self.columns
        ]
        content = {"version": self.version, "created_by": self.created_by, "keys": dict(self.keys)}
        return json.dumps({**content, "columns": columns})

    @classmethod
    def of_text(cls, text: str) -> Outline:
        """Return the outline that `to_text` has written.

        Raises:
            ValueError: The text is not an outline.
        """
        try:
            content = json.loads(text)
            columns = [
                OutlineColumn(
                    column["name"],
                    base64.b64decode(column["schema"], validate=True),
                    [base64.b64decode(leaf, validate=True) for leaf in column["leaves"]],
                    base64.b64decode(column["arrow"]) if column["arrow"] is not None else None,
                )
                for column in content["columns"]
            ]
            return cls(content["version"], content["created_by"], content["keys"], columns)
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("is not an outline of a Parquet file") from error

    def footer(self, groups: Ints) -> bytes:
        """Return the footer of a file with these columns.

        Args:
            groups: Numbers of n row groups, as in plans; see `chunk_ranges`.
        """
        if not self._ends:
            self._ends.extend((self._head(), self._tail()))
        head, tail = self._ends
        leaves = [leaf for column in self.columns for leaf in column.leaves]
        return b"".join(
            (
                head,
                field(LONG) + integer(int(groups[:, 0].sum())),
                field(LIST) + list_head(STRUCT, len(groups)),
                row_groups(leaves, groups),
                tail,
            )
        )

    def _head(self) -> bytes:
        root = (
            field(BINARY, _NAME) + text(b"schema") + field(INT) + integer(len(self.columns)) + END
        )
        elements = [root]
        for column in self.columns:
            schema = _Schema(column.schema)
            elements += [column.schema[start:end] for start, end in schema.spans]
        return field(INT) + integer(self.version) + field(LIST) + listed(STRUCT, elements)

    def _tail(self) -> bytes:
        keys = [
            field(BINARY) + text(key) + field(BINARY) + text(value) + END
            for key, value in self._keys()
        ]
        writer = field(BINARY) + text(self.created_by.encode())
        return field(LIST) + listed(STRUCT, keys) + writer + END

    def _keys(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self.keys.items():
            yield key.encode(), value.encode()
        arrow_fields = [column.arrow for column in self.columns]
        if arrow_fields and None not in arrow_fields:
            fields = [pa.ipc.read_schema(pa.py_buffer(one)).field(0) for one in arrow_fields]
            yield _ARROW_SCHEMA, base64.b64encode(pa.schema(fields).serialize().to_pybytes())


class Outlines:
    """The outlines of files that share a Parquet schema."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], str | None] = {}

    def of(self, footer: bytes, metadata: Any, codecs: tuple[str, ...]) -> str | None:
        """Return the outline of a file, as text; None if there can be no excerpts of it.

        Args:
            footer: The footer.
            metadata: The footer as a `pyarrow.parquet.FileMetaData`.
            codecs: Codecs of its leaves.
        """
        key = (metadata.created_by, codecs, *_entries(metadata).items())
        if key not in self._known:
            outline = outline_of(footer, metadata, codecs)
            text = outline.to_text() if outline is not None else ""
            self._known[key] = text if 0 < len(text) <= MAX_OUTLINE_BYTES else None
        return self._known[key]


def outline_of(footer: bytes, metadata: Any, codecs: Sequence[str]) -> Outline | None:
    """Return the outline of a file; None if there can be no excerpts of it.

    Args:
        footer: The footer.
        metadata: The footer as a `pyarrow.parquet.FileMetaData`.
        codecs: Codecs of its leaves.
    """
    if not _counts_all(metadata.created_by) or not all(codec in _CODECS for codec in codecs):
        return None
    entries = _entries(metadata)
    try:
        version, schema = _schema_in(footer)
        arrow = _arrow_fields(entries[_ARROW_SCHEMA], len(schema.columns))
        numbers = iter(_CODECS[codec] for codec in codecs)
        columns = [
            OutlineColumn(
                schema.names[begin].decode(),
                schema.data[schema.spans[begin][0] : schema.spans[end - 1][1]],
                [_leaf(schema, at, path, next(numbers)) for at, path in schema.leaves(begin, end)],
                None if arrow is None else arrow[nth],
            )
            for nth, (begin, end) in enumerate(schema.columns)
        ]
        keys = {
            key.decode(): value.decode()
            for key, value in entries.items()
            if value is not None and key != _ARROW_SCHEMA
        }
        # With a codec left over, codecs and leaves do not match.
        if next(numbers, None) is not None:
            return None
    except (ValueError, StopIteration, pa.ArrowException):
        return None
    return Outline(version, metadata.created_by, keys, columns)


def _entries(metadata: Any) -> dict[bytes, bytes | None]:
    """Return the entries that readers use."""
    entries = metadata.metadata or {}
    return {key: entries.get(key) for key in (*_KEYS, _ARROW_SCHEMA)}


def _counts_all(created_by: str) -> bool:
    """Return whether the writer counts all the bytes of a chunk."""
    match = _MR.match(created_by)
    return match is None or (
        match[1] is not None and tuple(map(int, match.groups())) >= _MR_COUNTS_SINCE
    )


def _arrow_fields(content: bytes | None, count: int) -> list[bytes] | None:
    """Return each column's type in Arrow, as files written by Arrow state it."""
    if content is None:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content)))
    if len(schema) != count:
        return None  # Arrow ignores it, too
    return [pa.schema([one]).serialize().to_pybytes() for one in schema]


class _Schema:
    """The elements of a schema, one after the other as in a footer, without the root.

    Args:
        data: Thrift, perhaps with other bytes before and after.
        at: Where the first element begins.
        count: Number of elements; None for all up to the end.
    """

    def __init__(self, data: bytes, at: int = 0, count: int | None = None) -> None:
        self.data = data
        self.spans: list[tuple[int, int]] = []
        self.names: list[bytes] = []
        self._types: list[int | None] = []
        self._children: list[int] = []
        skimmer = Skimmer(data)
        skimmer.at = at
        while len(self.spans) < count if count is not None else skimmer.at < len(data):
            start = skimmer.at
            name, type_, children = b"", None, 0
            for number, kind in skimmer.fields():
                if (number, kind) == (_NAME, BINARY):
                    name = skimmer.text()
                elif (number, kind) == (_TYPE, INT):
                    type_ = skimmer.integer()
                elif (number, kind) == (_CHILDREN, INT):
                    children = skimmer.integer()
                else:
                    skimmer.skip(kind)
            self.spans.append((start, skimmer.at))
            self.names.append(name)
            self._types.append(type_)
            self._children.append(children)

    @property
    def columns(self) -> list[tuple[int, int]]:
        """The range of elements of each top-level column; the end is exclusive."""
        leaves = []
        begin = 0
        while begin < len(self.spans):
            end, missing = begin, 1
            while missing:
                if end == len(self.spans) or self._children[end] < 0:
                    raise ThriftError
                missing += self._children[end] - 1
                end += 1
            leaves.append((begin, end))
            begin = end
        return leaves

    def leaves(self, begin: int, end: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the leaves among some elements, each with the names on its path."""
        above: list[tuple[bytes, int]] = []
        for at in range(begin, end):
            while above and not above[-1][1]:
                above.pop()
            if above:
                above[-1] = above[-1][0], above[-1][1] - 1
            if self._children[at]:
                above.append((self.names[at], self._children[at]))
                if len(above) > _MAX_DEPTH:
                    raise ThriftError
            else:
                yield at, [*(name for name, _ in above), self.names[at]]

    def type_of(self, at: int) -> int:
        """Return the physical type of a leaf."""
        type_ = self._types[at]
        if type_ is None or type_ < 0:
            raise ThriftError
        return type_


def _schema_in(footer: bytes) -> tuple[int, _Schema]:
    """Return the version and the schema of a footer."""
    skimmer = Skimmer(footer)
    version = 1
    for number, kind in skimmer.fields():
        if (number, kind) == (1, INT):
            version = skimmer.integer()
            if version not in _VERSIONS:
                raise ThriftError
        elif (number, kind) == (_FOOTER_SCHEMA, LIST):
            count, _ = skimmer.listed()
            if count > _MAX_ELEMENTS:
                raise ThriftError
            skimmer.skip(STRUCT)
            return version, _Schema(footer, skimmer.at, count - 1)
        else:
            skimmer.skip(kind)
    raise ThriftError


def _leaf(schema: _Schema, at: int, path: Sequence[bytes], codec: int) -> bytes:
    """Return the fields of a chunk's metadata that do not vary: type, encodings, path, codec."""
    return b"".join(
        (
            field(INT) + integer(schema.type_of(at)),
            field(LIST) + listed(INT, []),
            field(LIST) + listed(BINARY, [text(name) for name in path]),
            field(INT) + integer(codec),
        )
    )


def _in_ascii(data: bytes) -> str:
    return base64.b64encode(data).decode()
