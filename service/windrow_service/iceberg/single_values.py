"""Partition values as manifests store them, as Iceberg's JSON form of single values."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Values have at least as many digits as their scale, and Iceberg has none of more than 38.
_DECIMAL = re.compile(r"decimal\([0-9]+, ([0-9]{1,2})\)")
_SECOND_NS = 10**9


def json_writer(type_: str) -> Callable[[Any], str]:
    """Return a function that writes values of a type; null is `null` for all types.

    Args:
        type_: Iceberg's name of the type.

    Raises:
        ValueError: No partition has values of such a type.
    """
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        scale = int(decimal[1])
        return lambda raw: "null" if raw is None else json.dumps(_decimal(raw, scale))
    write = _WRITERS.get(type_.partition("[")[0])
    if write is None:
        raise ValueError(f"a partition has values of type {type_ or 'that no schema has'}")
    return lambda raw: "null" if raw is None else json.dumps(write(raw))


def _decimal(raw: bytes, scale: int) -> str:
    number = int.from_bytes(raw, "big", signed=True)
    digits = tuple(map(int, str(abs(number))))
    return format(Decimal((int(number < 0), digits, -scale)), "f")


def _number(raw: float) -> float | str:
    # JSON has no others.
    return raw if abs(raw) < float("inf") else str(raw)


def _time(microseconds: int) -> str:
    return _moment(microseconds).time().isoformat(timespec="microseconds")


def _moment(microseconds: int) -> datetime:
    return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None)


def _timestamp(microseconds: int) -> str:
    return _moment(microseconds).isoformat(timespec="microseconds")


def _timestamp_ns(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, _SECOND_NS)
    return f"{_moment(seconds * 10**6).isoformat(timespec='seconds')}.{rest:09}"


_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool,
    # Not `int`, which also makes numbers of any size of texts.
    "int": operator.index,
    "long": operator.index,
    "float": _number,
    "double": _number,
    "string": str,
    "uuid": lambda raw: str(UUID(bytes=bytes(raw))),
    "fixed": lambda raw: bytes(raw).hex().upper(),
    "binary": lambda raw: bytes(raw).hex().upper(),
    "date": lambda days: date.fromordinal(_EPOCH.toordinal() + days).isoformat(),
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": lambda raw: f"{_timestamp(raw)}+00:00",
    "timestamp_ns": _timestamp_ns,
    "timestamptz_ns": lambda raw: f"{_timestamp_ns(raw)}+00:00",
}
