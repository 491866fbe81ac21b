"""Finds the metadata file of an Iceberg table: as given, by a catalog, or in its folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from windrow_core.files.places import place_of
from windrow_core.files.remote import names_in
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.paths import TableFolders, read_bounded

_NAME = re.compile(r"v?([0-9]{1,18})(?:-[^/]+?)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_HINT = "version-hint.text"
_MAX_HINT_BYTES = 1_000


def metadata_path(folders: TableFolders, options: Mapping[str, str]) -> str:
    """Return the path of a table's newest metadata file.

    Args:
        folders: Where the table's files may be.
        options: `metadata`, the file itself; or `catalog` and `identifier`, for a catalog in
            PyIceberg's configuration here; or neither, for a table without a catalog.
    """
    if "metadata" in options:
        return folders.absolute(options["metadata"], "metadata, among the table's options,")
    if "catalog" in options:
        identifier = options.get("identifier", "")
        path = _path_in_catalog(options["catalog"], identifier)
        return folders.absolute(path, f"{options['catalog']}: {identifier}")
    return _path_in_folder(f"{folders.location.rstrip('/')}/metadata")


def _path_in_catalog(name: str, identifier: str) -> str:
    # Importing the modules of catalogs takes half a second.
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.utils.config import Config

    # Read it again: it may have changed since PyIceberg was imported.
    properties: Any = Config().get_catalog_config(name)
    if properties is None:
        raise IcebergMetadataError(
            name,
            "is not a catalog of the coordinator: configure it there, in .pyiceberg.yaml or with "
            f"PYICEBERG_CATALOG__{name.upper()}__URI",
        )
    try:
        table: Any = load_catalog(name, **properties).load_table(identifier)
    except NoSuchTableError as error:
        raise IcebergMetadataError(
            identifier, f"is not a table of catalog {name!r}: correct the table's options"
        ) from error
    except Exception as error:
        # Catalogs raise whatever their libraries raise, and some messages contain secrets.
        raise IcebergMetadataError(
            identifier,
            f"cannot be loaded from catalog {name!r} ({type(error).__name__}): check the "
            "coordinator's configuration of the catalog",
        ) from error
    return str(table.metadata_location)


def _path_in_folder(folder: str) -> str:
    try:
        names = names_in(folder)
    except OSError as error:
        raise IcebergMetadataError(folder, place_of(folder).why_unreadable(error)) from error
    if names is None:
        raise IcebergMetadataError(folder, "is missing: correct the table's location")
    names_of: dict[int, list[str]] = {}
    for name in names:
        if match := _NAME.fullmatch(name):
            names_of.setdefault(int(match[1]), []).append(name)
    if not names_of:
        return _named_by_hint(folder, names)
    newest = max(names_of)
    if _HINT in names:
        newest = _hinted(folder, names_of, newest)
    if len(names_of[newest]) > 1:
        both = " and ".join(repr(name) for name in sorted(names_of[newest])[:2])
        raise IcebergMetadataError(
            folder,
            f"has {both}, and only a catalog knows which of them is current: name the catalog, or "
            "one of them, among the table's options",
        )
    return f"{folder}/{names_of[newest][0]}"


def _named_by_hint(folder: str, names: Collection[str]) -> str:
    """Return the metadata file without a number, as DuckDB's COPY writes one."""
    if _HINT in names:
        hint = read_bounded(f"{folder}/{_HINT}", _MAX_HINT_BYTES).decode("utf-8", "replace")
        if (name := f"{hint.strip()}.metadata.json") in names:
            return f"{folder}/{name}"
    raise IcebergMetadataError(folder, "has no metadata file: correct the table's location")


def _hinted(folder: str, names_of: Mapping[int, list[str]], newest: int) -> int:
    """Return the last version in a row from the hint on: a writer may die before it updates it."""
    try:
        hint = int(read_bounded(f"{folder}/{_HINT}", _MAX_HINT_BYTES))
    except ValueError:
        return newest
    if hint not in names_of:
        return newest
    while hint + 1 in names_of:
        hint += 1
    return hint
