"""Takes what is there out of the search for garbage, when imported.

Coordinators search when they start, which would copy all that they share with the process that they
are forked from.
"""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
