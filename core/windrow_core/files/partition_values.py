"""Partition values from the names of folders: decoded, with types inferred as in Spark.

Differences from Spark, on purpose:

| text | Spark 4.3 | here |
|---|---|---|
| `2024-01-01 10%3A00%3A00` | timestamp, in the session's time zone | timestamp_ntz, a local time |
| only `__HIVE_DEFAULT_PARTITION__` | void | string |
| `0x1p3` (hexadecimal fractions) | double | string |
| digits that are not ASCII | int | string |
| `0000-01-01`, `-2024-01-01`, and times of such years | date, timestamp | string |

Sessions of Spark take local times for `timestamp` in their own zone (`TableInfo.local_times`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.errors import StatedError
from windrow_core.files.listing import unescape
from windrow_core.files.types import (
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    arrow_types,
    spark_type,
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Java's Double.parseDouble: blanks around it and a type suffix are allowed.
_FRACTION = re.compile(
    rf"[\x00-\x20]*(?:({_NUMBER.pattern})[fFdD]?|([+-]?(?:NaN|Infinity)))[\x00-\x20]*"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Times from which Spark infers the type `timestamp`.
_ISO_TIME = re.compile(rf"{_ISO_DATE.pattern} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9])?")
_ISO_TIMES = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}(%3A|:)[0-9]{2}(%3A|:)[0-9]{2}(\.[0-9])?$"
# Times that Spark reads from texts, as far as they are read here.
_TIME = re.compile(
    rf"{_DATE.pattern}"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6}))?)?)?"
    r"([zZ]|([+-])([01][0-9]):([0-5][0-9]))?"
)
# Numbers that always fit into 64 bits, in a form that Arrow's parser reads in the same way.
_SHORT_INTEGERS = r"^-?[0-9]{1,18}$"

_DECIMAL_TYPE = re.compile(r"(?:decimal|dec|numeric)(?:\(([0-9]+)(?:,([0-9]+))?\))?")
_TEXT_TYPE = re.compile(r"(?:string|(?:var)?char\([0-9]+\))")

_NO_VALUE = "not a value"

_INTEGER_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def infer_type(texts: pa.Array) -> pa.DataType:
    """Return the type of a partition column as Spark infers it over all of its values.

    Args:
        texts: The distinct texts, still escaped; none is null.

    Returns:
        int, bigint, decimal (of whole numbers too long for bigint), double, date, timestamp_ntz
        (of local times) or string; string for no texts.
    """
    if len(texts) == 0:
        return pa.string()
    if pc.all(pc.match_substring_regex(texts, _SHORT_INTEGERS)).as_py():
        bounds = pc.min_max(pc.cast(texts, pa.int64())).as_py()
        fits_int = bounds["min"] >= -(2**31) and bounds["max"] < 2**31
        return pa.int32() if fits_int else pa.int64()
    if _iso_times(texts) is not None:
        return TIMESTAMP_NTZ
    kinds: set[pa.DataType] = set()
    for text in texts.to_pylist():
        kinds.add(_type_of(text))
        if pa.string() in kinds:
            return pa.string()
    return _common_type(kinds)


def _type_of(text: str) -> pa.DataType:
    if _INTEGER.fullmatch(text):
        value = _to_integer(text)
        if -(2**31) <= value < 2**31:
            return pa.int32()
        if -(2**63) <= value < 2**63:
            return pa.int64()
    if _NUMBER.fullmatch(text) and (precision := _whole_digits(text)) is not None:
        return pa.decimal128(precision, 0)
    if _FRACTION.fullmatch(text):
        return pa.float64()
    if _ISO_DATE.fullmatch(text) and _is_valid(_to_date, text):
        return pa.date32()
    if _ISO_TIME.fullmatch(plain := unescape(text)) and _is_valid(_to_timestamp_ntz, plain):
        return TIMESTAMP_NTZ
    return pa.string()


def _iso_times(texts: pa.Array) -> pa.Array | None:
    """Return texts as local times at once; None if one of them is not written as Spark writes it."""
    if not pc.all(pc.match_substring_regex(texts, _ISO_TIMES), min_count=0).as_py():
        return None
    try:
        times = pc.cast(pc.replace_substring(texts, "%3A", ":"), TIMESTAMP_NTZ)
    except pa.ArrowInvalid:
        return None
    # Of the year 0, values of Python cannot be made.
    return None if pc.any(pc.equal(pc.year(times), 0)).as_py() else times


def _whole_digits(text: str) -> int | None:
    """Return how many digits the whole number has, as Java's BigDecimal counts; else None."""
    try:
        _, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        return None
    if not isinstance(exponent, int) or exponent < 0:
        return None
    precision = len(digits) + exponent if any(digits) else 1
    return precision if precision <= 38 else None


