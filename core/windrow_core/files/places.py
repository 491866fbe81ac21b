"""Kinds of places where tables lie: this machine's file systems, HDFS and object stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow_core.files import hadoop, permissions
from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.mounts import keeps_times
from windrow_core.files.permissions import Access
from windrow_core.files.remote import why_unreadable
from windrow_core.files.schemes import is_object, is_remote


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A kind of place.

    Attributes:
        access_of: Returns who may use a file there; None where the store decides that by itself.
        why_unreadable: Returns why a file or folder there could not be read, given the system's error,
            and what to do about it.
        keeps_times: Returns whether times and inode numbers of files and folders can be believed.
        request_s: Seconds until it answers a request.
        listings: How many folders are looked at together, each of which takes a request; one where
            nothing has to be waited for.
        footers: How many files' footers are read together: reads overlap, also on slow disks.
        has_excerpts: Whether some columns of large files are read without asking for the footers
            first, as each read is a request.
        shows_both: Whether readers that list folders may find old and new files for a while, when
            some replace others.
        has_versions: Whether older versions may be left of what is removed.
        hides_readers: Whether it is not to be seen who may read a file.
        package: The Python package that reads its files, and the extra that installs it; None if
            none is needed.
        packing: Why there are no packs of tables there; None if there may be.
    """

    access_of: Callable[[str], Access | None]
    why_unreadable: Callable[[Exception], str]
    request_s: float
    listings: int
    footers: int
    keeps_times: Callable[[str], bool] = lambda _: False
    has_excerpts: bool = False
    shows_both: bool = True
    has_versions: bool = True
    hides_readers: bool = False
    packing: str | None = None
    package: tuple[str, str] | None = None


def _why_unreadable_here(error: Exception) -> str:
    if is_of_system(error):
        return f"cannot be read: {why_inaccessible(error)}"
    return f"cannot be read: {' '.join(str(error).split())}; restore it"


DISK = Place(
    access_of=permissions.access_of,
    keeps_times=keeps_times,
    why_unreadable=_why_unreadable_here,
    request_s=0.0,
    listings=1,
    footers=8,
    shows_both=False,
    has_versions=False,
)


# As measured in a cluster on loopback.
HDFS = Place(
    access_of=hadoop.access_of,
    why_unreadable=why_unreadable,
    request_s=0.001,
    package=("hdfs_native", "hdfs"),
    listings=16,
    footers=32,
    packing="it lies on HDFS, whose permissions packs do not keep yet: compact it instead",
)
# Estimated.
OBJECTS = Place(
    access_of=lambda _: None,
    why_unreadable=why_unreadable,
    request_s=0.02,
    listings=16,
    footers=32,
    has_excerpts=True,
    hides_readers=True,
    package=("obstore", "scan"),
)


def place_of(location: str) -> Place:
    """Return the kind of place where a canonical location lies."""
    if is_object(location):
        return OBJECTS
    return HDFS if is_remote(location) else DISK
