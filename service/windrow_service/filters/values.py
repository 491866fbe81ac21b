"""Convert the literals of a filter to values of a column's type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.types import MAX_DECIMAL_PRECISION
from windrow_service.filters.errors import InvalidFilterError, quote
from windrow_service.filters.parsed import Value
from windrow_service.planner.pruning.expressions import Scalar

_INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r" ?(Z|UTC|[+-][0-9]{2}:[0-9]{2})?"
)
# Python refuses to parse integers that are not much longer than this.
_MAX_INTEGER_DIGITS = 4_000
# Enough digits for every decimal256; a longer value is out of range before it is rounded.
# Python's operators would round to the 28 digits of the default context.
_WIDE = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A literal, placed among the values of a type.

    Attributes:
        value: The least value equal to the literal or, if none is equal, the greatest one below
            it; None if the literal is out of range.
        exact: Whether `value` is equal to the literal.
        beyond: 1 if the literal is above every value, -1 if it is below every value, else 0.
        last: The greatest value equal to the literal, if several are, as when many integers
            become one double.
    """

    value: Scalar | None
    exact: bool = True
    beyond: int = 0
    last: Scalar | None = None


def number(text: str) -> int | float | str | None:
    """Return the number that SQL text means; None if it is not a number.

    A number that a float cannot represent exactly stays text.
    """
    if not NUMBER.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _MAX_INTEGER_DIGITS else text
    value = float(text)
    try:
        exact = math.isfinite(value) and Decimal(repr(value)) == Decimal(text)
    except InvalidOperation:
        exact = False
    return value if exact else text


def fit(value: Value, column: str, type_: pa.DataType) -> Fitted:
    """Fit a literal that is not NULL to a column's type."""
    if pt.is_dictionary(type_):
        type_ = type_.value_type
    for matches, convert in _CONVERTERS:
        if matches(type_):
            return convert(value, column, type_)
    raise InvalidFilterError(
        f"column {quote(column)} is {type_}, which cannot be compared in a filter: only IS [NOT] NULL "
        "can be planned; apply the rest with DataFrame.filter"
    )


def is_text(type_: pa.DataType) -> bool:
    """Return whether a type is a string type."""
    if pt.is_dictionary(type_):
        type_ = type_.value_type
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def shown(value: Value) -> str:
    """Return a literal as shown in a message."""
    if value.kind == "text":
        return quote(str(value.value))
    if value.kind in ("date", "timestamp"):
        return f"{value.kind.upper()} {quote(str(value.value))}"
    if value.kind == "binary":
        return f"X{quote(str(value.value))}"
    text = str(value.value)
    return text.upper() if value.kind == "boolean" else text[:60]


def _mismatch(value: Value, column: str, is_: str, remedy: str) -> InvalidFilterError:
    return InvalidFilterError(
        f"column {quote(column)} is {is_}, and {shown(value)} is not: {remedy}"
    )


def _boolean(value: Value, column: str, type_: pa.DataType) -> Fitted:
    if value.kind == "boolean" and isinstance(value.value, bool):
        return Fitted(value.value)
    if value.kind == "text" and str(value.value).lower() in ("true", "false"):
        return Fitted(str(value.value).lower() == "true")
    raise _mismatch(value, column, "a boolean", "write TRUE or FALSE")


def _integer(value: Value, column: str, type_: pa.DataType) -> Fitted:
    bits = type_.bit_width
    low, high = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if pt.is_signed_integer(type_)
        else (0, 2**bits - 1)
    )
    if value.kind == "double":
        return _as_double(value, column, low, high, Fraction(1))
    remedy = "write a number, without quotes"
    # SQL would cast a text, and Spark does not accept a fraction for an integer.
    pattern = NUMBER if value.offset is None else _INTEGER
    exact = _decimal_of(value, column, "an integer", pattern, remedy)
    fitted = _on_grid(exact, Decimal(low), Decimal(high), 0)
    if fitted.value is None:
        return fitted
    return Fitted(int(str(fitted.value)), fitted.exact)


def _decimal(value: Value, column: str, type_: pa.DataType) -> Fitted:
    limit = 10**type_.precision - 1
    if value.kind == "double":
        fitted = _as_double(value, column, -limit, limit, Fraction(10) ** type_.scale)
        ends = [
            Decimal(end).scaleb(-type_.scale, _WIDE) if isinstance(end, int) else None
            for end in (fitted.value, fitted.last)
        ]
        return Fitted(ends[0], fitted.exact, fitted.beyond, ends[1])
    exact = _decimal_of(value, column, "a decimal", NUMBER, "write a number")
    high = Decimal(limit).scaleb(-type_.scale, _WIDE)
    return _on_grid(exact, high.copy_negate(), high, type_.scale)


def _as_double(value: Value, column: str, low: int, high: int, scale: Fraction) -> Fitted:
    """Return the range of integers that, divided by `scale`, become this double."""
    double = _double(value, column)
    if abs(double) > 10**MAX_DECIMAL_PRECISION:
        return Fitted(None, exact=False, beyond=1 if double > 0 else -1)
    # Values up to half-way to a neighbour become this double; half-way values become the even one.
    begin, end = (
        (Fraction(double) + Fraction(math.nextafter(double, toward))) / 2
        for toward in (-math.inf, math.inf)
    )
    first, last = math.ceil(begin * scale), math.floor(end * scale)
    first += first == begin * scale and float(begin) != double
    last -= last == end * scale and float(end) != double
    if first > high:
        return Fitted(None, exact=False, beyond=1)
    if last < low:
        return Fitted(None, exact=False, beyond=-1)
    if first > last:
        return Fitted(last, exact=False)
    first, last = max(first, low), min(last, high)
    return Fitted(first, last=last if last > first else None)


