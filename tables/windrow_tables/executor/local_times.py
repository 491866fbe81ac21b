"""Local times that a session takes for instants: INT96 of Impala and Hive, and those in folders."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_US_PER_S = 1_000_000
# The Gregorian calendar repeats after 400 years, weekdays included.
CYCLE_YEARS = 400
_CYCLE_S = 146_097 * 86_400

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LocalZone:
    """When the local times of a zone change their offset, in seconds.

    Attributes:
        switches: Local times from which another offset from UTC applies, ascending.
        offsets: The offset before all of them, and the one from each of them on.
        recurs: Whether the changes of the last 400 years recur for ever.
    """

    switches: Ints
    offsets: Ints
    recurs: bool

    @classmethod
    def of(cls, text: str) -> LocalZone:
        """Return the zone of a text with its attributes as a list in JSON."""
        switches, offsets, recurs = json.loads(text)
        return cls(np.array(switches, np.int64), np.array(offsets, np.int64), recurs)

    def instants(self, values: pa.Array) -> pa.Array:
        """Return the instants of local times in microseconds, as Java does.

        Within a gap or an overlap of local times, the offset from before it applies.
        """
        local: Ints = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
        seconds = local // _US_PER_S
        if self.recurs:
            beyond = np.maximum(seconds - self.switches[-1], 0)
            seconds = seconds - -(-beyond // _CYCLE_S) * _CYCLE_S
        offsets = self.offsets[np.searchsorted(self.switches, seconds, "right")]
        instants = local - offsets * _US_PER_S
        return pa.array(instants, pa.int64(), mask=np.asarray(values.is_null())).cast(values.type)


def in_type(values: pa.Array, type_: pa.DataType, zone: str) -> pa.Array:
    """Return partition values in the type of a column.

    Args:
        values: The values.
        type_: The type; if it is of instants, and the values are local times, they are resolved.
        zone: The zone of local times, as the text of a `LocalZone`.
    """
    if not is_resolved(values.type, type_):
        return values.cast(type_)
    return LocalZone.of(zone).instants(values).cast(type_)


def is_resolved(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of one type are local times, and those of the other one instants."""
    is_instant = pt.is_timestamp(target) and target.tz is not None
    return is_instant and pt.is_timestamp(source) and source.tz is None
