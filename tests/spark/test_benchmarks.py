"""The benchmarks still run, and write plausible results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.engines.environment import python_with_engines
from tests.support.processes.scripts import Programs, one_process

pytestmark = pytest.mark.spark

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def programs(postgresql_server: str) -> Iterator[Programs]:
    with one_process(WINDROW_TEST_DATABASE_URL=postgresql_server) as programs:
        yield programs


# They start Spark or many servers, and seldom change.
NIGHTLY = (
    "access",
    "acid",
    "cache",
    "compaction",
    "compaction_cost",
    "engine_changes",
    "engine_plans",
    "first_task",
    "formats",
    "hdfs",
    "inserts",
    "large_objects",
    "log_tables",
    "maintenance",
    "maintenance_real",
    "metastore",
    "object_stores",
    "open_file_cost",
    "pack_figures",
    "packs",
    "pages",
    "partition_numbers",
    "plan_peers",
    "plan_quality",
    "plan_scale",
    "read_calibration",
    "read_cost",
    "read_grid",
    "read_small_files",
    "scan",
    "service",
    "star",
    "stored_kills",
    "streams",
    "tpc",
    "watching",
    "write_cost",
    "writes",
)


class Quick(Protocol):
    """Runs a benchmark on small sizes and returns the JSON that it wrote."""

    def __call__(self, name: str, *options: str) -> dict[str, Any]: ...


@pytest.fixture
def quick(programs: Programs, tmp_path: Path) -> Quick:
    return partial(_content_of_run, programs, tmp_path)


@pytest.fixture
def quick_alone(tmp_path: Path) -> Iterator[Quick]:
    """Runs it in a process of its own: a JVM that runs does not take further jars."""
    with one_process() as programs:
        yield partial(_content_of_run, programs, tmp_path)


def _content_of_run(programs: Programs, folder: Path, name: str, *options: str) -> dict[str, Any]:
    script, *arguments = _command(name, folder)
    code, output = programs.run(Path(script), *arguments, *options)
    assert code == 0, output
    return _content(name, folder)


def _command(name: str, folder: Path) -> list[str]:
    result, data = str(folder / "result.json"), str(folder / "data")
    return [str(BENCHMARKS / f"{name}.py"), "--quick", "--json", result, "--data", data]


def _content(name: str, folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert content["benchmark"] == name
    assert content["machine"]
    assert set(content["versions"]) >= {"windrow", "pyspark", "pyarrow", "duckdb", "polars"}
    for row in content["results"]:
        assert set(row) == {"case", "metric", "unit", "windrow", "peer", "peer_value", "ratio"}
        assert row["ratio"] == pytest.approx(row["peer_value"] / row["windrow"])
    return content


@pytest.mark.parametrize("name", NIGHTLY)
def test_a_benchmark_that_runs_at_night_can_be_loaded(programs: Programs, name: str) -> None:
    assert programs.run(BENCHMARKS / f"{name}.py", "--help") == (0, "")


@pytest.mark.nightly
def test_read_small_files_compares_windrow_with_every_peer(quick: Quick) -> None:
    content = quick("read_small_files", "--cases", "quickmix")

    seen = {(row["metric"], row["peer"]) for row in content["results"]}
    assert {peer for metric, peer in seen if metric == "warm read"} == {
        "spark-default",
        "spark-tuned",
        "duckdb",
        "polars",
    }
    assert {("know the files", "spark-default"), ("tasks", "spark-tuned")} <= seen
    assert {("cold read", "spark-default"), ("cold read", "duckdb")} <= seen


@pytest.mark.nightly
def test_scan_compares_equal_rows_with_every_peer(quick: Quick) -> None:
    content = quick("scan", "--delay", "0")

    seen = {(row["metric"], row["peer"]) for row in content["results"]}
    assert {(f"{case} read", "polars") for case in ("cold", "warm", "store")} <= seen
    assert {("warm read", "duckdb"), ("warm read", "pyarrow")} <= seen


@pytest.mark.nightly
@pytest.mark.parametrize("more", [(), ("--iceberg",)])
def test_engine_plans_compares_equal_plans(quick: Quick, more: tuple[str, ...]) -> None:
    content = quick("engine_plans", "--runs", "1", *more)

    assert {row["metric"] for row in content["results"]} == {"cold", "warm"}
    assert {row["peer"] for row in content["results"]} == {"PyIceberg by itself"}
    assert content["peak_bytes"] > content["imported_bytes"] > 0


@pytest.mark.nightly
def test_packs_compares_equal_answers(quick: Quick) -> None:
    python_with_engines()

    content = quick("packs", "--runs", "1")

    cases = {row["case"].partition(": ")[0] for row in content["results"]}
    assert cases == {f"{content['files']} files", "a day later"}
    assert len(content["results"]) == 32
    assert content["making"]["files"] == content["files"]


@pytest.mark.nightly
def test_pack_figures_compares_equal_answers(quick: Quick) -> None:
    content = quick("pack_figures", "--runs", "1")

    assert [row["peer"] for row in content["results"]] == ["read from packs", "Spark, defaults"]


@pytest.mark.nightly
def test_engine_changes_adds_one_manifest_for_new_files(quick: Quick) -> None:
    python_with_engines()

    content = quick("engine_changes", "--runs", "1")

    assert content["manifests"] == 1
    assert len(content["results"]) == 3


@pytest.mark.nightly
def test_read_cost_accounts_for_all_of_the_cpu_time(quick: Quick) -> None:
    rows = quick("read_cost", "--runs", "1")["results"]

    for case in {row["case"] for row in rows}:
        ours = {row["metric"]: row["windrow"] for row in rows if row["case"] == case}
        parts = [ours.get(part, 0) for part in ("driver", "jvm", "workers", "coordinator")]
        assert ours["time"] > 0
        assert ours["all"] == pytest.approx(sum(parts))
    assert len({row["case"] for row in rows}) == 3


@pytest.mark.nightly
def test_open_file_cost_fits_costs_that_are_not_negative(quick: Quick) -> None:
    content = quick("open_file_cost", "--runs", "1")

    costs = content["costs"]
    assert all(cost >= 0 for cost in costs.values())


@pytest.mark.nightly
def test_plan_peers_times_pyiceberg_and_spark_on_the_same_files(
    quick: Quick, tmp_path: Path
) -> None:
    content = quick("plan_peers")

    peers = {row["peer"]: row for row in content["peers"]}
    assert set(peers) == {"pyiceberg", "spark"}
    assert len({(row["file_count"], row["size_bytes"]) for row in peers.values()}) == 1
    for row in peers.values():
        assert row["file_count"] >= row["group_count"] > 0
        assert row["plan_s"] > row["pack_s"] > 0
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.nightly
def test_service_measures_replicas_publishing_and_a_peer(quick: Quick) -> None:
    content = quick("service", "--runs", "1")

    cases = [figure["case"] for figure in content["figures"]]
    for part in ("cold", "warm", "JSON page", "Arrow stream", "2 replica(s)", "at 104/s"):
        assert any(part in case for case in cases), part
    assert all(figure["peak_bytes"] > 0 for figure in content["figures"])
    changes = [one for one in content["publishing"] if "of 1,000" in one["case"]]
    assert len(changes) == 2 * 2 * 3
    assert all(one["bytes_written"] < 2**20 for one in changes)
    assert {row["peer"] for row in content["results"]} == {"PyIceberg, in process", "without load"}


@pytest.mark.nightly
def test_watching_measures_the_cost_of_each_way_to_observe_plans(quick: Quick) -> None:
    content = quick("watching", "--plans", "10")

    first, *others = content["figures"]
    assert first["more_ms"] == 0 < first["p50_ms"]
    assert len(others) == 3
    assert {row["metric"] for row in content["results"]} == {"p50", "CPU time"}
    assert len({row["case"] for row in content["results"]}) == len(others)


@pytest.mark.nightly
def test_plan_scale_measures_windrow_and_its_peers(quick: Quick) -> None:
    content = quick("plan_scale", "--runs", "1", "--strategies", "balanced,tez")

    assert {(row["metric"], row["peer"]) for row in content["results"]} == {
        (metric, peer) for metric in ("plan", "pack") for peer in ("pyiceberg", "spark")
    }
    assert len(content["scale"]) == 2 * 3 * 2
    for one in content["scale"]:
        assert one["groups"] >= one["fewest_groups"] > 0
        assert one["peak_bytes"] > 0


@pytest.mark.nightly
def test_plan_quality_finds_that_no_strategy_beats_balanced_on_any_workload(
    tmp_path: Path,
) -> None:
    # In its own process, as users run each benchmark.
    command = [sys.executable, *_command("plan_quality", tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = _content("plan_quality", tmp_path)

    assert len({row["case"] for row in content["results"]}) == 10
    # Predictions do not depend on the machine.
    assert all(row["ratio"] > 0.99 for row in content["results"])
    assert all(
        one["host_local"] >= 0.95
        for one in content["qualities"]
        if one["strategy"] == "balanced" and one["host_local"] is not None
    )


@pytest.mark.nightly
def test_partition_numbers_compares_plans_by_number_with_plans_by_filter(quick: Quick) -> None:
    content = quick("partition_numbers", "--runs", "1", "--days", "10", "--cases", "a day")

    assert [(row["case"], row["metric"], row["peer"]) for row in content["results"]] == [
        ("list", "warm", "Windrow, cold"),
        ("plan, a day", "cold", "Windrow, by filter"),
        ("plan, a day", "warm", "Windrow, by filter"),
    ]
    assert (content["files"], content["partitions"]) == (4_000, 400)


@pytest.mark.nightly
def test_first_task_compares_queries_of_some_partitions_with_the_whole_table(quick: Quick) -> None:
    content = quick("first_task", "--runs", "1", "--days", "10")

    assert [row["case"] for row in content["results"]] == [
        "create_view",
        "the first query",
        "one day",
        "a month by function",
        "a join with a day in a hundred",
    ]
    assert content["planned"] == {"one day": 400, "a month by function": 0} | {
        "a join with a day in a hundred": 400
    }


def test_cache_plans_compares_a_plan_of_cached_files_with_one_without_rules(quick: Quick) -> None:
    content = quick("cache_plans", "--runs", "1", "--files", "5000", "--workers", "3")

    assert {row["peer"] for row in content["results"]} == {"no cache rules"}
    (figures,) = content["figures"]
    assert 0.25 < figures["moved"] < 0.45
    assert 8 * 5_000 <= figures["redis_bytes"] < 64 * 5_000


@pytest.mark.nightly
def test_maintenance_saves_readers_more_than_public_rules_at_the_same_budget(quick: Quick) -> None:
    content = quick("maintenance")

    assert len(content["results"]) == 5
    figures = {one["rule"]: one for one in content["figures"]}
    ours = figures["Windrow"]
    for one in figures.values():
        assert one["part_of_bound"] <= 1
        assert one["spent_seconds"] < 1.1 * one["budget"] * 24 * 30
        if "Windrow" not in one["rule"]:
            assert one["saved_seconds"] < ours["saved_seconds"]
    assert (ours["worse_tables"], ours["amplification"] <= 2) == (0, True)


@pytest.mark.nightly
def test_maintenance_real_loses_and_doubles_nothing_while_workers_are_killed(quick: Quick) -> None:
    content = quick("maintenance_real")

    figures = content["figures"]
    assert (content["wrong"], figures["failures"]) == ([], [])
    assert sum(figures["kills"].values()) >= 2
    assert min(figures["writes"], figures["looks"]) >= 3
    assert sum(one["done"] for one in content["gains"]) >= 1
    assert len(content["rows"]) == 8
    for one in content["rows"]:
        assert one["wanted"] == one["planned"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["local", "hdfs", "s3"])
def test_compaction_leaves_the_same_rows_in_few_files(
    quick: Quick, quick_alone: Quick, store: str
) -> None:
    content = (quick_alone if store == "s3" else quick)(
        "compaction", "--store", store, "--server", "moto"
    )

    found = {(row["case"], row["metric"]): row for row in content["results"]}
    files = found["flights", "files"]
    assert files["peer_value"] > 100 * files["windrow"] >= 100
    assert {row["metric"] for row in content["results"]} == {"files", "bytes", "warm read", "tasks"}
    assert content["file_bytes"]["largest"] < 1.5 * content["file_bytes"]["target"]


@pytest.mark.nightly
def test_compaction_cost_measures_the_constants_of_plans(quick: Quick) -> None:
    content = quick("compaction_cost")

    assert len(content["results"]) == 2
    assert all(min(row["windrow"], row["peer_value"]) > 0 for row in content["results"])
    costs = content["costs"]
    assert costs["job_s"] > 0
    assert costs["byte_s"] + costs["file_s"] > 0


@pytest.mark.nightly
def test_writes_finds_that_only_the_exact_plan_meets_the_target_size(quick: Quick) -> None:
    content = quick("writes")

    peers = {row["peer"] for row in content["results"]}
    assert {"coalesce", "columns", "salted x 1", "range_hash", "REBALANCE, T"} <= peers
    found = {one["scheme"]: one for one in content["written"]}
    assert len(found) == len(peers) + 2
    exact = found["exact plan"]
    assert exact["sane"]
    assert exact["torn"] == 0
    assert 0 <= exact["files"] - exact["optimum"] <= 2
    assert exact["largest_task"] <= 1.25 < found["columns"]["largest_task"]
    checked = found["client.write: exact, checked, committed"]
    assert (checked["files"], checked["largest_file"]) == (exact["files"], exact["largest_file"])


@pytest.mark.nightly
def test_write_cost_compares_checked_writes_with_spark_alone(quick: Quick) -> None:
    content = quick("write_cost", "--runs", "1")

    assert {row["metric"] for row in content["results"]} == {"time", "CPU time"}
    assert len(content["results"]) == 4
    for measured in (content["seconds"], content["cpu_seconds"]):
        assert {len(turns) for turns in measured.values()} == {1}


@pytest.mark.nightly
def test_inserts_compares_planned_statements_with_those_of_spark(quick: Quick) -> None:
    content = quick("inserts", "--runs", "1")

    assert [row["metric"] for row in content["results"]] == ["time", "CPU time"]
    assert {len(turns) for turns in content["seconds"].values()} == {1}


@pytest.mark.nightly
def test_star_compares_the_rows_and_files_of_windrow_with_those_of_spark(quick: Quick) -> None:
    content = quick("star", "--queries", "in_list,limit,timestamps,udf")

    queries = {one["query"]: one for one in content["queries"]}
    assert list(queries) == ["in_list", "limit", "timestamps", "udf"]
    assert {row["peer"] for row in content["results"]} == {"spark-default", "spark-tuned"}
    assert [one["rows"] for one in queries.values()] == [1, 20, 6, 1]
    for one in queries.values():
        assert one["difference"] == ""
        assert (
            set(one["seconds"]) == set(one["files"]) == {"windrow", "spark-default", "spark-tuned"}
        )
    assert queries["timestamps"]["files"]["spark-default"]["planned"] == 6
    assert queries["timestamps"]["files"]["windrow"]["read"] >= 6


@pytest.mark.nightly
@pytest.mark.skipif(
    find_spec("duckdb_extension_tpch") is None or find_spec("duckdb_extension_tpcds") is None,
    reason="needs the extra `benchmark`",
)
def test_tpc_reads_the_rows_of_spark_in_queries_of_both_sets(quick: Quick) -> None:
    content = quick("tpc", "--queries", "h1,h4,ds27,ds60")

    queries = {one["query"]: one for one in content["queries"]}
    assert list(queries) == ["h1", "h4", "ds27", "ds60"]
    assert [one["difference"] for one in queries.values()] == [""] * 4
    assert all(one["rows"] > 0 for one in queries.values())


@pytest.mark.nightly
def test_read_grid_compares_every_cell_with_all_peers(quick: Quick) -> None:
    content = quick("read_grid", "--cells", "mix")

    cases = {row["case"] for row in content["results"]}
    assert cases == {f"10 x 16 KB + 2 x 256 KB, {query}" for query in ("numbers", "shuffle")}
    peers = {row["peer"] for row in content["results"]}
    alone = {"grouped", "native", "spark, two files"}
    assert peers == {"spark", "spark tuned", "duckdb", "polars", *alone}


@pytest.mark.nightly
def test_read_calibration_measures_costs_of_both_readers(quick: Quick) -> None:
    content = quick("read_calibration")

    assert len(content["results"]) == 3 * 2 * 2
    assert all(row["windrow"] > 0 for row in content["results"])


@pytest.mark.nightly
def test_formats_compares_windrow_with_sparks_own_reader(quick: Quick) -> None:
    content = quick("formats")

    warm = [row for row in content["results"] if row["metric"] == "warm read"]
    assert {row["peer"] for row in warm} == {"spark-default", "spark-tuned"}
    assert {row["case"].split(",")[0] for row in warm} == {
        f"6 files of {format_}" for format_ in ("orc", "csv", "json")
    }


@pytest.mark.nightly
def test_acid_reads_delete_deltas_once_per_group_and_once_per_split(quick: Quick) -> None:
    content = quick("acid")

    opened = {row["metric"]: row for row in content["results"]}["delete files opened"]
    # Forty deltas, ten delete deltas.
    assert opened["peer_value"] == 400
    assert opened["windrow"] == 10 * int(opened["case"].split(" in ")[1].split()[0])


@pytest.mark.nightly
def test_log_tables_compares_reads_with_the_formats_own_packages(quick: Quick) -> None:
    content = quick("log_tables")

    read = [row for row in content["results"] if row["metric"] == "warm read"]
    assert {(row["case"], row["peer"]) for row in read} == {
        (f"20 files of {format_}, 16 KB", peer)
        for format_, package in (("delta", "deltalake"), ("iceberg", "pyiceberg"))
        for peer in (package, "duckdb")
    }
    assert [row["case"] for row in content["results"] if row["metric"] == "refresh"] == [
        "100 files of delta, ten more"
    ]


# The following benchmarks need Spark contexts of their own; those before share one.


@pytest.mark.nightly
def test_cache_reads_cached_files_on_their_workers_without_requests_to_the_store(
    quick: Quick,
) -> None:
    content = quick("cache", "--latency", "0.005")

    assert {row["peer"] for row in content["results"]} == {"without cache", "first read"}
    reads = {read["what"]: read for read in content["reads"]}
    assert reads["first read"]["requests"] == reads["without cache"]["requests"] == 40
    assert reads["second read"]["requests"] == 0
    assert reads["second read"]["on_worker"] >= 0.99
    tasks = {read["what"]: read["groups"] for read in content["packing"]}
    assert tasks["separate"] == 40 > tasks["by_worker"]


@pytest.mark.nightly
def test_metastore_imports_tables_again_without_a_change(quick: Quick) -> None:
    content = quick("metastore")

    assert {row["case"] for row in content["results"]} == {"3 tables with 12 partitions"}
    assert [row["metric"] for row in content["results"]] == ["again", "again by names"]


@pytest.mark.nightly
def test_object_stores_counts_requests_and_bytes_of_all_sides(quick: Quick) -> None:
    content = quick("object_stores", "--server", "moto", "--delay", "0")

    assert {row["metric"] for row in content["results"]} == {
        "time",
        "requests per file",
        "bytes per byte asked for",
    }
    small, wide, limited = content["reads"].values()
    assert {"windrow", "two requests", "one at a time", "polars"} <= {one["side"] for one in small}
    requests = {one["side"]: one["requests"] for one in small}
    assert requests["two requests"] == 2 * requests["one at a time"] == 2 * 24
    for read in small + wide + limited:
        assert not read["failure"]
        assert read["sent_bytes"] > 0
    assert all(0 < read["limit_used"] < 1.5 for read in limited)


@pytest.mark.nightly
def test_hdfs_runs_tasks_on_the_hosts_of_their_bytes(quick: Quick) -> None:
    content = quick("hdfs")

    assert {row["metric"] for row in content["results"]} == {"know the files", "warm read", "tasks"}
    ours = [one for one in content["localities"] if one["side"] == "windrow"]
    assert sum(one["local_tasks"] for one in ours) >= 0.95 * sum(one["tasks"] for one in ours)


@pytest.mark.nightly
def test_large_objects_compares_with_sparks_reader(quick_alone: Quick) -> None:
    content = quick_alone("large_objects", "--latencies", "0,0.005")

    assert {row["peer"] for row in content["results"]} == {
        "spark-default",
        "spark-tuned",
        "grouped",
        "native",
    }
    assert len(content["answers_per_file"]) == 10


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_stored_kills_loses_doubles_and_leaves_nothing(quick: Quick, store: str) -> None:
    figures = quick("stored_kills", "--stores", store)["stores"][store]

    assert sum(figures["kills"].values()) >= 12
    for what in ("lost", "doubled", "mixed", "orphans", "stuck"):
        assert figures[what] == []


@pytest.mark.nightly
def test_access_compares_callers_with_one_without_a_token(quick: Quick) -> None:
    content = quick("access", "--files", "100")

    assert {row["peer"] for row in content["results"]} == {"no token"}
    assert len(content["results"]) == 3
    assert len(content["processor_ms"]) == 4


@pytest.mark.nightly
def test_pages_compares_first_bytes_and_whole_pages_with_their_bound(quick: Quick) -> None:
    rows = quick("pages")["results"]

    assert {row["peer"] for row in rows} == {"bound"}
    assert [row["metric"] for row in rows] == [
        f"{part}, {page} page of a process"
        for page in ("first", "next")
        for part in ("first byte", "whole page")
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [0, 8])
def test_streams_has_every_row_once(quick: Quick, kills: int) -> None:
    content = quick("streams", "--runs", "1", "--kills", str(kills), "--delay", "20s")

    assert (content["faults"], sum(content["kills"].values())) == ([], kills)
    assert {row["metric"] for row in content["results"]} == (
        set() if kills else {"files", "write", "read"}
    )
