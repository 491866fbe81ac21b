"""Small Parquet files of one shape, made into one Parquet file."""

from __future__ import annotations

import numpy as np

from windrow_core.files.excerpts.alike import Alike
from windrow_core.files.excerpts.excerpt import MAGIC, tail_of
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.excerpts.lanes import Mask
from windrow_core.files.excerpts.outlines import Outline
from windrow_core.files.excerpts.pages import hold_their_values


class JoinedFiles:
    """Files in memory, with a footer that has the row groups of all.

    Args:
        files: Files.
        alike: m of them, with some of their leaves.
        outline: Outline of these leaves.

    Attributes:
        footer: The footer, in a Parquet file that has nothing else.
    """

    def __init__(self, files: Gathered, alike: Alike, outline: Outline) -> None:
        self._data = files.data
        self._groups = alike.groups.copy()
        self._groups[:, :, 1::4] += files.begins[alike.files, np.newaxis, np.newaxis]
        footer = outline.footer(self._groups.reshape(-1, self._groups.shape[2]))
        self.footer = MAGIC + tail_of(footer)

    def are_separable(self) -> Mask:
        """Return which files have the same rows when they are read one after the other at once.

        That is where chunks have as many values in their pages as the row group has rows: a reader
        of several chunks goes on with what one of them has too much, or with the next one where it
        has too little. The leaves must have one value per row.
        """
        begins, lengths, _, values = (self._groups[:, :, 1 + at :: 4] for at in range(4))
        flat = (each.reshape(-1) for each in (begins, lengths, values))
        whole = hold_their_values(self._data, *flat).reshape(values.shape)
        separable: Mask = (whole & (values == self._groups[:, :, :1])).all(axis=(1, 2))
        return separable
