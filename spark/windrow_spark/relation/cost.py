"""The cost of a scan either way, and the files that Spark's own reader should therefore read.

Costs are functions of the bytes of the columns asked for. `benchmarks/read_calibration.py` measures
the cost of files and megabytes, and `benchmarks/large_objects.py` counts the requests for a file; the
further cost of a scan is an estimate, as are the seconds in which object stores answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

Seconds = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

# Approximate bytes of a value in a file; all types but numbers, dates and times count as text.
_TEXT_BYTES = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The cost of one way of reading.

    Attributes:
        scan_s: Seconds that a scan takes longer if it reads any file this way.
        file_s: Core seconds per file, whatever its size.
        number_mb_s: Core seconds per megabyte of numbers, dates and times.
        text_mb_s: Core seconds per megabyte of all other columns.
        requests: How many answers of a store a task waits for per file, one after another.
    """

    scan_s: float
    file_s: float
    number_mb_s: float
    text_mb_s: float
    requests: float = 0.0


# Groups request files ahead of time, 64 at once. Of a file of 8 MB, S3A asks for the state and sends
# three further requests, one after another; of 256 KB one, and of 64 MB five to eight, but there the
# bytes decide.
GROUPED = Way(scan_s=0.08, file_s=0.0001, number_mb_s=0.0061, text_mb_s=0.0195, requests=0.02)
NATIVE = Way(scan_s=0.04, file_s=0.0009, number_mb_s=0.0006, text_mb_s=0.0094, requests=4)


@dataclass(frozen=True, slots=True)
class Fractions:
    """The columns that a scan asks for, as fractions of the bytes of each file.

    Attributes:
        numbers: Fraction of the columns of numbers, dates and times.
        text: Fraction of all other columns.
    """

    numbers: float
    text: float


def fractions_of(output: Iterable[pa.DataType], types: Iterable[pa.DataType]) -> Fractions:
    """Return the fractions of a file that hold the columns asked for.

    Args:
        output: The types of the columns asked for.
        types: The types of all columns of the files.
    """
    numbers = text = 0.0
    for type_ in output:
        if _is_number(type_):
            numbers += _bytes_of(type_)
        else:
            text += _bytes_of(type_)
    total = max(sum(map(_bytes_of, types)), numbers + text, 1.0)
    return Fractions(numbers / total, text / total)


def native_files(
    sizes: npt.NDArray[np.int64],
    able: Marks,
    fractions: Fractions,
    slots: int,
    grouped: Way = GROUPED,
    native: Way = NATIVE,
    *,
    request_s: float = 0.0,
) -> Marks:
    """Mark the files that Spark's own reader should read.

    Each file is read the cheaper way, unless this saves less than it costs the scan to use both
    ways; then all files that allow it are read the same way.

    Args:
        sizes: Bytes of each file.
        able: Whether Spark's own reader can read it.
        fractions: The columns that the scan asks for.
        slots: How many tasks run at the same time.
        grouped: The cost of reading in groups.
        native: The cost of Spark's own reader.
        request_s: Seconds until the files' store answers a request.
    """
    one, other = (_cost(way, sizes, fractions, request_s) for way in (grouped, native))
    choices = (able & (other < one), np.zeros_like(able), able)

    def seconds(marks: Marks) -> float:
        work = float(one[~marks].sum() + other[marks].sum()) / max(1, slots)
        both = grouped.scan_s * (not marks.all()) + native.scan_s * bool(marks.any())
        return work + both

    return min(choices, key=seconds)


def _cost(
    way: Way, sizes: npt.NDArray[np.int64], fractions: Fractions, request_s: float
) -> Seconds:
    mb_s = way.number_mb_s * fractions.numbers + way.text_mb_s * fractions.text
    cost: Seconds = way.file_s + way.requests * request_s + sizes / 1e6 * mb_s
    return cost


def _is_number(type_: Any) -> bool:
    return bool(pt.is_primitive(type_) or pt.is_decimal(type_))


def _bytes_of(type_: Any) -> float:
    return type_.bit_width / 8 if _is_number(type_) else _TEXT_BYTES
