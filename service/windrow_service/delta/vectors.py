"""Deletion vectors, as the log of a Delta table names them."""

from __future__ import annotations

import base64
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.files.rows import DELETE
from windrow_service.delta.errors import DeltaLogError
from windrow_service.delta.paths import decoded_one

# The log's description of a file's deletion vector.
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("cardinality", pa.int64()),
    ]
)

# ZeroMQ's Base85.
_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGIT = np.full(256, -1, np.int64)
_DIGIT[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(85)
_UUID_CHARACTERS = 20
_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], "S2")
# In a file, the length of a vector precedes it.
_LENGTH_BYTES = 4
_MAX_VECTOR_BYTES = 2**31
_PREFIX = re.compile(r"[A-Za-z0-9._=-]*")


def identities(vectors: pa.Array) -> pa.Array:
    """Return the identity of each file's deletion vector, or "" if the file has none.

    It tells versions of one file apart.

    Args:
        vectors: n values of type `VECTOR`, or null.
    """
    parts = [
        pc.fill_null(pc.cast(pc.struct_field(vectors, name), pa.string()), "")
        for name in ("storageType", "pathOrInlineDv", "offset")
    ]
    names = pc.binary_join_element_wise(*parts, "@")
    return pc.if_else(vectors.is_valid(), names, "")


def deletes_of(location: str, vectors: pa.Array, roots: tuple[str, ...]) -> pa.Array:
    """Return the deletion vector of each file, as `deletes` of an inventory.

    Args:
        location: Location of the table.
        vectors: n values of type `VECTOR`, or null.
        roots: Folders and URIs that vectors outside the table may lie under.
    """
    rows = flat(pc.indices_nonzero(vectors.is_valid()))
    some = flat(vectors.take(rows))
    kind, content, offset, size, count = (some.field(at) for at in range(some.type.num_fields))
    is_complete = pc.and_(
        pc.and_(pc.is_in(kind, pa.array(["u", "i", "p"])), content.is_valid()),
        pc.and_(pc.greater(size, 0), pc.less(size, _MAX_VECTOR_BYTES)),
    )
    has_place = pc.or_kleene(pc.equal(kind, "i"), pc.greater_equal(offset, 0))
    if not pc.all(pc.fill_null(pc.and_(is_complete, has_place), False), min_count=0).as_py():
        raise _damaged(location)
    is_inline = pc.equal(kind, "i")
    values = pa.StructArray.from_arrays(
        [
            pa.repeat("vector", len(rows)),
            _paths(location, kind, content, roots),
            _inline(location, is_inline, content, size),
            pc.if_else(is_inline, pa.scalar(None, pa.int64()), pc.add(offset, _LENGTH_BYTES)),
            size,
            pa.nulls(len(rows), pa.int64()),
            count,
        ],
        fields=list(DELETE),
    )
    ends = np.cumsum(np.asarray(vectors.is_valid()), dtype=np.int32)
    offsets = pa.array(np.concatenate((np.zeros(1, np.int32), ends)))
    lists = pa.ListArray.from_arrays(offsets, values)
    return pc.if_else(vectors.is_valid(), lists, pa.scalar(None, lists.type))


def _paths(location: str, kind: pa.Array, content: pa.Array, roots: tuple[str, ...]) -> pa.Array:
    """Return the files that vectors lie in, relative to the location or absolute."""
    paths = np.full(len(kind), None, object)
    own = np.flatnonzero(np.asarray(pc.equal(kind, "u")))
    if len(own):
        texts = content.take(pa.array(own))
        short = pc.less(pc.binary_length(texts), _UUID_CHARACTERS)
        if pc.any(short).as_py():
            raise _damaged(location)
        ids = pc.binary_slice(pc.cast(texts, pa.binary()), -_UUID_CHARACTERS)
        prefixes = flat(pc.utf8_slice_codeunits(texts, 0, -_UUID_CHARACTERS)).dictionary_encode()
        folders = prefixes.dictionary.to_pylist()
        if not all(_PREFIX.fullmatch(folder) and folder not in (".", "..") for folder in folders):
            raise _damaged(location)
        heads = pa.array([f"{folder}/" if folder else "" for folder in folders], pa.string())
        names = pc.binary_join_element_wise(
            heads.take(prefixes.indices), "deletion_vector_", _uuids(location, ids), ".bin", ""
        )
        paths[own] = names.to_numpy(zero_copy_only=False)
    for at in np.flatnonzero(np.asarray(pc.equal(kind, "p"))).tolist():
        paths[at] = decoded_one(location, content[at].as_py(), roots)
    return pa.array(paths, pa.string())


def _uuids(location: str, ids: pa.Array) -> pa.Array:
    text = np.frombuffer(b"".join(ids.to_pylist()), np.uint8).reshape(len(ids), _UUID_CHARACTERS)
    pairs = _HEX[_decoded(location, text)]
    digits = pa.array(np.ascontiguousarray(pairs).view("S32")[:, 0].tolist(), pa.binary())
    parts = [
        pc.binary_slice(digits, start, stop)
        for start, stop in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    ]
    return pc.binary_join_element_wise(*parts, b"-").cast(pa.string())


def _decoded(location: str, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bytes of n rows of Base85, in which five characters stand for four bytes."""
    digits = _DIGIT[text].reshape(len(text), -1, 5)
    words = digits @ (85 ** np.arange(4, -1, -1, dtype=np.int64))
    if (digits < 0).any() or (words >= 2**32).any():
        raise _damaged(location)
    return words.astype(">u4").view(np.uint8).reshape(len(text), -1)


def _inline(location: str, is_inline: pa.Array, texts: pa.Array, size: pa.Array) -> pa.Array:
    """Return the vectors that are in the log itself, as Base64."""
    bitmaps: list[str | None] = [None] * len(texts)
    for at in np.flatnonzero(np.asarray(is_inline)).tolist():
        # Java pads the bytes to whole words. Rust pads the text of the last word, which then begins
        # with the greatest digit; no valid word does.
        text, length = texts[at].as_py().encode(), size[at].as_py()
        last = text[-5:]
        padding = len(last) - len(last.lstrip(b"#"))
        text = text[:-5] + b"0" * padding + last[padding:]
        if len(text) % 5 or padding > 3 or len(text) // 5 * 4 - padding < length:
            raise _damaged(location)
        row = np.frombuffer(text, np.uint8).reshape(1, -1)
        content = _decoded(location, row).tobytes()
        content = content[:-4] + content[len(content) - 4 + padding :]
        bitmaps[at] = base64.b64encode(content[:length]).decode()
    return pa.array(bitmaps, pa.string())


def _damaged(location: str) -> DeltaLogError:
    return DeltaLogError(
        location, "is damaged: its log has a deletion vector that is not valid; restore it"
    )
