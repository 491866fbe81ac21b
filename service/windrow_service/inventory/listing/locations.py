"""Locations of tables: their canonical form, and which of them overlap."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from windrow_core.files.schemes import SCHEMES, canonical_scheme
from windrow_service.inventory.errors import InvalidLocationError
from windrow_service.inventory.listing.mounts import followed, stands_for_another

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?")

_SCHEMES = [scheme.name for scheme in SCHEMES]
# The container, the account and its cloud, such as `container@account.dfs.core.windows.net`.
_CONTAINER = re.compile(r"[a-z0-9][a-z0-9-]{2,62}@[a-z0-9]{3,24}(?:\.[a-z0-9-]+)+")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
# C0 and C1 control characters; they could forge lines in logs and terminals.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# The same, and the surrogates that stand for bytes that are not UTF-8.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+(?::[0-9]{1,5})?)?")


def canonical_location(location: str) -> str:
    """Return the canonical form of a location.

    Args:
        location: An absolute path or `file:` URI, whose links and `..` are resolved; or a URI
            of S3, HDFS, Google Cloud Storage or Azure, whose path is not changed, including `%`.
            Mounts of viewfs, and the default file system of Hadoop, are followed.

    Raises:
        InvalidLocationError: The text is neither.
    """
    scheme = _SCHEME.match(location)
    public = _shown(location)
    if _CONTROL.search(location):
        raise InvalidLocationError(public, "contains a control character: leave it out")
    if scheme and (remote := canonical_scheme(scheme[1])) is not None:
        return _canonical_uri(public, remote, scheme[2], location[scheme.end() :])
    if scheme and scheme[1].lower() != "file":
        raise InvalidLocationError(
            public,
            f"{scheme[1]}: is not supported: give an absolute local path, or a URI of "
            f"{', '.join(_SCHEMES[:-1])} or {_SCHEMES[-1]}",
        )
    if scheme and scheme[2] not in (None, "", "localhost"):
        raise InvalidLocationError(
            public, "is on another machine: begin a local path with '/', or with 'file:///'"
        )
    path = location[scheme.end() :] if scheme else location
    if not path.startswith("/"):
        uris = [f"'{name}://'" for name in _SCHEMES]
        raise InvalidLocationError(
            public,
            f"is not absolute: begin it with '/', or with {', '.join(uris[:-1])} or {uris[-1]}",
        )
    real = os.path.realpath(path)
    if _UNFIT.search(real):
        raise InvalidLocationError(
            public,
            "leads to a folder whose name contains a control character or is not UTF-8: rename it",
        )
    return real


def lies_under(location: str, prefix: str) -> bool:
    """Return whether a canonical location equals a canonical prefix or is under it."""
    return location == prefix or location.startswith(prefix.rstrip("/") + "/")


def overlaps(locations: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Yield each canonical location that contains one of the others, or lies in one."""
    folders = sorted(other.rstrip("/") + "/" for other in others)
    ends = set(folders)
    for location in locations:
        folder = location.rstrip("/") + "/"
        at = bisect_left(folders, folder)
        contains = at < len(folders) and folders[at].startswith(folder)
        above = accumulate(folder.split("/")[:-1], lambda path, name: f"{path}/{name}")
        if contains or any(f"{path}/" in ends for path in above):
            yield location


def _canonical_uri(public: str, scheme: str, authority: str | None, path: str) -> str:
    if authority is None:
        raise InvalidLocationError(public, f"is not absolute: begin it with '{scheme}://'")
    if "@" in authority and scheme != "abfss":
        raise InvalidLocationError(
            public,
            "contains a user or a key: leave it out; credentials come from the environment of the "
            "coordinator and the executors",
        )
    if "?" in authority + path or "#" in authority + path:
        raise InvalidLocationError(
            public,
            "contains '?' or '#': leave out the rest; options come from the environment of the "
            "coordinator and the executors",
        )
    if scheme == "hdfs":
        # Unlike bucket names, host names are not case-sensitive.
        authority = authority.lower()
        if not _HOST.fullmatch(authority):
            raise InvalidLocationError(public, "has no valid host: write 'hdfs://host:port/path'")
    elif scheme == "viewfs":
        # Names of mount tables are case-sensitive.
        if not _HOST.fullmatch(authority):
            raise InvalidLocationError(public, "has no valid name: write 'viewfs://name/path'")
    elif scheme == "abfss":
        if not _CONTAINER.fullmatch(authority):
            raise InvalidLocationError(
                public,
                "has no valid container and account: write "
                "'abfss://container@account.dfs.core.windows.net/prefix', in lower case",
            )
    elif not _BUCKET.fullmatch(authority):
        raise InvalidLocationError(
            public, f"has no valid bucket: write '{scheme}://bucket/prefix', in lower case"
        )
    segments = path.strip("/").split("/") if path.strip("/") else []
    if any(segment in ("", ".", "..") for segment in segments):
        raise InvalidLocationError(public, "has a segment that is empty, '.' or '..': leave it out")
    if not authority and not segments:
        raise InvalidLocationError(public, "names nothing: write 'hdfs://host:port/path'")
    if stands_for_another(scheme, authority):
        return canonical_location(followed(public, scheme, authority, segments))
    return f"{scheme}://{'/'.join([authority, *segments])}"


def _shown(location: str) -> str:
    """Return a location without its potentially secret parts: user, key, query, fragment."""
    return re.sub(r"[?#].*", "?…", re.sub(r"//[^/]*@", "//…@", location), flags=re.DOTALL)
