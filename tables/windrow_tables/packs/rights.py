"""Who may read a file of a table by way of its folders, which is who may read it in a pack."""

from __future__ import annotations

import os
from typing import NamedTuple

from windrow_core.files.permissions import Access, access_of

_ENTER = 1


class _Way(NamedTuple):
    """Who may pass through a folder and those above it.

    Attributes:
        owners: The owners of folders that not everybody may enter.
        groups: The groups of these folders.
        is_open: Whether all members of these groups may enter the folders of their group.
        is_public: Whether everybody may enter all of them.
    """

    owners: frozenset[str | None]
    groups: frozenset[str | None]
    is_open: bool
    is_public: bool


_ROOT = _Way(frozenset(), frozenset(), is_open=True, is_public=True)


class Rights:
    """Finds out who may read files, by way of folders that it remembers."""

    def __init__(self) -> None:
        self._ways: dict[str, _Way] = {}

    def readers_of(self, path: str) -> Access:
        """Return what the copy of a file gets, so that nobody reads it who cannot read the file.

        Files with the same answer may be in one pack.

        Args:
            path: Absolute path of a file on a local disk, without links.
        """
        access = access_of(path)
        way = self._way_to(os.path.dirname(path))
        if not way.is_public:
            # Entries of an ACL tell nothing of who may enter the folders.
            access = access.without_group() if access.acl else access
            access = access._replace(mode=access.mode & 0o770)
            if not way.is_open or way.groups != {access.group}:
                access = access._replace(group=None, mode=access.mode & 0o700)
            if way.owners != {access.owner}:
                # Nothing says that its owner may enter folders of others.
                access = access.without_owner(0)
        return access._replace(mode=access.mode & 0o444)

    def _way_to(self, folder: str) -> _Way:
        way = self._ways.get(folder)
        if way is None:
            above = os.path.dirname(folder)
            way = _ROOT if above == folder else self._way_to(above)
            access = access_of(folder)
            access = access.without_group() if access.acl else access
            # Where everybody else may enter, members of its group may not, unless they may, too.
            if access.mode & (_ENTER << 3 | _ENTER) != _ENTER << 3 | _ENTER:
                way = _Way(
                    way.owners | {access.owner},
                    way.groups | {access.group},
                    is_open=way.is_open and bool(access.mode >> 3 & _ENTER),
                    is_public=False,
                )
            self._ways[folder] = way
        return way
