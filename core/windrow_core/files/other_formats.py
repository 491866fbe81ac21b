"""Signs that a folder belongs to another table format, where not every file holds current rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windrow_core.files.errors import LocationError

SINK_LOG = "_spark_metadata"


@dataclass(frozen=True, slots=True)
class OtherFormat:
    """What a folder is, and how its rows are read."""

    name: str
    remedy: str


def _of_format(name: str, reader: str) -> OtherFormat:
    return OtherFormat(
        name,
        f"read it with {reader}, or write its rows to a folder of their own and register that",
    )


_DELTA = OtherFormat("a Delta table", "register its topmost folder with `format` delta")
_HUDI = _of_format("a Hudi table", "Spark's Hudi reader")
_ICEBERG = OtherFormat("an Iceberg table", "register its topmost folder with `format` iceberg")
_PAIMON = _of_format("a Paimon table", "Spark's Paimon reader")
_ACID = OtherFormat(
    "a Hive ACID table",
    "register it as transactional (`windrow table register … --transactional`, full or "
    "insert-only), by the folder that holds all its partitions",
)
_SINK = OtherFormat(
    "the output of a Spark streaming query",
    "register the folder that holds the log itself",
)

# Hidden names, which no listing shows.
_HIDDEN = {"_delta_log": _DELTA, ".hoodie": _HUDI, SINK_LOG: _SINK}
_HOODIE_PARTITION = ".hoodie_partition_metadata"
# Folders, and the names of their files.
_METADATA = {
    "metadata": (re.compile(r"\.metadata\.json(\.gz)?$"), _ICEBERG),
    "schema": (re.compile(r"^schema-[0-9]+$"), _PAIMON),
}
_ACID_FOLDER = re.compile(r"(base_[0-9]+|(delete_)?delta_[0-9]+_[0-9]+(_[0-9]+)?)(_v[0-9]+)?")
# With numbers padded as by Hive: a table of plain files may well lie in a folder `base_2`.
_ACID_LOCATION = re.compile(
    r"(base_0[0-9]{6}|base_[0-9]{7,}_v[0-9]{7,}|(delete_)?delta_[0-9]{7,}_[0-9]{7,}(_[0-9]+)?"
    r"(_v[0-9]+)?)"
)


def refuse_hidden(folder: str, name: str, *, is_location: bool = False) -> None:
    """Refuse a hidden name that is the sign of another format.

    Args:
        folder: Absolute path or URI of the folder that it lies in.
        name: Name of a file or folder.
        is_location: Whether the folder is the table's location, whose streaming log is followed.
    """
    other = _HIDDEN.get(name)
    if other is None and name.startswith(_HOODIE_PARTITION):
        other = _HUDI
    if other is not None and not (other is _SINK and is_location):
        raise LocationError(folder, _reason(f"is {other.name}", f"it holds {name!r}", other))


def refuse_folder(folder: str, name: str) -> None:
    """Refuse a folder whose name is one that another format gives."""
    if _ACID_FOLDER.fullmatch(name):
        reason = _reason(f"is part of {_ACID.name}", f"it holds {name!r}", _ACID)
        raise LocationError(folder, reason)


def refuse_file(folder: str, name: str) -> None:
    """Refuse a file that another format keeps about its table.

    Args:
        folder: Absolute path or URI of the folder that it lies in.
        name: Name of the file.
    """
    table, _, last = folder.rpartition("/")
    sign = _METADATA.get(last)
    if sign is not None and sign[0].search(name):
        reason = f"it holds {f'{last}/{name}'!r}"
        raise LocationError(table, _reason(f"is {sign[1].name}", reason, sign[1]))


def metadata_folders() -> tuple[str, ...]:
    """Return the names of folders whose files `refuse_file` looks at."""
    return tuple(_METADATA)


def signs_beside() -> tuple[str, ...]:
    """Return the names to look for in the folders above a location."""
    return (*_HIDDEN, *_METADATA)


def refuse_below(location: str, above: str, sign: str, names: list[str] | None) -> None:
    """Refuse a location that lies in a table of another format.

    Args:
        location: Absolute path or URI.
        above: A folder that it lies in.
        sign: One of `signs_beside`, which `above` holds.
        names: The names in the folder `sign`; None if it does not exist, or cannot be listed.
    """
    if names is None:
        return
    other, name_there = _HIDDEN.get(sign), sign
    if sign in _METADATA:
        pattern, format_ = _METADATA[sign]
        file = next(filter(pattern.search, names), None)
        other, name_there = (format_, f"{sign}/{file}") if file is not None else (None, sign)
    if other is not None:
        where = f"{above!r} holds {name_there!r}"
        raise LocationError(location, _reason(f"lies in {other.name}", where, other))


def refuse_location(location: str) -> None:
    """Refuse a location whose own name is one that another format gives."""
    if _ACID_LOCATION.fullmatch(location.rpartition("/")[2]):
        raise LocationError(location, _reason(f"is part of {_ACID.name}", "by its name", _ACID))


def _reason(what: str, why: str, other: OtherFormat) -> str:
    return (
        f"{what} ({why}), where not every file holds current rows, but it is registered as a plain "
        f"folder: {other.remedy}"
    )
