"""The work of one process of an erasure: finds rows in files, and writes the files without them."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.access import why_inaccessible
from windrow_core.files.keys import values_at
from windrow_core.files.permissions import give
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_tables.executor.errors import StaleFileError, TaskReadError
from windrow_tables.executor.filters import matching
from windrow_tables.executor.parents import end_with_parent
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadSpec
from windrow_tables.merging.files import ValuesDifferError, merge
from windrow_tables.merging.sources import Source, Sources, UnfitFileError

# Where a process writes files that are not complete; listings of data files skip it.
_ATTEMPTS = "_attempts"
# Of so many keys, a set is built once, instead of a table of hashes for each batch of rows.
_MANY_KEYS = 4_096
_ONE_FILE = 2**62
_TAG = re.compile(r"\.erased-[0-9a-f]{8}(?=\.|$)")
_DIFFER = "its other rows came back with other values: report this error"

_STATES = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("etag", pa.string()),
    ]
)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasingJob:
    """What all pieces of an erasure have in common.

    Attributes:
        spec: What to read of the files, from `ReadSpec.packed`.
        filter: The condition as a JSON tree; None if rows are found by keys.
        column: The column of the keys.
        fields: The fields of structs that lead to them.
        staging: Absolute path, or URI, that new files are written below; None if rows are only
            counted.
        tag: What new names get, in eight hexadecimal digits.
        max_footer_bytes: Files with longer footers are refused.
    """

    spec: bytes
    filter: Mapping[str, Any] | None
    column: str
    fields: tuple[str, ...]
    staging: str | None
    tag: str
    max_footer_bytes: int


class ErasedFile(NamedTuple):
    """A file with rows to erase.

    Attributes:
        path: Its path, relative to the table's location, with its state.
        row_count: Number of its rows.
        removals: How many of them go.
        new_path: The file in its place; None if no row is left, or rows are only counted.
        new_bytes: Its size.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    etag: str | None
    row_count: int
    removals: int
    new_path: str | None
    new_bytes: int


class Refusal(NamedTuple):
    """A file that stands in the way.

    Attributes:
        path: Its path.
        reason: Why it cannot be read, or written anew.
        has_changed: Whether it has changed since it was planned.
    """

    path: str
    reason: str
    has_changed: bool


class Keys(NamedTuple):
    """The keys of rows to erase.

    Attributes:
        values: All of them.
        of_many: The same as a set, if they are many.
    """

    values: pa.Array
    of_many: frozenset[Any]

    @classmethod
    def of(cls, values: pa.Array | None) -> Keys | None:
        """Return keys as files are searched for them; None if a condition finds rows."""
        if values is None:
            return None
        many = values if len(values) > _MANY_KEYS else []
        return cls(values, frozenset(value.as_py() for value in many))


# Those of a process that does nothing else.
_keys: Keys | None = None


def begin_process(values: pa.Array | None, parent: int) -> None:
    """Prepare a process: give it the keys, and let it end with the process that started it."""
    global _keys
    _keys = Keys.of(values)
    end_with_parent(parent)


def erase_in(
    job: ErasingJob, files: pa.Table, keys: Keys | None = None
) -> tuple[list[ErasedFile], list[Refusal]]:
    """Find the rows of some files, and write those files without them.

    Args:
        job: What to find, and where new files go.
        files: The files: the columns of inventories, and `partition`.
        keys: The keys; by default those that this process was given.
    """
    eraser = _Eraser(job, keys or _keys)
    outcomes: list[ErasedFile] = []
    refusals: list[Refusal] = []
    for batch in files.to_batches(max_chunksize=1):
        path = batch.column("path")[0].as_py()
        try:
            outcome = eraser.erase(batch)
        except StaleFileError as error:
            refusals.append(Refusal(path, str(error), has_changed=True))
        except (TaskReadError, UnfitFileError) as error:
            refusals.append(Refusal(path, str(error), has_changed=False))
        except ValuesDifferError:
            refusals.append(Refusal(path, _DIFFER, has_changed=False))
        except pa.ArrowException as error:
            refusals.append(Refusal(path, f"it is damaged ({error})", has_changed=False))
        except OSError as error:
            refusals.append(Refusal(path, why_inaccessible(error), has_changed=False))
        else:
            outcomes += [] if outcome is None else [outcome]
    return outcomes, refusals


