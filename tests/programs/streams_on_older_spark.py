"""A program that runs streams on an older Spark, in one session.

`python -m tests.programs.streams_on_older_spark URL FOLDER`

One line of JSON on stdout has the version of Spark and the outcome of each stream.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import windrow
from tests.programs.on_older_spark import session
from tests.support.queries import stream_outcomes


def main(url: str, folder: Path) -> None:
    """Run all streams, and print their outcomes."""
    spark = session(folder / "local")
    with windrow.connect(url) as client:
        windrow.register(spark, client)
        outcomes = stream_outcomes.outcomes(spark, client, folder)
    sys.stdout.write(json.dumps({"version": spark.version, "streams": outcomes}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
