"""Run Spark's own suites, and write what came of them to docs/reference/judges.md.

    python -m tests.judges [LABEL...]

runs all of them, or some, and prints a line for each. The page is written if all have run.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.judges import histories, hive_suites, spark_suites, sql_suites
from tests.judges.spark_suites import VERSION, Suite, Test

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "judges.md"
_REASONS = 20

_HEAD = """# Judged by others

Windrow's own tests cannot find what nobody here thought of. So tests that others have written are run
on tables that Windrow plans.

## Spark's own suites

The test suites of Spark {version}, unchanged, in a session with
[`windrow.accelerate`](../how-to/accelerate.md). Each table or path that a query reads is registered
when the query first asks for it. Only tests with at least one scan or write that Windrow planned say
anything about it. `make judges` runs them and writes this page; the last run was on {date}.

| suite | tests | with planned scans or writes | of these passed | excluded | scans planned | scans left to Spark |
|---|---|---|---|---|---|---|
"""


def _counted(test: Test, kind: str) -> tuple[int, int]:
    left = sum(count for reason, count in test.left.items() if reason.startswith(f"{kind}: "))
    return test.planned.get(kind, 0), left


def page(results: dict[str, tuple[Suite, list[Test]]]) -> str:
    """Return the page about what came of all suites, by their labels."""
    text = _HEAD.format(version=VERSION, date=datetime.now(timezone.utc).date())
    sums, reasons = Counter[int](), Counter[str]()
    excluded: list[str] = []
    for label, (suite, tests) in results.items():
        run = [test for test in tests if test.outcome in ("passed", "failed")]
        ours = [test for test in run if test.planned]
        passed = sum(test.outcome == "passed" for test in ours)
        planned, left = (sum(n) for n in zip(*(_counted(one, "scan") for one in run), strict=True))
        figures = [len(run), len(ours), passed, len(suite.excluded), planned, left]
        sums.update(dict(enumerate(figures)))
        text += f"| {label} | " + " | ".join(f"{figure:,}" for figure in figures) + " |\n"
        for test in run:
            reasons.update(test.left)
        excluded += [f"| {label} | {name} | {why} |" for name, why in suite.excluded.items()]
    text += "| all | " + " | ".join(f"{sums[at]:,}" for at in range(6)) + " |\n"
    text += "\n## Why Spark planned the others\n\n| reason | scans or writes |\n|---|---|\n"
    for reason, count in reasons.most_common(_REASONS):
        text += f"| {reason.replace('|', '/')} | {count:,} |\n"
    text += "\n## Excluded tests\n\nThey fail for a reason that is not one of rows.\n\n"
    text += "| suite | test | reason |\n|---|---|---|\n" + "\n".join(excluded) + "\n"
    return text


def main(labels: list[str]) -> int:
    """Run suites; return 1 if a test failed that is not excluded."""
    results = {}
    failures = 0
    for suite in sql_suites.SUITES + hive_suites.SUITES:
        if labels and suite.label not in labels:
            continue
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            tests = spark_suites.run(suite, Path(folder, "suite"))
        results[suite.label] = (suite, tests)
        bad = [test for test in tests if test.is_failure and test.test not in suite.excluded]
        failures += len(bad)
        ours = sum(bool(test.planned) for test in tests)
        sys.stdout.write(
            f"{suite.label}: {len(tests)} tests, {ours} with scans or writes of Windrow, "
            f"{len(bad)} failed, {time.monotonic() - began:.0f} s\n"
        )
        sys.stdout.writelines(f"  {test.test}\n    {test.error[:1000]}\n" for test in bad)
        sys.stdout.flush()
    if not labels:
        _PAGE.write_text(f"{page(results)}\n{histories.section()}", encoding="utf-8")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
