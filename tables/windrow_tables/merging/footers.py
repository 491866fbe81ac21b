"""Footers of Parquet files as Thrift: schema and metadata as they are, and with other schemas.

Arrow reads a file with the footer that it is given. With a schema of physical types alone it
returns the values as they are stored, and writes them again unchanged; then the file's own schema
takes the place of the physical one. So logical types, field ids, names and nullability never pass
through another program's types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windrow_core.files.excerpts.thrift import (
    BINARY,
    END,
    INT,
    LIST,
    STRUCT,
    Skimmer,
    ThriftError,
    field,
    integer,
    listed,
    text,
)

MAGIC = b"PAR1"
# The length of a footer, and the magic number, end a file.
TAIL_BYTES = 8

# Fields of FileMetaData.
_VERSION, _SCHEMA, _ROW_GROUPS, _KEYS, _CREATED_BY, _ENCRYPTION = 1, 2, 4, 5, 6, 8
# Fields of RowGroup, ColumnChunk and ColumnMetaData.
_CHUNKS, _CHUNK_METADATA, _COLUMN_INDEX, _ELSEWHERE = 1, 3, 6, {1, 8, 9}
_CHUNK_TYPE, _CHUNK_PATH, _CHUNK_CODEC, _CHUNK_BLOOM = 1, 3, 4, 14
# Fields of SchemaElement, and what is in some of them.
_NAME, _CHILDREN, _LOGICAL, _INTEGER, _IS_SIGNED, _FALSE = 4, 5, 10, 10, 2, 2
_UNSIGNED_CONVERTED = range(11, 15)

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
REPEATED = 2

_ARROW_SCHEMA, _HIDDEN = b"ARROW:schema", b"ARROW.schema"

# A span of bytes: where it begins, and where it ends.
Span = tuple[int, int]


class Element(NamedTuple):
    """One element of a schema: a group or a leaf.

    Attributes:
        name: Its name.
        type: Physical type; None for a group.
        length: Bytes of a value of fixed length.
        repetition: 0 for required, 1 for optional, 2 for repeated; None for the root.
        children: Number of children of a group.
        converted: Number of its deprecated logical type; None without.
        logical: Number of its logical type; None without.
        is_unsigned: Whether it holds unsigned integers.
    """

    name: bytes
    type: int | None = None
    length: int | None = None
    repetition: int | None = None
    children: int | None = None
    converted: int | None = None
    logical: int | None = None
    is_unsigned: bool = False

    def thrift(self, annotation: Sequence[tuple[int, int, bytes]] = ()) -> bytes:
        """Return it as Thrift, without its logical types.

        Args:
            annotation: Further fields: number, type and value of each, in order.
        """
        numbers = ((1, self.type), (2, self.length), (3, self.repetition))
        fields = [(at, INT, integer(value)) for at, value in numbers if value is not None]
        fields.append((4, BINARY, text(self.name)))
        if self.children is not None:
            fields.append((5, INT, integer(self.children)))
        parts, before = [], 0
        for at, type_, value in (*fields, *annotation):
            parts += [field(type_, at - before), value]
            before = at
        return b"".join((*parts, END))


class KeyValue(NamedTuple):
    """One entry of a file's metadata, and the same as Thrift."""

    key: bytes
    value: bytes
    raw: bytes

    def with_value(self, value: bytes) -> KeyValue:
        """Return the entry with another value."""
        raw = field(BINARY) + text(self.key) + field(BINARY) + text(value) + END
        return KeyValue(self.key, value, raw)