def _common_type(kinds: set[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1:
        return kinds.pop()
    decimals = {kind for kind in kinds if pt.is_decimal(kind)}
    if kinds <= {pa.int32(), pa.int64(), *decimals}:
        if not decimals:
            return pa.int64()
        # Spark counts an int as 10 digits and a bigint as 20, whatever the values.
        digits = [kind.precision for kind in decimals]
        digits += [{pa.int32(): 10, pa.int64(): 20}[kind] for kind in kinds - decimals]
        return pa.decimal128(max(digits), 0)
    if kinds == {pa.date32(), TIMESTAMP_NTZ}:
        return TIMESTAMP_NTZ
    return pa.float64() if kinds == {pa.int32(), pa.float64()} else pa.string()


def convert(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Turn the texts of folders into values of a type.

    Args:
        texts: The texts, still escaped; null for Hive's default partition.
        type_: A type for which `is_partition_type` is true.

    Raises:
        InvalidValueError: A text is not a value of the type; the error holds its index.
    """
    if pt.is_string(type_) and not pc.any(pc.match_substring(texts, "%")).as_py():
        return texts
    if type_ in (pa.int32(), pa.int64()):
        is_short = pc.match_substring_regex(texts, _SHORT_INTEGERS)
        if pc.all(is_short, min_count=0).as_py():
            try:
                return pc.cast(pc.cast(texts, pa.int64()), type_)
            except pa.ArrowInvalid:
                # A value is out of range; the loop below finds it.
                pass
    if type_ == TIMESTAMP_NTZ and (times := _iso_times(texts)) is not None:
        return times
    parse = _parser(type_)
    values: list[Any] = []
    for index, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parse(text))
        except (ValueError, OverflowError) as error:
            raise InvalidValueError(index) from error
    return pa.array(values, type_)


def identities(texts: Sequence[str | None], type_: pa.DataType) -> list[Hashable]:
    """Return what tells the values of texts apart: equal if two texts are the same value.

    A text that is not a value of the type is only like itself. NaN is one value; 0.0 and -0.0 are
    two, as Spark gives them two folders and a row would change if it moved between these.

    Args:
        texts: The texts, still escaped; null for Hive's default partition.
        type_: A type for which `is_partition_type` is true.
    """
    try:
        values = convert(pa.array(texts, pa.string()), type_).to_pylist()
    except InvalidValueError:
        return [_identity(text, type_) for text in texts]
    # The text of a number has its sign, and only one NaN.
    return [repr(value) for value in values] if pt.is_floating(type_) else values


def _identity(text: str | None, type_: pa.DataType) -> Hashable:
    try:
        value = convert(pa.array([text], pa.string()), type_)[0].as_py()
    except InvalidValueError:
        return (_NO_VALUE, text)
    return repr(value) if pt.is_floating(type_) else value


def resolved_type(type_: pa.DataType, texts: pa.Array) -> pa.DataType:
    """Return the type of the values of a column that is declared as this type.

    A `timestamp` whose texts have no offset has local times, which each session of Spark reads in
    its own time zone.

    Args:
        type_: The declared type.
        texts: The distinct texts, still escaped; none is null.
    """
    if type_ != TIMESTAMP or not len(texts):
        return type_
    if _iso_times(texts) is not None:
        return TIMESTAMP_NTZ
    has_offset = any(_is_valid(_to_timestamp, text) for text in texts.to_pylist())
    return TIMESTAMP if has_offset else TIMESTAMP_NTZ


def type_with(type_: pa.DataType, texts: pa.Array) -> pa.DataType:
    """Return the type of a column of an inferred type once further texts belong to it.

    Args:
        type_: The type inferred so far.
        texts: The further texts, still escaped; none is null.
    """
    if not len(texts):
        return type_
    return _common_type({type_, infer_type(texts)})


@dataclass(eq=False)
class InvalidValueError(StatedError):
    """A text is not a value of the wanted type; the caller adds the name of the column.

    Attributes:
        index: Position of the text.
    """

    index: int
    message = "value {index} is not of the wanted type"


def is_partition_type(type_: pa.DataType) -> bool:
    """Return whether folder names can hold values of this type."""
    return type_ in _PARSERS or bool(pt.is_decimal(type_))


def partition_type(text: str) -> pa.DataType | None:
    """Return the type that Spark SQL writes like this; None if no folder name can hold it."""
    plain = "".join(text.lower().split())
    if _TEXT_TYPE.fullmatch(plain):
        return pa.string()
    if (match := _DECIMAL_TYPE.fullmatch(plain)) is not None:
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        fits = 1 <= precision <= MAX_DECIMAL_PRECISION and scale <= precision
        return pa.decimal128(precision, scale) if fits else None
    return _BY_NAME.get(plain)


def _parser(type_: pa.DataType) -> Callable[[str], Any]:
    if pt.is_decimal(type_):
        return lambda text: _to_decimal(text, type_)
    if (bits := _INTEGER_BITS.get(type_)) is not None:
        return lambda text: _to_integer(text, bits)
    return _PARSERS[type_]


def _to_integer(text: str, bits: int | None = None) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    # Longer than any number of 64 bits; Python itself refuses more than 4,300 digits.
    digits = text.lstrip("+-").lstrip("0")
    value = 2**200 if len(digits) > 60 else int(digits or "0")
    value = -value if text.startswith("-") else value
    if bits is not None and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(text)
    return value


def _to_float(text: str) -> float:
    match = _FRACTION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1] or match[2])


def _to_decimal(text: str, type_: pa.DataType) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    with localcontext() as context:
        context.prec = 76
        try:
            value = Decimal(text)
        except InvalidOperation as error:
            raise ValueError(text) from error
        if value and value.adjusted() >= type_.precision - type_.scale:
            raise ValueError(text)
        if value.is_zero():
            return Decimal(0)
        on_scale = value.quantize(Decimal(1).scaleb(-type_.scale))
    if on_scale != value:
        raise ValueError(text)
    return on_scale


def _to_date(text: str) -> date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return date(int(match[1]), int(match[2]), int(match[3]))


def _to_datetime(text: str) -> tuple[datetime, str | None]:
    """Return the time as it is written, and its offset."""
    match = _TIME.fullmatch(unescape(text))
    if match is None:
        raise ValueError(text)
    *parts, fraction, offset, sign, hours, minutes = match.groups()
    numbers = (int(part or 0) for part in (*parts, f"{fraction or '0':0<6}"))
    value = datetime(*numbers)  # type: ignore[arg-type]  # noqa: DTZ001 - a local time
    if sign is not None:
        value -= timedelta(hours=int(sign + hours), minutes=int(sign + minutes))
    return value, offset


def _to_timestamp(text: str) -> datetime:
    value, offset = _to_datetime(text)
    if offset is None:
        # Which moment this is depends on the session that reads the folder.
        raise ValueError(text)
    return value.replace(tzinfo=timezone.utc)


def _to_timestamp_ntz(text: str) -> datetime:
    value, offset = _to_datetime(text)
    if offset is not None:
        raise ValueError(text)
    return value


def _to_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_PARSERS: dict[pa.DataType, Callable[[str], Any]] = {
    **dict.fromkeys(_INTEGER_BITS, _to_integer),
    pa.float32(): _to_float,
    pa.float64(): _to_float,
    pa.bool_(): _to_bool,
    pa.date32(): _to_date,
    pa.string(): unescape,
    # Spark decodes folder names for all types but binary.
    pa.binary(): str.encode,
    TIMESTAMP: _to_timestamp,
    TIMESTAMP_NTZ: _to_timestamp_ntz,
}
_BY_NAME = {
    name: type_
    for name, type_ in (arrow_types("name") | arrow_types("synonyms")).items()
    if type_ in _PARSERS
}


def _is_valid(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except (ValueError, OverflowError):
        return False
    return True


def describe_type(type_: pa.DataType) -> str:
    """Return the type's name for an error; for a timestamp also what its texts must contain."""
    if type_ == TIMESTAMP:
        return "timestamp with an offset (such as 2024-01-01T00:00:00Z)"
    return spark_type(type_)
