"""Who may use a file or folder, and what a file that is made of several others gets.

The new one is open to nobody to whom one of the others was closed.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from operator import and_
from typing import NamedTuple

_ACL, _DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
# Texts, as this module travels to tasks.
_VERSION, _ENTRY = "<I", "<HHI"
_ACL_VERSION, _NOBODY = 2, 2**32 - 1
# Kinds of entries, in the order in which an ACL has them.
_OWNER, _USER, _OWN_GROUP, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
# File systems that have no ACLs, files that have none, and systems that know no such attribute.
_WITHOUT = (errno.ENODATA, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class AclEntry(NamedTuple):
    """What an ACL allows beside the mode.

    Attributes:
        kind: `user`, `group`, or `own_group` for the file's own group.
        name: Name or number of the user or group; None for the file's own group.
        bits: Read, write and execute as 4, 2 and 1, before the mask applies.
    """

    kind: str
    name: str | None
    bits: int


class Access(NamedTuple):
    """Who may use a file or folder.

    Attributes:
        owner: Its owner: a number on disks, a name on HDFS; None for whoever makes it.
        group: The same of its group.
        mode: Its mode. If there is an ACL, the bits of the group are the ACL's mask.
        acl: Entries of its ACL beyond the mode; empty if it has none.
    """

    owner: str | None
    group: str | None
    mode: int
    acl: tuple[AclEntry, ...] = ()

    @property
    def likeness(self) -> object:
        """What has to be the same in files whose modes alone are compared."""
        return self.group, self.acl, self.mode & 0o70 if self.acl else None

    @property
    def strangers(self) -> int:
        """What everybody may do but the owner, whichever groups one is in, as three bits."""
        mask = self.mode >> 3 & 7
        others = [one.bits & mask for one in self.acl] or [mask]
        return reduce(and_, others, self.mode & 7)

    def without_group(self) -> Access:
        """Return what is allowed where neither its group nor its ACL can be kept."""
        owner = self.mode >> 6 & 7
        return Access(self.owner, None, owner << 6 | self.strangers << 3 | self.strangers)

    def without_owner(self, least: int) -> Access:
        """Return what is allowed where another user becomes its owner.

        Args:
            least: What that user may do in any case, as three bits.
        """
        owner = self.mode >> 6 & 7
        mode = self.mode & ~0o77 | self.mode & (owner << 3 | owner) | least << 6
        if self.acl and mode & 0o70 != self.mode & 0o70:
            # Linux looks at no ACL whose mask is empty, so that one could be denied less.
            return self.without_group().without_owner(least)
        return self._replace(owner=None, mode=mode)


def narrowest(of: Sequence[Access]) -> Access:
    """Return what a file gets that is made of others, of which there is at least one."""
    first = of[0]
    if any(one.likeness != first.likeness for one in of):
        of = [one.without_group() for one in of]
    if any(one.owner != first.owner for one in of):
        of = [one.without_owner(0) for one in of]
        if any(one.likeness != of[0].likeness for one in of):
            of = [one.without_group() for one in of]
    return of[0]._replace(mode=reduce(and_, (one.mode for one in of)))


def access_of(file: int | str) -> Access:
    """Return the access to a file or folder on a local disk.

    Args:
        file: An open file, or an absolute path.
    """
    status = os.stat(file)
    return Access(
        str(status.st_uid),
        str(status.st_gid),
        stat.S_IMODE(status.st_mode),
        _entries(_attribute(file, _ACL)),
    )


def give(path: int | str, access: Access) -> None:
    """Give a file or folder of this user on a local disk its access, or a narrower one.

    It is narrower where this user may not set its owner or group.

    Args:
        path: An open file or folder, or an absolute path; until now open to this user alone.
        access: The access.

    Raises:
        OSError: It cannot be set.
    """
    for owner, group in ((-1, access.group), (access.owner, -1)):
        # Elsewhere than in the namespace of this process, an owner may have no number here.
        with suppress(OSError):
            os.chown(path, _number(owner), _number(group))
    status = os.stat(path)
    if access.group is not None and str(status.st_gid) != access.group:
        access = access.without_group()
    if str(status.st_uid) != access.owner:
        # Whoever has made it has read what is in it, and has to read it again.
        access = access.without_owner(7 if stat.S_ISDIR(status.st_mode) else 4)
    if not access.acl:
        _set_attribute(path, _ACL, None)
    os.chmod(path, access.mode)
    if access.acl:
        _set_attribute(path, _ACL, _encoded(access.acl, access.mode))


def look_alike(model: int, folder: int) -> None:
    """Give a folder the access of another one, and what that one passes on to new files.

    Args:
        model: The other one, opened.
        folder: The folder, opened, so that no link that takes its place leads elsewhere.
    """
    give(folder, access_of(model))
    _set_attribute(folder, _DEFAULT_ACL, _attribute(model, _DEFAULT_ACL))


def _number(name: str | int | None) -> int:
    return -1 if name is None else int(name)


def _attribute(file: int | str, name: str) -> bytes | None:
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(file, name)
    except OSError as error:
        if error.errno in _WITHOUT:
            return None
        raise


def _set_attribute(path: int | str, name: str, value: bytes | None) -> None:
    if sys.platform != "linux":
        return
    if value is not None:
        os.setxattr(path, name, value)
        return
    try:
        os.removexattr(path, name)
    except OSError as error:
        if error.errno not in _WITHOUT:
            raise


_KINDS = {_USER: "user", _OWN_GROUP: "own_group", _GROUP: "group"}
_TAGS = {kind: tag for tag, kind in _KINDS.items()}


def _entries(acl: bytes | None) -> tuple[AclEntry, ...]:
    """Return the entries of an ACL as the kernel has it, without those that the mode has."""
    if acl is None:
        return ()
    return tuple(
        AclEntry(_KINDS[tag], None if tag == _OWN_GROUP else str(number), bits)
        for tag, bits, number in struct.iter_unpack(_ENTRY, acl[struct.calcsize(_VERSION) :])
        if tag in _KINDS
    )


def _encoded(acl: Sequence[AclEntry], mode: int) -> bytes:
    entries = [
        (_OWNER, mode >> 6 & 7, _NOBODY),
        *((_TAGS[kind], bits, _NOBODY if name is None else int(name)) for kind, name, bits in acl),
        (_MASK, mode >> 3 & 7, _NOBODY),
        (_OTHER, mode & 7, _NOBODY),
    ]
    entries.sort(key=lambda entry: (entry[0], entry[2]))
    return struct.pack(_VERSION, _ACL_VERSION) + b"".join(
        struct.pack(_ENTRY, *entry) for entry in entries
    )
