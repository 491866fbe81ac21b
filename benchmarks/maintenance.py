"""Compare what rules of maintenance save readers in thirty days, at the same budget.

    python benchmarks/maintenance.py [--quick] [--tables 200] [--budgets 5] [--parts] [--json FILE]

A simulation (`maintenance_world.py`, `maintenance_run.py`) of tables with five patterns of writing
and four of reading, which begins with the files of thirty days without maintenance. Windrow's rule
is the product's own code, `planner/maintenance/`, with what a coordinator knows: the reads and
writes so far, and its own receipts. `maintenance_rules.py` says how the public rules were rebuilt;
each has the budget, the cost model and the carrying-over of Windrow's. Where a text leaves a choice,
both were simulated, and the better counts. Windrow's rule chooses for each partition below which size
its files are rewritten, among the sizes that coordinators offer it; with `--parts` it is simulated
without that, too. `maintenance_bound.py` is what nobody can save more than, even if the future is
known.

A budget is in core seconds per hour for all tables, and is charged by true costs. Reported for each
rule: the read seconds saved compared with untouched tables, next to Windrow's and to the bound;
what was spent; bytes rewritten for each byte written; tables whose readers lose by it; and rewrites
lost to writers. Ends with 1 if a rule saves more than the bound, since one of the two is wrong then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from common import Result, arguments, console, write_json
from maintenance_bound import most_saved
from maintenance_rules import Debt, FilesPerGbHour, Fragments, HundredFiles, Windrow
from maintenance_run import Outcome, Rule, State, simulate, start_of
from maintenance_world import TICKS, make_world
from rich import box
from rich.table import Table as RichTable

from windrow_calls.terminal.consoles import show
from windrow_service.planner.maintenance.budget import Budget

NAME = "maintenance"
QUICK_TABLES = 20
# Every rule may use as many bytes as it likes, because the public ones know core seconds or bytes.
ALL_BYTES = 1e18
# The settings of each rule, of which the best counts.
RULES: dict[str, tuple[Callable[[], Rule], ...]] = {
    "Windrow": (Windrow,),
    "AutoComp: files per GB-hour": (FilesPerGbHour, lambda: FilesPerGbHour(by_table=True)),
    "Amoro: 12 fragments": (Fragments, lambda: Fragments(waits=False)),
    "Glue: 100 small files": (HundredFiles, lambda: HundredFiles(fewest_bytes=True)),
    "Floe: debt score": (Debt, lambda: Debt(by_count=False)),
}
# Windrow's rule without one of its parts.
PARTS: dict[str, tuple[Callable[[], Rule], ...]] = {
    "Windrow, without past reads": (lambda: Windrow(knows_reads=False),),
    "Windrow, all small files at once": (lambda: Windrow(chooses_files=False),),
    "Windrow, without receipts": (lambda: Windrow(corrects=False),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a rule comes to at one budget.

    Attributes:
        rule: Its name.
        budget: Core seconds of each hour.
        saved_seconds: Read seconds saved, compared with untouched tables.
        part_of_all: The same as a part of what untouched tables cost.
        part_of_bound: The same as a part of the bound.
        spent_seconds: Core seconds that rewrites took.
        amplification: Bytes rewritten for each byte that writers wrote in these days.
        worse_tables: Tables whose readers lost by it.
        rewrites: Number of rewrites.
        lost: Rewrites that lost to writers.
    """

    rule: str
    budget: float
    saved_seconds: float
    part_of_all: float
    part_of_bound: float
    spent_seconds: float
    amplification: float
    worse_tables: int
    rewrites: int
    lost: int


