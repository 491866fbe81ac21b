"""Addresses that stand for others in Hadoop's settings: the default file system, mounts of viewfs.

They are followed before anything is compared with a location, as links of local disks are: tables,
allowed folders and tasks have the address of the one file system that holds the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementInclude, ElementTree

from windrow_service.inventory.errors import InvalidLocationError

# Stand for the default file system, whose setting is the next one.
_DEFAULT = ("", "default")
_DEFAULT_SETTING = "fs.defaultFS"
_TABLES = "fs.viewfs.mounttable."
# The table of viewfs URIs without an authority.
_DEFAULT_TABLE = "default"
_LINK = "link."
# Where paths lead that are in no mount.
_FALLBACKS = ("linkFallback", "linkMergeSlash")
# Mounts of other kinds lead to several places, or follow patterns.
_NOT_OF_OTHER_KINDS = ("link", "homedir", *_FALLBACKS)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//[^/]*)?(/.*)?")
_MAX_NAMED = 5
_INSTEAD = "give its address there, such as 'hdfs://host:port/path'"


def stands_for_another(scheme: str, authority: str) -> bool:
    """Return whether only Hadoop's settings say what an address means.

    Args:
        scheme: Its canonical scheme.
        authority: What follows `//`, up to the path.
    """
    return scheme == "viewfs" or (scheme == "hdfs" and authority in _DEFAULT)


def followed(location: str, scheme: str, authority: str, segments: Sequence[str]) -> str:
    """Return the address of a folder in the file system that holds it.

    Args:
        location: The location, for messages.
        scheme: Its canonical scheme.
        authority: What follows `//`, up to the path.
        segments: The names in its path.

    Raises:
        InvalidLocationError: Hadoop's settings cannot be read, or do not say; or the folder is on
            several file systems.
    """
    settings = _settings(location)
    path = "".join(f"/{segment}" for segment in segments)
    if authority in _DEFAULT and (scheme == "hdfs" or not authority):
        scheme, authority = _default(location, scheme, settings)
    if scheme == "hdfs":
        return f"hdfs://{authority}{path}"
    target, below = _mounted(location, authority, path, settings)
    address = _ADDRESS.fullmatch(target)
    if address is None or "${" in target:
        raise InvalidLocationError(
            location,
            f"is mounted from {target!r}, which is no address: write it out in core-site.xml, or "
            f"{_INSTEAD}",
        )
    scheme, authority = address[1], address[2] or ""
    if stands_for_another(scheme.lower(), authority.removeprefix("//")):
        raise InvalidLocationError(
            location, f"is mounted from {target!r}, which stands for another: {_INSTEAD}"
        )
    # Unlike locations, these values are URIs with escapes.
    home = unquote(address[3] or "").rstrip("/")
    return f"{scheme}:{authority}{home}{below}" if home or below else f"{scheme}:{authority}/"


def _default(location: str, scheme: str, settings: Mapping[str, str]) -> tuple[str, str]:
    """Return scheme and authority of the default file system."""
    address = _ADDRESS.fullmatch(settings.get(_DEFAULT_SETTING, ""))
    default_scheme = address[1].lower() if address else ""
    authority = (address[2] or "").removeprefix("//") if address else ""
    if default_scheme in (scheme, "viewfs") and authority not in _DEFAULT:
        return default_scheme, authority
    if scheme == "viewfs":
        return scheme, _DEFAULT_TABLE
    raise InvalidLocationError(
        location,
        "names the default file system, and no core-site.xml here states one of HDFS: set "
        f"{_DEFAULT_SETTING} in the folder that HADOOP_CONF_DIR names, or {_INSTEAD}",
    )


def _mounted(location: str, name: str, path: str, settings: Mapping[str, str]) -> tuple[str, str]:
    """Return what a path's mount stands for, and the path below the mount."""
    prefix = f"{_TABLES}{name}."
    table = {
        key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)
    }
    mounts = {
        "/" + key.removeprefix(_LINK).strip("/"): target
        for key, target in table.items()
        if key.startswith(_LINK)
    }
    for mount, target in mounts.items():
        if path == mount or path.startswith(f"{mount}/"):
            return target, path.removeprefix(mount)
    inner = sorted(mount for mount in mounts if mount.startswith(f"{path}/"))
    if inner:
        raise InvalidLocationError(
            location,
            f"holds mounts of other folders ({', '.join(inner[:_MAX_NAMED])}): give a folder that "
            "is in one of them",
        )
    others = sorted({key.partition(".")[0] for key in table} - {*_NOT_OF_OTHER_KINDS})
    target = next((table[kind] for kind in _FALLBACKS if kind in table), "")
    if others:
        raise InvalidLocationError(
            location,
            f"may be in a mount of a kind that is not followed ({', '.join(others)}): {_INSTEAD}",
        )
    if not target:
        raise InvalidLocationError(
            location,
            f"is in no mount of {name!r} in the core-site.xml here: set HADOOP_CONF_DIR to the "
            f"folder with its mounts, or {_INSTEAD}",
        )
    return target, path


def _settings(location: str) -> Mapping[str, str]:
    """Return Hadoop's settings."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    home = os.environ.get("HADOOP_HOME")
    if folder is None and home is not None:
        folder = os.path.join(home, "etc", "hadoop")
    if folder is None:
        return {}
    try:
        return _settings_in(folder)
    except (OSError, ElementTree.ParseError, ElementInclude.FatalIncludeError) as error:
        raise InvalidLocationError(
            location,
            f"needs Hadoop's settings, and those in {folder!r} cannot be read: correct the file, "
            f"or {_INSTEAD} ({error})",
        ) from error


# As long as the client of HDFS has them: until this process ends.
@lru_cache(maxsize=8)
def _settings_in(folder: str) -> Mapping[str, str]:
    settings: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml"):
        file = Path(folder, name)
        if not file.exists():
            continue
        root = ElementTree.parse(file).getroot()
        # Mounts are often in a file of their own.
        ElementInclude.include(root, base_url=str(file))
        for one in root.iter("property"):
            settings[one.findtext("name", "").strip()] = one.findtext("value", "").strip()
    return settings
