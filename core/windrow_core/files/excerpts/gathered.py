"""Small files in memory, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from windrow_core.files.excerpts.lanes import Bytes, Ints


class Gathered(NamedTuple):
    """n files in memory.

    Attributes:
        data: Bytes with all files.
        begins: Where each begins; n offsets.
        ends: Where each ends; n offsets.
    """

    data: Bytes
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, contents: Sequence[Any]) -> Gathered:
        """Gather files that are in memory, as buffers."""
        ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
        data = np.frombuffer(b"".join(contents), np.uint8)
        return cls(data, np.append(0, ends[:-1]), ends)

    def content(self, file: int) -> bytes:
        """Return the bytes of a file."""
        return self.data[self.begins[file] : self.ends[file]].tobytes()