def main() -> None:
    """Simulate, compare and report."""
    parser = arguments("Compare rules of maintenance at the same budget.")
    parser.add_argument("--tables", type=int, default=200, help="number of tables")
    parser.add_argument(
        "--budgets", default="5", help="core seconds per hour for 200 tables, separated by commas"
    )
    parser.add_argument(
        "--as-drawn", action="store_true", help="do not balance the reads of the patterns"
    )
    parser.add_argument(
        "--parts",
        action="store_true",
        help="also simulate Windrow's rule without each of its parts",
    )
    parser.add_argument("--seed", type=int, default=7, help="seed of all draws")
    options = parser.parse_args()
    tables = QUICK_TABLES if options.quick else options.tables
    start = start_of(make_world(tables, options.seed, is_balanced=not options.as_drawn))
    untouched = simulate(start, None, _budget(0.0), options.seed)
    figures = [
        one
        for text in options.budgets.split(",")
        for one in _compared(
            start,
            untouched,
            float(text) * tables / 200,
            options.seed,
            RULES | PARTS if options.parts else RULES,
        )
    ]
    show(_table(figures))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            _results(figures),
            quick=options.quick,
            tables=tables,
            seed=options.seed,
            files=int(start.files.sum()),
            untouched_seconds=float(untouched.read_seconds.sum()),
            figures=[asdict(one) for one in figures],
        )
    if any(one.part_of_bound > 1 for one in figures):
        raise SystemExit("a rule saved more than the bound: one of them is wrong")


def _budget(hour_seconds: float) -> Budget:
    return Budget(seconds=0.0, size_bytes=0.0, hour_seconds=hour_seconds, hour_bytes=ALL_BYTES)


def _compared(
    start: State,
    untouched: Outcome,
    hour_seconds: float,
    seed: int,
    rules: dict[str, tuple[Callable[[], Rule], ...]],
) -> list[Figures]:
    bound = most_saved(start, hour_seconds)
    figures = []
    for name, settings in rules.items():
        console.print(f"{hour_seconds:g} s per hour: {name}", style="dim")
        outcomes = [simulate(start, setting(), _budget(hour_seconds), seed) for setting in settings]
        best = min(outcomes, key=lambda outcome: float(outcome.read_seconds.sum()))
        figures.append(_figures(name, best, untouched, bound, hour_seconds))
    return figures


def _figures(
    name: str, outcome: Outcome, untouched: Outcome, bound: float, hour_seconds: float
) -> Figures:
    everything = float(untouched.read_seconds.sum())
    saved = everything - float(outcome.read_seconds.sum())
    return Figures(
        rule=name,
        budget=hour_seconds,
        saved_seconds=saved,
        part_of_all=saved / everything,
        part_of_bound=saved / bound,
        spent_seconds=outcome.spent_seconds,
        amplification=outcome.rewritten_bytes / outcome.written_bytes,
        worse_tables=int((outcome.read_seconds > untouched.read_seconds).sum()),
        rewrites=outcome.rewrites,
        lost=outcome.lost,
    )


def _results(figures: list[Figures]) -> list[Result]:
    ours = {one.budget: one for one in figures if one.rule == "Windrow"}
    return [
        Result(
            case=f"{one.budget:g} s per hour",
            metric="budget per read second saved",
            unit="s",
            windrow=one.budget * TICKS / ours[one.budget].saved_seconds,
            peer=one.rule,
            peer_value=one.budget * TICKS / one.saved_seconds
            if one.saved_seconds
            else float("inf"),
        )
        for one in figures
        if one.rule != "Windrow"
    ]


def _table(figures: list[Figures]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title="read seconds saved in 30 days")
    for column in ("budget", "rule"):
        table.add_column(column, no_wrap=True)
    for column in ("saved", "by Windrow", "of all", "of bound", "spent", "bytes", "worse", "lost"):
        table.add_column(column, justify="right")
    ours = {one.budget: one.saved_seconds for one in figures if one.rule == "Windrow"}
    for one in figures:
        ratio = ours[one.budget] / one.saved_seconds if one.saved_seconds else float("inf")
        table.add_row(
            f"{one.budget:g} s/h",
            one.rule,
            f"{one.saved_seconds:,.0f} s",
            "" if one.rule == "Windrow" else f"{ratio:.2f}x",
            f"{one.part_of_all:.1%}",
            f"{one.part_of_bound:.1%}",
            f"{one.spent_seconds:,.0f} s",
            f"{one.amplification:.2f}x",
            str(one.worse_tables),
            f"{one.lost}/{one.rewrites:,}",
        )
    return table


if __name__ == "__main__":
    main()