def _decimal_of(
    value: Value, column: str, is_: str, pattern: re.Pattern[str], remedy: str
) -> Decimal:
    literal = value.value
    if value.kind == "number" and not (isinstance(literal, float) and math.isnan(literal)):
        text = repr(literal) if isinstance(literal, float) else str(literal)
    elif value.kind == "text" and pattern.fullmatch(str(literal)):
        text = str(literal)
    else:
        raise _mismatch(value, column, is_, remedy)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _mismatch(value, column, is_, "its exponent is out of range") from None


def _on_grid(exact: Decimal, low: Decimal, high: Decimal, scale: int) -> Fitted:
    if exact > high:
        return Fitted(None, exact=False, beyond=1)
    if exact < low:
        return Fitted(None, exact=False, beyond=-1)
    step = Decimal(1).scaleb(-scale, _WIDE)
    # Adding zero turns -0 into the only zero.
    floor = _WIDE.add(exact.quantize(step, ROUND_FLOOR, _WIDE), 0)
    return Fitted(floor, floor == exact)


def _float(value: Value, column: str, type_: pa.DataType) -> Fitted:
    double = _double(value, column)
    if pt.is_float32(type_):
        _check_float(value, column, double)
    return Fitted(double)


def _check_float(value: Value, column: str, double: float) -> None:
    """Refuse values that Spark 3 rounds to a float and Spark 4 does not."""
    is_rounded = value.kind == "text" or isinstance(value.value, int)
    if (
        value.offset is not None
        and is_rounded
        and math.isfinite(double)
        and pa.scalar(double, pa.float32()).as_py() != double
    ):
        raise InvalidFilterError(
            f"column {quote(column)} is a float, which Spark 3 and Spark 4 compare differently with "
            f"{shown(value)}: write it without quotes and with a decimal point"
        )


def _double(value: Value, column: str) -> float:
    text = str(value.value)
    readable = value.kind in ("number", "double") or (
        value.kind == "text" and (NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text))
    )
    if not readable:
        raise _mismatch(value, column, "a floating-point number", "write a number")
    result = float(text)
    if math.isinf(result) and NUMBER.fullmatch(text):
        raise InvalidFilterError(
            f"column {quote(column)} cannot be compared with {shown(value)}: as a double it is "
            "out of range"
        )
    # A single NaN and a single zero, so that equal filters compare equal.
    return math.nan if math.isnan(result) else result + 0.0


def _string(value: Value, column: str, type_: pa.DataType) -> Fitted:
    if value.kind != "text":
        plain = str(value.value).lower() if value.kind == "boolean" else str(value.value)
        raise _mismatch(value, column, "a string", f"quote it: '{plain[:40]}'")
    return Fitted(checked_text(str(value.value)))


def _binary(value: Value, column: str, type_: pa.DataType) -> Fitted:
    digits = str(value.value)
    # In SQL, a quoted text would be compared by its characters.
    if value.kind == "binary" or (value.kind == "text" and value.offset is None):
        try:
            return Fitted(bytes.fromhex("0" * (len(digits) % 2) + digits))
        except ValueError:
            pass
    remedy = "write its hexadecimal digits as X'00FF', or as text in a JSON tree"
    raise _mismatch(value, column, "binary", remedy)


def checked_text(text: str) -> str:
    """Return text that can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidFilterError(f"{quote(text)} is not valid Unicode text") from None
    return text


def _date(value: Value, column: str, type_: pa.DataType) -> Fitted:
    text = str(value.value)
    try:
        if value.kind in ("text", "date") and _DATE.fullmatch(text):
            return Fitted(date.fromisoformat(text))
    except ValueError:
        pass
    raise _mismatch(value, column, "a date", "write an existing day as 'YYYY-MM-DD'")


def _timestamp(value: Value, column: str, type_: pa.DataType) -> Fitted:
    adjusted = type_.tz is not None
    match = (
        _TIMESTAMP.fullmatch(str(value.value))
        if value.kind in ("text", "timestamp") or (value.kind == "date" and not adjusted)
        else None
    )
    day, hour, minute, second, fraction, offset = match.groups() if match else (None,) * 6
    if match is None or (offset is not None and hour is None):
        example = "'2026-01-31T12:00:00Z'" if adjusted else "'2026-01-31T12:00:00'"
        raise _mismatch(value, column, "a timestamp", f"write it as {example}")
    if adjusted and offset is None:
        remedy = "it needs an offset from UTC, for example '2026-01-31T12:00:00Z'"
        raise _mismatch(value, column, "a timestamp with time zone", remedy)
    if not adjusted and offset is not None:
        remedy = "leave out the offset from UTC"
        raise _mismatch(value, column, "a timestamp without time zone", remedy)
    micros = (fraction or "").rstrip("0")
    if len(micros) > 6:
        raise _mismatch(value, column, "a timestamp", "use at most microseconds")
    try:
        at = datetime.fromisoformat(f"{day}T{hour or '00'}:{minute or '00'}:{second or '00'}")
        at += timedelta(microseconds=int(micros.ljust(6, "0")))
        if offset is not None:
            at = (at - _offset(offset)).replace(tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        raise _mismatch(value, column, "a timestamp", "no such time exists") from None
    return Fitted(at)


def _offset(text: str) -> timedelta:
    if text in ("Z", "UTC"):
        return timedelta()
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 18 or minutes > 59:
        raise ValueError(text)
    return timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1)


_CONVERTERS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[Value, str, pa.DataType], Fitted]], ...
] = (
    (pt.is_boolean, _boolean),
    (pt.is_integer, _integer),
    (pt.is_floating, _float),
    (pt.is_decimal, _decimal),
    (is_text, _string),
    (pt.is_binary, _binary),
    (pt.is_date, _date),
    (pt.is_timestamp, _timestamp),
)
