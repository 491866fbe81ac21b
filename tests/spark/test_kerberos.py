"""On an HDFS with Kerberos, tables are used with each kind of credentials, and missing ones named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.hadoop_settings import write_settings
from tests.support.servers.kerberos import SecuredHdfs, secured_cluster
from tests.support.tables import hive

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
# Three days with two files each.
ROWS = 60
GIVE = r"give this process a ticket \(kinit, KRB5CCNAME\) or a keytab \(KRB5_CLIENT_KTNAME\)"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredHdfs]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        files = hive.write_events(tmp_path_factory.mktemp("files") / "events")
        cluster.upload(files, "/tables/events")
        yield cluster


def outcome(secured: SecuredHdfs, folder: Path, environment: Mapping[str, str], *more: str) -> Any:
    """Return what comes of using the table in a process that has only these credentials."""
    nothing = {"KRB5CCNAME": f"FILE:{folder}/no ticket"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.programs.on_kerberos", str(folder)),
            *(f"{secured.hdfs.uri}/tables/events", *more),
        ],
        cwd=ROOT,
        env={**os.environ, **secured.environment, **nothing, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_table_is_read_written_and_compacted_with_a_ticket(
    secured: SecuredHdfs, tmp_path: Path
) -> None:
    result = outcome(secured, tmp_path, {"KRB5CCNAME": f"FILE:{secured.ticket}"}, "spark")

    assert result == [ROWS, 0, ROWS, 6, ROWS + 5, 3, ROWS + 5]


def test_keytabs_and_tokens_take_the_place_of_tickets(secured: SecuredHdfs, tmp_path: Path) -> None:
    for name, file in (
        ("KRB5_CLIENT_KTNAME", secured.keytab),
        ("HADOOP_TOKEN_FILE_LOCATION", secured.tokens),
    ):
        (tmp_path / name).mkdir()
        assert outcome(secured, tmp_path / name, {name: str(file)}) >= ROWS


def test_missing_and_expired_tickets_are_named(secured: SecuredHdfs, tmp_path: Path) -> None:
    for name, words, environment in (
        ("none", "No Kerberos credentials available", {}),
        ("expired", "Ticket expired", {"KRB5CCNAME": f"FILE:{secured.expired_ticket}"}),
    ):
        (tmp_path / name).mkdir()
        text = outcome(secured, tmp_path / name, environment)

        assert re.search(f"Kerberos: {words}.*; {GIVE}", text)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("hadoop.security.authentication", "if it requires Kerberos, say so in core-site.xml"),
        ("dfs.data.transfer.protection", "copy dfs.data.transfer.protection"),
    ],
)
def test_a_setting_that_is_missing_is_named(
    setting: str, words: str, secured: SecuredHdfs, tmp_path: Path
) -> None:
    others = {name: value for name, value in secured.settings.items() if name != setting}
    write_settings(tmp_path / "core-site.xml", others)
    environment = {
        "HADOOP_CONF_DIR": str(tmp_path),
        "KRB5CCNAME": f"FILE:{secured.ticket}",
    }

    assert words in outcome(secured, tmp_path, environment)
