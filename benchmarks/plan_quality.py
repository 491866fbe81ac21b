"""Compare the plans of all strategies for ten named workloads.

    python benchmarks/plan_quality.py [--quick] [--json FILE]

Reported for each workload (`workloads.py`) and strategy: the number of groups next to the fewest
possible, the share of bytes read on a host with a replica, and the predicted time of the slowest
slot, all under one cost model. For `balanced`, also the share of groups that stay exactly the same
when a new partition adds one per cent of files, in the middle of the table or at its end. Every
plan is checked to hold every byte exactly once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from common import Result, arguments, console, write_json
from rich import box
from rich.table import Table as RichTable
from workloads import Workload, grown, workloads

from windrow_calls.terminal.consoles import show
from windrow_core.cards import seconds_text
from windrow_core.models import PlanOptions
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.predict import predict
from windrow_service.usecases.plans.options import policy_of, with_defaults

NAME = "plan_quality"
QUICK_SCALE = 0.05
NEW_FILES = 0.01
MAX_FILES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Figures of one strategy's plan for one workload."""

    workload: str
    files: int
    parallelism: int
    strategy: str
    groups: int
    fewest_groups: int
    host_local: float | None
    slowest_slot_seconds: float
    all_tasks_seconds: float


def main() -> None:
    """Plan, compare and report."""
    parser = arguments("Compare the plans of all strategies for ten workloads.")
    options = parser.parse_args()
    qualities, stable = [], {}
    for workload in workloads(QUICK_SCALE if options.quick else 1.0):
        console.print(workload.name, style="dim")
        qualities += [_quality(workload, strategy) for strategy in STRATEGIES]
        stable[workload.name] = {
            place: _stability(workload, folder) for place, folder in _new_folders(workload).items()
        }
    show(_slot_table(qualities), _balanced_table(qualities, stable))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            _results(qualities),
            quick=options.quick,
            qualities=[asdict(one) for one in qualities],
            stability=stable,
        )


def _policy(strategy: str, parallelism: int) -> Policy:
    options = with_defaults(PlanOptions(strategy=strategy, parallelism=parallelism))
    return policy_of(options, MAX_FILES)


def _quality(workload: Workload, strategy: str) -> Quality:
    policy = _policy(strategy, workload.parallelism)
    plan = plan_groups(workload.files, None, policy)
    if int(plan.size_bytes.sum()) != int(workload.files["size_bytes"].to_numpy().sum()):
        raise SystemExit(f"{strategy} lost bytes of {workload.name!r}")
    prediction = predict(plan, _policy("balanced", workload.parallelism))
    located = prediction.located_bytes
    return Quality(
        workload=workload.name,
        files=len(workload.files),
        parallelism=workload.parallelism,
        strategy=strategy,
        groups=len(plan),
        fewest_groups=prediction.fewest_groups,
        host_local=prediction.host_local_bytes / located if located else None,
        slowest_slot_seconds=prediction.slowest_slot_seconds,
        all_tasks_seconds=prediction.all_tasks_seconds,
    )


def _new_folders(workload: Workload) -> dict[str, str]:
    """Return a folder that sorts into the middle of a workload's paths, and one after them."""
    paths = workload.files["path"]
    middle = paths[len(paths) // 2].as_py().split("/")[0]
    last = paths[len(paths) - 1].as_py().split("/")[0]
    return {"middle": f"{middle}x", "end": f"{last}x"}


def _stability(workload: Workload, folder: str) -> float:
    """Return the share of groups that stay the same when a partition is added."""
    policy = _policy("balanced", workload.parallelism)
    files = grown(workload.files, NEW_FILES, folder)
    old_row = pc.index_in(files["path"], workload.files["path"]).fill_null(-1).to_numpy()
    before = _signatures(plan_groups(workload.files, None, policy), np.arange(len(workload.files)))
    after = _signatures(plan_groups(files, None, policy), old_row)
    return len(np.intersect1d(before, after)) / len(before)


def _signatures(plan: GroupedSplits, number: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return an order-independent hash of each group's splits."""
    file = number[plan.splits.file].astype(np.uint64)
    mixed = (file * np.uint64(0x9E3779B97F4A7C15)) ^ plan.splits.start.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    sums: npt.NDArray[np.uint64] = np.add.reduceat(mixed, plan.offsets[:-1])
    return sums


def _results(qualities: list[Quality]) -> list[Result]:
    by_case: dict[str, dict[str, Quality]] = {}
    for one in qualities:
        by_case.setdefault(one.workload, {})[one.strategy] = one
    return [
        Result(
            case=case,
            metric="predicted slowest slot",
            unit="s",
            windrow=of["balanced"].slowest_slot_seconds,
            peer=peer.strategy,
            peer_value=peer.slowest_slot_seconds,
        )
        for case, of in by_case.items()
        for peer in of.values()
        if peer.strategy != "balanced"
    ]


def _slot_table(qualities: list[Quality]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title="predicted slowest slot (groups)")
    table.add_column("workload")
    for strategy in STRATEGIES:
        table.add_column(strategy, justify="right")
    for name in dict.fromkeys(one.workload for one in qualities):
        of = [one for one in qualities if one.workload == name]
        cells = [f"{seconds_text(one.slowest_slot_seconds)} ({one.groups:,})" for one in of]
        table.add_row(name, *cells)
    return table


def _balanced_table(qualities: list[Quality], stable: dict[str, dict[str, float]]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title="balanced")
    table.add_column("workload")
    for name in (
        "files",
        "slots",
        "groups",
        "fewest",
        "more",
        "host-local",
        "stays: middle",
        "end",
    ):
        table.add_column(name, justify="right")
    for one in qualities:
        if one.strategy == "balanced":
            table.add_row(
                one.workload,
                f"{one.files:,}",
                str(one.parallelism),
                f"{one.groups:,}",
                f"{one.fewest_groups:,}",
                f"{one.groups / one.fewest_groups - 1:.1%}",
                "" if one.host_local is None else f"{one.host_local:.1%}",
                *(f"{part:.0%}" for part in stable[one.workload].values()),
            )
    return table


if __name__ == "__main__":
    main()
