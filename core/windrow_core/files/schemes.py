"""Which storage the URIs of locations name: their schemes, and other spellings of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme of URIs.

    Attributes:
        name: The scheme, as in canonical locations.
        synonyms: What Hadoop calls it, or called it.
        is_object: Whether it names an object store, where a URI begins with a bucket, or a container.
    """

    name: str
    synonyms: tuple[str, ...] = ()
    is_object: bool = True


# A new object store also needs its connection: see `objects/stores.py`.
SCHEMES = (
    Scheme("s3", ("s3a", "s3n")),
    Scheme("hdfs", is_object=False),
    # No canonical location has it: its mounts are followed.
    Scheme("viewfs", is_object=False),
    Scheme("gs"),
    Scheme("abfss", ("abfs",)),
)

_CANONICAL = {name: one.name for one in SCHEMES for name in (one.name, *one.synonyms)}
_OF_OBJECTS = tuple(f"{one.name}:" for one in SCHEMES if one.is_object)


def canonical_scheme(scheme: str) -> str | None:
    """Return the canonical form of a scheme of remote storage; None for any other scheme."""
    return _CANONICAL.get(scheme.lower())


def with_canonical_scheme(uri: str) -> str:
    """Return a URI with the canonical form of its scheme; other texts come back unchanged."""
    scheme, colon, rest = uri.partition(":")
    return f"{canonical_scheme(scheme) or scheme}{colon}{rest}"


def beginning_of(location: str) -> str:
    """Return what all paths begin with where a location is: `/`, or the scheme and a slash."""
    return location[: location.index("/") + 1]


def is_remote(location: str) -> bool:
    """Return whether a canonical location is a URI, not a path on this machine."""
    return not location.startswith("/")


def is_object(location: str) -> bool:
    """Return whether a canonical location is on an object store."""
    return location.startswith(_OF_OBJECTS)
