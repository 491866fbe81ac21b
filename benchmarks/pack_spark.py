"""Read a table on Spark in the four ways of the demo, in a process of its own; for `packs.py`.

    python benchmarks/pack_spark.py URL TABLE LOCATION RUNS LOG

prints the seconds of each run, by query and way, planning included, as JSON. All answers are equal.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import windrow
from windrow_demo.local_session import local_session
from windrow_demo.measuring import time_in_turns
from windrow_demo.sides import flight_queries, sides


def main() -> None:
    """Read the table, warm, by turns."""
    url, table, location, runs, log = sys.argv[1:]
    seconds: dict[str, dict[str, tuple[float, ...]]] = defaultdict(dict)
    with (
        windrow.connect(url, timeout_s=300) as client,
        local_session("windrow-packs", Path(log)) as spark,
    ):
        ways = sides(spark.read.parquet(location), client, table)
        queries = flight_queries()
        timings = time_in_turns(spark, ways[::-1], queries, runs=int(runs), on_run=lambda *_: None)
    for one in timings:
        seconds[one.query][one.side] = one.seconds
    if len({(one.query, one.answer) for one in timings}) != len(queries):
        raise SystemExit("the answers differ")
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
