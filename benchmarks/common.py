"""Shared parts of all benchmarks: arguments, machine, versions, JSON output."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from windrow import __version__
from windrow_core.cards import seconds_text
from windrow_demo.processes import core_count

ROOT = Path(__file__).resolve().parents[1]
console = Console(stderr=True, highlight=False)


class Named(Protocol):
    """Something with a name that options can select."""

    @property
    def name(self) -> str:
        """Its name in options."""


_Named = TypeVar("_Named", bound=Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One figure of Windrow compared with one of a peer.

    Attributes:
        case: What was read, and how.
        metric: What was measured; less is better.
        unit: Unit of the figures.
        windrow: Windrow's figure.
        peer: Name of the peer.
        peer_value: The peer's figure.
    """

    case: str
    metric: str
    unit: str
    windrow: float
    peer: str
    peer_value: float

    @classmethod
    def in_seconds(
        cls, case: str, metric: str, windrow: float, peer: str, peer_value: float
    ) -> Result:
        """Return a comparison of times."""
        return cls(
            case=case, metric=metric, unit="s", windrow=windrow, peer=peer, peer_value=peer_value
        )

    @property
    def ratio(self) -> float:
        """Factor by which Windrow is better; below 1, the peer is better."""
        return self.peer_value / self.windrow if self.windrow else float("inf")


def arguments(what: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every benchmark takes."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument(
        "--quick", action="store_true", help="use small sizes; takes less than a minute"
    )
    parser.add_argument(
        "--runs", type=int, default=3, help="number of timed runs, of which the median is reported"
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT / "data" / "bench", help="folder of generated tables"
    )
    return parser


def selected(cases: Sequence[_Named], names: str | None) -> tuple[_Named, ...]:
    """Return the cases with these names, which `,` separates; all if no name is given."""
    return tuple(case for case in cases if names is None or case.name in names.split(","))


def times_table(results: list[Result]) -> Table:
    """Return a table of times, with a row for each result."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    table.add_column("metric", no_wrap=True)
    table.add_column("windrow", justify="right")
    table.add_column("peer", no_wrap=True)
    table.add_column("peer's", justify="right")
    for one in results:
        peers = f"{seconds_text(one.peer_value)} ({one.ratio:.2f}x)"
        table.add_row(one.case, one.metric, seconds_text(one.windrow), one.peer, peers)
    return table


def write_json(path: Path, benchmark: str, results: list[Result], **more: Any) -> None:
    """Write results in the format that all benchmarks share."""
    write_figures(
        path,
        benchmark,
        load_average=os.getloadavg()[0],
        **more,
        results=[{**asdict(result), "ratio": result.ratio} for result in results],
    )


def write_figures(path: Path, benchmark: str, **figures: Any) -> None:
    """Write figures, and what they were measured on."""
    content = {"benchmark": benchmark, "machine": machine(), "versions": versions(), **figures}
    path.write_text(json.dumps(content, indent=2) + "\n")


def machine() -> str:
    """Describe this machine: cores, processor, memory, system."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{core_count()} cores, {_processor()}, {memory_gb:.0f} GB, {platform.system()}"


def versions() -> dict[str, str]:
    """Return the versions of the software that is compared."""
    packages = ("pyspark", "pyarrow", "duckdb", "polars")
    return {
        "python": platform.python_version(),
        "windrow": __version__,
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
