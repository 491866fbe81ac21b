"""Excludes all existing objects from garbage collection, when imported.

Coordinators collect garbage when they start, which would copy all memory that they share with the
process that they are forked from.
"""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