@dataclass(frozen=True)
class Head:
    """A footer up to the end of its schema, which is the same for all files that are alike.

    Attributes:
        data: These bytes.
        begin: Where the list of elements begins in them.
        version: Version of the format.
        elements: The elements of the schema, the root first.
        raw: The same elements as Thrift.
        leaves: Those that are leaves, each with the names on its path.
    """

    data: bytes
    begin: int
    version: int
    elements: Sequence[Element]
    raw: Sequence[bytes]
    leaves: Sequence[tuple[Element, Sequence[bytes]]]

    @classmethod
    def of(cls, footer: bytes) -> Head:
        """Parse the head of a footer."""
        skimmer = Skimmer(footer)
        version = 1
        for number, kind in skimmer.fields():
            if (number, kind) == (_VERSION, INT):
                version = skimmer.integer()
            elif (number, kind) == (_SCHEMA, LIST):
                begin = skimmer.at
                count, _ = skimmer.listed()
                elements: list[Element] = []
                raw: list[bytes] = []
                for _ in range(count):
                    start = skimmer.at
                    elements.append(_element(skimmer))
                    raw.append(footer[start : skimmer.at])
                leaves = _leaves(elements)
                return cls(footer[: skimmer.at], begin, version, elements, raw, leaves)
            else:
                skimmer.skip(kind)
        raise ThriftError

    @property
    def columns(self) -> dict[str, int]:
        """The top-level columns: the number of each one's element by its name in lower case."""
        numbers: dict[str, int] = {}
        missing = 0
        for at, element in enumerate(self.elements[1:], 1):
            if not missing:
                numbers[element.name.decode(errors="replace").lower()] = at
                missing = 1
            missing += (element.children or 0) - 1
        return numbers

    def footer_with(self, raw: Sequence[bytes], footer: bytes) -> bytes:
        """Return a footer with this head with other elements of the same shape in it.

        Its chunks still tell their own physical types, for which Arrow does not ask. The schema
        that Arrow itself has left in it is hidden, because Arrow would turn values into its types.
        """
        rest = footer[len(self.data) :].replace(_ARROW_SCHEMA, _HIDDEN)
        return b"".join((self.data[: self.begin], listed(STRUCT, list(raw)), rest))


@dataclass(frozen=True)
class Footer:
    """A footer.

    Attributes:
        data: The footer as Thrift, without its length.
        head: Its head.
        keys: The metadata, in the order of the file.
        created_by: The writer.
        chunks: For each row group, the chunk of each leaf.
    """

    data: bytes
    head: Head
    keys: Sequence[KeyValue]
    created_by: bytes
    chunks: Sequence[Sequence[Chunk]]
    _spans: dict[int, Span]

    @classmethod
    def of(cls, data: bytes) -> Footer:
        """Parse a footer."""
        head = Head.of(data)
        skimmer = Skimmer(data)
        keys: list[KeyValue] = []
        chunks: list[Sequence[Chunk]] = []
        created_by = b""
        spans = {}
        for number, kind in skimmer.fields():
            begin = skimmer.at
            if (number, kind) == (_KEYS, LIST):
                count, _ = skimmer.listed()
                keys = [_key(skimmer) for _ in range(count)]
            elif (number, kind) == (_ROW_GROUPS, LIST):
                count, _ = skimmer.listed()
                chunks = [_chunks(skimmer, len(head.leaves)) for _ in range(count)]
            elif (number, kind) == (_CREATED_BY, BINARY):
                created_by = skimmer.text()
            else:
                skimmer.skip(kind)
            spans[number] = begin, skimmer.at
        return cls(data, head, keys, created_by, chunks, spans)

    def in_place_of(self, other: Footer, keys: Sequence[KeyValue]) -> bytes:
        """Return the footer of a written file with this one's schema and writer.

        Args:
            other: The footer that Arrow wrote, whose schema has the shape of this one's.
            keys: Its metadata.
        """
        types = [integer(leaf.type or 0) for leaf, _ in self.head.leaves]
        paths = [listed(BINARY, [text(name) for name in path]) for _, path in self.head.leaves]
        spans = other._spans
        edits = [
            (spans[_VERSION], integer(self.head.version)),
            (spans[_SCHEMA], listed(STRUCT, list(self.head.raw))),
            (spans[_CREATED_BY], text(self.created_by)),
        ]
        if keys:
            edits.append((spans[_KEYS], listed(STRUCT, [one.raw for one in keys])))
        for chunks in other.chunks:
            for at, chunk in enumerate(chunks):
                edits += [(chunk.type, types[at]), (chunk.path, paths[at])]
        return _edited(other.data, edits)

    @property
    def is_encrypted(self) -> bool:
        """Whether some of its columns are encrypted."""
        return _ENCRYPTION in self._spans


class Chunk(NamedTuple):
    """What a footer says of a column chunk.

    Attributes:
        type: Where its physical type stands.
        path: Where its path stands.
        codec: Number of its codec.
        has_bloom: Whether it has a Bloom filter.
        has_index: Whether it has an index of its pages.
        is_elsewhere: Whether it lies in another file, or is encrypted.
    """

    type: Span
    path: Span
    codec: int
    has_bloom: bool
    has_index: bool
    is_elsewhere: bool


def file_of(footer: bytes) -> bytes:
    """Return a footer as a Parquet file without data, for Arrow to parse."""
    return b"".join((MAGIC, tail_of(footer)))


