"""Measure how planning time grows with the table, compared with PyIceberg and Spark.

    python benchmarks/plan_scale.py [--quick] [--json FILE] [--sizes N,…] [--strategies NAME,…]

Each strategy plans inventories of 10,000 to 10,000,000 files, in 1 or 64 buckets and on 0, 3 or 200
hosts (three replicas), each in a separate process on one core. The time is that of `plan_groups`
(prune, cut, pack, place, order) from columns in memory; peak memory is that of the process,
including the inventory (Linux). The fewest possible groups and the predicted slowest of 64 slots
are also shown.

Then the peers plan real files (`plan_peers.py`), and Windrow plans the same inventories in the same
process. Its time then includes decoding its manifests, as PyIceberg's does.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from common import Result, arguments, console, write_json
from plan_peers import PeerPlan, pyiceberg_plan, spark_plan, write_files
from rich import box
from rich.table import Table as RichTable
from tables import KIB, MIB
from workloads import inventory, replicas

from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_core.models import PlanOptions
from windrow_core.sizes import size_text
from windrow_demo.local_session import local_session
from windrow_service.inventory.manifests.encoding import cut_files, decode_manifest
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.predict import predict
from windrow_service.usecases.plans.options import policy_of, with_defaults

NAME = "plan_scale"
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
BUCKETS = (1, 64)
HOSTS = (0, 3, 200)
PARALLELISM = 64
ICEBERG_FILES = (10_000, 100_000)
SPARK_FILES = (10_000, 50_000)
QUICK_FILES = (500,)
MAX_FILES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One inventory planned by one strategy."""

    files: int
    buckets: int
    hosts: int
    strategy: str
    seconds: float
    peak_bytes: int
    groups: int
    fewest_groups: int
    slowest_slot_seconds: float

    @property
    def case(self) -> str:
        """Description of the planned inventory."""
        return f"{self.files:,} files, {self.buckets} buckets, {self.hosts} hosts"


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure how planning grows with the table.")
    parser.add_argument("--sizes", help="numbers of files, joined by ','")
    parser.add_argument("--strategies", help="names, separated by ','; all by default")
    parser.add_argument("--no-peers", action="store_true", help="leave out PyIceberg and Spark")
    parser.add_argument("--only", help="plan only files,buckets,hosts;…, and print a line for each")
    options = parser.parse_args()
    strategies = options.strategies.split(",") if options.strategies else list(STRATEGIES)
    if options.only:
        for each in options.only.split(";"):
            _plan_in_a_fork(*map(int, each.split(",")), strategies, options.runs)
        return
    sizes = QUICK_FILES if options.quick else SIZES
    if options.sizes:
        sizes = tuple(map(int, options.sizes.split(",")))
    inventories = [
        (files, buckets, hosts) for files in sizes for buckets in BUCKETS for hosts in HOSTS
    ]
    measurements = _measure(inventories, strategies, options.runs)
    show(_scale_table(measurements), *_growth_lines(measurements))
    results = (
        [] if options.no_peers else _beside_peers(options.data, options.runs, quick=options.quick)
    )
    if options.json is not None:
        scale = [asdict(one) for one in measurements]
        write_json(options.json, NAME, results, quick=options.quick, runs=options.runs, scale=scale)


def generated(files: int, buckets: int, hosts: int) -> pa.Table:
    """Return an inventory with log-normal sizes around 256 KiB."""
    rng = np.random.default_rng(files + buckets + hosts)
    sizes = np.clip(rng.lognormal(np.log(256 * KIB), 1.2, files), KIB, 60 * MIB)
    return inventory(
        sizes.astype(np.int64),
        bucket=np.arange(files) % buckets if buckets > 1 else None,
        hosts=replicas(rng, files, hosts, 3) if hosts else None,
    )


