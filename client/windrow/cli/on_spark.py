"""What a command sees to before it starts Spark."""

from __future__ import annotations

import os
import sys

from windrow.demo.session import require_java


def prepare_spark(master: str | None) -> None:
    """Make sure that Spark can start here.

    Args:
        master: Where it runs; None is what its configuration says.

    Raises:
        MissingJavaError: There is no Java 17 or newer.
    """
    require_java()
    if master is not None and master.startswith("local"):
        # Else Spark runs the `python3` of PATH, which may be another.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
