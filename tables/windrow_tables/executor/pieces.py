"""Pieces of splits, which are asked for and decoded one at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow_core.files.excerpts.chunk_ranges import Ints, columns_for, columns_of
from windrow_core.files.excerpts.excerpt import ExcerptFile, excerpts_of
from windrow_core.files.excerpts.outlines import Outline
from windrow_tables.executor.errors import UnreadableFileError
from windrow_tables.executor.spec import ReadSpec, Split


class Piece(NamedTuple):
    """All of a split's file, or an excerpt of it.

    Attributes:
        split: The split; for an excerpt, a split of the whole file with the excerpt's rows.
        excerpt: The excerpt; None for all of the file.
    """

    split: Split
    excerpt: ExcerptFile | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes to ask for."""
        return self.split.size_bytes if self.excerpt is None else self.excerpt.read_bytes


class Pieces:
    """Divides splits into pieces.

    Args:
        spec: What to read.
        whole: Whether files are asked for whole even if only a part is needed.
    """

    def __init__(self, spec: ReadSpec, *, whole: bool) -> None:
        self._spec = spec
        self._names = [] if whole else spec.decoded.names
        self._outlines: dict[int, tuple[Outline, int, list[int]]] = {}
        self._last: tuple[Split | None, list[Piece]] = None, []

    def of(self, split: Split) -> list[Piece]:
        """Return the pieces of a split, in order; at least one."""
        if split.excerpt is None or not self._names:
            return [Piece(split)]
        # Callers ask about a split, and again when its turn comes.
        if self._last[0] is not split:
            try:
                self._last = split, self._excerpts_of(split)
            except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
                raise UnreadableFileError(split.path, str(error)) from error
        return self._last[1]

    def _excerpts_of(self, split: Split) -> list[Piece]:
        assert split.excerpt is not None
        outline, width, own = self._outline(split.excerpt["outline"])
        numbers = np.array(split.excerpt["chunks"], np.int64)
        if not own:
            return [Piece(split)]
        if numbers.size % width:
            raise ValueError("its plan locates other columns than those of its outline")
        groups: Ints = numbers.reshape(-1, width)[:, own]
        most_bytes = self._spec.limits.max_buffered_file_bytes
        excerpts = excerpts_of(outline, groups.reshape(-1), split.size_bytes, most_bytes)
        as_file = split._replace(start=0, length=split.size_bytes)
        return [Piece(as_file._replace(row_count=one.row_count), one) for one in excerpts]

    def _outline(self, number: int) -> tuple[Outline, int, list[int]]:
        """Return the outline of the columns read, the numbers per row group, and which are used."""
        if number not in self._outlines:
            whole = Outline.of_text(self._spec.outlines[number])
            some, leaves = whole.only(self._names)
            own = columns_for(leaves) if leaves else []
            self._outlines[number] = some, columns_of(whole.leaf_count), own
        return self._outlines[number]
