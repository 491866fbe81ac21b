"""Names that makers, keepers and readers of packs share."""

from __future__ import annotations

import re

# The column of a pack that says which source a row comes from, by its number; no table has it.
SOURCE = "_windrow_source"
# Packs below the folder of all packs, each in a folder of its table. While one is being written, it has
# a name of its own.
PACK_PATH = re.compile(r"[0-9a-f-]{36}/pack-[0-9a-f]{32}\.parquet")
# Id of a run of a packer, which all names of what it writes begin with: a random number, so that no other
# run of any coordinator has it.
RUN_ID = "[0-9a-f]{16}"
# Where Arrow streams have what their rows are about.
PLAN_KEY, PACK_KEY = b"windrow:packing-plan", b"windrow:pack"
# Where the sources of a pack, as they are stored, have the kind of files that it is made of.
KIND_KEY = b"windrow:pack-kind"


def pack_name(run: str, digest: str) -> str:
    """Return the name of a pack in the folder of its table.

    Args:
        run: Id of the run that makes it.
        digest: SHA-256 of its bytes, in hexadecimal digits.
    """
    return f"pack-{run}{digest[:16]}.parquet"


def paths_of_run(home: str, run: str) -> re.Pattern[str]:
    """Return the form of the paths of all that a run writes, also of what it has not finished.

    Args:
        home: Name of the table's folder.
        run: Id of the run.
    """
    name = rf"pack-{run}[0-9a-f]{{16}}\.parquet"
    return re.compile(rf"{re.escape(home)}/({name}(\.new)?|\.{name}\.[0-9a-f]{{16}})")
