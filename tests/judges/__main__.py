"""Run Spark's own suites, and write their results to docs/reference/judges.md.

    python -m tests.judges [LABEL...]

runs all of them, or some, and prints a line for each. The page has the newest run of each suite on
this machine, and is written once all of them have run.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.judges import histories, hive_suites, spark_suites, sql_suites, verdicts
from tests.judges.spark_suites import VERSION, Run, Suite, Test, newest_run

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "judges.md"
_REASONS = 40

SUITES = sql_suites.SUITES + hive_suites.SUITES

_HEAD = """# Judged by others

Windrow's own tests cannot find what nobody here thought of. So tests that others have written are run
on tables that Windrow plans.

## Spark's own suites

The test suites of Spark {version}, unchanged, in a session with
[`windrow.accelerate`](../how-to/accelerate.md). Each table or path that a query reads is registered
when the query first asks for it. Only tests with at least one scan or write that Windrow planned say
anything about it. A single file is read as a folder with a copy of it. Before suites `with packs` read
a Parquet table, its files are [packed](../how-to/packs.md). `make judges` runs them and writes this
page.

| suite | tests | with planned scans or writes | of these passed | excluded | scans planned | scans left to Spark | run on | minutes |
|---|---|---|---|---|---|---|---|---|
"""


def _counted(test: Test, kind: str) -> tuple[int, int]:
    left = sum(count for reason, count in test.left.items() if reason.startswith(f"{kind}: "))
    return test.planned.get(kind, 0), left


def _writes(runs: Sequence[tuple[Suite, Run]]) -> str:
    """Return the part about statements that write, of suites that run with accelerated writes."""
    text = "\n## Writes\n\nThese suites ran with `writes=True`.\n\n"
    text += (
        "| suite | tests with planned writes | of these passed | writes planned | left to Spark |\n"
    )
    text += "|---|---|---|---|---|\n"
    for suite, run in runs:
        if suite.mode == "writes":
            ours = [test for test in run.tests if test.planned.get("write")]
            passed = sum(test.outcome == "passed" for test in ours)
            planned, left = (
                sum(n) for n in zip(*(_counted(one, "write") for one in run.tests), strict=True)
            )
            text += f"| {_name(suite)} | {len(ours)} | {passed} | {planned} | {left} |\n"
    return text


def page(runs: Sequence[tuple[Suite, Run]]) -> str:
    """Return the page about the newest runs of all suites."""
    text = _HEAD.format(version=VERSION)
    sums, reasons = Counter[int](), Counter[str]()
    excluded: list[str] = []
    for suite, run in runs:
        tests = [test for test in run.tests if test.outcome in ("passed", "failed")]
        ours = [test for test in tests if test.planned]
        passed = sum(test.outcome == "passed" for test in ours)
        planned, left = (
            sum(n) for n in zip(*(_counted(one, "scan") for one in tests), strict=True)
        )
        figures = [len(tests), len(ours), passed, len(suite.excluded), planned, left]
        sums.update(dict(enumerate(figures)))
        text += f"| {_name(suite)} | {_row(figures)} | {run.on} | {run.seconds / 60:.0f} |\n"
        for test in tests:
            reasons.update(test.left)
        excluded += [f"| {_name(suite)} | {name} | {why} |" for name, why in suite.excluded.items()]
    minutes = sum(run.seconds for _, run in runs) / 60
    text += f"| all | {_row([sums[at] for at in range(6)])} | | {minutes:.0f} |\n"
    of_packs = sum(test.planned.get("scan of packs", 0) for _, run in runs for test in run.tests)
    text += f"\nOf the scans of suites `with packs`, {of_packs:,} read packs.\n"
    text += _writes(runs)
    text += "\n## Why Spark planned the others\n\n| reason | scans or writes |\n|---|---|\n"
    for reason, count in reasons.most_common(_REASONS):
        text += f"| {reason.replace('|', '/')} | {count:,} |\n"
    text += "\n## Excluded tests\n\nThey fail for a reason that is not one of rows.\n\n"
    text += "| suite | test | reason |\n|---|---|---|\n" + "\n".join(excluded) + "\n"
    return text


def _name(suite: Suite) -> str:
    # Patterns of parts may have bars, which would end a cell.
    return suite.label.replace("|", r"\|")


def _row(figures: Sequence[int]) -> str:
    return " | ".join(f"{figure:,}" for figure in figures)


def main(labels: list[str]) -> int:
    """Run suites; return 1 if a test failed that is not excluded."""
    failures = 0
    for suite in SUITES:
        if labels and suite.label not in labels:
            continue
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            tests = spark_suites.run(suite, Path(folder, "suite"))
        bad = [test for test in tests if test.is_failure and test.test not in suite.excluded]
        failures += len(bad)
        ours = sum(bool(test.planned) for test in tests)
        sys.stdout.write(
            f"{suite.label}: {len(tests)} tests, {ours} with scans or writes of Windrow, "
            f"{len(bad)} failed, {time.monotonic() - began:.0f} s\n"
        )
        sys.stdout.writelines(f"  {test.test}\n    {test.error[:1000]}\n" for test in bad)
        sys.stdout.flush()
    runs = [(suite, run) for suite in SUITES if (run := newest_run(suite))]
    if len(runs) == len(SUITES):
        sections = f"{page(runs)}\n{histories.section()}{verdicts.section()}"
        _PAGE.write_text(sections, encoding="utf-8")
    else:
        sys.stdout.write(f"No page yet: {len(SUITES) - len(runs)} suites have not run\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
