"""Answer SQL in DuckDB, with a coordinator's catalog attached as `w`, in a process that does nothing else.

    python benchmarks/duckdb_reading.py URL

Each line of the input is a statement, as JSON; each line of the output is an array of the seconds it
took and its rows.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

# The tests attach it in the same way.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.programs.other_engines import duckdb_reader


def main() -> None:
    """Answer one statement after the other."""
    (url,) = sys.argv[1:]
    answer = duckdb_reader(url, "")
    for line in sys.stdin:
        since_s = time.perf_counter()
        rows = answer(json.loads(line))
        print(json.dumps([time.perf_counter() - since_s, rows]), flush=True)


if __name__ == "__main__":
    main()
