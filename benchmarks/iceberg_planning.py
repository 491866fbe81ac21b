"""Plan scans with PyIceberg, in a process that does nothing else.

    python benchmarks/iceberg_planning.py URL MODE TABLE RUNS FILTERS

It prints the seconds of each scan, the first of them cold, how many files each plans, and the
process's peak memory, as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from pyiceberg.catalog.rest import RestCatalog


def main() -> None:
    """Plan each filter's scan in turn."""
    url, mode, name, runs, filters = sys.argv[1:]
    catalog = RestCatalog("w", uri=f"{url}/iceberg", **{"scan-planning-mode": mode})
    began_s = time.perf_counter()
    table = catalog.load_table(name)
    load_s = time.perf_counter() - began_s
    imported_bytes = _peak_bytes()
    seconds: dict[str, list[float]] = {}
    files: dict[str, int] = {}
    for case, condition in json.loads(filters).items():
        seconds[case] = []
        for _ in range(int(runs) + 1):
            began_s = time.perf_counter()
            files[case] = len(list(table.scan(row_filter=condition).plan_files()))
            seconds[case].append(time.perf_counter() - began_s)
    catalog.close()
    answer = {"load_s": load_s, "seconds": seconds, "files": files}
    answer |= {"imported_bytes": imported_bytes, "peak_bytes": _peak_bytes()}
    print(json.dumps(answer))


def _peak_bytes() -> int:
    # Unlike that of `getrusage`, it leaves out the process that started this one.
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


if __name__ == "__main__":
    main()
