"""Looks above a table's location, which may be a part of another format's table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

from windrow_core.files.access import why_inaccessible
from windrow_core.files.errors import LocationError
from windrow_core.files.other_formats import refuse_below, refuse_location, signs_beside
from windrow_core.files.places import place_of
from windrow_core.files.remote import names_in
from windrow_core.files.schemes import is_remote

# On object stores each look is one request.


def refuse_part_of_table(location: str, topmost: str = "") -> None:
    """Refuse a location that lies in a table of another format, or is named like a part of one.

    A folder above that this process may not list is ignored.

    Args:
        location: Absolute path, or URI.
        topmost: The topmost folder to look into, as a path or URI that the location begins with;
            the root of the file system or store by default.

    Raises:
        LocationError: It lies in such a table, or has such a name; or the system does not tell
            whether it does.
    """
    refuse_location(location)
    questions = list(product(_folders_above(location, topmost), signs_beside()))
    with ThreadPoolExecutor(place_of(location).listings) as threads:
        for (above, sign), names in zip(questions, threads.map(_names, questions), strict=True):
            refuse_below(location, above, sign, names)


def _names(question: tuple[str, str]) -> list[str] | None:
    above, sign = question
    try:
        return names_in(f"{above.rstrip('/')}/{sign}")
    except LocationError:
        return None
    except OSError as error:
        # Whoever may not look there has no part in that table. Any other error might hide that the
        # location is part of a table whose log says which files count.
        if is_remote(above) or isinstance(error, PermissionError):
            return None
        raise LocationError(
            f"{above.rstrip('/')}/{sign}", f"cannot be listed: {why_inaccessible(error)}"
        ) from error


def _folders_above(location: str, topmost: str) -> list[str]:
    """Return the folders above a location, the nearest first."""
    root = "/"
    if is_remote(location):
        scheme, _, rest = location.partition("://")
        root = f"{scheme}://{rest.partition('/')[0]}"
    root = topmost or root
    folders = []
    while location != root:
        location = location.rpartition("/")[0] or "/"
        folders.append(location)
    return folders
