"""`windrow worker run`: refused options, and the name of this host."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from windrow_cli.app import run
from windrow_tables.host_cache.hosts import this_host, worker_id_of


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--capacity", "1MB"], "give at least 16MB"),
        (["--capacity", "much"], "much"),
        (["--id", "a/b"], "is not an id"),
        (["--ttl", "0"], "ttl"),
    ],
)
def test_invalid_options_are_refused_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["worker", "run", "--cache-dir", str(tmp_path / "cache"), *options])

    assert code == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert refused.count("\n") == 1
    assert not (tmp_path / "cache").exists()


def test_this_host_has_the_name_given_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.7")
    assert this_host() == "127.0.0.7"

    monkeypatch.setenv("SPARK_LOCAL_HOSTNAME", "node-7")
    assert this_host() == "node-7"


def test_this_host_is_an_address_if_spark_is_given_no_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"):
        monkeypatch.delenv(variable, raising=False)

    assert ipaddress.ip_address(this_host()).version == 4


def test_a_worker_has_an_id_whatever_its_host_is_called() -> None:
    assert worker_id_of("[fe80::1]") == "_fe80__1_"
    assert worker_id_of("node-7.example") == "node-7.example"
