"""The log of Spark's file sink: which files of a folder its streaming query has committed."""

from __future__ import annotations

import io
import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from json import loads
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from windrow_core.files.access import NOT_READABLE, why_inaccessible
from windrow_core.files.errors import LocationError
from windrow_core.files.other_formats import SINK_LOG
from windrow_core.files.remote import names_in, read_whole_file, why_unreadable
from windrow_core.files.schemes import is_remote, with_canonical_scheme

COMMITTED_SCHEMA = pa.schema([("path", pa.string()), ("size_bytes", pa.int64())])

# The fields of Spark's log that matter here.
_ENTRY = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("isDir", pa.bool_()), ("action", pa.string())]
)
_HEADER = b"v1"
# A line that is neither blank nor an object without objects in it, which is what Spark writes.
_OTHER_LINE = re.compile(rb"^(?![ \t\r]*(?:\{[^{}\n]*\}[ \t\r]*)?$).*$", re.MULTILINE)
_COMPACT = ".compact"
_MAX_LOG_BYTES = 2**29
_BLOCK_BYTES = 2**20
_READING_THREADS = 16
# Spark deletes old batches while others read the log, once a newer batch holds their entries.
_ATTEMPTS = 5

_RESTORE = "restore it, or write the table's rows to a folder of their own and register that"


def read_sink_log(location: str) -> pa.Table | None:
    """Return the files that a streaming query has committed to a folder, as Spark reads its log.

    Call this before the folder is listed, so that every file that the log names is in the listing.

    Args:
        location: Absolute path of the table's folder, or its URI.

    Returns:
        `COMMITTED_SCHEMA`, paths relative to the location; None if the folder has no such log.

    Raises:
        LocationError: The log cannot be read, or is not one that Spark would read.
    """
    log = f"{location.rstrip('/')}/{SINK_LOG}"
    for attempt in range(_ATTEMPTS):
        try:
            names = names_in(log)
            if names is None:
                return None
            entries = _read(log, _batches(log, names))
        except FileNotFoundError as error:
            if attempt == _ATTEMPTS - 1:
                raise LocationError(log, f"lacks {error.filename!r}: {_RESTORE}") from error
        except (OSError, pa.ArrowException) as error:
            raise LocationError(log, _why_unreadable(log, error)) from error
        else:
            return _committed(location, log, entries)
    raise AssertionError


def _why_unreadable(log: str, error: Exception) -> str:
    if is_remote(log):
        return why_unreadable(error)
    if isinstance(error, PermissionError) and error.filename in (None, log):
        return NOT_READABLE
    if isinstance(error, OSError):
        name = "" if error.filename is None else f" ({os.path.basename(error.filename)!r})"
        return f"cannot be read{name}: {why_inaccessible(error)}"
    return f"cannot be read: {error}; {_RESTORE}"


def _batches(log: str, names: list[str]) -> list[str]:
    """Return the files of the log that count: the newest compacted batch, and all after it."""
    plain = {int(name) for name in names if re.fullmatch(r"[0-9]{1,18}", name)}
    compactions = [
        int(name[: -len(_COMPACT)]) for name in names if re.fullmatch(r"[0-9]{1,18}\.compact", name)
    ]
    first = max(compactions, default=-1)
    later = sorted(batch for batch in plain if batch > first)
    gap = next((at for at, batch in enumerate(later, first + 1) if batch != at), None)
    if gap is not None:
        raise LocationError(log, f"lacks batch {gap}, which Spark would read: {_RESTORE}")
    return [*([f"{first}{_COMPACT}"] if compactions else []), *map(str, later)]


