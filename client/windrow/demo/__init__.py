"""The demos: queries on Spark alone and with Windrow, and writes with and without a plan."""

from windrow.demo.report import comparison_as_json, comparison_report
from windrow.demo.run import DemoOutcome, run_demo
from windrow.demo.writes import WritesOutcome, run_writes_demo
from windrow.demo.writes_report import writes_as_json, writes_report

__all__ = [
    "DemoOutcome",
    "WritesOutcome",
    "comparison_as_json",
    "comparison_report",
    "run_demo",
    "run_writes_demo",
    "writes_as_json",
    "writes_report",
]
