"""CPU time of this process and its descendants, from Linux's /proc.

Unlike wall-clock time, it hardly depends on the machine's other load.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Positions in /proc/PID/stat, counted from the state, which follows the name in brackets.
_PARENT, _USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM = 1, 11, 12, 13, 14


def tree_cpu_seconds() -> float:
    """Return the seconds that this process and its descendants have used so far."""
    return sum(cpu_seconds_by_program().values())


def cpu_seconds_by_program() -> dict[str, float]:
    """Return these seconds by program: `driver` (this process), `jvm`, `coordinator`, `workers`."""
    fields = {int(path.name): stat for path in _processes() if (stat := _stat(path))}
    tree, generation = {os.getpid()}, {os.getpid()}
    while generation:
        generation = {
            pid for pid, stat in fields.items() if int(stat[_PARENT]) in generation
        } - tree
        tree |= generation
    seconds = dict.fromkeys(("driver", "jvm", "coordinator", "workers"), 0.0)
    columns = (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM)
    for pid in tree & fields.keys():
        seconds[_program(pid)] += sum(int(fields[pid][at]) for at in columns) / _TICKS_PER_S
    return seconds


def _program(pid: int) -> str:
    if pid == os.getpid():
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        command = [b""]
    if command[0].endswith(b"java"):
        return "jvm"
    return "coordinator" if b"windrow_cli" in command else "workers"


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(process: Path) -> list[str] | None:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        # The process has ended in the meantime.
        return None
