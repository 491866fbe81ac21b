"""The demo: the same queries on Spark alone and on Spark with Windrow, and what they cost."""

from windrow.demo.report import comparison_as_json, comparison_report
from windrow.demo.run import DemoOutcome, run_demo

__all__ = ["DemoOutcome", "comparison_as_json", "comparison_report", "run_demo"]
