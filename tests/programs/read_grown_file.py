"""The error for a file that has grown since it was planned, and the memory that reading it takes.

`python -m tests.programs.read_grown_file PREFIX`
"""

from __future__ import annotations

import sys
from pathlib import Path

from windrow_core.files.objects.requests import Traffic, requests
from windrow_core.files.status import FileStatus
from windrow_tables.executor.errors import StaleFileError
from windrow_tables.executor.files import read_whole


def most_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


requests().read(sys.argv[1] + "0000.parquet", Traffic())
before = most_kib()
try:
    read_whole("", sys.argv[1] + "0003.parquet", FileStatus(1_000, None))
except StaleFileError as error:
    print(error)
print(most_kib() - before)
