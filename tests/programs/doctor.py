"""A program that checks a session of its own: a classic one, or one of Spark Connect.

`python -m tests.programs.doctor FOLDER` starts the latter if SPARK_CONNECT_MODE_ENABLED is set. The
last line on stdout has the checks as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from windrow_spark.session_checks import session_checks


def main(folder: Path) -> None:
    """Check, and print the checks."""
    if os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        # With this, the server takes any free port and tells the client.
        os.environ["SPARK_TESTING"] = "1"
        builder = SparkSession.builder.remote("local[2]")
    else:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.memory", "600m")
        # That of other tests imports packages before tasks do.
        .config("spark.python.daemon.module", "pyspark.daemon")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    checks = [asdict(check) for check in session_checks(spark)]
    spark.stop()
    sys.stdout.write("\n" + json.dumps(checks) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
