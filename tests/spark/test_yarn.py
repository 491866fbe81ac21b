"""On YARN, jobs run and groups are read on the hosts that hold their files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.servers.hdfs import Hdfs, hdfs_cluster
from tests.support.servers.yarn import yarn_cluster, yarn_jars
from tests.support.tables import hive

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
# Three days with four files each.
FILES, ROWS = 12, 120


def hosts_of(hdfs: Hdfs, uri: str) -> set[str]:
    status = hdfs.files.getFileStatus(hdfs.path(unquote(urlsplit(uri).path)))
    (block,) = hdfs.files.getFileBlockLocations(status, 0, status.getLen())
    return set(block.getHosts())


def test_jobs_run_and_groups_are_read_on_the_hosts_of_their_files(tmp_path: Path) -> None:
    for name in ("hdfs", "yarn"):
        (tmp_path / name).mkdir()
    with (
        hdfs_cluster(tmp_path / "hdfs", jars=yarn_jars()) as hdfs,
        yarn_cluster(hdfs, tmp_path / "yarn") as conf,
    ):
        location = hdfs.upload(hive.write_events(tmp_path / "events", files_per_day=4), "/events")
        uris = [f"{location}/{name}" for name in hive.data_files(tmp_path / "events")]
        hosts = {uri: hosts_of(hdfs, uri) for uri in uris}
        environment = {**os.environ, "HADOOP_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable}

        done = subprocess.run(
            [sys.executable, "-m", "tests.programs.on_yarn", str(tmp_path), location],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr[-5_000:]
        before, after = json.loads(done.stdout.splitlines()[-1])
        compacted = {path for _, path, _ in after}
        hosts |= {path: hosts_of(hdfs, path) for path in compacted}
    assert [row[0] for row in before] == [row[0] for row in after] == list(range(ROWS))
    assert (len({path for _, path, _ in before}), len(compacted)) == (FILES, 3)
    for rows in (before, after):
        assert all(host in hosts[path] for _, path, host in rows)
