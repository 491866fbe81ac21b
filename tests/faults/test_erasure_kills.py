"""An erasure that is killed at any step loses no other row, and the same command ends it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.laws import a_few
from tests.support.servers.coordinators import running
from tests.support.tables.traces import traces_of
from windrow.client import Client
from windrow_core.models.erasures import ErasureReceipt
from windrow_service.settings import Settings

# Whose bytes occur nowhere by chance. They are in four of six files; the third folder has no other row.
GONE = [random.Random(one).getrandbits(61) | 1 << 60 for one in range(5)]
FILES: dict[str, list[int]] = {
    "ds=1/a.parquet": [10, GONE[0], 11],
    "ds=1/b.parquet": [12, 13],
    "ds=2/a.parquet": [GONE[1], 14],
    "ds=2/b.parquet": [15],
    "ds=3/a.parquet": [GONE[2], GONE[3]],
    "ds=4/a.parquet": [16, GONE[4]],
}
LEFT = sorted(one for ids in FILES.values() for one in ids if one not in GONE)
STEPS = [
    *(("staged", 1), ("admitted", 1), ("recorded", 1), ("moved in", 1), ("published", 1)),
    *(("tidied", 1), ("noted", 1), ("forgotten", 1), ("finishing", 1)),
]


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def client(state_dir: Path) -> Iterator[Client]:
    settings = Settings(state_dir=state_dir, allowed_locations=("/",))
    with running(settings) as url, windrow.connect(url) as client:
        yield client


def ids_in(location: Path) -> list[int]:
    """Return the ids of the rows that somebody finds who lists the folders."""
    paths = [path for path in location.rglob("*.parquet") if "_windrow" not in path.parts]
    return [one for path in paths for one in pq.ParquetFile(path).read(["id"])["id"].to_pylist()]


def die_at(client: Client, table: str, step: str, nth: int, ids: Sequence[int]) -> None:
    program = [sys.executable, "-m", "tests.programs.dying_erasure", client.url, table]
    done = subprocess.run(
        [*program, step, str(nth), *map(str, ids)], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize(("step", "nth"), a_few(STEPS, 4))
def test_whoever_is_killed_leaves_a_whole_table_and_the_same_command_goes_on(
    client: Client, state_dir: Path, tmp_path: Path, step: str, nth: int
) -> None:
    location, table = tmp_path / "t", f"s.{step.replace(' ', '_')}"
    for name, ids in FILES.items():
        (location / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": ids, "text": [f"{one}" for one in ids]}), location / name)
    client.register_table(table, str(location), bloom_columns=["id"])
    client.refresh(table)

    die_at(client, table, step, nth, GONE)

    assert set(ids_in(location)) >= set(LEFT)
    erasure = client.erase(table, key="id", values=GONE, processes=1)
    assert isinstance(erasure.receipt, ErasureReceipt)
    assert sorted(ids_in(location)) == LEFT
    assert sorted(client.scan(table).to_table()["id"].to_pylist()) == LEFT
    assert traces_of([*GONE, *map(str, GONE)], location, state_dir) == []
    assert not list(client.writes(table, open_only=True))
