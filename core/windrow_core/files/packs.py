"""Names that makers, keepers and readers of packs share."""

from __future__ import annotations

import re

# The column of a pack that says which source a row comes from, by its number; no table has it.
SOURCE = "_windrow_source"
# Packs below the folder of all packs, each in a folder of its table. While one is being written, it has
# a name of its own.
PACK_PATH = re.compile(r"[0-9a-f-]{36}/pack-[0-9a-f]{32}\.parquet")
# Where Arrow streams have what their rows are about.
PLAN_KEY, PACK_KEY = b"windrow:packing-plan", b"windrow:pack"
# Where the sources of a pack, as they are stored, have the kind of files that it is made of.
KIND_KEY = b"windrow:pack-kind"


def pack_name(digest: str) -> str:
    """Return the name of a pack in the folder of its table.

    Args:
        digest: SHA-256 of its bytes, in hexadecimal digits.
    """
    return f"pack-{digest[:32]}.parquet"
