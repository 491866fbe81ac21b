"""Read tables of 1 to 10,000 files of 4 KB to 64 MB: Spark alone, DuckDB, Polars and Windrow.

    python benchmarks/read_grid.py [--quick] [--json FILE] [--cells 1000x16KB,mix,…] [--reader auto]

Each cell is one table of up to 1 GB, read by two queries: two numeric columns aggregated, and four
columns, one of them text, with a distinct count and a shuffle. All sides run in one session, warm,
in turns. Spark and Windrow open the table once, so that Spark's figures exclude its listing, while
Windrow's include a plan for each query; those of DuckDB and Polars include listing. `mix` is 2,000
files of 16 KB and 10 of 32 MB, and is also read by each of Windrow's ways alone. If there are many
small files, Spark also reads the same rows from two files: the query alone, which is a lower bound
for anything that hands rows to Spark.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from common import Result, arguments, console, selected, write_json
from grid_tables import CELLS, MIX, QUICK_CELLS, QUICK_MIX, Cell, written
from peers import normal, timed_answer
from sessions import spark_and_client

from windrow.client import Client
from windrow_calls.terminal.java import require_java
from windrow_demo.measuring import Query, Side, time_in_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "read_grid"
DEFAULTS, TUNED, DUCKDB, POLARS, WINDROW = "spark", "spark tuned", "duckdb", "polars", "windrow"
PEERS = (DEFAULTS, TUNED, DUCKDB, POLARS)
ALONE = ("grouped", "native")
MERGED = "spark, two files"
_MANY_FILES, _SMALL_FILE_BYTES = 1_000, 64 * 2**10
NUMBERS, SHUFFLE = "numbers", "shuffle"
_NO_SLOWER, _NO_SLOWER_S = 1.05, 0.15


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


def main() -> None:
    """Run the benchmark and print the grid in the form of README.md."""
    parser = arguments("Read tables of many sizes with Spark, Windrow, DuckDB and Polars.")
    parser.add_argument("--cells", help="the cells to read, such as 1000x16KB or mix, split by ','")
    parser.add_argument("--reader", default="auto", choices=("auto", "grouped", "native"))
    options = parser.parse_args()
    require_java()
    every_cell = (*QUICK_CELLS, QUICK_MIX) if options.quick else (*CELLS, MIX)
    cells = selected(every_cell, options.cells)
    options.runs = 1 if options.quick else options.runs
    data = options.data.resolve() / "grid"
    work = data / "work"
    results: list[Result] = []
    with spark_and_client(data, work) as (spark, client):
        for cell in cells:
            console.print(cell.title, style="dim")
            results += _measured(spark, client, cell, written(data, cell), options)
    print("\n".join([*_grid(results), "", *_goals(results)]))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            results,
            quick=options.quick,
            runs=options.runs,
            reader=options.reader,
        )


def _measured(
    spark: SparkSession, client: Client, cell: Cell, folder: Path, options: Namespace
) -> list[Result]:
    table = f"grid.t{cell.name}"
    client.register_table(table, str(folder))
    client.refresh(table)
    listed = spark.read.parquet(str(folder))
    tuned = {"spark.sql.files.openCostInBytes": "0"}
    sides = [_side(DEFAULTS, listed), _side(TUNED, listed, tuned)]
    ways = {WINDROW: options.reader} | ({way: way for way in ALONE} if cell.is_mix else {})
    sides += [_side(name, client.read(spark, table, reader=way)) for name, way in ways.items()]
    if cell.is_mix or _has_many_small_files(cell, _SMALL_FILE_BYTES):
        sides.append(_side(MERGED, spark.read.parquet(str(_merged(listed, folder, cell)))))
    timings = time_in_turns(
        spark, sides, _queries(), runs=options.runs, on_run=lambda *_: None, warm=not options.quick
    )
    results = []
    for query in (NUMBERS, SHUFFLE):
        seconds = {t.side: t.median_s for t in timings if t.query == query}
        answers = {t.side: normal(t.answer) for t in timings if t.query == query}
        for engine, ask in _ENGINES.items():
            warm = not options.quick
            tries = [timed_answer(ask, folder, query) for _ in range(options.runs + warm)]
            answers[engine] = tries[0][0]
            seconds[engine] = median(time_s for _, time_s in tries[warm:])
        if len({repr(answer) for answer in answers.values()}) != 1:
            raise DisagreementError(f"{cell.title}, {query}: the sides do not agree: {answers}")
        ours = seconds.pop(WINDROW)
        results += [
            Result(
                case=f"{cell.title}, {query}",
                metric="warm read",
                unit="s",
                windrow=ours,
                peer=peer,
                peer_value=value,
            )
            for peer, value in seconds.items()
        ]
    return results


def _merged(table: DataFrame, beside: Path, cell: Cell) -> Path:
    folder = beside.with_name(f"{cell.name}-merged")
    if not (folder / "_SUCCESS").exists():
        table.coalesce(2).write.mode("overwrite").parquet(str(folder))
    return folder


def _has_many_small_files(cell: Cell, most: int, least: int = 0) -> bool:
    return not cell.is_mix and cell.files >= _MANY_FILES and least < cell.file_bytes <= most


def _side(name: str, table: DataFrame, conf: Mapping[str, str] | None = None) -> Side:
    return Side(name=name, title=name, open=lambda _: table, conf=conf or {})


def _queries() -> tuple[Query, ...]:
    from pyspark.sql import functions as F

    def numbers(table: DataFrame) -> DataFrame:
        return table.agg(F.count(F.lit(1)), F.sum("amount"), F.max("score"))

    def shuffle(table: DataFrame) -> DataFrame:
        sums = (F.countDistinct("customer"), F.sum("amount"), F.max("score"))
        return table.groupBy("region").agg(*sums)

    return (
        Query(name=NUMBERS, title=NUMBERS, columns=("amount", "score"), ask=numbers),
        Query(
            name=SHUFFLE,
            title=SHUFFLE,
            columns=("region", "customer", "amount", "score"),
            ask=shuffle,
        ),
    )


def _ask_duckdb(folder: Path, query: str) -> tuple[tuple[object, ...], ...]:
    import duckdb

    source = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"
    sql = {
        NUMBERS: f"SELECT count(*), sum(amount), max(score) FROM {source}",
        SHUFFLE: "SELECT region, count(DISTINCT customer), sum(amount), max(score) "
        f"FROM {source} GROUP BY region",
    }[query]
    with duckdb.connect() as connection:
        return normal(connection.execute(sql).fetchall())


def _ask_polars(folder: Path, query: str) -> tuple[tuple[object, ...], ...]:
    import polars as pl

    table = pl.scan_parquet(f"{folder}/*/*.parquet", hive_partitioning=True)
    if query == NUMBERS:
        answer = table.select(pl.len(), pl.col("amount").sum(), pl.col("score").max())
    else:
        answer = table.group_by("region").agg(
            pl.col("customer").n_unique().alias("customers"),
            pl.col("amount").sum(),
            pl.col("score").max(),
        )
    return normal(answer.collect().rows())


_ENGINES: dict[str, Callable[[Path, str], tuple[tuple[object, ...], ...]]] = {
    DUCKDB: _ask_duckdb,
    POLARS: _ask_polars,
}


def _by_case(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    cases: dict[str, dict[str, float]] = {}
    for result in results:
        cases.setdefault(result.case, {WINDROW: result.windrow})[result.peer] = result.peer_value
    return cases


def _better(seconds: Mapping[str, float]) -> float:
    return min(seconds[DEFAULTS], seconds[TUNED])


def _gain(seconds: Mapping[str, float]) -> float:
    return _better(seconds) / seconds[WINDROW]


def _loses(seconds: Mapping[str, float]) -> bool:
    limit = max(_NO_SLOWER * _better(seconds), _better(seconds) + _NO_SLOWER_S)
    return seconds[WINDROW] > limit


def _grid(results: Sequence[Result]) -> list[str]:
    """Return the grid as Markdown, with the cells where Windrow gains least first."""
    cases = _by_case(results)
    columns = [WINDROW, *PEERS]
    lines = [
        "| files, query | Windrow | Spark, defaults | Spark, `openCostInBytes=0` | DuckDB | Polars "
        "| compared with the better Spark |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in sorted(cases, key=lambda case: (not _loses(cases[case]), _gain(cases[case]))):
        seconds = cases[case]
        figures = " | ".join(f"{seconds[side]:.2f} s" for side in columns)
        mark = " (loses)" if _loses(seconds) else ""
        lines.append(f"| {case} | {figures} | {_gain(seconds):.2f}x{mark} |")
        alone = ", ".join(f"{way} {seconds[way]:.2f} s" for way in ALONE if way in seconds)
        if alone:
            lines.append(f"| {case}, one way alone | {alone} | | | | | |")
        if MERGED in seconds:
            reached = f"{_better(seconds) / seconds[MERGED]:.2f}x"
            lines.append(f"| {case}, in two files | | {seconds[MERGED]:.2f} s | | | | {reached} |")
    return lines


def _goals(results: Sequence[Result]) -> list[str]:
    """Return for each goal how many cells reach it."""
    cases = _by_case(results)
    cells = {cell.title: cell for cell in (*CELLS, *QUICK_CELLS, MIX, QUICK_MIX)}

    def reached(
        what: str, of: Callable[[Cell, str], bool], by: Callable[[Mapping[str, float]], bool]
    ) -> list[str]:
        goal_cases = []
        for case in cases:
            title, _, query = case.rpartition(", ")
            if of(cells[title], query):
                goal_cases.append(case)
        met = sum(by(cases[case]) for case in goal_cases)
        return [f"- {what}: {met} of {len(goal_cases)}"] if goal_cases else []

    return [
        *reached(
            "no slower than 1.05 x the better Spark, or by 150 ms",
            lambda *_: True,
            lambda seconds: not _loses(seconds),
        ),
        *reached(
            "1,000 files or more of at most 64 KB: at least 2 x as fast",
            lambda cell, _: _has_many_small_files(cell, _SMALL_FILE_BYTES),
            lambda seconds: _gain(seconds) >= 2,
        ),
        *reached(
            "1,000 files or more of 256 KB: faster",
            lambda cell, _: _has_many_small_files(cell, 4 * _SMALL_FILE_BYTES, _SMALL_FILE_BYTES),
            lambda seconds: _gain(seconds) > 1,
        ),
        *reached(
            "10,000 x 16 KB with the shuffle: at least 8 x the defaults",
            lambda cell, query: cell.name == "10000x16KB" and query == SHUFFLE,
            lambda seconds: seconds[DEFAULTS] / seconds[WINDROW] >= 8,
        ),
        *reached(
            "10,000 x 16 KB without it: within 1.6 x of DuckDB",
            lambda cell, query: cell.name == "10000x16KB" and query == NUMBERS,
            lambda seconds: seconds[WINDROW] <= 1.6 * seconds[DUCKDB],
        ),
        *reached(
            "the mix: faster than either way alone and than Spark",
            lambda cell, _: cell.is_mix,
            lambda seconds: (
                seconds[WINDROW] < min(_better(seconds), *(seconds[way] for way in ALONE))
            ),
        ),
    ]


if __name__ == "__main__":
    main()