def _measure(
    inventories: Sequence[tuple[int, int, int]], strategies: list[str], runs: int
) -> list[Measurement]:
    texts = ";".join(f"{files},{buckets},{hosts}" for files, buckets, hosts in inventories)
    command = [sys.executable, __file__, "--only", texts]
    command += ["--strategies", ",".join(strategies), "--runs", str(runs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("an inventory could not be planned: see above")
    rows = [line.split() for line in done.stdout.splitlines()]
    return [
        Measurement(
            files=int(files),
            buckets=int(buckets),
            hosts=int(hosts),
            strategy=name,
            seconds=float(seconds),
            peak_bytes=int(peak),
            groups=int(groups),
            fewest_groups=int(fewest),
            slowest_slot_seconds=float(slot),
        )
        for files, buckets, hosts, name, seconds, peak, groups, fewest, slot in rows
    ]


def _plan_in_a_fork(files: int, buckets: int, hosts: int, strategies: list[str], runs: int) -> None:
    """Plan in a forked process, which has no other inventories and need not import anything."""
    console.print(f"{files:,} files, {buckets} buckets, {hosts} hosts", style="dim")
    planned = (files, buckets, hosts, strategies, runs)
    process = multiprocessing.get_context("fork").Process(target=_plan_alone, args=planned)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def _plan_alone(files: int, buckets: int, hosts: int, strategies: list[str], runs: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    table = generated(files, buckets, hosts)
    plan_groups(generated(1_000, buckets, hosts), None, Policy())
    for name in strategies:
        policy = _policy(name)
        seconds = []
        Path("/proc/self/clear_refs").write_text("5")
        for _ in range(runs):
            plan = None
            started = time.perf_counter()
            plan = plan_groups(table, None, policy)
            seconds.append(time.perf_counter() - started)
        peak = _peak_bytes()
        assert plan is not None
        assert int(plan.size_bytes.sum()) == int(table["size_bytes"].to_numpy().sum())
        prediction = predict(plan, _policy("balanced"))
        groups = len(plan)
        del plan
        print(
            files,
            buckets,
            hosts,
            name,
            median(seconds),
            peak,
            groups,
            prediction.fewest_groups,
            prediction.slowest_slot_seconds,
        )


def _policy(strategy: str) -> Policy:
    options = with_defaults(PlanOptions(strategy=strategy, parallelism=PARALLELISM))
    return policy_of(options, MAX_FILES)


def _peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system does not report the peak memory of a process")


def _beside_peers(data: Path, runs: int, *, quick: bool) -> list[Result]:
    require_java()
    results = []
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data) as folder:
        for number, files in enumerate(QUICK_FILES if quick else ICEBERG_FILES):
            console.print(f"PyIceberg: {files:,} files", style="dim")
            table = _small(files, buckets=64)
            write_files(table, Path(folder) / f"iceberg-{number}")
            peer = pyiceberg_plan(table, Path(folder) / f"iceberg-{number}", runs=runs)
            results += _compare(table, peer, runs)
        with local_session("windrow plan scale", Path(folder, "spark.log")) as spark:
            for number, files in enumerate(QUICK_FILES if quick else SPARK_FILES):
                console.print(f"Spark: {files:,} files", style="dim")
                table = _small(files, buckets=1)
                write_files(table, Path(folder) / f"spark-{number}")
                peer = spark_plan(spark, table, Path(folder) / f"spark-{number}", runs=runs)
                results += _compare(table, peer, runs)
    show(_peer_table(results))
    return results


def _small(files: int, buckets: int) -> pa.Table:
    rng = np.random.default_rng(files)
    sizes = np.clip(rng.lognormal(np.log(32 * KIB), 1.0, files), 2 * KIB, 8 * MIB)
    bucket = np.arange(files) % buckets if buckets > 1 else None
    return inventory(sizes.astype(np.int64), bucket=bucket)


def _compare(table: pa.Table, peer: PeerPlan, runs: int) -> list[Result]:
    bodies = [manifest.data for manifest in cut_files(table)]
    whole, packing = [], []
    for _ in range(runs + 1):
        started = time.perf_counter()
        files = pa.concat_tables([decode_manifest(body) for body in bodies if body is not None])
        decoded = time.perf_counter()
        plan = plan_groups(files, None, _policy("balanced"))
        done = time.perf_counter()
        whole.append(done - started)
        packing.append(done - decoded)
    if (len(files), int(plan.size_bytes.sum())) != (peer.file_count, peer.size_bytes):
        raise SystemExit(f"Windrow and {peer.peer} planned different files")
    case = f"{peer.file_count:,} files"
    # The first run is for warming up.
    return [
        Result(
            case=case,
            metric=metric,
            unit="us/file",
            windrow=median(seconds[1:]) / peer.file_count * 1e6,
            peer=peer.peer,
            peer_value=peer_s / peer.file_count * 1e6,
        )
        for metric, seconds, peer_s in (
            ("plan", whole, peer.plan_s),
            ("pack", packing, peer.pack_s),
        )
    ]


def _scale_table(measurements: list[Measurement]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("files", "buckets", "hosts"):
        table.add_column(name, justify="right")
    table.add_column("strategy")
    for name in ("time", "us/file", "peak memory", "groups", "fewest", "slowest slot"):
        table.add_column(name, justify="right")
    for one in measurements:
        table.add_row(
            f"{one.files:,}",
            str(one.buckets),
            str(one.hosts),
            one.strategy,
            seconds_text(one.seconds),
            f"{one.seconds / one.files * 1e6:.2f}",
            size_text(one.peak_bytes),
            f"{one.groups:,}",
            f"{one.fewest_groups:,}",
            seconds_text(one.slowest_slot_seconds),
        )
    return table


def _growth_lines(measurements: list[Measurement]) -> list[str]:
    lines = []
    for buckets in BUCKETS:
        for hosts in HOSTS:
            rates = {
                one.files: one.seconds / one.files
                for one in measurements
                if (one.buckets, one.hosts, one.strategy) == (buckets, hosts, "balanced")
            }
            if 100_000 in rates and max(rates) > 100_000:
                growth = rates[max(rates)] / rates[100_000]
                lines.append(
                    f"balanced, {buckets} buckets, {hosts} hosts: time per file grows {growth:.2f}x "
                    f"from 100,000 to {max(rates):,} files"
                )
    return lines


def _peer_table(results: list[Result]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case")
    table.add_column("metric")
    table.add_column("peer")
    for name in ("peer, us/file", "windrow, us/file", "ratio"):
        table.add_column(name, justify="right")
    for one in results:
        table.add_row(
            one.case,
            one.metric,
            one.peer,
            f"{one.peer_value:.2f}",
            f"{one.windrow:.2f}",
            f"{one.ratio:.1f}x",
        )
    return table


if __name__ == "__main__":
    main()
