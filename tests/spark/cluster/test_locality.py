"""On a cluster of three workers, files are read on the hosts that the plan names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.plans.plans import plan_of
from tests.support.spark.clusters import HOSTS
from tests.support.spark.drivers import CachingCluster

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

FILE_COUNT = 8


def test_files_are_read_on_the_hosts_that_hold_them(place: CachingCluster, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.mkdir()
    for n in range(FILE_COUNT):
        pq.write_table(pa.table({"n": [n]}), table / f"{n:02}.parquet")
    # Not in rotation, so that placing tasks in rotation would fail.
    wanted = {n: HOSTS[0] if n % 4 < 3 else HOSTS[1] for n in range(FILE_COUNT)}
    plan, groups = plan_of(
        table, {"n": "bigint"}, hosts={f"{n:02}.parquet": [host] for n, host in wanted.items()}
    )
    plan_file, groups_file = tmp_path / "plan", tmp_path / "groups"
    plan_file.write_text(plan.model_dump_json())
    with pa.ipc.new_file(str(groups_file), groups.schema) as writer:
        writer.write_table(groups)

    place.driver.begin("read_in_order", plan=str(plan_file), groups=str(groups_file))

    # Partition i holds group i, so each row shows which task read its file, and where.
    assert place.driver.finish() == [[n, n, wanted[n]] for n in range(FILE_COUNT)]


def test_groups_of_hosts_without_executors_are_read_elsewhere(
    place: CachingCluster, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    table.mkdir()
    for n in range(FILE_COUNT):
        pq.write_table(pa.table({"n": [n]}), table / f"{n:02}.parquet")
    hosts = {f"{n:02}.parquet": [HOSTS[0] if n % 2 else "10.255.255.1"] for n in range(FILE_COUNT)}
    plan, groups = plan_of(table, {"n": "bigint"}, hosts=hosts)
    plan_file, groups_file = tmp_path / "plan", tmp_path / "groups"
    plan_file.write_text(plan.model_dump_json())
    with pa.ipc.new_file(str(groups_file), groups.schema) as writer:
        writer.write_table(groups)

    place.driver.begin("read_in_order", plan=str(plan_file), groups=str(groups_file))

    assert [row[:2] for row in place.driver.finish()] == [[n, n] for n in range(FILE_COUNT)]
