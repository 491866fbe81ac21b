"""A real coordinator process, and tables for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.servers.coordinators import coordinator_process
from windrow_cli.app import run


class Said(NamedTuple):
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture(scope="session")
def tables_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session")
def coordinator_url(tables_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    work = tmp_path_factory.mktemp("coordinator")
    with coordinator_process(work / "state", tables_root) as coordinator:
        yield coordinator.url


@pytest.fixture
def windrow(
    coordinator_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command of the CLI against the coordinator."""
    monkeypatch.setenv("WINDROW_URL", coordinator_url)

    def command(*arguments: str) -> Said:
        capsys.readouterr()
        code = run(arguments)
        return Said(code, *capsys.readouterr())

    return command


@pytest.fixture(scope="session")
def sales(tables_root: Path) -> Path:
    """Six files of ten rows in three days."""
    folder = tables_root / "sales"
    for day in (1, 2, 3):
        for part in range(2):
            path = folder / f"ds=2026-11-0{day}" / f"part-{part}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            ids = pa.array(range(part * 10, part * 10 + 10), pa.int64())
            pq.write_table(pa.table({"id": ids, "amount": ids}), path)
    return folder