def tail_of(footer: bytes) -> bytes:
    """Return a footer as it ends a file."""
    return b"".join((footer, len(footer).to_bytes(4, "little"), MAGIC))


def _element(skimmer: Skimmer) -> Element:
    names = {1: "type", 2: "length", 3: "repetition", _CHILDREN: "children", 6: "converted"}
    numbers: dict[str, int] = {}
    name, logical, is_unsigned = b"", None, False
    for number, kind in skimmer.fields():
        if (number, kind) == (_NAME, BINARY):
            name = skimmer.text()
        elif number in names and kind == INT:
            numbers[names[number]] = skimmer.integer()
        elif (number, kind) == (_LOGICAL, STRUCT):
            for logical, of in skimmer.fields():
                if (logical, of) != (_INTEGER, STRUCT):
                    skimmer.skip(of)
                    continue
                for at, sign in skimmer.fields():
                    skimmer.skip(sign)
                    is_unsigned = is_unsigned or (at, sign) == (_IS_SIGNED, _FALSE)
        else:
            skimmer.skip(kind)
    is_unsigned = is_unsigned or numbers.get("converted") in _UNSIGNED_CONVERTED
    return Element(
        name,
        numbers.get("type"),
        numbers.get("length"),
        numbers.get("repetition"),
        numbers.get("children"),
        numbers.get("converted"),
        logical,
        is_unsigned,
    )


def _leaves(elements: Sequence[Element]) -> list[tuple[Element, list[bytes]]]:
    """Return the leaves of a schema, each with the names on its path."""
    leaves: list[tuple[Element, list[bytes]]] = []
    path: list[bytes] = []
    # How many children are missing of each group that is not complete.
    missing = [elements[0].children or 0]
    for element in elements[1:]:
        while missing and not missing[-1]:
            missing.pop()
            path = path[:-1]
        if not missing:
            raise ThriftError
        missing[-1] -= 1
        if element.type is None:
            missing.append(element.children or 0)
            path = [*path, element.name]
        else:
            leaves.append((element, [*path, element.name]))
    if any(missing):
        raise ThriftError
    return leaves


def _key(skimmer: Skimmer) -> KeyValue:
    begin = skimmer.at
    key = value = b""
    for number, kind in skimmer.fields():
        if (number, kind) == (1, BINARY):
            key = skimmer.text()
        elif (number, kind) == (2, BINARY):
            value = skimmer.text()
        else:
            skimmer.skip(kind)
    return KeyValue(key, value, skimmer.data[begin : skimmer.at])


def _chunks(skimmer: Skimmer, leaves: int) -> list[Chunk]:
    """Take a row group; return its chunks."""
    chunks: list[Chunk] = []
    for number, kind in skimmer.fields():
        if (number, kind) == (_CHUNKS, LIST):
            count, _ = skimmer.listed()
            chunks = [_chunk(skimmer) for _ in range(count)]
        else:
            skimmer.skip(kind)
    if len(chunks) != leaves:
        raise ThriftError
    return chunks


def _chunk(skimmer: Skimmer) -> Chunk:
    spans: dict[int, Span] = {}
    codec, has_bloom = None, False
    beside = set()
    for number, kind in skimmer.fields():
        beside.add(number)
        if (number, kind) != (_CHUNK_METADATA, STRUCT):
            skimmer.skip(kind)
            continue
        for at, of in skimmer.fields():
            begin = skimmer.at
            if (at, of) == (_CHUNK_CODEC, INT):
                codec = skimmer.integer()
            else:
                skimmer.skip(of)
            has_bloom = has_bloom or at == _CHUNK_BLOOM
            spans[at] = begin, skimmer.at
    if codec is None or not spans.keys() >= {_CHUNK_TYPE, _CHUNK_PATH}:
        raise ThriftError
    return Chunk(
        spans[_CHUNK_TYPE],
        spans[_CHUNK_PATH],
        codec,
        has_bloom,
        has_index=_COLUMN_INDEX in beside,
        is_elsewhere=not beside.isdisjoint(_ELSEWHERE),
    )


def _edited(data: bytes, edits: Sequence[tuple[Span, bytes]]) -> bytes:
    """Return bytes with some spans replaced."""
    parts, at = [], 0
    for (begin, end), value in sorted(edits):
        parts += [data[at:begin], value]
        at = end
    return b"".join((*parts, data[at:]))