def _read(log: str, batches: list[str]) -> pa.Table:
    """Return the entries in the files of a log, with `_ENTRY`."""
    tables = [_ENTRY.empty_table()]
    left = _MAX_LOG_BYTES
    with ThreadPoolExecutor(_READING_THREADS) as threads:
        # The compacted batch is read alone, as it may be as large as all others together.
        head = [name for name in batches if name.endswith(_COMPACT)]
        tail = batches[len(head) :]
        for some in (head, *_cut(tail)):
            for name, body in zip(
                some,
                threads.map(partial(_read_one, log, left // max(1, len(some))), some),
                strict=True,
            ):
                tables.append(_entries(log, name, body))
                left -= len(body)
    return pa.concat_tables(tables)


def _cut(names: list[str]) -> list[list[str]]:
    return [names[at : at + _READING_THREADS] for at in range(0, len(names), _READING_THREADS)]


def _read_one(log: str, max_bytes: int, name: str) -> bytes:
    try:
        body = read_whole_file(f"{log}/{name}", max_bytes + 1)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, error.strerror, name) from error
    if len(body) > max_bytes:
        raise LocationError(
            log,
            f"is larger than {_MAX_LOG_BYTES:,} bytes: write the table's rows to a folder of their "
            "own and register that",
        )
    return body


def _require_objects(path: str, lines: bytes) -> None:
    """Refuse lines that are not one JSON object: Arrow ends the process on some of them."""
    for odd in _OTHER_LINE.finditer(lines):
        try:
            is_object = isinstance(loads(odd[0]), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            excerpt = odd[0][:40].decode(errors="backslashreplace")
            raise LocationError(path, f"is not a log of Spark's (line {excerpt!r}): {_RESTORE}")


def _entries(log: str, name: str, body: bytes) -> pa.Table:
    """Return the entries in one file of the log, with `_ENTRY`."""
    header, _, lines = body.partition(b"\n")
    if header != _HEADER:
        excerpt = header[:20].decode(errors="backslashreplace")
        raise LocationError(
            f"{log}/{name}", f"begins with {excerpt!r}, but Spark's log with 'v1': {_RESTORE}"
        )
    if not lines.strip():
        return _ENTRY.empty_table()
    _require_objects(f"{log}/{name}", lines)
    try:
        table = json.read_json(
            io.BytesIO(lines),
            read_options=json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=json.ParseOptions(
                explicit_schema=_ENTRY, unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise LocationError(
            f"{log}/{name}", f"is not a log of Spark's ({text}): {_RESTORE}"
        ) from error
    table = table.select(_ENTRY.names)
    wrong = [name for name in _ENTRY.names if table[name].null_count]
    if wrong:
        raise LocationError(f"{log}/{name}", f"has an entry without {wrong[0]!r}: {_RESTORE}")
    other = pc.indices_nonzero(pc.not_equal(table["action"], "add"))
    if len(other):
        action = table["action"][other[0].as_py()].as_py()
        raise LocationError(
            f"{log}/{name}",
            f"has the action {action!r}, but only 'add' is known here: write the table's rows to a "
            "folder of their own and register that",
        )
    return table


def _committed(location: str, log: str, entries: pa.Table) -> pa.Table:
    """Return the files of a log relative to the location."""
    files = entries.filter(pc.invert(entries["isDir"]))
    # File names rarely need escapes in URIs; folders may need them, but there are few folders.
    folders = pc.replace_substring_regex(files["path"], "/[^/]*$", "").combine_chunks()
    encoded = folders.dictionary_encode()
    relative = pa.array(
        [_below(location, log, folder) for folder in encoded.dictionary.to_pylist()], pa.string()
    )
    names = pc.replace_substring_regex(files["path"], "^.*/", "")
    if pc.any(pc.match_substring(names, "%")).as_py():
        names = pa.chunked_array([pa.array([unquote(name) for name in names.to_pylist()])])
    prefixes = relative.take(encoded.indices)
    table = pa.table(
        [pc.binary_join_element_wise(prefixes, names, ""), files["size"]], schema=COMMITTED_SCHEMA
    )
    if len(table) != pc.count_distinct(table["path"]).as_py():
        raise LocationError(log, f"names a file twice, which Spark would read twice: {_RESTORE}")
    return table


def _below(location: str, log: str, folder: str) -> str:
    """Return the prefix of a file's name: "", or its folder below the location and `/`.

    Args:
        location: Absolute path, or URI.
        log: Absolute path or URI of the log.
        folder: Folder of a file, as in the log.
    """
    try:
        parts = urlsplit(folder)
    except ValueError as error:
        raise LocationError(
            log, f"names files in {folder!r}, which is not a URI: {_RESTORE}"
        ) from error
    path = unquote(parts.path)
    if is_remote(location):
        path = with_canonical_scheme(f"{parts.scheme}://{parts.netloc}{path}")
    elif parts.scheme in ("", "file") and not lies_below(location, path):
        # The query may reach the folder through a link.
        path = os.path.realpath(path)
    if not lies_below(location, path):
        raise LocationError(
            log,
            f"names files in {folder!r}, which is not below {location!r}: the folder was moved or "
            "copied, or the query writes elsewhere; write the table's rows to a folder of their "
            "own and register that",
        )
    below = path[len(location.rstrip("/")) :].strip("/")
    return f"{below}/" if below else ""


def lies_below(location: str, path: str) -> bool:
    """Return whether a path is a location, or lies below it."""
    return path == location or path.startswith(location.rstrip("/") + "/")


def keep_committed(location: str, files: pa.Table, log: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Divide the files of a folder into those that its log names, and the others.

    Args:
        location: Absolute path, or URI.
        files: `LISTING_SCHEMA`, listed after the log was read.
        log: What `read_sink_log` returned.

    Raises:
        LocationError: A file in the log is gone, or its size differs from the log.
    """
    rows = pc.index_in(log["path"], files["path"]).combine_chunks()
    if rows.null_count:
        missing = log["path"][pc.index(pc.is_null(rows), True).as_py()].as_py()
        raise LocationError(
            f"{location.rstrip('/')}/{missing}",
            f"is named by the log in {SINK_LOG!r} but does not exist: {_RESTORE}",
        )
    other = pc.indices_nonzero(pc.not_equal(log["size_bytes"], files["size_bytes"].take(rows)))
    if len(other):
        at = other[0].as_py()
        raise LocationError(
            f"{location.rstrip('/')}/{log['path'][at].as_py()}",
            f"does not have the {log['size_bytes'][at].as_py():,} bytes that the log in "
            f"{SINK_LOG!r} states: {_RESTORE}",
        )
    is_named = np.zeros(len(files), np.bool_)
    is_named[rows.to_numpy()] = True
    return files.filter(pa.array(is_named)), files.filter(pa.array(~is_named))