def new_name(name: str, tag: str) -> str:
    """Return the name of the file that takes the place of another; it sorts and is bucketed alike."""
    stem, dot, suffixes = _TAG.sub("", name).partition(".")
    return f"{stem}.erased-{tag}{dot}{suffixes}"


class _Eraser:
    def __init__(self, job: ErasingJob, keys: Keys | None = None) -> None:
        self._job = job
        self._keys = keys
        self._spec = ReadSpec.unpacked(job.spec)

    def erase(self, file: pa.RecordBatch) -> ErasedFile | None:
        """Return what becomes of a file; None if it has no such row."""
        path, size_bytes, mtime_ns, etag = (
            file.column(name)[0].as_py() for name in ("path", "size_bytes", "mtime_ns", "etag")
        )
        going = np.concatenate([np.empty(0, np.bool_), *self._going(file)])
        removals = int(np.count_nonzero(going))
        if not removals:
            return None
        outcome = ErasedFile(path, size_bytes, mtime_ns, etag, len(going), removals, None, 0)
        if self._job.staging is None or removals == len(going):
            return outcome
        new_path, new_bytes = self._without(path, ~going)
        return outcome._replace(new_path=new_path, new_bytes=new_bytes)

    def _going(self, file: pa.RecordBatch) -> Iterator[Bools]:
        """Yield which of the file's rows go, batch by batch."""
        size = file.column("size_bytes")
        whole = file.append_column("start", pa.array([0], pa.int64())).append_column("length", size)
        for batch in read_group(self._spec, whole, None):
            rows = pa.Table.from_batches([batch])
            if self._job.filter is not None:
                yield np.asarray(matching(self._job.filter, rows).fill_null(False))
                continue
            values, at = values_at(rows[self._job.column].combine_chunks(), self._job.fields)
            going = np.zeros(len(rows), np.bool_)
            assert self._keys is not None
            going[np.asarray(at)[_among(self._keys, values)]] = True
            yield going

    def _without(self, path: str, left: Bools) -> tuple[str, int]:
        """Write a file with those rows that are left; return its path in the table, and its size."""
        staging, location = self._job.staging or "", self._spec.location
        folder, _, name = path.rpartition("/")
        new_path = f"{folder}/{new_name(name, self._job.tag)}".lstrip("/")
        attempt = uuid.uuid4().hex
        if is_remote(location):
            with tempfile.TemporaryDirectory(prefix="windrow-") as scratch:
                source = self._source(path, scratch)
                (new,) = merge([source.only(left)], (), _ONE_FILE, 1.0, f"{scratch}/{attempt}")
                StoreRoot(staging).upload(new.path, new_path, ANYTHING, access=source.access)
            return new_path, new.size_bytes
        root = Root(staging)
        root.make_folder(f"{_ATTEMPTS}/{attempt}")
        root.make_folder(folder)
        source = self._source(path, "")
        at = f"{staging}/{_ATTEMPTS}/{attempt}/new"
        (new,) = merge([source.only(left)], (), _ONE_FILE, 1.0, at)
        if source.access is not None:
            give(new.path, source.access)
        root.move(new.path.removeprefix(f"{staging}/"), new_path, ANYTHING)
        return new_path, new.size_bytes

    def _source(self, path: str, copies: str) -> Source:
        return Sources(self._spec.location, self._job.max_footer_bytes, copies).open(path)


def _among(keys: Keys, values: pa.Array) -> Bools:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type != keys.values.type:
        values = values.cast(keys.values.type)
    if not keys.of_many:
        return np.asarray(pc.is_in(values, value_set=keys.values), np.bool_)
    codes = values.dictionary_encode()
    are_keys = np.array([value in keys.of_many for value in codes.dictionary.to_pylist()], np.bool_)
    among = np.zeros(len(values), np.bool_)
    valid = np.asarray(codes.indices.is_valid())
    among[valid] = are_keys[np.asarray(codes.indices.drop_null())]
    return among


def paths_of(files: Sequence[ErasedFile]) -> pa.Table:
    """Return the files that go, with their states, as commits want them."""
    return pa.Table.from_pylist([one._asdict() for one in files], _STATES)
