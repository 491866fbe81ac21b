"""Names of tables as Spark's catalogs have them: `sales.events` is `events` in namespace `sales`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import NotFoundError
from windrow_core.models import TableInfo
from windrow_core.models.base import TABLE_NAME_PATTERN
from windrow_tables.errors import UnfitReadError

# The namespace of tables whose names have no dot.
DEFAULT = "default"

_SCHEME = "windrow:"

Namespace = tuple[str, ...]


def parts_of(table: str) -> tuple[Namespace, str]:
    """Return the namespace of a table, and its name there."""
    *namespace, name = table.split(".")
    return tuple(namespace) or (DEFAULT,), name


def quoted(name: str) -> str:
    """Return a part of a name as SQL writes it whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def plain(name: str) -> str:
    """Return a part of a name as SQL writes it, with quotes only where it needs them."""
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else quoted(name)


def location_of(catalog: str, table: str) -> str:
    """Return what Spark takes for the location of a catalog's table: a URI with its name."""
    return f"{_SCHEME}/{quote(catalog, safe='')}/{table}"


def place_of(location: str) -> tuple[str, str] | None:
    """Return the catalog and the table of such a location as Spark writes it; None for others."""
    if not location.startswith(f"{_SCHEME}/"):
        return None
    catalog, _, table = location[len(_SCHEME) + 1 :].rpartition("/")
    return catalog, table


def find_table(
    client: Coordinator, namespace: Sequence[str], name: str, *, case_sensitive: bool
) -> TableInfo | None:
    """Return the table that Spark means by a name; None if there is none.

    A table with exactly this name comes first. Unless names are `case_sensitive`, it is otherwise
    the only one that differs from it in case alone.

    Raises:
        UnfitReadError: Several tables do.
    """
    # What cannot be a name, such as a path, is none: nobody needs to be asked.
    candidates = [n for n in _candidates(namespace, name) if re.fullmatch(TABLE_NAME_PATTERN, n)]
    for candidate in candidates:
        try:
            return client.table(candidate)
        except NotFoundError:
            continue
    if case_sensitive or not candidates:
        return None
    similar = [t for t in client.tables() if t.name.casefold() in map(str.casefold, candidates)]
    if len(similar) > 1:
        names = " and ".join(repr(table.name) for table in similar)
        raise UnfitReadError(
            f"{candidates[0]!r} may be the tables {names}",
            "write the name as one of them is written",
        )
    return similar[0] if similar else None


def _candidates(namespace: Sequence[str], name: str) -> Iterator[str]:
    yield ".".join([*namespace, name])
    if _folded(namespace) == (DEFAULT,):
        yield name


def tables_in(
    names: Iterable[str], namespace: Sequence[str], *, case_sensitive: bool
) -> list[str] | None:
    """Return the tables in a namespace; None if there is no such namespace.

    Args:
        names: The names of all tables.
        namespace: The namespace; without parts it is that of names without dots.
        case_sensitive: Whether its name must be written as in the names of tables.
    """
    names = list(names)
    spaces = [parts_of(name)[0] for name in names]
    target = tuple(namespace) or (DEFAULT,)
    tables = [
        name
        for name, space in zip(names, spaces, strict=True)
        if _same(space, target, case_sensitive=case_sensitive)
    ]
    if tables or namespaces_in(names, target, case_sensitive=case_sensitive) is not None:
        return tables
    return None


def namespaces_in(
    names: Iterable[str], namespace: Sequence[str], *, case_sensitive: bool
) -> list[Namespace] | None:
    """Return the namespaces right below one; None if there is no such namespace.

    Args:
        names: The names of all tables.
        namespace: The namespace; without parts it is the catalog itself.
        case_sensitive: As for `tables_in`.
    """
    depth = len(namespace)
    spaces = {(DEFAULT,)} | {parts_of(name)[0] for name in names}
    inside = [s for s in spaces if _same(s[:depth], namespace, case_sensitive=case_sensitive)]
    if not inside:
        return None
    return sorted({space[: depth + 1] for space in inside if len(space) > depth})


def _same(one: Sequence[str], other: Sequence[str], *, case_sensitive: bool) -> bool:
    if case_sensitive:
        return tuple(one) == tuple(other)
    return _folded(one) == _folded(other)


def _folded(parts: Sequence[str]) -> Namespace:
    return tuple(part.casefold() for part in parts)
