"""Decode the paths of files in the log of a Delta table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_service.delta.errors import DeltaLogError

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def decoded(location: str, paths: pa.Array, roots: Sequence[str]) -> pa.Array:
    """Return the paths of files: relative to the table's location, or absolute beside it.

    Args:
        location: Canonical location of the table.
        paths: The paths in the log, URL-encoded.
        roots: Canonical folders and URIs that files may lie under.
    """
    # There are few folders, and only few names of files need decoding.
    heads = flat(pc.replace_substring_regex(paths, r"[^/]*$", "")).dictionary_encode()
    folders = [_folder(location, head, roots) for head in heads.dictionary.to_pylist()]
    names = flat(pc.replace_substring_regex(paths, r"^.*/", ""))
    if pc.any(pc.match_substring(names, "%")).as_py():
        names = pa.array([_unquoted(location, name) for name in names.to_pylist()], pa.string())
    wrong = pc.match_substring_regex(names, r"^\.{0,2}$|/|[\x00-\x1f\x7f]")
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        raise _leads_elsewhere(location, paths[at].as_py())
    prefixes = pa.array(folders, pa.string()).take(heads.indices)
    return flat(pc.binary_join_element_wise(prefixes, names, ""))


def decoded_one(location: str, path: str, roots: Sequence[str]) -> str:
    """Return one path, decoded as by `decoded`."""
    decoded_path: str = decoded(location, pa.array([path], pa.string()), roots)[0].as_py()
    return decoded_path


def _folder(location: str, head: str, roots: Sequence[str]) -> str:
    """Return a folder as the prefix of its files' names: empty, or with `/` at its end."""
    folder = _unquoted(location, head)
    if not folder:
        return ""
    if not _ABSOLUTE.match(folder):
        if any(part in ("", ".", "..") for part in folder[:-1].split("/")) or _UNFIT.search(folder):
            raise _leads_elsewhere(location, head)
        return folder
    # Few logs have such paths, and processes that read logs start faster without these imports.
    from windrow_service.inventory.errors import InvalidLocationError
    from windrow_service.inventory.listing.locations import canonical_location, lies_under

    try:
        home = canonical_location(folder)
    except InvalidLocationError as error:
        raise _leads_elsewhere(location, head) from error
    if lies_under(home, location):
        below = home[len(location.rstrip("/")) :].strip("/")
        return f"{below}/" if below else ""
    if not any(lies_under(home, prefix) for prefix in roots):
        raise _leads_elsewhere(location, head)
    return f"{home.rstrip('/')}/"


def _unquoted(location: str, path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise _leads_elsewhere(location, path) from error


def _leads_elsewhere(location: str, path: str) -> DeltaLogError:
    return DeltaLogError(
        location,
        f"names a file in {path[:200]!r}, which is neither below the table's location nor in a folder "
        "that the coordinator may read: correct the log, or allow the folder "
        "(WINDROW_ALLOWED_LOCATIONS)",
    )
