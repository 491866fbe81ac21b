"""The files of a transactional table that a reader sees: data files and delete files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.acid.choosing import AcidFolderError, Chosen, choose, seen_by
from windrow_core.files.acid.names import (
    FLUSH_LENGTH,
    MAX_BUCKET,
    METADATA_FILE,
    VERSION_FILE,
    Folder,
    are_named,
    buckets_of,
    file_folders,
    folder_of,
    row_buckets,
)
from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.arrays import flat
from windrow_core.files.chunks import FooterGroup
from windrow_core.files.listing import FolderEntries, ScanFolder
from windrow_core.files.places import place_of, read_file
from windrow_core.files.remote import scan_of
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.files.table_paths import home_and_path
from windrow_service.inventory.listing.relisting import (
    Folders,
    KnownListing,
    Relisting,
    list_again,
)
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.planner.splits import Bools, run_offsets

# More than the metadata of any folder, or a million flushes, take.
_MAX_METADATA_BYTES, _MAX_FLUSH_BYTES = 2**16, 2**23
_FLUSH_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactional(Folders):
    """How the folders of a transactional table are read.

    Attributes:
        ids: The writes that a reader sees; None for all on disk.
    """

    ids: WriteIds | None

    def list_again(
        self,
        location: str,
        meter: ProgressMeter,
        earlier: KnownListing | None,
        scan: ScanFolder | None,
        clock_ns: Callable[[], int],
        folders: Sequence[str] | None,
        **_: Any,
    ) -> Relisting:
        """See `Folders.list_again`."""
        notes = FolderNotes(scan or scan_of(location))
        # The previous inventory lacks files that were listed but not read, so list every folder.
        earlier = replace(earlier, full=True) if earlier is not None else None
        listing = list_again(location, meter, earlier, notes, clock_ns, folders)
        return _seen(location, listing, notes.folders, self)

    def check(self, groups: Sequence[FooterGroup]) -> None:
        """Refuse files whose rows have names, because such rows may have been deleted one by one."""
        for group in groups:
            if not self.names_rows and are_named(group.files.schema.names):
                reason = (
                    "holds rows that can be deleted one by one, which insert-only tables do not "
                    "have: register the table as transactional 'full'"
                )
                raise AcidFolderError(group.files.path, reason)


class FolderNotes:
    """Scans folders, and notes those whose names Hive gives in transactional tables.

    Args:
        scan: Reads one folder.
    """

    def __init__(self, scan: ScanFolder) -> None:
        self._scan = scan
        # Threads append to it.
        self.folders: list[str] = []

    def __call__(self, location: str, folder: str, entries: FolderEntries) -> None:
        """See `ScanFolder`."""
        entries.acid_folders = self.folders
        self._scan(location, folder, entries)


_LISTED = [LISTING_SCHEMA.field(name) for name in ("path", "size_bytes", "mtime_ns")]
# The delete files of a snapshot: those of one partition and bucket apply to all its data files.
DELETE_FILES = pa.schema(
    [
        *_LISTED,
        pa.field("root", pa.string(), nullable=False),
        pa.field("bucket", pa.int32(), nullable=False),
    ]
)


def _seen(
    location: str, listing: Relisting, folders: Sequence[str], transactional: Transactional
) -> Relisting:
    """Return which of the listed files are read, given the folders that `FolderNotes` noted."""
    files = listing.files
    paths = flat(files["path"])
    names = pc.replace_substring_regex(paths, r"^.*/", "")
    parents = file_folders(paths)
    is_metadata = _bools(pc.equal(names, METADATA_FILE))
    is_side = _bools(pc.ends_with(names, FLUSH_LENGTH))
    is_version = _bools(pc.equal(names, VERSION_FILE))
    is_data = ~is_metadata & ~is_version & ~is_side
    is_original = is_data & _bools(parents.folder.is_null())
    originals = set(parents.root.filter(pa.array(is_original)).unique().to_pylist())
    compactions = _compacted(location, paths.filter(pa.array(is_metadata)))
    marked = set(parents.folder.filter(pa.array(is_version)).to_pylist())
    # An overwrite with no rows leaves a folder without files, which cannot be marked.
    unmarked = set(parents.folder.filter(pa.array(is_data)).to_pylist()) - marked
    choices = _choose(folders, compactions, unmarked, originals, transactional)
    visible = seen_by(choices)
    roots_with_base = [root for root, one in choices.items() if one.base is not None]
    is_original &= ~_bools(pc.is_in(parents.root, pa.array(roots_with_base, pa.string())))
    with_rows = [path for path, folder in visible.items() if folder.kind != "delete_delta"]
    deleting = [path for path, folder in visible.items() if folder.kind == "delete_delta"]
    is_read = is_original | is_data & _bools(_is_in(parents.folder, with_rows))
    is_delete = is_data & _bools(_is_in(parents.folder, deleting))
    if transactional.names_rows:
        _require_named(paths, is_read, buckets_of(paths), "bucket_00000 or 000000_0")
        _require_named(paths, is_delete, row_buckets(paths), "bucket_00000")
        side = [*paths.filter(pa.array(is_side)).to_pylist(), *_side_files(listing.empty)]
        is_read[_unread(location, files, side, visible)] = False
    rows = np.flatnonzero(is_read)
    at, deletes = pa.array(rows), pa.array(np.flatnonzero(is_delete))
    roots = parents.root.take(at)
    delete_files = pa.table(
        [
            *files.select([field.name for field in _LISTED]).take(deletes).columns,
            parents.root.take(deletes),
            row_buckets(paths).take(deletes),
        ],
        schema=DELETE_FILES,
    )
    return replace(
        listing,
        files=files.take(at),
        replaced=listing.replaced[rows],
        partition_paths=pc.binary_join_element_wise(roots, names.take(at), ""),
        delete_files=delete_files if transactional.names_rows else None,
        delete_totals=_delete_totals(delete_files, roots, buckets_of(paths).take(at)),
    )


def _choose(
    folders: Sequence[str],
    compactions: set[str],
    unmarked: set[str],
    originals: set[str],
    transactional: Transactional,
) -> dict[str, Chosen]:
    names = pa.array(sorted(set(folders)), pa.string())
    # A folder inside another one is not a folder of the partition.
    parents = file_folders(pc.binary_join_element_wise(names, "x", "/"))
    outermost = pc.equal(parents.folder, names)
    by_root: defaultdict[str, list[Folder]] = defaultdict(list)
    for path, root in zip(
        names.filter(outermost).to_pylist(), parents.root.filter(outermost).to_pylist(), strict=True
    ):
        folder = folder_of(path[len(root) :])
        assert folder is not None
        if not folder.is_possible:
            reason = "is named with numbers that Hive cannot give: remove it, and refresh again"
            raise AcidFolderError(path, reason)
        by_root[root].append(folder)
    return {
        root: choose(
            root,
            of_partition,
            {folder.name for folder in of_partition if root + folder.name in compactions},
            transactional.ids,
            unmarked={folder.name for folder in of_partition if root + folder.name in unmarked}
            if transactional.names_rows
            else (),
            has_originals=root in originals,
            insert_only=not transactional.names_rows,
        )
        for root, of_partition in by_root.items()
    }


def _compacted(location: str, metadata: pa.Array) -> set[str]:
    """Return the paths of the bases whose metadata say that a compaction made them.

    Hive before release 4 notes this in the metadata, later releases in the name of the folder.
    """
    compactions = set()
    for path in metadata.to_pylist():
        folder = path.rpartition("/")[0]
        parsed = folder_of(folder.rpartition("/")[2])
        if parsed is None or parsed.kind != "base" or parsed.visible:
            continue
        try:
            content = json.loads(_content(location, path, _MAX_METADATA_BYTES))
            is_compacted = content["dataFormat"] == "compacted"
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = "does not say how its folder was made: restore it, and refresh again"
            raise AcidFolderError(path, reason) from error
        if is_compacted:
            compactions.add(folder)
    return compactions


def _side_files(empty: pa.Table) -> list[str]:
    paths: list[str] = empty["path"].filter(pc.ends_with(empty["path"], FLUSH_LENGTH)).to_pylist()
    return paths


def _unread(
    location: str, files: pa.Table, side: Sequence[str], visible: Mapping[str, Folder]
) -> list[int]:
    """Return the positions of files that are still being written and hold nothing yet.

    Only a delta of several writes may be written while it is read. Beside each of its files, a
    side file holds the committed length.
    """
    unread = []
    for path in side:
        folder = visible.get(path.rpartition("/")[0])
        if folder is None or folder.least == folder.most or folder.visible:
            continue
        file = path.removesuffix(FLUSH_LENGTH)
        at = pc.index(files["path"], file).as_py()
        if at < 0:
            continue
        lengths = _content(location, path, _MAX_FLUSH_BYTES)
        whole = len(lengths) // _FLUSH_BYTES * _FLUSH_BYTES
        length = int.from_bytes(lengths[:whole][-_FLUSH_BYTES:], "big", signed=True)
        if whole and length == 0:
            unread.append(at)
        elif not whole or length != files["size_bytes"][at].as_py():
            reason = (
                "is still being written by a streaming client, or was left by one that died: "
                "refresh once it has been closed, or after Hive has compacted its folder"
            )
            raise AcidFolderError(file, reason)
    return unread


def _content(location: str, path: str, max_bytes: int) -> bytes:
    home, uri = home_and_path(location, path)
    try:
        return bytes(read_file(home, uri, most_bytes=max_bytes).content)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            reason = "is gone: refresh again"
        else:
            reason = place_of(uri).why_unreadable(error)
        raise AcidFolderError(path, reason) from error


def _require_named(paths: pa.Array, which: Bools, buckets: pa.Array, example: str) -> None:
    wrong = np.flatnonzero(which & ~_bools(pc.less_equal(buckets, MAX_BUCKET)))
    if len(wrong):
        reason = (
            f"is not named as Hive names the files of transactional tables, such as {example}, with "
            f"buckets of 0 to {MAX_BUCKET}: remove it, or correct the table's `transactional`"
        )
        raise AcidFolderError(paths[int(wrong[0])].as_py(), reason)


def _delete_totals(
    delete_files: pa.Table, roots: pa.Array, buckets: pa.Array
) -> dict[str, pa.Array]:
    """Return how many delete files apply to each data file, and their bytes."""
    names = pa.concat_arrays([flat(delete_files["root"]), roots]).dictionary_encode()
    codes = np.asarray(names.indices, np.int64) << 32
    own = codes[: len(delete_files)] | np.asarray(delete_files["bucket"], np.int64)
    data_codes = codes[len(delete_files) :] | np.asarray(pc.fill_null(buckets, 2**31 - 1), np.int64)
    keys, number = np.unique(own, return_inverse=True)
    sizes = np.asarray(delete_files["size_bytes"], np.int64)
    # One more entry, for files without delete files.
    counts = np.append(np.bincount(number, minlength=len(keys)), 0)
    bytes_ = np.zeros(len(keys) + 1, np.int64)
    np.add.at(bytes_, number, sizes)
    at = np.searchsorted(keys, data_codes)
    has_deletes = np.append(keys, -1)[at] == data_codes
    at = np.where(has_deletes, at, len(keys))
    return {
        "delete_count": pa.array(counts[at], pa.int32()),
        "delete_bytes": pa.array(bytes_[at], pa.int64()),
    }


def with_first_row_ids(paths: pa.ChunkedArray, footers: pa.Table) -> pa.Table:
    """Return the footer columns of n files, with first row numbers where rows have no names.

    Rows are numbered across the files of a bucket, in path order: one sequence for files from
    before the partition became transactional, and one for each folder that Hive loaded.

    Args:
        paths: The files, ascending.
        footers: `row_count`, and `first_row_id`, which is null where rows have names.
    """
    nameless = np.flatnonzero(footers["first_row_id"].is_valid())
    nameless_paths = flat(paths).take(pa.array(nameless))
    parents = file_folders(nameless_paths)
    folder = pc.coalesce(parents.folder, parents.root).dictionary_encode()
    key = np.asarray(folder.indices, np.int64) << 32 | np.asarray(
        buckets_of(nameless_paths), np.int64
    )
    order = np.argsort(key, kind="stable")
    counts = footers["row_count"].to_numpy()[nameless][order]
    before = np.cumsum(counts) - counts
    runs = run_offsets(key[order])
    before -= np.repeat(before[runs[:-1]], np.diff(runs))
    numbers = np.zeros(len(footers), np.int64)
    numbers[nameless[order]] = before
    at = footers.column_names.index("first_row_id")
    has_names = footers["first_row_id"].is_null().to_numpy()
    return footers.set_column(at, "first_row_id", pa.array(numbers, mask=has_names))


def _is_in(column: pa.Array, values: Sequence[str]) -> pa.Array:
    return pc.is_in(column, pa.array(values, pa.string()))


def _bools(column: pa.Array) -> Bools:
    values: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return values
